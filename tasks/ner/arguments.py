"""Configuration keys of the NER recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from paddlenlp.trainer import TrainingArguments

from paddle_rope.roformer.configuration import ACTIVATIONS
from tasks.common.device import choose_device
from tasks.common.errors import InputError
from tasks.common.run_config import parse_arguments
from tasks.common.seeds import LARGEST_SEED
from tasks.ner.features import FEATURE_KINDS, check_kinds

# Keys of PaddleNLP's TrainingArguments with which this recipe starts; a configuration may set others.
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
# What the recipe itself relies on: one evaluation and checkpoint an epoch, the best one kept by dev F1.
FIXED_TRAINING_ARGUMENTS = {
    "do_train": True,
    "do_eval": True,
    "evaluation_strategy": "epoch",
    "save_strategy": "epoch",
    "load_best_model_at_end": True,
    "metric_for_best_model": "f1",
    "greater_is_better": True,
    "save_total_limit": 1,
    "report_to": "none",
}
# Keys of TrainingArguments that the recipe sets itself or does not heed.
CLOSED_KEYS = (*FIXED_TRAINING_ARGUMENTS, "logging_dir", "resume_from_checkpoint", "dataloader_drop_last")


@dataclass
class NerArguments:
    """Configuration keys of the NER recipe, beside those of PaddleNLP's ``TrainingArguments``."""

    train_file: Optional[str] = field(default=None, metadata={"help": "labelled data: CLUENER JSON lines, BIO or BMES"})
    dev_file: Optional[str] = field(default=None, metadata={"help": "labelled data that chooses the best checkpoint"})
    dev_fraction: float = field(default=0.1, metadata={"help": "without dev_file: the share of train_file held out"})
    test_file: Optional[str] = field(default=None, metadata={"help": "labelled data, scored once at the end"})
    pretrained: Optional[str] = field(default=None, metadata={"help": "folder of weights and tokenizer to start from"})
    max_length: int = field(default=512, metadata={"help": "longest text in characters"})
    attention: str = field(default="softmax", metadata={"help": "softmax or linear"})
    span_head: str = field(default="efficient", metadata={"help": "efficient or dense GlobalPointer"})
    head_size: int = field(default=64, metadata={"help": "size of the head's queries and keys"})
    max_span_length: Optional[int] = field(default=None, metadata={"help": "longest entity in tokens; none: any"})
    span_rope: bool = field(default=True, metadata={"help": "RoPE in the span head; false for comparisons"})
    allow_overlap: Optional[bool] = field(default=None, metadata={"help": "may entities overlap; none: as in train"})
    hidden_size: int = field(default=256, metadata={"help": "size of the hidden states"})
    num_hidden_layers: int = field(default=4, metadata={"help": "transformer blocks"})
    num_attention_heads: int = field(default=4, metadata={"help": "heads a block"})
    intermediate_size: int = field(default=1024, metadata={"help": "inner size of the feed-forward layers"})
    hidden_dropout_prob: float = field(default=0.2, metadata={"help": "dropout of embeddings and layers"})
    attention_probs_dropout_prob: float = field(default=0.1, metadata={"help": "dropout of softmax attention weights"})
    position_embedding: str = field(default="qk", metadata={"help": "RoPE in the encoder: qk, vo ...; none"})
    vocab_min_count: int = field(default=2, metadata={"help": "rarer characters of train become [UNK]"})
    hidden_act: str = field(default="gelu", metadata={"help": f"of feed-forward layers: {', '.join(ACTIVATIONS)}"})
    embedding_dropout_prob: Optional[float] = field(
        default=None, metadata={"help": "dropout of embeddings; none: hidden_dropout_prob"}
    )
    features: Optional[str] = field(
        default=None, metadata={"help": f"what stands beside the characters, some of {', '.join(FEATURE_KINDS)}"}
    )
    character_dropout: float = field(default=0.0, metadata={"help": "share of characters that training hides"})
    feature_dropout: float = field(default=0.0, metadata={"help": "share of feature values that training hides"})
    masked_lm_epochs: int = field(default=0, metadata={"help": "epochs of masked LM on train_file before"})
    ema_decay: float = field(default=0.0, metadata={"help": "moving average of the weights, such as 0.998; 0: none"})
    early_stopping_patience: Optional[int] = field(
        default=None, metadata={"help": "epochs without a better dev F1 after which training ends; none: never"}
    )
    log_histograms: bool = field(default=False, metadata={"help": "show weights and gradients in VisualDL"})


# Options of NerModel. With ``pretrained`` the sizes, and the encoder's options unless given, are those of the folder.
SIZE_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
ENCODER_KEYS = (
    "attention", "position_embedding", "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob",
    "embedding_dropout_prob",
)  # fmt: skip
HEAD_KEYS = (
    "max_length", "span_head", "head_size", "max_span_length", "span_rope", "character_dropout", "feature_dropout",
)  # fmt: skip
MODEL_KEYS = (*SIZE_KEYS, *ENCODER_KEYS, *HEAD_KEYS)


def resolve_config(config):
    """Fill in defaults.

    Returns:
        (config, NerArguments, TrainingArguments): the configuration with its defaults, and the same parsed.
    """
    config = {**TRAINING_DEFAULTS, **config}
    if config.get("features") is not None:
        config["features"] = _feature_names(config["features"])
    for key in CLOSED_KEYS:
        if key in config:
            raise InputError(f"key {key!r} cannot be set: the recipe evaluates each epoch and keeps the best by dev F1")
    # unknown keys are reported before missing ones, and both before paddle touches the device
    check_ranges(
        *parse_arguments({**config, "output_dir": "unused", "device": "cpu"}, NerArguments, TrainingArguments)
    )
    for key in ("train_file", "output_dir"):
        if not config.get(key):
            raise InputError(f"no {key!r}: name it in the configuration file or with --{key} PATH")
    config["device"] = choose_device(config.get("device"))
    run, arguments = parse_arguments(
        {
            **config,
            **FIXED_TRAINING_ARGUMENTS,
            "output_dir": f"{config['output_dir']}/checkpoints",
            "logging_dir": f"{config['output_dir']}/vdl",
        },
        NerArguments,
        TrainingArguments,
    )
    if arguments.fp16 and config["device"] == "cpu":
        raise InputError("configuration: fp16 needs a GPU; leave it out")
    if arguments.bf16 and config["device"] == "cpu":
        raise InputError("configuration: bf16 needs a GPU: on CPU Paddle computes in float32; leave it out")
    unused = ()
    if run.pretrained is not None:
        for key in (*SIZE_KEYS, "vocab_min_count"):
            if key in config:
                raise InputError(f"key {key!r}: the sizes are those of the folder {run.pretrained}; leave it out")
        unused = {*SIZE_KEYS, *ENCODER_KEYS, "vocab_min_count"} - config.keys()
    config = {**{key: value for key, value in vars(run).items() if key not in unused}, **config}
    for key, value in config.items():
        typed = getattr(run if hasattr(run, key) else arguments, key)
        config[key] = typed if isinstance(typed, (bool, int, float)) else _plain(value)  # "1e-3" -> 0.001
    return config, run, arguments


def check_ranges(run, arguments):
    """Raise InputError if a value of the configuration is out of its range."""
    positive = (
        "max_length", "head_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "num_train_epochs", "per_device_train_batch_size", "per_device_eval_batch_size",
        "gradient_accumulation_steps", "learning_rate", "logging_steps",
    )  # fmt: skip
    dropouts = (
        "hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_dropout_prob", "character_dropout",
        "feature_dropout",
    )  # fmt: skip
    ranges = {
        **{key: (lambda value: 0 < value < float("inf"), "greater than 0") for key in positive},
        "dev_fraction": (lambda value: 0 < value < 1, "greater than 0 and less than 1"),
        "early_stopping_patience": (lambda value: value is None or value > 0, "greater than 0"),
        "ema_decay": (lambda value: 0 <= value < 1, "at least 0 and less than 1"),
        "masked_lm_epochs": (lambda value: value >= 0, "at least 0"),
        "max_span_length": (lambda value: value is None or value > 0, "greater than 0"),
        **{key: (lambda value: value is None or 0 <= value < 1, "at least 0 and less than 1") for key in dropouts},
        "hidden_act": (lambda value: value in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}"),
        "seed": (lambda value: 0 <= value <= LARGEST_SEED, f"from 0 to {LARGEST_SEED}"),
    }
    values = {**vars(arguments), **vars(run)}
    for key, (fits, wanted) in ranges.items():
        if not fits(values[key]):
            raise InputError(f"configuration: {key} must be {wanted}, got {values[key]}")


def _feature_names(value):
    """A list of kinds, or their names between commas, in their order and with commas; None if there are none."""
    names = value if isinstance(value, (list, tuple)) else str(value).split(",")
    names = [str(name).strip() for name in names]
    try:
        return ",".join(check_kinds([name for name in names if name])) or None
    except ValueError as error:
        raise InputError(f"configuration: {error}") from None


def _plain(value):
    """A value as YAML and JSON know it."""
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else str(value)
