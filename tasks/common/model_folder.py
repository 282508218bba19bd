"""The folder OUTPUT_DIR/model of a training run: is it whole, and do its files fit together."""

import contextlib
from pathlib import Path

from safetensors import safe_open

from tasks.common.errors import InputError

MODEL_FILES = ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json")


def refuse_incomplete(folder, missing):
    """Raise InputError if files of the model's folder are ``missing``; names the right folder where it is easy to
    guess."""
    if not missing:
        return
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder OUTPUT_DIR/model of a training run")
    if (folder / "model" / MODEL_FILES[0]).is_file():
        raise InputError(f"{folder}: is a training run, not a model; give {folder / 'model'}")
    raise InputError(
        f"{folder}: no model here ({', '.join(missing)} missing); give the folder OUTPUT_DIR/model of a training run"
    )


@contextlib.contextmanager
def damage_reported(folder, what):
    """Whatever goes wrong within, while ``what`` of a model's folder is read, becomes an InputError."""
    try:
        yield
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) <= 200 else reason[:200] + "..."
        raise InputError(
            f"{folder}: {what} is damaged or does not fit the other files ({reason}); "
            "copy the whole folder OUTPUT_DIR/model of the training run again"
        ) from error


def stored_names(folder):
    """Names of the weights in the folder's file."""
    with safe_open(str(Path(folder) / "model.safetensors"), framework="np") as file:
        return set(file.keys())


def check_names(model, stored):
    """Raise ValueError unless the names ``stored`` are those of the model: ``from_pretrained`` leaves a weight that the
    file lacks at its random start."""
    missing, unknown = sorted(set(model.state_dict()) - stored), sorted(stored - set(model.state_dict()))
    if missing or unknown:
        raise ValueError(
            f"its weights are not those of config.json: {len(missing)} missing, {len(unknown)} unknown, "
            f"such as {(missing + unknown)[0]}"
        )
