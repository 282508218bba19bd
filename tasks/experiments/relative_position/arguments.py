"""Configuration keys of the controlled task: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.common.errors import InputError
from tasks.common.training.arguments import POSITIVE, RecipeArguments
from tasks.experiments.relative_position.data import SHORTEST

# Keys of every recipe that mean nothing where the data are drawn.
UNUSED = ("train_file", "dev_file", "dev_fraction", "test_file", "pretrained", "vocab_min_count")


@dataclass
class RelativePositionArguments(RecipeArguments):
    """Keys of the controlled task: those of the encoder and its own."""

    METRIC = "accuracy"
    DEFAULTS = {"num_train_epochs": 4, "per_device_train_batch_size": 64, "learning_rate": 3e-3}

    length: int = field(default=256, metadata={"help": "tokens of a sequence"})
    train_size: int = field(default=16384, metadata={"help": "sequences to train on"})
    test_size: int = field(default=2048, metadata={"help": "sequences of dev, and of test"})
    hidden_size: int = field(default=32, metadata={"help": "size of the hidden states"})
    num_hidden_layers: int = field(default=1, metadata={"help": "transformer blocks"})
    num_attention_heads: int = field(default=2, metadata={"help": "heads a block"})
    intermediate_size: int = field(default=64, metadata={"help": "inner size of the feed-forward layers"})
    hidden_dropout_prob: float = field(default=0.0, metadata={"help": "dropout of embeddings and layers"})
    attention_probs_dropout_prob: float = field(default=0.0, metadata={"help": "dropout of softmax attention weights"})

    REQUIRED = ("output_dir",)

    def ranges(self):
        return {
            **super().ranges(),
            **dict.fromkeys(("train_size", "test_size"), POSITIVE),
            "length": (lambda value: value >= SHORTEST, f"{SHORTEST} or more"),
        }

    def check(self, config):
        for key in UNUSED:
            if config.get(key) is not None:
                raise InputError(f"key {key!r}: the sequences of this task are drawn, there are no files; leave it out")

    def unused_keys(self):
        return set(UNUSED)
