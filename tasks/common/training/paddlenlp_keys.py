"""Keys of PaddleNLP's ``TrainingArguments`` that do something in the recipes. PaddleNLP is not imported, because that
takes seconds: help and the first check of a configuration need this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, make_dataclass
from typing import Any, NamedTuple

from tasks.common.errors import InputError, did_you_mean
from tasks.common.training.arguments import TRAINING_DEFAULTS, EncoderArguments


class Key(NamedTuple):
    """A key that a user may set."""

    default: Any  # PaddleNLP's; None where there is none
    help: str  # meaning and unit
    is_common: bool = True  # whether the tables of the documents have it
    kind: Any = None  # type of its values; None: as the default has


KEYS = {
    "output_dir": Key(None, "folder of the run; must be new", kind=str),
    "device": Key(None, "`cpu`, `gpu`, `gpu:1`, ...; empty: a GPU if there is one", kind=str),
    "seed": Key(42, "seed of the initial weights, the order of the data, and dropout"),
    "num_train_epochs": Key(1.0, "passes through the training data"),
    "per_device_train_batch_size": Key(8, "examples per batch and process"),
    "per_device_eval_batch_size": Key(8, "the same in evaluation"),
    "gradient_accumulation_steps": Key(1, "batches per optimizer step, for larger batches than memory holds"),
    "learning_rate": Key(5e-5, "peak learning rate of AdamW, reached after the warm-up"),
    "lr_scheduler_type": Key(
        "linear", "`linear`, `cosine`, `constant_with_warmup`, or `constant`, which has no warm-up"
    ),
    "warmup_ratio": Key(0.0, "share of the steps in which the learning rate rises from 0"),
    "weight_decay": Key(0.0, "weight decay of AdamW"),
    "max_grad_norm": Key(1.0, "longer gradients are scaled down to this norm"),
    "recompute": Key(False, "recompute the layers in the backward pass: less memory, more time"),
    "bf16": Key(
        False,
        (
            "bfloat16 in training: on a CPU that has it, the products of linear layers by native operators; mixed "
            "precision on a GPU (untested: nothing here has run on one)"
        ),
    ),
    "fp16": Key(False, "float16 mixed precision on a GPU (untested as well)"),
    "logging_steps": Key(500, "optimizer steps between two values of the loss in the log"),
    "save_steps": Key(500, "optimizer steps between two checkpoints", is_common=False),
    "eval_steps": Key(None, "optimizer steps between two evaluations", is_common=False, kind=int),
    "max_steps": Key(-1, "optimizer steps in all, instead of `num_train_epochs`; -1: by epochs", is_common=False),
    "warmup_steps": Key(0, "steps in which the learning rate rises, instead of `warmup_ratio`", is_common=False),
    "num_cycles": Key(0.5, "waves of `cosine`", is_common=False),
    "lr_end": Key(1e-7, "last learning rate of `polynomial`", is_common=False),
    "power": Key(1.0, "exponent of `polynomial`", is_common=False),
    "adam_beta1": Key(0.9, "decay of AdamW's mean of the gradients", is_common=False),
    "adam_beta2": Key(0.999, "decay of AdamW's mean of their squares", is_common=False),
    "adam_epsilon": Key(1e-8, "added to AdamW's denominator", is_common=False),
    "logging_first_step": Key(False, "also log the loss of the first step", is_common=False),
    "dataloader_num_workers": Key(0, "processes that prepare batches; 0: the run itself", is_common=False),
    "fp16_opt_level": Key("O1", "of `fp16` and `bf16`: `O1` or `O2`", is_common=False),
    "scale_loss": Key(32768, "first scale of the loss with `fp16`", is_common=False, kind=float),
    "amp_master_grad": Key(False, "gradients in float32 with `O2`", is_common=False),
    "amp_custom_black_list": Key(None, "operators that stay in float32", is_common=False, kind=list[str]),
    "amp_custom_white_list": Key(None, "operators that do not", is_common=False, kind=list[str]),
}
# The same keys as fields of a dataclass, to be parsed and checked without PaddleNLP.
TrainingKeys = make_dataclass(
    "TrainingKeys", [(name, key.kind or type(key.default), field(default=key.default)) for name, key in KEYS.items()]
)
# Keys of PaddleNLP that would contradict a recipe, and what to use instead.
INSTEAD = {
    "resume_from_checkpoint": "write --resume OUTPUT_DIR in place of the configuration file; the run keeps its own",
    "overwrite_output_dir": "a run never writes over another; name a new output_dir",
    **dict.fromkeys(
        ("save_steps", "save_strategy"),
        "a checkpoint is written at each evaluation and every checkpoint_minutes; set that",
    ),
    "no_cuda": "write --device cpu",
    "optim": "the optimizer is AdamW; leave it out",
    "sharding": "each process holds the whole model; several share the batches: python -m paddle.distributed.launch",
}


def usable_keys(arguments_class: type[EncoderArguments]) -> dict[str, Key]:
    """The keys of PaddleNLP that do something in a recipe, with the recipe's defaults."""
    plan = arguments_class.PLAN
    defaults = {**TRAINING_DEFAULTS, **plan.defaults, **arguments_class.DEFAULTS}
    return {
        name: key._replace(default=defaults.get(name, key.default))
        for name, key in KEYS.items()
        if name not in plan.closed
    }


def check_keys(
    config: Iterable[str],
    arguments_class: type[EncoderArguments],
    recipes: Mapping[str, type[EncoderArguments]] | None = None,
) -> None:
    """Raise InputError unless every key does something in a recipe.

    Args:
        config: names of the keys that were given.
        arguments_class: of the recipe.
        recipes: the keys of all recipes by their names, to say of which recipe an unknown key is.
    """
    plan = arguments_class.PLAN
    usable = {*arguments_class.__dataclass_fields__, *usable_keys(arguments_class)}
    for key in config:
        if key in arguments_class.RENAMED:
            raise InputError(f"key {key!r} is called {arguments_class.RENAMED[key]!r} now; rename it")
        if key in usable:
            continue
        if key in plan.closed and (key not in INSTEAD or key in plan.reason):
            raise InputError(f"key {key!r} cannot be set: {plan.reason.format(metric=arguments_class.METRIC)}")
        if key in INSTEAD:
            raise InputError(f"key {key!r} of PaddleNLP does nothing here: {INSTEAD[key]}")
        suggestion = did_you_mean(key, usable)
        others = [name for name, other in (recipes or {}).items() if key in other.__dataclass_fields__]
        if others:
            raise InputError(
                f"key {key!r} is a key of {', '.join(others)}, not of this recipe; {suggestion or 'leave it out'}"
            )
        raise InputError(f"unknown key {key!r}; {suggestion or 'paddle-rope train CONFIG.yaml --help lists the keys'}")
