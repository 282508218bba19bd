"""The memory that a training run on a CPU takes at its peak, estimated from lengths, batch, model and labels before it
begins; and what would take less.

The factors were fitted to measured runs: ``python -m tests.memory_table`` measures again and writes the table of
docs/ner.md. They count the blocks that the allocator keeps, too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from tasks.common.language import Message

PROCESS_BYTES = 575e6  # Python, paddle and PaddleNLP
BYTES = 4  # of a float32
PER_PARAMETER = 9.6  # numbers: weight, gradient, two moments, and copies on the way
PER_FEATURE = 2.7  # of the features that the layers make of a token
PER_ATTENTION = 5.9  # of the attention weights of a head
PER_SCORE = 10.0  # of the scores of a head such as GlobalPointer
# Of a prediction, which keeps nothing for a backward pass: of one layer, and of the scores.
PREDICTED_FEATURE, PREDICTED_ATTENTION, PREDICTED_SCORE = 0.5, 2.8, 4.1
FEATURES_OF_HIDDEN, FEATURES_OF_INNER = 8, 2  # features of a layer: so many times hidden_size and intermediate_size
WINDOWS_COMPUTED = 4  # keys that a token of window attention meets in its blocks, as a multiple of the window
SMALLEST_BATCH = 1
GIGABYTE = 1e9


class Load(NamedTuple):
    """What a training step computes at once."""

    parameters: int
    config: Any  # RoFormerConfig
    batch: int  # texts
    tokens: int  # of the longest
    scores_of: Any = None  # function of the tokens of a text: scores of a head for it
    recompute: bool = False

    @property
    def peak_bytes(self) -> float:
        """Estimate of the peak of the process."""
        return PROCESS_BYTES + BYTES * PER_PARAMETER * self.parameters + self.activation_bytes

    @property
    def prediction_bytes(self) -> float:
        """Estimate of the peak of a process that computes such a batch without a backward pass: the head takes the
        room of the layer before it."""
        config, tokens = self.config, self.batch * self.tokens
        seen = max(self._seen(kind) for kind in self._kinds())
        features = PREDICTED_FEATURE * self._features() + PREDICTED_ATTENTION * config.num_attention_heads * seen
        scores = 0 if self.scores_of is None else PREDICTED_SCORE * self.batch * self.scores_of(self.tokens)
        return PROCESS_BYTES + BYTES * (self.parameters + max(tokens * features, scores))

    @property
    def activation_bytes(self) -> float:
        """The part of the peak that batch and length decide."""
        config, tokens = self.config, self.batch * self.tokens
        layers = config.num_hidden_layers
        of_layer = [
            tokens * (PER_FEATURE * self._features() + PER_ATTENTION * config.num_attention_heads * self._seen(kind))
            for kind in self._kinds()
        ]
        if self.recompute:  # the inputs of all layers, and one of them whole
            of_layers = max(of_layer) + PER_FEATURE * tokens * config.hidden_size * layers
        else:
            of_layers = sum(of_layer)
        scores = 0 if self.scores_of is None else PER_SCORE * self.batch * self.scores_of(self.tokens)
        return BYTES * (of_layers + scores)

    def _kinds(self):
        config = self.config
        return [config.attention] * config.num_hidden_layers if isinstance(config.attention, str) else config.attention

    def _features(self):
        """Of a token in a layer."""
        return FEATURES_OF_HIDDEN * self.config.hidden_size + FEATURES_OF_INNER * self.config.intermediate_size

    def _seen(self, kind):
        """Attention weights of a token in a layer; linear attention makes none."""
        if kind == "window":
            return min(self.tokens, WINDOWS_COMPUTED * self.config.attention_window)
        return self.tokens if kind == "softmax" else 0


def room_note(load: Load, free: float | None, lighter: dict[str, Load]) -> str | None:
    """A line that says that a run needs more memory than there is, and what needs less; None if it fits.

    Args:
        load: of the run.
        free: bytes that the process can have in all; None if that is not known.
        lighter: dict from words of the command line to the load with them.
    """
    if free is None or load.peak_bytes <= free:
        return None
    ways = {words: one.peak_bytes for words, one in lighter.items() if one.peak_bytes < load.peak_bytes}
    fitting = {words: size for words, size in ways.items() if size <= free} or ways
    shown = ", ".join(f"{words} ({_gigabytes(size)})" for words, size in fitting.items())
    needs = {"needed": _gigabytes(load.peak_bytes), "free": _gigabytes(free)}
    if not shown:
        return Message(
            "note: training needs about {needed}, and {free} are free; shorter texts or a smaller model need less",
            **needs,
        )
    return Message(
        "note: training needs about {needed}, and {free} are free; less with one of: {ways}", ways=shown, **needs
    )


def lighter_loads(load: Load, free: float | None, accumulated: int) -> dict[str, Load]:
    """The loads of a run with a smaller batch, and with recomputation: dict from words of the command line.

    Args:
        load: of the run.
        free: bytes; the batch is halved until that is enough.
        accumulated: ``gradient_accumulation_steps`` of the run.
    """
    ways, batch, times = {}, load.batch, accumulated
    while batch > SMALLEST_BATCH and load._replace(batch=batch).peak_bytes > (free or 0):
        batch, times = (batch + 1) // 2, times * 2
    if batch < load.batch:
        words = f"--per_device_train_batch_size {batch} --gradient_accumulation_steps {times}"
        ways[words] = load._replace(batch=batch)
    if not load.recompute:
        ways["--recompute true"] = load._replace(recompute=True)
    return ways


def free_bytes() -> float | None:
    """Memory that this process can have in all: its own, and what is available on the machine and in its control
    group; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        own = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return own + min(available, _free_in_group())


def _free_in_group():
    folder = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return int((folder / most).read_text(encoding="ascii")) - int((folder / used).read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such group, or no limit: "max"
            continue
    return float("inf")


def _gigabytes(size):
    return f"{size / GIGABYTE:.1f} GB"
