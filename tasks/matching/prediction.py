"""From texts to scores and embeddings with a trained or exported model."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import numpy as np

from tasks.common.errors import InputError
from tasks.common.export.model import ExportedModel
from tasks.common.inference import Batch, encoder_outputs
from tasks.common.model_folder import check_least
from tasks.common.predictor import Predictor
from tasks.matching.batching import MatchingDataset, pad_sequences
from tasks.matching.config import SHORTEST, MatchingConfig
from tasks.matching.data import Example


class ExportedMatchingModel(ExportedModel):
    """The graph of an exported folder as a :class:`~tasks.matching.model.MatchingModel`."""

    config_class = MatchingConfig

    def find_representations(self, batch: Batch) -> np.ndarray:
        """As of the trained model."""
        width = () if self.config.is_cross_encoder else (self.config.hidden_size,)
        return self.run(batch, (len(batch["input_ids"]), *width))[0]


class MatchingPredictor(Predictor):
    """Scores pairs and triples of texts, and embeds texts. Threads may share it.

    Args:
        max_tokens: longest sequence in tokens; None for that of training. Longer ones are cut, see
            :mod:`tasks.matching.batching`.
        model_dir, device, batch_size, show_progress, bf16: as of :class:`~tasks.common.predictor.Predictor`.

    Attributes:
        threshold: score from which a pair matches; None for a model of grades or triples.
    """

    recipe = "matching"
    model_class = "tasks.matching.model:MatchingModel"
    exported_class = ExportedMatchingModel

    def __init__(
        self,
        model_dir: str | os.PathLike,
        device: str | None = None,
        batch_size: int = 32,
        max_tokens: int | None = None,
        show_progress: bool = False,
        bf16: bool = False,
    ) -> None:
        check_least("max_tokens", max_tokens, SHORTEST)
        super().__init__(model_dir, device, batch_size, show_progress, bf16)
        self.max_tokens = max_tokens or self.model.config.max_tokens
        self.threshold = self.model.config.threshold

    def score(self, pairs: Sequence[Sequence[str]]) -> np.ndarray:
        """How well the texts of each pair of strings match: float32 ``[pairs]``.

        Of a bi-encoder the cosine; of a cross-encoder the probability of label 1, or the grade; of one trained on
        triples a logit, which is only comparable with others of the same first text.
        """
        return self._score(_checked(pairs, 2), 1)[:, 0]

    def score_triples(self, triples: Sequence[Sequence[str]]) -> np.ndarray:
        """How close B and C are to A: as :meth:`score`, of triples (A, B, C) of strings; float32 ``[triples, 2]``."""
        return self._score(_checked(triples, 3), 2)

    def _score(self, tuples, candidates):
        if not tuples:
            return np.zeros([0, candidates], dtype=np.float32)
        return score_dataset(self.model, self._dataset(tuples), self.batch_size, self.show_progress)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, for search: float32 ``[texts, hidden]``, each of length 1. The dot product of two is their
        cosine, the score of the pair. Raises InputError of a cross-encoder, which has no vector for one text."""
        config = self.model.config
        if config.is_cross_encoder:
            raise InputError(
                f"{self.model_dir}: is a cross_encoder, which reads two texts at once and has no vector for one; "
                "train with architecture: bi_encoder"
            )
        texts = _checked(texts, 1)
        if not texts:
            return np.zeros([0, config.hidden_size], dtype=np.float32)
        dataset = self._dataset(texts)
        outputs = represent_sequences(self.model, dataset.sequences, self.batch_size, self.show_progress)
        return outputs[dataset.rows[:, 0]]

    def _dataset(self, tuples):
        examples = [Example(texts, None, "") for texts in tuples]
        return MatchingDataset(examples, self.tokenizer, self.model.config, self.max_tokens)


def _checked(items, count):
    """Tuples of ``count`` strings; single strings are given as they are."""
    what = {1: "strings", 2: "pairs of strings", 3: "triples of strings"}[count]
    if isinstance(items, str):
        raise InputError(f"give a list of {what}, got one string")
    tuples = [(item,) if count == 1 else item for item in items]
    for number, texts in enumerate(tuples, 1):
        if isinstance(texts, str) or len(texts) != count or not all(isinstance(text, str) for text in texts):
            raise InputError(f"give a list of {what}; number {number} is {texts!r:.60}")
    return [tuple(texts) for texts in tuples]


def score_dataset(model, dataset, batch_size, show_progress=False):
    """Scores of the candidates of each example of a :class:`~tasks.matching.batching.MatchingDataset`.

    float32 ``[examples, candidates]``, one candidate of a pair and two of a triple: cosines of a bi-encoder; of a
    cross-encoder the probability that a pair matches, its grade, or of triples logits.
    """
    outputs = represent_sequences(model, dataset.sequences, batch_size, show_progress)
    if not model.config.is_cross_encoder:
        first, *others = dataset.rows.T
        return np.stack([(outputs[first] * outputs[other]).sum(axis=1) for other in others], axis=1)
    if model.config.grades is not None:
        lowest, highest = model.config.grades
        outputs = (lowest + (highest - lowest) / (1 + np.exp(-outputs.astype(np.float64)))).astype(np.float32)
    return outputs[dataset.rows]


def represent_sequences(model, sequences, batch_size, show_progress=False):
    """:meth:`tasks.matching.model.MatchingModel.represent` of many sequences: float32 ``[sequences, hidden]`` or
    ``[sequences]``."""
    config, forward = model.config, model.find_representations
    collate = functools.partial(pad_sequences, pad_token_id=config.pad_token_id)
    shape = [] if config.is_cross_encoder else [config.hidden_size]
    return encoder_outputs(forward, sequences, collate, batch_size, config, shape, show_progress)
