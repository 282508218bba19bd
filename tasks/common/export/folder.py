"""The files of an exported model."""

import os
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import file_sha256, write_files
from tasks.common.model_folder import SETTINGS_FILES, damage_reported, refuse_incomplete

ONNX, PADDLE = "onnx", "paddle"
FORMATS = (ONNX, PADDLE)
ONNX_FILE = "model.onnx"
# Of Paddle Inference. Paddle 3 writes the first graph and reads both, Paddle 2 knows the second only.
GRAPH_FILES = ("inference.json", "inference.pdmodel")
WEIGHTS_FILE = "inference.pdiparams"
CHECKSUMS_FILE = "SHA256SUMS"  # of all other files, as the program sha256sum writes and checks them
EXPORTED_FOLDER = "the exported folder"  # what a message says to copy again


def is_exported(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an exported model, whole or not."""
    return any((Path(folder) / name).is_file() for name in (CHECKSUMS_FILE, ONNX_FILE, *GRAPH_FILES))


def check_folder(folder: str | os.PathLike) -> None:
    """Raise InputError unless an exported folder holds the files that were written into it and no others. This finds
    damage, not forgery: ``check_operators`` protects the engine from foreign graphs."""
    folder = Path(folder)
    refuse_incomplete(folder, (*SETTINGS_FILES, CHECKSUMS_FILE))
    with damage_reported(folder, CHECKSUMS_FILE, EXPORTED_FOLDER):
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
