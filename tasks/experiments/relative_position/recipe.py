"""The recipe of the controlled task: which of two far markers stands first, and nothing else, is the label.

A sequence holds a stretch of the marker ``FIRST`` and one of ``SECOND``, each a sixteenth of the length, begun a
quarter to three quarters of the length apart, among fillers drawn at random. The label is 1 if ``FIRST`` stands before
``SECOND``, else 0. The tokens without their order have the same distribution for both labels, so a model without
positions cannot do better than chance. The markers are a constant share of the sequence, so that the length makes the
way between them longer, and not the markers harder to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle

from paddle_rope.roformer import RoFormerForSequenceClassification
from tasks.common.inference import evaluation_mode
from tasks.common.recipe import Recipe
from tasks.common.training.run import Run
from tasks.experiments.relative_position.arguments import STRETCHES, RelativePositionArguments

FIRST, SECOND = 1, 2  # 0 is padding, which does not occur
FILLERS = 16
VOCABULARY = 3 + FILLERS
LABELS = 2
# The sequences of each split are drawn with this seed plus three times that of the run.
SPLIT_SEEDS = {"train": 0, "dev": 1, "test": 2}


def make_sequences(length: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(ids, labels), int64 ``[count, length]`` and ``[count]``, half of them 1; the same for the same seed."""
    random = np.random.default_rng(seed)
    ids = random.integers(VOCABULARY - FILLERS, VOCABULARY, [count, length])
    labels = random.permutation(np.arange(count) % LABELS)
    width = length // STRETCHES
    gaps = random.integers(length // 4, 3 * length // 4, count)
    left = random.integers(0, length - gaps - width + 1)
    place = np.arange(length)
    on_the_left = np.where(labels == 1, FIRST, SECOND)
    for begin, marker in ((left, on_the_left), (left + gaps, FIRST + SECOND - on_the_left)):
        inside = (place >= begin[:, None]) & (place < begin[:, None] + width)
        ids = np.where(inside, marker[:, None], ids)
    return ids.astype(np.int64), labels.astype(np.int64)


def collate(pairs):
    """dict of arrays: ``input_ids`` int64, ``attention_mask`` bool ``[batch, seq]``, ``labels`` int64 ``[batch]``."""
    ids, labels = (np.stack(arrays) for arrays in zip(*pairs))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids, dtype=bool), "labels": labels}


class Sequences(list):
    """Pairs of ids, int64 ``[seq]``, and label; ``lengths`` are the tokens of each."""

    lengths = property(lambda self: [len(ids) for ids, _ in self])


class RelativePositionRecipe(Recipe):
    """Which of two markers comes first: accuracy, where chance is one half."""

    arguments = RelativePositionArguments
    model_class = RoFormerForSequenceClassification
    scores = ("accuracy",)
    next_step = "chance is 0.5; the model is in {model}"

    def read(self, run: Run) -> None:
        for split, seed in SPLIT_SEEDS.items():
            size = run.keys.train_size if split == "train" else run.keys.test_size
            run.examples[split] = make_sequences(run.keys.length, size, 3 * run.training.seed + seed)

    def new_tokenizer(self, run: Run) -> None:
        return None

    def model_options(self, run: Run) -> dict[str, Any]:
        return {"vocab_size": VOCABULARY, "pooling": "mean", "num_labels": LABELS}

    def dataset(self, run: Run, split: str) -> Sequences:
        return Sequences(zip(*run.examples[split]))

    def collator(self, run: Run) -> Any:
        return collate

    def describe(self, run: Run) -> None:
        print(f"{run.keys.length} tokens; chance is {1 / LABELS}")

    def score(self, run: Run, split: str) -> tuple[dict[str, float], np.ndarray]:
        ids, labels = run.examples[split]
        with evaluation_mode(run.model):
            batches = (ids[start : start + run.batch_size] for start in range(0, len(ids), run.batch_size))
            found = np.concatenate([run.model(paddle.to_tensor(batch)).numpy().argmax(axis=1) for batch in batches])
        return {"accuracy": float((found == labels).mean()), "chance": 1 / LABELS}, found

    def records(self, run: Run, split: str, predictions: np.ndarray) -> Iterator[dict[str, int]]:
        for label, found in zip(run.examples[split][1].tolist(), predictions.tolist()):
            yield {"label": label, "found": found}
