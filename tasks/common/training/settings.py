"""A configuration with its defaults, checked: the keys of the recipe and the arguments of PaddleNLP's Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from paddle_rope.roformer import removed
from tasks.common.cli.run_config import parse_arguments, typed
from tasks.common.errors import InputError, did_you_mean
from tasks.common.training.arguments import EncoderArguments, check_kinds
from tasks.common.training.paddlenlp_keys import DOCUMENTED, INSTEAD, TrainingKeys, paddlenlp_names, usable_keys

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
    """:class:`Settings` with the recipe's defaults filled in, after keys and values are checked; ``training`` are the
    documented :class:`TrainingKeys`, and other keys of PaddleNLP stay in ``config`` as they were given.

    Neither Paddle nor PaddleNLP is imported. Raises InputError if a key is unknown or missing, or a value does not fit;
    ``recipes`` has the keys of all recipes by their names, to say of which recipe an unknown key is.
    """
    given, usable = without_removed_keys(config), usable_keys(arguments_class)
    for key in given:
        if key not in usable and key not in arguments_class.__dataclass_fields__:
            _refuse_key(key, arguments_class, usable, recipes or {})
    names = {*arguments_class.__dataclass_fields__, *DOCUMENTED}
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


def _refuse_key(key, arguments_class, usable, recipes):
    """Raise InputError for a key that the recipe does not have, unless PaddleNLP has it and it contradicts nothing."""
    plan, renamed = arguments_class.PLAN, arguments_class.RENAMED
    if key in renamed:
        raise InputError(f"key {key!r} is called {renamed[key]!r} now; rename it")
    if plan.is_closed(key) and (key not in INSTEAD or key in plan.reason):
        raise InputError(f"key {key!r} cannot be set: {plan.reason.format(metric=arguments_class.METRIC)}")
    if key in INSTEAD:
        raise InputError(f"key {key!r} of PaddleNLP does nothing here: {INSTEAD[key]}")
    suggestion = did_you_mean(key, {*arguments_class.__dataclass_fields__, *usable})
    others = [name for name, other in recipes.items() if key in other.__dataclass_fields__]
    if others:
        remedy = suggestion or "leave it out"
        raise InputError(f"key {key!r} is a key of {', '.join(others)}, not of this recipe; {remedy}")
    if key not in paddlenlp_names():
        remedy = suggestion or "paddle-rope train CONFIG.yaml --help lists the keys"
        raise InputError(f"unknown key {key!r}; {remedy}")


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
