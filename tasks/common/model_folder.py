"""Folders of models, trained (OUTPUT_DIR/model of a run) or exported: whether they are complete, and their files fit
together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddle_rope.options import read_json_object
from paddle_rope.roformer import load_tokenizer
from paddle_rope.roformer.config import RemovedOption
from tasks.common.errors import InputError, reason_of
from tasks.common.files import file_sha256, write_files
from tasks.common.process import own_command, quoted

SETTINGS_FILES = ("config.json", "vocab.txt", "tokenizer_config.json")
WEIGHTS_FILE = "model.safetensors"
MODEL_FILES = (*SETTINGS_FILES, WEIGHTS_FILE)
MODEL_TYPE = "paddle_rope_"  # in config.json, followed by the name of the recipe
ENCODER = "roformer"  # or by this, for the recipes pretraining and language_model
_WHERE = "give the folder OUTPUT_DIR/model of a training run"

ONNX, PADDLE = "onnx", "paddle"
FORMATS = (ONNX, PADDLE)
ONNX_FILE = "model.onnx"
# Of Paddle Inference. Paddle 3 writes the first graph and reads both, Paddle 2 knows the second only.
GRAPH_FILES = ("inference.json", "inference.pdmodel")
GRAPH_WEIGHTS = "inference.pdiparams"
CHECKSUMS_FILE = "SHA256SUMS"  # of all other files, as the program sha256sum writes and checks them
EXPORTED_FOLDER = "the exported folder"  # what a message says to copy again


def refuse_incomplete(folder: str | os.PathLike, needed: tuple[str, ...] = MODEL_FILES) -> None:
    """Raise InputError unless a model's folder has the ``needed`` files; the message names the right folder if it is
    easy to guess."""
    folder = Path(folder)
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing and not folder.is_dir():
        raise InputError(f"{folder}: no such folder; {_WHERE}")
    if missing and (folder / "model" / "config.json").is_file():
        raise InputError(f"{folder}: is a training run, not a model; give {folder / 'model'}")
    if missing:
        raise InputError(f"{folder}: no model here ({', '.join(missing)} missing); {_WHERE}")


def recipe_in(folder: str | os.PathLike) -> str | None:
    """The recipe, or :data:`ENCODER`, that the config.json of a folder names; None if it is missing, damaged or of
    another project."""
    try:
        kind = read_json_object(Path(folder) / "config.json").get("model_type")
    except (OSError, ValueError):
        return None
    return kind.removeprefix(MODEL_TYPE) if isinstance(kind, str) and kind.startswith(MODEL_TYPE) else None


def refuse_other_recipe(folder: str | os.PathLike, recipe: str) -> None:
    """Raise InputError if a folder holds a model of another recipe than ``recipe``."""
    other = recipe_in(folder) or recipe
    if other == ENCODER:
        raise InputError(
            f"{folder}: is an encoder or a language model, not a model of {recipe}; train one that starts from it: "
            f"{own_command()} train CONFIG.yaml --pretrained {quoted(folder)}"
        )
    if other != recipe:
        raise InputError(
            f"{folder}: is a model of {other}, not of {recipe}; give another, or write "
            f"{own_command()} predict {quoted(folder)}, which finds the recipe itself"
        )


def check_pretrained(folder: str | os.PathLike) -> None:
    """Raise InputError unless a folder of weights has a configuration."""
    from paddle_rope.roformer.checkpoints.reading import read_settings  # prediction needs no safetensors

    try:
        read_settings(folder)
    except ValueError as error:
        raise InputError(f"configuration: pretrained: {error}") from None


@contextlib.contextmanager
def damage_reported(
    folder: str | os.PathLike,
    what: str,
    whole: str = "the whole folder OUTPUT_DIR/model of the training run",
    is_other: Callable[[Exception], bool] = lambda error: False,
) -> Iterator[None]:
    """Turn every error within, while ``what`` of a model's folder is read, into an InputError; ``whole`` is what should
    be copied again. Errors for which ``is_other`` is true stay as they are."""
    try:
        yield
    except (InputError, ModuleNotFoundError):  # the second: paddle is not installed
        raise
    except RemovedOption as error:
        raise InputError(f"{folder}: {what}: {error}") from None
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        if is_other(error):
            raise
        found = f"is damaged or does not fit the other files ({reason_of(error)})"
        raise InputError(f"{folder}: {what} {found}; copy {whole} again") from error


def load_settings(folder: str | os.PathLike, config_class: Any, **reported: Any) -> tuple[Any, Any]:
    """The tokenizer and the configuration, of ``config_class``, of a trained or exported folder; raises InputError if
    a file is damaged, or they do not have the same number of tokens. ``reported`` goes to :func:`damage_reported`."""
    with damage_reported(folder, "vocab.txt or tokenizer_config.json", **reported):
        tokenizer = load_tokenizer(folder)
    with damage_reported(folder, "config.json", **reported):
        config = config_class.from_pretrained(str(folder))
        if config.vocab_size != len(tokenizer):
            raise ValueError(f"vocab_size is {config.vocab_size}, but vocab.txt has {len(tokenizer)} tokens")
    return tokenizer, config


def load_model(folder: Path, model_class: Any) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder with :data:`MODEL_FILES`; the model is in evaluation mode, so threads may
    share it. Raises InputError if files of the folder are damaged or do not fit together."""
    from safetensors import safe_open

    tokenizer, _ = load_settings(folder, model_class.config_class)
    with damage_reported(folder, WEIGHTS_FILE):
        with safe_open(str(folder / WEIGHTS_FILE), framework="np") as file:
            stored = set(file.keys())
        model = model_class.from_pretrained(folder)
        wanted = set(model.state_dict())
        if wanted != stored:  # from_pretrained leaves a weight that the file lacks at its random start
            raise ValueError(
                f"its weights do not fit config.json: {len(wanted - stored)} missing, {len(stored - wanted)} unknown, "
                f"such as {min(wanted ^ stored)}"
            )
    model.eval()
    return tokenizer, model


# ---- exported models


def is_exported(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an exported model, whole or not."""
    return any((Path(folder) / name).is_file() for name in (CHECKSUMS_FILE, ONNX_FILE, *GRAPH_FILES))


def check_exported(folder: str | os.PathLike) -> None:
    """Raise InputError unless an exported folder holds the files that were written into it and no others. This finds
    damage, not forgery: ``check_operators`` protects the engine from foreign graphs."""
    folder = Path(folder)
    refuse_incomplete(folder, (*SETTINGS_FILES, CHECKSUMS_FILE))
    with damage_reported(folder, CHECKSUMS_FILE, EXPORTED_FOLDER):
        lines = (folder / CHECKSUMS_FILE).read_text(encoding="utf-8").splitlines()
        written = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        has_graph = ONNX_FILE in written or (GRAPH_WEIGHTS in written and not written.keys().isdisjoint(GRAPH_FILES))
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


def check_least(option: str, value: int | None, least: int = 1) -> None:
    """Raise InputError unless the value of a command's option is ``least`` or more, or None."""
    if value is not None and value < least:
        raise InputError(f"--{option} {value}: must be {least} or more")
