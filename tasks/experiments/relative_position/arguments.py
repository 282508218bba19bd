"""Configuration keys of the controlled task: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_rope.options import POSITIVE, Kind
from tasks.common.training.arguments import RecipeArguments, of_encoder, option

STRETCHES = 16  # in a sequence
SHORTEST = 2 * STRETCHES  # tokens of a sequence


@dataclass
class RelativePositionArguments(RecipeArguments):
    """Keys of the controlled task, in addition to the keys of the encoder."""

    METRIC = "accuracy"
    UNUSED = ("train_file", "dev_file", "dev_fraction", "dev_split", "test_file", "pretrained", "vocab_min_count")
    WHY_UNUSED = "the sequences of this task are drawn, there are no files"
    DEFAULTS = {"num_train_epochs": 4, "per_device_train_batch_size": 64, "learning_rate": 3e-3}

    recipe: str = option("relative_position", "what is trained")
    length: int = option(256, "tokens of a sequence", Kind(f"{SHORTEST} or more", lambda value: value >= SHORTEST))
    train_size: int = option(16384, "sequences to train on", POSITIVE)
    test_size: int = option(2048, "sequences of dev, and of test", POSITIVE)
    hidden_size: int = of_encoder("hidden_size", 32)
    num_hidden_layers: int = of_encoder("num_hidden_layers", 1)
    num_attention_heads: int = of_encoder("num_attention_heads", 2)
    intermediate_size: int = of_encoder("intermediate_size", 64)
    hidden_dropout_prob: float = of_encoder("hidden_dropout_prob", 0.0)
    attention_probs_dropout_prob: float = of_encoder("attention_probs_dropout_prob", 0.0)

    REQUIRED = ("output_dir",)
