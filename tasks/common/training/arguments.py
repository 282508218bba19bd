"""Configuration keys that all recipes have: files, encoder, how training goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from paddle_rope.choices import ACTIVATIONS, ATTENTION_KINDS, FEATURE_MAPS, NORMALIZERS, POSITION_EMBEDDINGS
from tasks.common.errors import InputError

if TYPE_CHECKING:
    from paddlenlp.trainer import TrainingArguments

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

# Options of the encoder. With ``pretrained`` the sizes, and the other options unless given, come from the folder.
SIZE_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
ENCODER_KEYS = (
    "attention", "attention_window", "position_embedding",
    "feature_map", "normalizer", "decay", "convolutions", "output_gate",
    "hidden_act",
    "hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_dropout_prob",
)  # fmt: skip


def option(default, help):
    """A configuration key: its default, and its meaning and unit as shown in help and documents."""
    return field(default=default, metadata={"help": help})


@dataclass
class EncoderArguments:
    """Configuration keys of every recipe that trains an encoder, beside those of PaddleNLP's ``TrainingArguments``."""

    recipe: Optional[str] = option(None, "what is trained")
    dev_fraction: float = option(0.1, "share of the training data held out for dev")
    pretrained: Optional[str] = option(None, "folder of weights and tokenizer to start from")
    attention: str = option("softmax", "`softmax`, `linear` or `window`, or one of them per layer, separated by commas")
    attention_window: int = option(64, "of `window`: how many tokens to each side a token sees")
    feature_map: str = option("elu_plus_one", f"feature map of linear attention: {', '.join(FEATURE_MAPS)}")
    normalizer: str = option("unrotated", f"denominator of linear attention: {', '.join(NORMALIZERS)}")
    decay: Optional[str] = option(
        None, "decay of linear attention: numbers in (0, 1] between commas, one per head; empty: none"
    )
    convolutions: bool = option(False, "three short convolutions over neighboring tokens in each block")
    output_gate: bool = option(False, "gate the output of attention by its input")
    position_embedding: str = option("qk", "what RoPE rotates: `qk`, `vo`, ...; or `none`")
    hidden_size: int = option(256, "width of the hidden states")
    num_hidden_layers: int = option(4, "number of transformer blocks")
    num_attention_heads: int = option(4, "attention heads per block")
    intermediate_size: int = option(1024, "inner width of the feed-forward layers")
    hidden_act: str = option("gelu", f"feed-forward activation: {', '.join(ACTIVATIONS)}")
    hidden_dropout_prob: float = option(0.2, "dropout rate of embeddings and layers")
    attention_probs_dropout_prob: float = option(0.1, "dropout rate of the weights of softmax and window")
    embedding_dropout_prob: Optional[float] = option(None, "dropout rate of embeddings; empty: `hidden_dropout_prob`")
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
        return set() if self.pretrained is None else {*self.SETTLED_BY_PRETRAINED, *ENCODER_KEYS}

    def ranges(self):
        """dict from key to (function of the value that says whether it fits, what is wanted in words)."""
        shares = ("hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_dropout_prob")
        recipe = type(self).recipe
        return {
            "recipe": (lambda value: value == recipe, str(recipe)),
            **dict.fromkeys((*SIZE_KEYS, "attention_window"), POSITIVE),
            "checkpoint_minutes": (lambda value: 0 <= value < float("inf"), "at least 0"),
            **dict.fromkeys(shares, SHARE),
            "dev_fraction": (lambda value: 0 < value < 1, "greater than 0 and less than 1"),
            "num_attention_heads": (
                lambda heads: heads > 0 and self.hidden_size % (2 * heads) == 0,
                f"a number that splits hidden_size {self.hidden_size} into heads of even size",
            ),
            "attention": some_of(ATTENTION_KINDS),
            "position_embedding": one_of(POSITION_EMBEDDINGS),
            "hidden_act": one_of(ACTIVATIONS),
            "feature_map": one_of(FEATURE_MAPS),
            "normalizer": one_of(NORMALIZERS),
            "decay": (self._fits_decay, "numbers in (0, 1] between commas, one for each head"),
        }

    def _fits_decay(self, decay):
        try:
            gammas = read_decay(decay)
        except ValueError:
            return False
        if gammas is None:
            return True
        heads = self.num_attention_heads if self.pretrained is None else len(gammas)
        return len(gammas) == heads and all(0 < gamma <= 1 for gamma in gammas)

    def encoder_options(self, config=None):
        """The options of a RoFormerConfig that the keys give.

        Args:
            config: with ``pretrained`` the configuration as the user gave it: only what is in it counts then.
        """
        keys = (*SIZE_KEYS, *ENCODER_KEYS) if config is None else [key for key in ENCODER_KEYS if key in config]
        options = {key: getattr(self, key) for key in keys}
        if "attention" in options and "," in options["attention"]:
            options["attention"] = words(options["attention"])
        if "decay" in options:
            options["decay"] = read_decay(options["decay"])
        return options


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
    given_words = [str(word).strip() for word in (value if isinstance(value, list) else str(value).split(","))]
    given = f"--seeds {','.join(given_words)}"
    if not given_words or not all(word.isascii() and word.isdigit() for word in given_words):
        raise InputError(f"{given}: give numbers separated by commas, such as --seeds 42,43,44")
    # Python refuses to read thousands of digits
    seeds = [int(word) if len(word) < 100 else LARGEST_SEED + 1 for word in given_words]
    if max(seeds) > LARGEST_SEED:
        raise InputError(f"{given}: a seed must be from 0 to {LARGEST_SEED}")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{given}: a seed is given twice")
    return seeds


def read_decay(words):
    """The option ``decay`` of a RoFormerConfig: "0.9, 1" -> [0.9, 1.0]; ValueError where a word is no number."""
    return [float(word) for word in words.split(",")] if words else None


def one_of(names):
    """The range of a key that takes one of some names."""
    return (lambda value: value in names), f"one of {', '.join(map(str, names))}"


def some_of(names):
    """The range of a key that takes some names between commas."""
    return (lambda value: {*words(value)} <= {*names}), f"some of {', '.join(names)}, between commas"


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


class Checked(NamedTuple):
    """A configuration whose keys and values fit."""

    config: dict  # its keys with the recipe's defaults
    keys: EncoderArguments  # the recipe's, parsed
    training: Any  # PaddleNLP's, parsed: a :class:`~tasks.common.training.paddlenlp_keys.TrainingKeys`
    plan: TrainingPlan
    given: dict  # the keys as they were given, without defaults


class Settings(NamedTuple):
    """A configuration, checked."""

    config: dict  # its keys with their defaults
    keys: EncoderArguments  # the recipe's, parsed
    training: TrainingArguments  # PaddleNLP's
    given: dict  # the keys as they were given, without defaults


def check_config(config, arguments_class, recipes=None):
    """Fill in the recipe's defaults and check keys and values; neither Paddle nor PaddleNLP is imported.

    Args:
        config: dict of configuration keys.
        arguments_class: :class:`EncoderArguments` or a subclass: the recipe's keys.
        recipes: as of :func:`tasks.common.training.paddlenlp_keys.check_keys`.

    Returns:
        :class:`Checked`.

    Raises:
        InputError: a key is unknown or missing, or a value does not fit.
    """
    from tasks.common.cli.run_config import parse_arguments
    from tasks.common.training.paddlenlp_keys import TrainingKeys, check_keys
    from tasks.common.training.removed_keys import without_removed_keys

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
    keys.check(given)
    if keys.pretrained is not None:
        for key in arguments_class.SETTLED_BY_PRETRAINED:
            if key in given:
                raise InputError(
                    f"key {key!r}: sizes and tokenizer come from the folder {keys.pretrained}; leave it out"
                )
    return Checked(config, keys, training, plan, given)


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

    config, keys, checked, plan, given = check_config(config, arguments_class)
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
