"""A configuration with its defaults, checked: the keys of the recipe and the arguments of PaddleNLP's Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from paddle_rope.roformer import removed
from tasks.common.cli.run_config import parse_arguments
from tasks.common.errors import InputError
from tasks.common.training.arguments import BY_EPOCHS, LAST_KEPT, TRAINING_RANGES, WITHOUT_DEV, EncoderArguments
from tasks.common.training.paddlenlp_keys import TrainingKeys, check_keys

if TYPE_CHECKING:
    from paddlenlp.trainer import TrainingArguments

# Key -> the values with which it does nothing: the configurations of unfinished runs have all keys.
REMOVED_KEYS = {**removed.OPTIONS, "join_share": (None, 0), "join_characters": (None,)}


class Settings(NamedTuple):
    """A configuration, checked."""

    config: dict[str, Any]  # its keys with their defaults
    keys: EncoderArguments  # the recipe's, parsed
    training: TrainingArguments  # PaddleNLP's
    given: dict[str, Any]  # the keys as they were given, without defaults


def without_removed_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in today's keys and values; raises InputError where one that was removed is in use."""
    try:
        return removed.without_removed(config, REMOVED_KEYS)
    except removed.RemovedOption as error:
        raise InputError(f"configuration: {error}") from None


def check_config(config, arguments_class, recipes=None):
    """Fill in the recipe's defaults and check keys and values; neither Paddle nor PaddleNLP is imported.

    Args:
        config: dict of configuration keys.
        arguments_class: :class:`EncoderArguments` or a subclass: the recipe's keys.
        recipes: as of :func:`tasks.common.training.paddlenlp_keys.check_keys`.

    Returns:
        :class:`Settings`, whose ``training`` is a :class:`~tasks.common.training.paddlenlp_keys.TrainingKeys`, and the
        :class:`~tasks.common.training.arguments.TrainingPlan`.

    Raises:
        InputError: a key is unknown or missing, or a value does not fit.
    """
    given, plan = without_removed_keys(config), arguments_class.PLAN
    check_keys(given, arguments_class, recipes)
    config = arguments_class.normalized({**plan.defaults, **arguments_class.DEFAULTS, **given})
    keys, training = parse_arguments(config, arguments_class, TrainingKeys)
    _check_ranges(keys, training)
    for key in arguments_class.REQUIRED:
        if not config.get(key):
            raise InputError(f"no {key!r}: name it in the configuration file or with --{key} PATH")
    if plan is BY_EPOCHS and not keys.has_dev:
        plan = WITHOUT_DEV
    elif plan is BY_EPOCHS and not keys.keep_best:
        plan = LAST_KEPT
    keys.check_model(given)
    keys.check(given)
    if keys.pretrained is not None:
        for key in arguments_class.SETTLED_BY_PRETRAINED:
            if key in given:
                raise InputError(
                    f"key {key!r}: sizes and tokenizer come from the folder {keys.pretrained}; leave it out"
                )
    return Settings(config, keys, training, given), plan


def resolve_config(config, arguments_class):
    """Fill in defaults and check everything that can be checked without a file.

    Args:
        config, arguments_class: as of :func:`check_config`.

    Returns:
        :class:`Settings`.

    Raises:
        InputError: as of :func:`check_config`, or Paddle cannot use the device.
    """
    from paddlenlp.trainer import TrainingArguments

    from tasks.common.process import choose_device

    (config, keys, checked, given), plan = check_config(config, arguments_class)
    config["device"] = choose_device(config.get("device"))
    options = {key: getattr(checked, key) for key in config if hasattr(checked, key) and config[key] is not None}
    options.update(
        plan.fixed,
        device=config["device"],
        metric_for_best_model=arguments_class.METRIC,
        output_dir=f"{config['output_dir']}/checkpoints",
        logging_dir=f"{config['output_dir']}/vdl",
    )
    try:
        training = TrainingArguments(**options)
    except ValueError as error:
        raise InputError(f"configuration: {' '.join(str(error).split())}") from None
    if config["device"] == "cpu":
        _check_precision(training)
    unused = keys.unused_keys() - given.keys()
    config = {**vars(keys), **config}
    for key in unused:
        config.pop(key, None)
    for key, value in config.items():
        typed = getattr(keys if hasattr(keys, key) else training, key)
        config[key] = typed if isinstance(typed, (bool, int, float)) else _plain(value)  # "1e-3" -> 0.001
    return Settings(config, keys, training, given)


def _check_precision(training):
    """On CPU: bfloat16 in native operators, or float32."""
    from paddle_rope.native.products import why_no_bfloat16

    if training.fp16:
        raise InputError("configuration: fp16 needs a GPU; leave it out")
    if training.bf16 and training.fp16_opt_level != "O1":
        raise InputError(f"configuration: fp16_opt_level {training.fp16_opt_level} needs a GPU; on CPU bf16 is O1")
    why = why_no_bfloat16() if training.bf16 else None
    if why is not None:
        raise InputError(f"configuration: bf16 cannot be on this CPU: {why}; leave it out")


def _check_ranges(keys, training):
    for values, ranges in ((keys, keys.ranges()), (training, TRAINING_RANGES)):
        for key, (fits, wanted) in ranges.items():
            if not fits(getattr(values, key)):
                raise InputError(f"configuration: {key} must be {wanted}, got {getattr(values, key)}")


def _plain(value):
    """A value as YAML and JSON know it."""
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else str(value)
