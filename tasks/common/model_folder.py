"""Opening model folders, trained (OUTPUT_DIR/model of a run) or exported, with checks that they are complete and that
their files fit together."""

import os
from pathlib import Path
from typing import Any

from paddle_rope.files import read_json_object
from paddle_rope.roformer import load_tokenizer
from paddle_rope.tasks.common.errors import InputError, damage_reported
from paddle_rope.tasks.common.files import changed_files, checksums, write_files
from paddle_rope.tasks.common.process import own_command, quoted

SETTINGS_FILES = ("config.json", "vocab.txt", "tokenizer_config.json")
WEIGHTS_FILE = "model.safetensors"
MODEL_FILES = (*SETTINGS_FILES, WEIGHTS_FILE)
MODEL_TYPE = "paddle_rope_"  # in config.json, followed by the name of the recipe
ENCODER = "roformer"  # follows it instead for the recipes pretraining and language_model
_WHERE = "give the folder OUTPUT_DIR/model of a training run"
COPY = "copy the whole folder again: OUTPUT_DIR/model of the training run, or the exported folder"

ONNX, PADDLE = "onnx", "paddle"
FORMATS = (ONNX, PADDLE)
ONNX_FILE = "model.onnx"
# Graphs of Paddle Inference: Paddle 3 writes the first and reads both, Paddle 2 knows only the second.
GRAPH_FILES = ("inference.json", "inference.pdmodel")
GRAPH_WEIGHTS = "inference.pdiparams"
CHECKSUMS_FILE = "SHA256SUMS"  # as the program sha256sum writes and checks them
EXPORTED_FILES = (*SETTINGS_FILES, CHECKSUMS_FILE)


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


def folders_of(model_dir: Any) -> list[str | os.PathLike]:
    """One folder or several as a list; raises InputError for an empty one."""
    folders = [model_dir] if isinstance(model_dir, (str, os.PathLike)) else list(model_dir)
    if not folders:
        raise InputError("no folder of a model is given")
    return folders


def recipe_in(folder: str | os.PathLike) -> str | None:
    """The recipe, or :data:`ENCODER`, that the config.json of a folder names; None if the file is missing, damaged or
    from another project."""
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


def load_settings(folder: str | os.PathLike, config_class: Any) -> tuple[Any, Any]:
    """The tokenizer and the configuration (a ``config_class``) of a trained or exported folder. Raises InputError if a
    file is damaged or the two have different numbers of tokens."""
    with damage_reported(f"{folder}: vocab.txt or tokenizer_config.json", COPY):
        tokenizer = load_tokenizer(folder)
    with damage_reported(f"{folder}: config.json", COPY):
        config = config_class.from_pretrained(str(folder))
        if config.vocab_size != len(tokenizer):
            raise ValueError(f"vocab_size is {config.vocab_size}, but vocab.txt has {len(tokenizer)} tokens")
    return tokenizer, config


def load_model(folder: Path, model_class: Any) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder with :data:`MODEL_FILES`; the model is in evaluation mode, so threads may
    share it. Raises InputError if files of the folder are damaged or do not fit together."""
    from safetensors import safe_open

    tokenizer, _ = load_settings(folder, model_class.config_class)
    with damage_reported(f"{folder}: {WEIGHTS_FILE}", COPY):
        with safe_open(str(folder / WEIGHTS_FILE), framework="np") as file:
            stored = set(file.keys())
        model = model_class.from_pretrained(folder)
        wanted = set(model.state_dict())
        if wanted != stored:  # from_pretrained leaves a weight that the file lacks at its random initial value
            raise ValueError(
                f"its weights do not fit config.json: {len(wanted - stored)} missing, {len(stored - wanted)} unknown, "
                f"such as {min(wanted ^ stored)}"
            )
    return tokenizer, model


# ---- exported models


def is_exported(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an exported model."""
    return any((Path(folder) / name).is_file() for name in (ONNX_FILE, *GRAPH_FILES))


# ---- checksums


def write_checksums(folder: Path, *but: str) -> None:
    """Write :data:`CHECKSUMS_FILE` for the other files of a folder except those named ``but``."""
    write_files(folder, {CHECKSUMS_FILE: checksums(folder, CHECKSUMS_FILE, *but)})


def refuse_changed(folder: str | os.PathLike) -> None:
    """Raise InputError if files of a folder are missing or changed since its checksums were written, or, of an exported
    model, added. What ``save_pretrained`` alone has written has no checksums, and passes. This finds damage, not
    forgery: ``check_operators`` protects the engine from foreign graphs."""
    folder = Path(folder)
    if not (folder / CHECKSUMS_FILE).is_file():
        return
    with damage_reported(f"{folder}: {CHECKSUMS_FILE}", COPY):
        changed = changed_files(folder, CHECKSUMS_FILE, and_new=is_exported(folder))
    if changed:
        raise InputError(
            f"{folder / changed[0]}: is missing, or not the file that was written; {COPY}, or remove {CHECKSUMS_FILE} "
            "if you changed a trained model yourself"
        )
