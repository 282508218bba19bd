"""Configuration keys of a grid of language models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from paddle_rope.choices import ACTIVATIONS
from paddle_rope.roformer import RoFormerConfig
from tasks.common.errors import InputError
from tasks.common.tool.run_config import parse_arguments
from tasks.common.training.arguments import POSITIVE, SIZE_KEYS, one_of
from tasks.experiments.seeds import parse_seeds

# The held-out stretches have this many times the length of training: losses at 1, 2 and 4 times are of the same text.
LONGEST_TIMES = 4
LISTS = ("text_files", "rows", "seeds")
# What may differ between the processes that work on one grid.
OWN_KEYS = ("rows", "seeds", "device", "output_dir")


@dataclass
class LanguageModelArguments:
    """Keys of the data, the model and the training that all cells of a grid share, and which cells to compute."""

    text_files: Optional[str] = field(
        default=None, metadata={"help": "plain text or JSON lines with 'text', between commas; demo: generated text"}
    )
    output_dir: Optional[str] = field(default=None, metadata={"help": "folder of the grid; may hold a part of it"})
    rows: Optional[str] = field(default=None, metadata={"help": "names of rows between commas; none: all"})
    seeds: str = field(default="42,43,44", metadata={"help": "numbers between commas"})
    device: Optional[str] = field(default=None, metadata={"help": "cpu, gpu, gpu:1 ...; none: a GPU if there is one"})
    vocab_min_count: int = field(default=100, metadata={"help": "rarer characters become [UNK]"})
    length: int = field(default=128, metadata={"help": "characters of a text in training"})
    held_out_windows: int = field(default=32, metadata={"help": f"stretches of {LONGEST_TIMES} x length held out"})
    version: int = field(default=2, metadata={"help": "of RoFormer: 1, or 2 without biases and with RMS norm"})
    hidden_size: int = field(default=128, metadata={"help": "size of the hidden states"})
    num_hidden_layers: int = field(default=4, metadata={"help": "transformer blocks"})
    num_attention_heads: int = field(default=4, metadata={"help": "heads a block"})
    intermediate_size: int = field(default=512, metadata={"help": "inner size of the feed-forward layers"})
    hidden_act: str = field(default="gelu", metadata={"help": f"of feed-forward layers: {', '.join(ACTIVATIONS)}"})
    batch_size: int = field(default=16, metadata={"help": "texts a step"})
    steps: int = field(default=1000, metadata={"help": "of training"})
    learning_rate: float = field(default=2e-3, metadata={"help": "highest, after warm-up; then linear to 0"})
    warmup_steps: int = field(default=100, metadata={"help": "in which the learning rate rises from 0"})
    weight_decay: float = field(default=0.01, metadata={"help": "of AdamW, on matrices"})
    max_grad_norm: float = field(default=1.0, metadata={"help": "longer gradients are cut to it"})
    logging_steps: int = field(default=10, metadata={"help": "the training loss is averaged over so many steps"})
    evaluation_steps: int = field(
        default=200, metadata={"help": "steps between evaluations of held-out text, and between checkpoints"}
    )

    @property
    def held_out_length(self):
        return LONGEST_TIMES * self.length

    def files(self):
        """list of paths."""
        return _names(self.text_files)

    def row_names(self):
        """list of rows, or None for all."""
        return None if self.rows is None else _names(self.rows)

    def seed_numbers(self):
        """list of integers."""
        return parse_seeds(self.seeds)

    def ranges(self):
        """dict from key to (function of the value that says whether it fits, what is wanted in words)."""
        positive = (
            *SIZE_KEYS, "vocab_min_count", "length", "held_out_windows", "batch_size", "steps", "learning_rate",
            "max_grad_norm", "logging_steps", "evaluation_steps",
        )  # fmt: skip
        return {
            **dict.fromkeys(positive, POSITIVE),
            **dict.fromkeys(("warmup_steps", "weight_decay"), NOT_NEGATIVE),
            "version": one_of((1, 2)),
            "hidden_act": one_of(ACTIVATIONS),
        }

    def shared_options(self):
        """dict of model options that all rows have, beside the sizes."""
        return {}

    def model_config(self, vocabulary, options):
        """The :class:`~paddle_rope.RoFormerConfig` of one row.

        Without dropout: a grid sees its text about once.

        Args:
            vocabulary: number of tokens.
            options: dict of what the row is about.

        Raises:
            InputError: sizes that do not fit each other.
        """
        keys = (*SIZE_KEYS, "hidden_act", "version")
        try:
            return RoFormerConfig(
                vocab_size=vocabulary,
                causal=True,
                max_position_embeddings=self.length,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                **{key: getattr(self, key) for key in keys},
                **self.shared_options(),
                **options,
            )
        except ValueError as error:
            raise InputError(f"configuration: {error}") from None


NOT_NEGATIVE = (lambda value: 0 <= value < float("inf")), "0 or more"


def parse_run(config, arguments_class):
    """A configuration as :func:`tasks.common.tool.run_config.read_run_config` gives it, checked.

    Args:
        config: dict of keys and values; lists, as YAML has them, are the same as words between commas.
        arguments_class: :class:`LanguageModelArguments` or a subclass.

    Returns:
        ``arguments_class``.

    Raises:
        InputError: a key is unknown or missing, or a value does not fit.
    """
    config = {
        key: ",".join(map(str, value)) if key in LISTS and isinstance(value, (list, tuple)) else value
        for key, value in config.items()
    }
    (run,) = parse_arguments(config, arguments_class)
    for key in ("text_files", "output_dir"):
        if not getattr(run, key):
            raise InputError(f"no {key!r}: name it in the configuration file or with --{key} PATH")
    for key, (fits, wanted) in run.ranges().items():
        if not fits(getattr(run, key)):
            raise InputError(f"configuration: {key} must be {wanted}, got {getattr(run, key)}")
    run.seed_numbers()
    return run


def _names(words):
    return [word.strip() for word in words.split(",") if word.strip()]
