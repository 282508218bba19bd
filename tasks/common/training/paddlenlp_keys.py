"""Keys of PaddleNLP's ``TrainingArguments``: what the recipes document, refuse and pass through.

PaddleNLP is not imported, because that takes seconds: help and the first check of a configuration need this module.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional

from paddle_rope.options import POSITIVE, Kind, choice
from tasks.common.training.arguments import SEED, EncoderArguments, option

SCHEDULERS = ("linear", "cosine", "constant", "constant_with_warmup", "polynomial")  # PaddleNLP's
MOST_WORKERS = 64  # processes that prepare batches
FROM_0_TO_1 = Kind("from 0 to 1", lambda value: 0 <= value <= 1)
WORKERS = Kind(f"from 0 to {MOST_WORKERS}", lambda value: 0 <= value <= MOST_WORKERS)


@dataclass
class TrainingKeys:
    """The keys that the recipes document, with their defaults in recipes that count epochs."""

    output_dir: Optional[str] = option(None, "folder of the run; must be new")
    device: Optional[str] = option(None, "`cpu`, `gpu`, `gpu:1`, ...; empty: a GPU if there is one")
    seed: int = option(42, "seed of the initial weights, the order of the data, and dropout", SEED)
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
    warmup_ratio: float = option(0.1, "share of the steps in which the learning rate rises from 0", FROM_0_TO_1)
    weight_decay: float = option(0.01, "weight decay of AdamW")
    max_grad_norm: float = option(1.0, "longer gradients are scaled down to this norm")
    recompute: bool = option(False, "recompute the layers in the backward pass: less memory, more time")
    bf16: bool = option(
        False,
        "bfloat16 in training: on a CPU that has it, the products of linear layers by native operators; mixed "
        "precision on a GPU (untested: nothing here has run on one)",
    )
    fp16: bool = option(False, "float16 mixed precision on a GPU (untested as well)")
    logging_steps: int = option(20, "optimizer steps between two values of the loss in the log", POSITIVE)
    save_steps: int = option(500, "optimizer steps between two checkpoints", POSITIVE)
    eval_steps: Optional[int] = option(None, "optimizer steps between two evaluations", POSITIVE)
    max_steps: int = option(-1, "optimizer steps in all, instead of `num_train_epochs`; -1: by epochs")
    warmup_steps: int = option(0, "steps in which the learning rate rises, instead of `warmup_ratio`")
    dataloader_num_workers: int = option(0, "processes that prepare batches; 0: the run itself", WORKERS)


DOCUMENTED = {one.name: one for one in fields(TrainingKeys)}
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


def usable_keys(arguments_class: type[EncoderArguments]) -> dict[str, Any]:
    """The documented keys that a recipe has: dict from their names to the recipe's defaults."""
    plan = arguments_class.PLAN
    own = {**plan.defaults, **arguments_class.DEFAULTS}
    return {name: own.get(name, one.default) for name, one in DOCUMENTED.items() if not plan.is_closed(name)}


def paddlenlp_names() -> set[str]:
    """The names of all fields of ``TrainingArguments``, read from its source; empty without PaddleNLP."""
    spec = importlib.util.find_spec("paddlenlp")
    if spec is None or spec.origin is None:
        return set()
    source = Path(spec.origin).with_name("trainer") / "training_args.py"
    return set(re.findall(r"^    (\w+): .+= field\(", source.read_text(encoding="utf-8"), re.MULTILINE))
