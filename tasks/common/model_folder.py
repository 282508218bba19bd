"""The folder OUTPUT_DIR/model of a training run: is it whole, and do its files fit together."""

import contextlib
import os
from pathlib import Path

from paddle_rope.json_files import read_json_object
from paddle_rope.removed import RemovedOption
from paddle_rope.roformer import load_tokenizer
from tasks.common.cli.own_command import own_command, quoted
from tasks.common.errors import InputError
from tasks.common.process import choose_device

MODEL_FILES = ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json")
MODEL_TYPE = "paddle_rope_"  # in config.json, with the name of the recipe behind it
ENCODER = "roformer"  # in its place: of the recipes pretraining and language_model
_ASK = "ask its owner for it, or run as another user"
_WHOLE = "the whole folder OUTPUT_DIR/model of the training run"


def refuse_incomplete(folder, needed):
    """Raise InputError unless the model's folder has the ``needed`` files; names the right folder where it is easy to
    guess."""
    folder = Path(folder)
    try:
        missing = [name for name in needed if not (folder / name).is_file()]
    except PermissionError:
        raise InputError(f"{folder}: no permission to look into it; {_ASK}") from None
    if not missing:
        for path in (folder / name for name in needed):
            if not os.access(path, os.R_OK):  # safetensors would say that there is no such file
                raise InputError(f"{path}: no permission to read it; {_ASK}")
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder OUTPUT_DIR/model of a training run")
    if (folder / "model" / MODEL_FILES[0]).is_file():
        raise InputError(f"{folder}: is a training run, not a model; give {folder / 'model'}")
    raise InputError(
        f"{folder}: no model here ({', '.join(missing)} missing); give the folder OUTPUT_DIR/model of a training run"
    )


def refuse_other_recipe(folder, recipe):
    """Raise InputError if a folder holds a model of another recipe than ``recipe``, by its config.json; a missing or
    damaged one is not reported here."""
    try:
        kind = read_json_object(Path(folder) / MODEL_FILES[0]).get("model_type")
    except (OSError, ValueError):
        return
    other = kind.removeprefix(MODEL_TYPE) if isinstance(kind, str) and kind.startswith(MODEL_TYPE) else recipe
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


def check_pretrained(folder):
    """Raise InputError unless a folder of weights has a configuration."""
    from paddle_rope.roformer.checkpoints.settings import read_settings  # prediction needs no safetensors

    try:
        read_settings(folder)
    except ValueError as error:
        raise InputError(f"configuration: pretrained: {error}") from None


@contextlib.contextmanager
def damage_reported(folder, what, whole=_WHOLE, is_other=lambda error: False):
    """Whatever goes wrong within, while ``what`` of a model's folder is read, becomes an InputError; ``whole`` is what
    is to be copied again. Errors of which ``is_other`` is true stay as they are."""
    try:
        yield
    except (InputError, ModuleNotFoundError):  # the second: paddle is not installed
        raise
    except RemovedOption as error:
        raise InputError(f"{folder}: {what}: {error}") from None
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        if is_other(error):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) <= 200 else reason[:200] + "..."
        raise InputError(
            f"{folder}: {what} is damaged or does not fit the other files ({reason}); copy {whole} again"
        ) from error


def load_model(folder, model_class, check):
    """The tokenizer and the model of a folder; the model is in evaluation mode, so that threads may share it.

    Args:
        folder: with the ``MODEL_FILES``.
        model_class: class of the model, with its ``config_class``.
        check: function of the configuration; raises ValueError if it is none of a trained model.

    Raises:
        InputError: files of the folder are damaged or do not fit together.
    """
    from safetensors import safe_open

    folder = Path(folder)
    tokenizer, config = load_settings(folder, model_class.config_class, check)
    with damage_reported(folder, "model.safetensors"):
        with safe_open(str(folder / "model.safetensors"), framework="np") as file:
            stored = set(file.keys())
        model = model_class.from_pretrained(str(folder), config=config)
        _check_names(model, stored)
    model.eval()
    return tokenizer, model


def open_model(folder, device, model_class, check=lambda config: None):
    """As :func:`load_model`, for prediction on a device; raises InputError, too, if the folder or the device is not
    there."""
    refuse_incomplete(folder, MODEL_FILES)
    choose_device(device)
    return load_model(folder, model_class, check)


def check_least(option, value, least=1):
    """Raise InputError unless the value of a command's option is ``least`` or more, or None."""
    if value is not None and value < least:
        raise InputError(f"--{option} {value}: must be {least} or more")


def load_settings(folder, config_class, check):
    """The tokenizer and the configuration of a folder; as :func:`load_model` without its weights."""
    folder = Path(folder)
    with damage_reported(folder, "vocab.txt or tokenizer_config.json"):
        tokenizer = load_tokenizer(folder)
    with damage_reported(folder, "config.json"):
        config = config_class.from_pretrained(str(folder))
        check(config)
        if config.vocab_size != len(tokenizer):
            raise ValueError(f"vocab_size is {config.vocab_size}, but vocab.txt has {len(tokenizer)} tokens")
    return tokenizer, config


def check_vocabulary(folder, tokenizer, model):
    """Raise InputError unless the tokenizer and the model of a folder know as many tokens."""
    if len(tokenizer) != model.config.vocab_size:
        raise InputError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the model embeddings for "
            f"{model.config.vocab_size}; they do not belong together"
        )


def check_named(name, value, least=1):
    """Raise ValueError unless ``value``, under ``name`` in config.json, is a list of at least ``least`` names that can
    be written in UTF-8, which half of a surrogate pair cannot."""
    is_list = isinstance(value, list) and len(value) >= least
    if not is_list or not all(isinstance(one, str) and one == one.encode(errors="ignore").decode() for one in value):
        raise ValueError(f"{name} is {value!r}, not a list of names")


def check_length(name, value):
    """Raise ValueError unless ``value``, under ``name`` in config.json, is a positive integer."""
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is {value!r}, not a positive integer")


def _check_names(model, stored):
    """Raise ValueError unless the names ``stored`` are those of the model: ``from_pretrained`` leaves a weight that the
    file lacks at its random start."""
    missing, unknown = sorted(set(model.state_dict()) - stored), sorted(stored - set(model.state_dict()))
    if missing or unknown:
        raise ValueError(
            f"its weights are not those of config.json: {len(missing)} missing, {len(unknown)} unknown, "
            f"such as {(missing + unknown)[0]}"
        )
