"""Configuration keys that all recipes have: files, encoder, how training goes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from paddle_rope.roformer.config import RoFormerConfig
from tasks.common.errors import InputError

if TYPE_CHECKING:
    pass

DEV_SPLITS = ("stratified", "random", "contiguous")
MOST_WORKERS = 64  # processes that prepare batches
SCHEDULERS = ("linear", "cosine", "constant", "constant_with_warmup", "polynomial")  # PaddleNLP's
LARGEST_SEED = 2**32 - 1  # numpy's

# Keys of PaddleNLP's TrainingArguments with which the recipes start; a configuration may set others.
TRAINING_DEFAULTS = {
    "num_train_epochs": 14,
    "per_device_train_batch_size": 32,
    "per_device_eval_batch_size": 32,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "logging_steps": 20,
    "seed": 42,
}
# What the recipes rely on: one evaluation and checkpoint an epoch, the best one kept.
FIXED_TRAINING_ARGUMENTS = {
    "do_train": True,
    "do_eval": True,
    "evaluation_strategy": "epoch",
    "save_strategy": "epoch",
    "load_best_model_at_end": True,
    "greater_is_better": True,
    "save_total_limit": 1,
    "report_to": "none",
}
NOT_EVALUATED = {"do_eval": False, "evaluation_strategy": "no"}  # else PaddleNLP evaluates in between
# Keys of TrainingArguments that the recipes set themselves or do not heed.
CLOSED_KEYS = (
    *FIXED_TRAINING_ARGUMENTS,
    "metric_for_best_model", "logging_dir", "resume_from_checkpoint", "dataloader_drop_last",
)  # fmt: skip
# Of recipes that count in steps: a trainer of theirs evaluates, and the last weights are kept.
FIXED_BY_STEPS = {
    "do_train": True,
    **NOT_EVALUATED,
    "save_total_limit": 1,
    "report_to": "none",
    "ignore_data_skip": True,  # the batches of a resumed run begin where it stopped
}
CLOSED_BY_STEPS = (
    *CLOSED_KEYS, "ignore_data_skip", "num_train_epochs", "per_device_eval_batch_size", "dataloader_num_workers"
)  # fmt: skip


class TrainingPlan(NamedTuple):
    """What a recipe makes of PaddleNLP's ``TrainingArguments``."""

    defaults: dict  # keys with which it starts; a configuration may set others
    fixed: dict  # what it relies on
    closed: tuple  # keys that cannot be set
    reason: str  # why


BY_EPOCHS = TrainingPlan(
    TRAINING_DEFAULTS, FIXED_TRAINING_ARGUMENTS, (*CLOSED_KEYS, "eval_steps", "save_steps"),
    "the recipe evaluates each epoch and keeps the best by dev {metric}, or the last with keep_best false",
)  # fmt: skip
LAST_KEPT = BY_EPOCHS._replace(fixed={**FIXED_TRAINING_ARGUMENTS, "load_best_model_at_end": False})
# Without dev data nothing is evaluated, and the last weights are kept.
WITHOUT_DEV = LAST_KEPT._replace(fixed={**LAST_KEPT.fixed, **NOT_EVALUATED})

SIZE_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


def option(default, help):
    """A configuration key: its default, and its meaning and unit as shown in help and documents."""
    return field(default=default, metadata={"help": help})


def model_option(config_class, name, default=..., note=""):
    """A configuration key that is an option of the recipe's model: meaning, range and default are declared there.

    Args:
        config_class: :class:`~paddle_rope.RoFormerConfig` or a subclass.
        default: the recipe's own default, where it has another.
        note: continues the meaning, such as the form that the option has in a configuration.
    """
    declared = config_class.__dataclass_fields__[name]
    metadata = {**declared.metadata, "help": declared.metadata["help"] + note}
    return field(default=declared.default if default is ... else default, metadata=metadata)


of_encoder = functools.partial(model_option, RoFormerConfig)


@dataclass
class EncoderArguments:
    """Configuration keys of every recipe that trains an encoder, beside those of PaddleNLP's ``TrainingArguments``."""

    recipe: Optional[str] = option(None, "what is trained")
    dev_fraction: float = option(0.1, "share of the training data held out for dev")
    pretrained: Optional[str] = option(None, "folder of weights and tokenizer to start from")
    attention: str = of_encoder("attention", note=", separated by commas")
    attention_window: int = of_encoder("attention_window")
    feature_map: str = of_encoder("feature_map")
    normalizer: str = of_encoder("normalizer")
    decay: Optional[str] = of_encoder("decay", note=", separated by commas")
    convolutions: bool = of_encoder("convolutions")
    output_gate: bool = of_encoder("output_gate")
    position_embedding: str = of_encoder("position_embedding")
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
        15.0, "minutes of training after which a checkpoint is due, to resume from; 0: only at evaluations"
    )

    REQUIRED = ("output_dir",)  # keys without a default
    SETTLED_BY_PRETRAINED = (*SIZE_KEYS, "vocab_min_count")  # keys that cannot be given with ``pretrained``
    RENAMED = {}  # old name of a key -> its name
    METRIC = None  # the dev score that chooses the checkpoint; None if the last one is always kept
    # keys that VisualDL compares runs by: about ten
    HYPER_PARAMETERS = (
        "learning_rate", "num_train_epochs", "per_device_train_batch_size", "attention", "hidden_size",
        "num_hidden_layers", "hidden_dropout_prob", "pretrained", "seed",
    )  # fmt: skip
    DEFAULTS = {}  # the recipe's own defaults of keys of ``TrainingArguments``
    PLAN = BY_EPOCHS

    @classmethod
    def normalized(cls, config):
        """A configuration with each value in the form of the command line: YAML also has lists."""
        return with_commas(config, "attention", "decay")

    def check(self, config):
        """Raise InputError for keys that contradict each other; ``config`` is the configuration as the user gave it."""

    def unused_keys(self):
        """Keys that do not count here, and stay out of the run's configuration unless they are given."""
        if self.pretrained is None:
            return set()
        return {*self.SETTLED_BY_PRETRAINED, *(name for name in self.model_keys() if name in RoFormerConfig.names())}

    def ranges(self):
        """dict from key to (function of the value that says whether it fits, what is wanted in words)."""
        recipe = type(self).recipe
        return {
            "recipe": (lambda value: value == recipe, str(recipe)),
            "checkpoint_minutes": (lambda value: 0 <= value < float("inf"), "at least 0"),
            "dev_fraction": (lambda value: 0 < value < 1, "greater than 0 and less than 1"),
        }

    @classmethod
    def model_keys(cls):
        """The keys that are options of the model, in order: dict from name to field."""
        return {one.name: one for one in fields(cls) if "kind" in one.metadata}

    def model_options(self, config=None):
        """Options for the configuration of the recipe's model, in its types.

        Args:
            config: a configuration; only keys that are in it count. With ``pretrained`` the others come from there.

        Raises:
            ValueError: a list between commas holds something else than numbers.
        """
        options = {name: getattr(self, name) for name in self.model_keys() if config is None or name in config}
        if "," in options.get("attention", ""):
            options["attention"] = words(options["attention"])
        if options.get("decay") is not None:
            options["decay"] = [float(word) for word in words(options["decay"])]
        return options

    def check_model(self, config):
        """Raise InputError unless the options of the model are in their ranges, and those of a new encoder go together.

        ``config`` is the configuration as the user gave it.
        """
        try:
            options = self.model_options(None if self.pretrained is None else config)
            for name, one in self.model_keys().items():
                if name in options:
                    one.metadata["kind"].check(name, options[name])
            if self.pretrained is None:
                RoFormerConfig(**{name: value for name, value in options.items() if name in RoFormerConfig.names()})
        except ValueError as error:
            raise InputError(f"configuration: {error}") from None


@dataclass
class RecipeArguments(EncoderArguments):
    """Configuration keys of every recipe with labeled data, beside those of PaddleNLP's ``TrainingArguments``."""

    dev_fraction: float = option(0.1, "share of `train_file` held out without a `dev_file`; 0: none")
    dev_split: Optional[str] = option(
        None,
        "how it is drawn: `stratified`, with its share of each label; `random`; `contiguous`, the end of the file; "
        "empty: `stratified`, but for entities `contiguous` where neighboring texts share them",
    )
    train_file: Optional[str] = option(None, "labeled data")
    dev_file: Optional[str] = option(None, "labeled data that choose the best epoch")
    test_file: Optional[str] = option(None, "labeled data, scored once at the end")
    keep_best: bool = option(True, "keep the weights of the epoch with the best dev score; `false`: of the last epoch")
    ema_decay: float = option(0.0, "moving average of the weights, such as 0.998; 0: none")
    early_stopping_patience: Optional[int] = option(
        None, "stop after so many epochs without a better dev score; empty, or without dev data: never"
    )

    REQUIRED = ("train_file", "output_dir")

    def ranges(self):
        return {
            **super().ranges(),
            "early_stopping_patience": POSITIVE,
            "dev_fraction": (lambda value: 0 <= value < 1, "at least 0 and less than 1"),
            "dev_split": (lambda value: not value or value in DEV_SPLITS, one_of(DEV_SPLITS)[1]),
            "ema_decay": SHARE,
        }

    @property
    def has_dev(self):
        """Whether there are data to evaluate on; else training runs to its end and the last weights are kept."""
        return bool(self.dev_file) or self.dev_fraction > 0

    def check_dev(self, key):
        """Raise InputError if ``key``, which needs dev data, is set and there are none."""
        if getattr(self, key) and not self.has_dev:
            raise InputError(f"configuration: {key} needs dev data; give a dev_file or a dev_fraction above 0")


def parse_seeds(value: Any) -> list[int]:
    """``"42,43,44"``, or a list as YAML has it -> [42, 43, 44]; raises InputError for anything else, also for a seed
    given twice."""
    numbers = [str(one).strip() for one in (value if isinstance(value, list) else str(value).split(","))]
    given = f"--seeds {','.join(numbers)}"
    if not numbers or not all(one.isascii() and one.isdigit() for one in numbers):
        raise InputError(f"{given}: give numbers separated by commas, such as --seeds 42,43,44")
    # Python refuses to read thousands of digits
    seeds = [int(one) if len(one) < 100 else LARGEST_SEED + 1 for one in numbers]
    if max(seeds) > LARGEST_SEED:
        raise InputError(f"{given}: a seed must be from 0 to {LARGEST_SEED}")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{given}: a seed is given twice")
    return seeds


def one_of(names):
    """The range of a key that takes one of some names."""
    return (lambda value: value in names), f"one of {', '.join(map(str, names))}"


def words(value):
    """The words between commas; of None or an empty string none."""
    return [word.strip() for word in value.split(",")] if value else []


POSITIVE = (lambda value: value is None or 0 < value < float("inf")), "greater than 0"
SHARE = (lambda value: value is None or 0 <= value < 1), "at least 0 and less than 1"
TRAINING_RANGES = {
    "num_train_epochs": POSITIVE,
    "per_device_train_batch_size": POSITIVE,
    "per_device_eval_batch_size": POSITIVE,
    "gradient_accumulation_steps": POSITIVE,
    "learning_rate": POSITIVE,
    "lr_scheduler_type": one_of(SCHEDULERS),
    "warmup_ratio": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "logging_steps": POSITIVE,
    "eval_steps": POSITIVE,
    "dataloader_num_workers": (lambda value: 0 <= value <= MOST_WORKERS, f"from 0 to {MOST_WORKERS}"),
    "seed": (lambda value: 0 <= value <= LARGEST_SEED, f"from 0 to {LARGEST_SEED}"),
}


def with_commas(config, *keys):
    """``config`` with the lists under ``keys`` as words between commas."""
    lists = {key: config[key] for key in keys if isinstance(config.get(key), (list, tuple))}
    return {**config, **{key: ",".join(map(str, value)) for key, value in lists.items()}}
