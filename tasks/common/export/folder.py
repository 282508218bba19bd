"""The files of an exported model."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paddle_rope.json_files import read_json_object
from tasks.common.errors import InputError
from tasks.common.files import file_sha256, write_files
from tasks.common.model_folder import damage_reported, refuse_incomplete

ONNX, PADDLE = "onnx", "paddle"
FORMATS = (ONNX, PADDLE)
ONNX_FILE = "model.onnx"
# Of Paddle Inference. Paddle 3 writes the first graph and reads both, Paddle 2 knows the second only.
GRAPH_FILES = ("inference.json", "inference.pdmodel")
WEIGHTS_FILE = "inference.pdiparams"
CHECKSUMS_FILE = "SHA256SUMS"  # of all other files, as the program sha256sum writes and checks them
_CHECKSUMS_OF_0_1 = "inference.sha256"
SETTINGS_FILES = ("config.json", "vocab.txt", "tokenizer_config.json")


def is_exported(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an exported model, whole or not."""
    return any((Path(folder) / name).is_file() for name in (CHECKSUMS_FILE, _CHECKSUMS_OF_0_1, ONNX_FILE, *GRAPH_FILES))


def format_of(folder: str | os.PathLike) -> str:
    """``"onnx"`` or ``"paddle"``."""
    return ONNX if (Path(folder) / ONNX_FILE).is_file() else PADDLE


def check_folder(folder: str | os.PathLike) -> None:
    """Raise InputError unless an exported folder has the files that were written into it, and all files that are there
    were. This finds damage, not forgery: who changes a file can change its checksum.
    :func:`~tasks.common.export.operators.check_operators` is what stands between a stranger's graph and an engine."""
    folder = Path(folder)
    if not (folder / CHECKSUMS_FILE).is_file() and (folder / _CHECKSUMS_OF_0_1).is_file():
        raise InputError(f"{folder}: was exported by version 0.1; export the trained model again")
    refuse_incomplete(folder, [*SETTINGS_FILES, CHECKSUMS_FILE])
    with damage_reported(folder, CHECKSUMS_FILE, "the exported folder"):
        lines = (folder / CHECKSUMS_FILE).read_text(encoding="utf-8").splitlines()
        written = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        has_graph = ONNX_FILE in written or (WEIGHTS_FILE in written and not written.keys().isdisjoint(GRAPH_FILES))
        if not written.keys() >= set(SETTINGS_FILES) or not has_graph:
            raise ValueError("it does not name all files")
        if len(written) < len(lines):
            raise ValueError("it names a file twice")
    present = {path.name for path in folder.iterdir()}
    unknown = sorted(present - written.keys() - {CHECKSUMS_FILE})
    if unknown:
        raise InputError(f"{folder / unknown[0]}: was not exported with the others; take it out of the folder")
    for name, digest in written.items():
        if name not in present or not (folder / name).is_file() or file_sha256(folder / name) != digest:
            raise InputError(f"{folder / name}: is not the file that was exported; copy the whole folder again")


def write_checksums(folder: Path) -> None:
    """Write :data:`CHECKSUMS_FILE` for the files of a folder."""
    lines = [f"{file_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.name != CHECKSUMS_FILE]
    write_files(folder, {CHECKSUMS_FILE: "".join(lines)})


def read_config(
    folder: str | os.PathLike, kinds: dict[str, Any], defaults: dict[str, Any] | None = None
) -> SimpleNamespace:
    """Keys of the config.json of an exported folder, as attributes.

    Args:
        folder: checked by :func:`check_folder`.
        kinds: dict from the name of a key to the kinds that its value may have, as of ``isinstance``.
        defaults: dict from the name of a key that may be missing to the value that it then has.

    Raises:
        InputError: a key is missing or of another kind.
    """
    folder = Path(folder)
    with damage_reported(folder, "config.json", "the exported folder"):
        config = {**(defaults or {}), **read_json_object(folder / "config.json")}
        for name, kind in kinds.items():
            if name not in config or not isinstance(config[name], kind):
                raise ValueError(f"{name} is {config.get(name)!r:.60}")
    return SimpleNamespace(**{name: config[name] for name in kinds})
