"""A configuration with its defaults, checked: the keys of the recipe and of PaddleNLP's ``TrainingArguments``.

Only :func:`finished` imports Paddle and PaddleNLP, because that takes seconds, and help and the first check of a
configuration use this module without them.
"""

import contextlib
import json
import os
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Optional, get_args, get_origin, get_type_hints

from paddle_rope.options import NOT_NEGATIVE, POSITIVE, choice, did_you_mean, integer, number
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.common.training.arguments import LARGEST_SEED, EncoderArguments, check_kinds, option
from paddle_rope.tasks.common.training.run import CHECKPOINTS_FOLDER, LOG_FOLDER

SCHEDULERS = ("linear", "cosine", "constant", "constant_with_warmup", "polynomial")  # PaddleNLP's


@dataclass
class TrainingKeys:
    """The keys that the recipes document, with their defaults in recipes that count epochs."""

    output_dir: Optional[str] = option(None, "folder of the run; must be new")
    device: Optional[str] = option(None, "`cpu`, `gpu`, `gpu:1`, ...; empty: a GPU if there is one")
    seed: int = option(42, "seed of the initial weights, the order of the data, and dropout", integer(0, LARGEST_SEED))
    num_train_epochs: float = option(14.0, "passes through the training data", POSITIVE)
    per_device_train_batch_size: int = option(32, "examples per batch and process", POSITIVE)
    per_device_eval_batch_size: int = option(32, "the same in evaluation", POSITIVE)
    gradient_accumulation_steps: int = option(
        1, "batches per optimizer step, for larger batches than memory holds", POSITIVE
    )
    learning_rate: float = option(1e-3, "peak learning rate of AdamW, reached after the warm-up", POSITIVE)
    lr_scheduler_type: str = option(
        "linear", "`linear`, `cosine`, `constant_with_warmup`, or `constant`, which has no warm-up", choice(*SCHEDULERS)
    )
    warmup_ratio: float = option(0.1, "share of the steps in which the learning rate rises from 0", number(0, 1))
    weight_decay: float = option(0.01, "weight decay of AdamW")
    max_grad_norm: float = option(1.0, "longer gradients are scaled down to this norm")
    recompute: bool = option(False, "recompute the layers in the backward pass: less memory, more time")
    bf16: Optional[bool] = option(
        None,
        "bfloat16 in training: on a CPU the matrix products of native operators, empty: where that is faster; mixed "
        "precision on a GPU (untested: nothing here has run on one), empty: no",
    )
    fp16: bool = option(False, "float16 mixed precision on a GPU (untested as well)")
    logging_steps: int = option(20, "optimizer steps between two values of the loss in the log", POSITIVE)
    save_steps: int = option(500, "optimizer steps between two checkpoints", POSITIVE)
    eval_steps: Optional[int] = option(None, "optimizer steps between two evaluations", POSITIVE)
    max_steps: int = option(-1, "optimizer steps in all, instead of `num_train_epochs`; -1: by epochs")
    warmup_steps: int = option(0, "steps in which the learning rate rises, instead of `warmup_ratio`", NOT_NEGATIVE)


DOCUMENTED = {one.name: one for one in fields(TrainingKeys)}
# Other keys of PaddleNLP, and what to use instead.
INSTEAD = {
    "resume_from_checkpoint": "write --resume OUTPUT_DIR in place of the configuration file; the run keeps its own",
    "overwrite_output_dir": "a run never writes over another; name a new output_dir",
    **dict.fromkeys(
        ("save_steps", "save_strategy"),
        "a checkpoint is written at each evaluation and every checkpoint_minutes; set that",
    ),
    "no_cuda": "write --device cpu",
    "optim": "the optimizer is AdamW; leave it out",
    **dict.fromkeys(
        ("sharding", "sharding_parallel_degree", "tensor_parallel_degree", "pipeline_parallel_degree"),
        "each process holds the whole model; several share the batches: python -m paddle.distributed.launch",
    ),
}


def usable_keys(arguments_class: type[EncoderArguments]) -> dict[str, Any]:
    """The documented keys that a recipe has: dict from their names to the recipe's defaults."""
    plan, own = arguments_class.PLAN, arguments_class.DEFAULTS
    return {name: own.get(name, one.default) for name, one in DOCUMENTED.items() if not plan.is_closed(name)}


SPECIAL_TOKENS = {"max_characters": 2, "max_tokens": 0}  # key that bounds the length of texts -> tokens that are added


class Settings(NamedTuple):
    """A checked configuration."""

    config: dict[str, Any]  # its keys with their defaults
    keys: EncoderArguments  # the recipe's, parsed
    training: Any  # PaddleNLP's TrainingArguments
    given: dict[str, Any]  # the keys as they were given, without defaults


def check_config(given, arguments_class):
    """:class:`Settings` with the recipe's defaults filled in, after keys and values are checked; ``training`` are the
    :class:`TrainingKeys`.

    No text is read beyond the learned positions of ``pretrained``. Neither Paddle nor PaddleNLP is imported. Raises
    InputError if a key is unknown or missing, or a value does not fit.
    """
    usable = usable_keys(arguments_class)
    for key in given:
        if key not in usable and key not in arguments_class.__dataclass_fields__:
            _refuse_key(key, arguments_class, usable)
    known = {**usable, **{key: value for key, value in given.items() if value is not None}}
    keys, training = parse_arguments(known, arguments_class), parse_arguments(known, TrainingKeys)
    keys.check_ranges()
    check_kinds(training)
    unused = keys.unused_keys() - given.keys()
    config = {key: value for key, value in vars(keys).items() if key not in unused}
    config.update({key: getattr(training, key) for key in usable})
    for key in arguments_class.REQUIRED:
        if not config.get(key):
            raise InputError(f"no {key!r}: name it in the configuration file or with --{key} PATH")
    for key in arguments_class.UNUSED:
        if given.get(key) not in (None, ""):
            raise InputError(f"key {key!r}: {arguments_class.WHY_UNUSED}; leave it out")
    keys.check(given)
    settled = [key for key in arguments_class.SETTLED_BY_PRETRAINED if given.get(key) not in (None, "")]
    if keys.pretrained is not None and settled:
        why = f"sizes and tokenizer come from the folder {keys.pretrained}"
        raise InputError(f"key {min(settled)!r}: {why}; leave it out, or train from scratch with --pretrained=")
    key, is_learned = arguments_class.LENGTH_KEY, given.get("position_embedding") in (None, "learned")
    if keys.pretrained is not None and is_learned and key in SPECIAL_TOKENS:
        from paddle_rope.roformer.checkpoints.reading import read_config  # which prediction does not need

        with contextlib.suppress(ValueError):  # a folder that cannot be read is refused where its weights are needed
            most = read_config(keys.pretrained).most_tokens - SPECIAL_TOKENS[key]
            if most < getattr(keys, key):
                return filled(Settings(config, keys, training, given), {key: most})
    return Settings(config, keys, training, given)


def filled(settings, chosen):
    """Checked :class:`Settings` with the keys that its data, or the model it starts from, have ``chosen``."""
    known = {**settings.config, **chosen}
    keys, training = parse_arguments(known, type(settings.keys)), parse_arguments(known, TrainingKeys)
    config = {key: getattr(training if key in DOCUMENTED else keys, key) for key in chosen}
    return Settings({**settings.config, **config}, keys, training, {**settings.given, **chosen})


def _refuse_key(key, arguments_class, usable):
    """Raise InputError for a key that the recipe does not have."""
    plan = arguments_class.PLAN
    if key in INSTEAD or plan.is_closed(key):
        why = INSTEAD.get(key) or plan.reason.format(metric=arguments_class.METRIC)
        raise InputError(f"key {key!r} cannot be set: {why}")
    suggestion = did_you_mean(key, {*arguments_class.__dataclass_fields__, *usable})
    remedy = suggestion or "paddle-rope train CONFIG.yaml --help lists the keys"
    raise InputError(f"unknown key {key!r} of {arguments_class.recipe}; {remedy}")


def finished(settings, arguments_class):
    """Checked :class:`Settings` with PaddleNLP's ``TrainingArguments`` as ``training``. Raises InputError if these
    refuse a value, or Paddle cannot use the device."""
    from paddlenlp.trainer import TrainingArguments

    from paddle_rope.tasks.common.process import choose_device

    keys, config = settings.keys, {**settings.config, "device": choose_device(settings.config.get("device"))}
    arguments = {key: value for key, value in config.items() if key not in vars(keys) and value is not None}
    arguments.update(
        keys.fixed_arguments(),
        metric_for_best_model=arguments_class.METRIC,
        # "." because PaddleNLP takes "~" at the beginning for the home folder, and nothing here does
        output_dir=os.path.join(".", config["output_dir"], CHECKPOINTS_FOLDER),
        logging_dir=os.path.join(".", config["output_dir"], LOG_FOLDER),
    )
    try:
        training = TrainingArguments(**arguments)
    except ValueError as error:
        raise InputError(f"configuration: {' '.join(str(error).split())}") from None
    if config["device"] == "cpu":
        _check_precision(training)
    return settings._replace(config=config, training=training)


def resolve(config, arguments_class):
    """The finished :class:`Settings` of a configuration whose data decide nothing."""
    return finished(check_config(config, arguments_class), arguments_class)


def _check_precision(training):
    """On CPU: bfloat16 in native operators, or float32."""
    from paddle_rope.native.products import why_no_bfloat16

    if training.fp16:
        raise InputError("configuration: fp16 needs a GPU; leave it out")
    why = why_no_bfloat16() if training.bf16 else None
    if why is not None:
        raise InputError(f"configuration: bf16 cannot be on this CPU: {why}; leave it out")


# ---- values from YAML or the command line in the types of their keys

KINDS = {int: "a whole number", float: "a number", bool: "true or false"}
TRUTH = {
    **dict.fromkeys(("yes", "true", "t", "y", "1"), True),
    **dict.fromkeys(("no", "false", "f", "n", "0"), False),
}


def parse_arguments(config, cls):
    """An instance of the dataclass ``cls`` from the keys of a configuration that are its fields. None leaves a key at
    its default, as do "" and [] if the default is None. Raises InputError if a value does not fit its type."""
    kinds, given = get_type_hints(cls), {}
    for field in fields(cls):
        value = config.get(field.name)
        if value is not None and (value not in ("", []) or field.default is not None):
            given[field.name] = typed(field.name, value, kinds[field.name])
    return cls(**given)


def typed(key, value, kind):
    """A value from YAML or the command line, converted to the type of its key: ``bool``, ``int``, ``float`` or ``str``,
    a list of them (with commas on the command line), ``Union[str, list[str]]`` for one or several, ``dict`` (JSON on
    the command line), or ``Optional``."""
    if kind is Any:
        return value
    kinds = [one for one in get_args(kind) if one is not type(None)] if get_origin(kind) is not list else [kind]
    kind = kinds[-1] if kinds else kind
    if get_origin(kind) is dict:
        return _as_dict(key, value)
    is_list = isinstance(value, (list, tuple))
    if get_origin(kind) is list and (is_list or len(kinds) == 1 or "," in str(value)):
        values = value if is_list else [word.strip() for word in str(value).split(",") if word.strip()]
        return [typed(key, one, get_args(kind)[0]) for one in values]
    if is_list:
        raise InputError(f"key {key!r}: {shown(value)} is a list; give one value")
    kind = kinds[0] if kinds else kind
    try:
        return TRUTH[str(value).lower()] if kind is bool else kind(str(value))
    except (ValueError, KeyError):
        raise InputError(
            f"configuration: {key} must be {KINDS[kind]}, got {shown(value)}; "
            "correct the value in the YAML file or on the command line"
        ) from None


def _as_dict(key, value):
    try:
        given = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError(f'configuration: {key} must be an object such as {{"name": 1}}, got {shown(value)}')
    return given
