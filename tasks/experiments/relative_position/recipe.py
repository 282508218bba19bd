"""The recipe of the controlled task: a small encoder that has to find a relative position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle

from paddle_rope.roformer import RoFormerForSequenceClassification
from tasks.common.inference import evaluation_mode
from tasks.common.recipe import Recipe
from tasks.common.run import Run
from tasks.experiments.relative_position.arguments import RelativePositionArguments
from tasks.experiments.relative_position.data import LABELS, VOCABULARY, make_sequences

# The sequences of each split are drawn with this seed plus three times that of the run.
SPLIT_SEEDS = {"train": 0, "dev": 1, "test": 2}


def collate(pairs):
    """dict of arrays: ``input_ids`` int64, ``attention_mask`` bool ``[batch, seq]``, ``labels`` int64 ``[batch]``."""
    ids, labels = (np.stack(arrays) for arrays in zip(*pairs))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids, dtype=bool), "labels": labels}


class Sequences(list):
    """Pairs of ids, int64 ``[seq]``, and label; ``lengths`` are the tokens of each."""

    lengths = property(lambda self: [len(ids) for ids, _ in self])


class RelativePositionRecipe(Recipe):
    """Which of two markers stands first: accuracy, of which chance is one half."""

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
        found = np.zeros(len(ids), dtype=np.int64)
        with evaluation_mode(run.model):
            for start in range(0, len(ids), run.batch_size):
                logits = run.model(paddle.to_tensor(ids[start : start + run.batch_size]))
                found[start : start + run.batch_size] = logits.numpy().argmax(axis=1)
        return {"accuracy": float((found == labels).mean()), "chance": 1 / LABELS}, found

    def records(self, run: Run, split: str, predictions: np.ndarray) -> Iterator[dict[str, int]]:
        for label, found in zip(run.examples[split][1].tolist(), predictions.tolist()):
            yield {"label": label, "found": found}
