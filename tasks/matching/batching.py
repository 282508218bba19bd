"""Examples -> sequences of tokens -> padded batches.

A sequence longer than ``max_tokens`` tokens, special tokens counted, loses its end. Of two texts in one sequence tokens
are dropped one by one from the longer: each text has half of the room, and what a shorter one leaves is the longer's.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from tasks.common.inference import pad, pad_tokens


class Sequence(NamedTuple):
    """Tokens of ``[CLS] a [SEP]`` or ``[CLS] a [SEP] b [SEP]``; token types where the model tells texts apart."""

    ids: np.ndarray
    token_type_ids: np.ndarray | None


class Item(NamedTuple):
    """What an example is to the model: its sequences and its label."""

    sequences: list
    label: float


class MatchingDataset:
    """Tokenized examples, all pairs or all triples. A sequence that several of them share is kept, and scored, once.

    Args:
        examples: list of :class:`tasks.matching.data.Example`.
        tokenizer, config: of the model.
        max_tokens: longest sequence in tokens; None takes that of ``config``.

    Attributes:
        sequences: list of :class:`Sequence`.
        rows: int64 ``[examples, parts]``, the numbers of each example's sequences. Parts are as
            :meth:`tasks.matching.model.MatchingModel.forward` wants them.
        num_cut: how many of the sequences are cut to ``max_tokens``.
    """

    def __init__(self, examples, tokenizer, config, max_tokens=None):
        def parts(example):
            if config.is_cross_encoder:
                return [(example.text, candidate) for candidate in example.texts[1:]]
            return [(text, None) for text in example.texts]

        self.examples = examples
        self.max_tokens = max_tokens or config.max_tokens
        self.sequences, self.num_cut = [], 0
        numbers = {texts: number for number, texts in enumerate(dict.fromkeys(itertools.chain(*map(parts, examples))))}
        for texts in numbers:
            encoding = tokenizer.encode(*texts)
            if len(encoding.ids) > self.max_tokens:
                self.num_cut += 1
                encoding = tokenizer.encode(*texts, self.max_tokens)
            types = np.array(encoding.token_type_ids, dtype=np.int64) if config.token_type_ids else None
            self.sequences.append(Sequence(np.array(encoding.ids, dtype=np.int64), types))
        self.rows = np.array([[numbers[texts] for texts in parts(example)] for example in examples], dtype=np.int64)

    @property
    def lengths(self):
        """Tokens of the longest sequence of each example, a list."""
        tokens = np.array([len(sequence.ids) for sequence in self.sequences])
        return tokens[self.rows].max(axis=1).tolist()

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return Item([self.sequences[row] for row in self.rows[index]], self.examples[index].label)


def pad_items(items, pad_token_id):
    """The inputs of :class:`tasks.matching.model.MatchingModel` for a list of :class:`Item`: dict of arrays as of
    :func:`pad_sequences`, the first sequences of all items first, and ``labels`` float32 ``[batch]``."""
    sequences = [sequence for part in zip(*(item.sequences for item in items)) for sequence in part]
    labels = np.array([item.label for item in items], dtype=np.float32)
    return {**pad_sequences(sequences, pad_token_id), "labels": labels}


def pad_sequences(sequences, pad_token_id):
    """dict of arrays ``[rows, seq]``: ``input_ids`` int64, ``attention_mask`` bool, and ``token_type_ids`` int64 of
    sequences that have them."""
    batch = pad_tokens([sequence.ids for sequence in sequences], pad_token_id)
    if sequences[0].token_type_ids is not None:
        batch["token_type_ids"] = pad([sequence.token_type_ids for sequence in sequences], np.int64)
    return batch
