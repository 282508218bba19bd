"""Scores of tokenized examples, computed in batches of like length."""

import numpy as np

from tasks.common.inference import outputs_of
from tasks.matching.batching import pad_sequences

# Rows times length squared of one batch: bounds the attention weights of long texts.
MAX_BATCH_WEIGHTS = 1 << 24


def score_dataset(model, dataset, batch_size, show_progress=False):
    """Scores of the candidates of each example.

    Args:
        model, dataset: :class:`tasks.matching.model.MatchingModel`; :class:`tasks.matching.batching.MatchingDataset`.
        batch_size: sequences a batch at most.

    Returns:
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
    shape = [len(sequences)] if model.config.is_cross_encoder else [len(sequences), model.config.hidden_size]
    found = np.zeros(shape, dtype=np.float32)

    def collate(items):
        return pad_sequences(items, model.config.pad_token_id)

    outputs = outputs_of(
        model.find_representations, sequences, collate, batch_size, lambda n: n**2, MAX_BATCH_WEIGHTS, show_progress
    )
    for rows, represented in outputs:
        found[rows] = represented
    return found
