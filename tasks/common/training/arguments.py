"""Configuration keys that all recipes have, each declared once: its type, default, meaning and range."""

import functools
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Optional, Union

from paddle_rope.options import NOT_NEGATIVE, POSITIVE, SHARE, Kind, check_given, choice
from paddle_rope.roformer.config import RoFormerConfig
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.texts.text_files import shown

DEV_SPLITS = ("stratified", "random", "contiguous")
LARGEST_SEED = 2**32 - 1  # numpy's
SIZE_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
FRACTION = Kind("greater than 0 and less than 1", lambda value: 0 < value < 1)


class TrainingPlan(NamedTuple):
    """How a recipe uses PaddleNLP's ``TrainingArguments``."""

    fixed: dict[str, Any]  # arguments that it relies on, with their values
    closed: tuple[str, ...]  # keys of a configuration that cannot be set
    reason: str  # why

    def is_closed(self, key: str) -> bool:
        """Whether a configuration cannot set a key."""
        return key in self.fixed or key in self.closed


NOT_EVALUATED = {"do_eval": False, "evaluation_strategy": "no"}  # otherwise PaddleNLP evaluates in between
_FIXED = {"do_train": True, "save_total_limit": 1, "report_to": "none"}
# One evaluation and one checkpoint an epoch, the best one kept.
BY_EPOCHS = TrainingPlan(
    fixed={
        **_FIXED,
        "do_eval": True,
        "evaluation_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "greater_is_better": True,
    },
    closed=("eval_steps", "save_steps"),
    reason="the recipe evaluates each epoch and keeps the best by dev {metric}, or the last with keep_best false",
)
# The recipe's own trainer evaluates, and the last weights are kept.
# With ignore_data_skip, the batches of a resumed run begin where it stopped.
FIXED_BY_STEPS = {**_FIXED, **NOT_EVALUATED, "ignore_data_skip": True}
CLOSED_BY_STEPS = ("num_train_epochs", "per_device_eval_batch_size")


def option(default, help, kind=None):
    """A configuration key: its default, its meaning and unit as help and documents show them, and its range."""
    return field(default=default, metadata={"help": help, "kind": kind})


def model_option(config_class, name, default=..., note=""):
    """A configuration key that is an option of the model's ``config_class``, which declares meaning, range and default.
    ``note`` is appended to the meaning, for example to give the option's form in a configuration."""
    declared = config_class.__dataclass_fields__[name]
    metadata = {**declared.metadata, "help": declared.metadata["help"] + note, "of_model": True}
    return field(default=declared.default if default is ... else default, metadata=metadata)


of_encoder = functools.partial(model_option, RoFormerConfig)


@dataclass
class EncoderArguments:
    """Configuration keys of every recipe that trains an encoder, in addition to ``TrainingArguments``."""

    recipe: Optional[str] = option(None, "what is trained")
    dev_fraction: float = option(0.1, "share of the training data held out for dev", FRACTION)
    pretrained: Optional[str] = option(
        None, "weights and tokenizer to start from: a folder, or `small`, the encoder that comes with the package"
    )
    attention: Union[str, list[str]] = of_encoder("attention", note=", separated by commas")
    attention_window: int = of_encoder("attention_window")
    feature_map: str = of_encoder("feature_map")
    normalizer: str = of_encoder("normalizer")
    decay: Optional[list[float]] = of_encoder("decay", note=", separated by commas")
    convolutions: bool = of_encoder("convolutions")
    output_gate: bool = of_encoder("output_gate")
    position_embedding: str = of_encoder("position_embedding")
    rotary: Optional[dict[str, Any]] = of_encoder("rotary")
    hidden_size: int = of_encoder("hidden_size", 256)
    num_hidden_layers: int = of_encoder("num_hidden_layers", 4)
    num_attention_heads: int = of_encoder("num_attention_heads", 4)
    intermediate_size: int = of_encoder("intermediate_size", 1024)
    hidden_act: str = of_encoder("hidden_act")
    hidden_dropout_prob: float = of_encoder("hidden_dropout_prob", 0.2)
    attention_probs_dropout_prob: float = of_encoder("attention_probs_dropout_prob")
    embedding_dropout_prob: Optional[float] = of_encoder("embedding_dropout_prob")
    vocab_min_count: int = option(2, "rarer characters become `[UNK]`")
    log_histograms: bool = option(False, "histograms of weights and gradients in VisualDL")
    checkpoint_minutes: float = option(
        15.0,
        "minutes of training after which a checkpoint is due, to resume from; 0: only at evaluations",
        NOT_NEGATIVE,
    )

    MODEL = ""  # class of the model, as "module:name"
    SCORES: ClassVar[tuple[str, ...]] = ()  # names of the scores that are shown, and summed up over several runs
    LENGTH_KEY = "max_characters"  # the key that bounds the length of texts
    # the line after training, with {model} for the model's folder, {command} for paddle-rope
    NEXT_STEP = "predict:  {command} predict {model}"
    REQUIRED = ("output_dir",)  # keys without a default
    SETTLED_BY_PRETRAINED = (*SIZE_KEYS, "vocab_min_count")  # keys that cannot be given with ``pretrained``
    UNUSED = ()  # keys of every recipe that have no effect in this one
    WHY_UNUSED = ""
    METRIC = None  # the dev score that chooses the checkpoint; None if the last one is always kept
    # keys that VisualDL compares runs by: about ten
    HYPER_PARAMETERS = (
        "learning_rate", "num_train_epochs", "per_device_train_batch_size", "attention", "hidden_size",
        "num_hidden_layers", "hidden_dropout_prob", "pretrained", "seed",
    )  # fmt: skip
    DEFAULTS = {}  # the recipe's own defaults of keys of ``TrainingArguments``
    PLAN = BY_EPOCHS

    def check(self, config):
        """Raise InputError for keys that contradict each other; ``config`` is the configuration as the user gave it."""

    def unused_keys(self):
        """Keys without effect here, which stay out of the run's configuration unless they are given."""
        if self.pretrained is None:
            return {*self.UNUSED}
        return {*self.UNUSED, *self.SETTLED_BY_PRETRAINED, *(self.model_options().keys() & RoFormerConfig.names())}

    def fixed_arguments(self):
        """The keys of ``TrainingArguments`` that the recipe relies on, with their values."""
        return self.PLAN.fixed

    def model_options(self, config=None):
        """Options for the configuration of the recipe's model, in its types; with ``config`` only the options that it
        contains, because with ``pretrained`` the others come from the pretrained model."""
        names = [one.name for one in fields(self) if "of_model" in one.metadata]
        return {name: getattr(self, name) for name in names if config is None or name in config}

    def check_ranges(self):
        """Raise InputError unless the values are in their ranges, and the options of a new encoder are compatible."""
        if self.recipe != type(self).recipe:
            raise InputError(f"configuration: recipe must be {type(self).recipe}, got {self.recipe}")
        check_kinds(self)
        if self.pretrained is None:
            options = {name: value for name, value in self.model_options().items() if name in RoFormerConfig.names()}
            with as_input_error("configuration: "):
                RoFormerConfig(**options)


@dataclass
class RecipeArguments(EncoderArguments):
    """Configuration keys of every recipe with labeled data, in addition to ``TrainingArguments``."""

    dev_fraction: float = option(0.1, "share of `train_file` held out without a `dev_file`; 0: none", SHARE)
    dev_split: Optional[str] = option(
        None,
        "how it is drawn: `stratified`, with its share of each label; `random`; `contiguous`, the end of the file; "
        "empty: `stratified`, but for entities `contiguous` where neighboring texts share them",
        choice(*DEV_SPLITS),
    )
    train_file: Optional[str] = option(None, "labeled data")
    dev_file: Optional[str] = option(None, "labeled data that choose the best epoch")
    test_file: Optional[str] = option(None, "labeled data, scored once at the end")
    keep_best: bool = option(True, "keep the weights of the epoch with the best dev score; `false`: of the last epoch")
    ema_decay: float = option(0.0, "moving average of the weights, such as 0.998; 0: none", SHARE)
    early_stopping_patience: Optional[int] = option(
        None, "stop after so many epochs without a better dev score; empty, or without dev data: never", POSITIVE
    )

    REQUIRED = ("train_file", "output_dir")

    @property
    def has_dev(self):
        """Whether there are data to evaluate on; if not, training runs to its end and the last weights are kept."""
        return bool(self.dev_file) or self.dev_fraction > 0

    def fixed_arguments(self):
        if self.PLAN is not BY_EPOCHS:
            return self.PLAN.fixed
        evaluation = {} if self.has_dev else NOT_EVALUATED
        if not (self.keep_best and self.has_dev):  # no epoch is returned to, so time alone asks for checkpoints
            evaluation = {**evaluation, "load_best_model_at_end": False, "save_strategy": "no"}
        return {**self.PLAN.fixed, **evaluation}

    def check_dev(self, key):
        """Raise InputError if ``key``, which needs dev data, is set and there are none."""
        if getattr(self, key) and not self.has_dev:
            raise InputError(f"configuration: {key} needs dev data; give a dev_file or a dev_fraction above 0")


def parse_seeds(value: Any) -> list[int]:
    """``"42,43,44"``, or a list from YAML -> [42, 43, 44]; raises InputError for anything else."""
    numbers = [str(one).strip() for one in (value if isinstance(value, list) else str(value).split(","))]
    seeds = [int(one) for one in numbers if one.isascii() and one.isdigit() and len(one) <= len(str(LARGEST_SEED))]
    if not 0 < len(numbers) == len({*seeds}) or max(seeds) > LARGEST_SEED:
        remedy = f"give different numbers from 0 to {LARGEST_SEED} between commas, such as --seeds 42,43,44"
        raise InputError(f"--seeds {shown(','.join(numbers))}: {remedy}")
    return seeds


def check_kinds(values, place="configuration: "):
    """Raise InputError unless the fields of a dataclass of options are in their ranges; None means not given. Messages
    begin with the ``place`` and the name of the field."""
    with as_input_error(place):
        check_given(values)
