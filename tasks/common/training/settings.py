"""A configuration with its defaults, checked: the keys of the recipe and the arguments of PaddleNLP's Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from paddle_rope.roformer import removed
from tasks.common.cli.run_config import parse_arguments, typed
from tasks.common.errors import InputError
from tasks.common.training.arguments import EncoderArguments, check_kinds
from tasks.common.training.paddlenlp_keys import DOCUMENTED, TrainingKeys, check_keys, usable_keys

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
    """Fill in the recipe's defaults and check keys and values, see :func:`check_keys`; neither Paddle nor PaddleNLP is
    imported. Raises InputError if a key is unknown or missing, or a value does not fit.

    Returns:
        :class:`Settings`, whose ``training`` is a :class:`~tasks.common.training.paddlenlp_keys.TrainingKeys`. Keys of
        PaddleNLP that are not documented stay in ``config`` as they were given.
    """
    given = without_removed_keys(config)
    check_keys(given, arguments_class, recipes)
    names = {*arguments_class.__dataclass_fields__, *DOCUMENTED}
    usable = usable_keys(arguments_class)
    known = {**usable, **{key: value for key, value in given.items() if key in names and value is not None}}
    keys, training = parse_arguments(known, arguments_class, TrainingKeys)
    keys.check_ranges()
    check_kinds(training)
    unused = keys.unused_keys() - given.keys()
    config = {key: value for key, value in vars(keys).items() if key not in unused}
    config.update({key: getattr(training, key) for key in usable})
    config.update({key: value for key, value in given.items() if key not in names})
    for key in arguments_class.REQUIRED:
        if not config.get(key):
            raise InputError(f"no {key!r}: name it in the configuration file or with --{key} PATH")
    for key in arguments_class.UNUSED:
        if given.get(key) is not None:
            raise InputError(f"key {key!r}: {arguments_class.WHY_UNUSED}; leave it out")
    keys.check(given)
    settled = given.keys() & set(arguments_class.SETTLED_BY_PRETRAINED)
    if keys.pretrained is not None and settled:
        why = f"sizes and tokenizer come from the folder {keys.pretrained}"
        raise InputError(f"key {min(settled)!r}: {why}; leave it out")
    return Settings(config, keys, training, given)


def resolve_config(config, arguments_class):
    """:func:`check_config`, and the ``TrainingArguments`` of PaddleNLP; raises InputError also if Paddle cannot use the
    device."""
    from paddlenlp.trainer import TrainingArguments

    from tasks.common.process import choose_device

    config, keys, _, given = check_config(config, arguments_class)
    config["device"] = choose_device(config.get("device"))
    kinds = get_type_hints(TrainingArguments)
    for key in config.keys() - {*vars(keys), *DOCUMENTED}:
        config[key] = typed(key, config[key], kinds[key])
    arguments = {key: value for key, value in config.items() if key not in vars(keys) and value is not None}
    arguments.update(
        keys.fixed_arguments(),
        metric_for_best_model=arguments_class.METRIC,
        output_dir=f"{config['output_dir']}/checkpoints",
        logging_dir=f"{config['output_dir']}/vdl",
    )
    try:
        training = TrainingArguments(**arguments)
    except ValueError as error:
        raise InputError(f"configuration: {' '.join(str(error).split())}") from None
    if config["device"] == "cpu":
        _check_precision(training)
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
