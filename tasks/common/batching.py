"""Sequences of different lengths as one array."""

import numpy as np


def pad(rows, dtype, value=0, least=0):
    """``[rows, seq, ...]`` of the given dtype, ``seq`` being the longest of the rows or ``least``; ``value`` behind the
    shorter ones."""
    rows = [np.asarray(row, dtype=dtype) for row in rows]
    padded = np.full((len(rows), max(least, *map(len, rows)), *rows[0].shape[1:]), value, dtype=dtype)
    for to, row in zip(padded, rows):
        to[: len(row)] = row
    return padded


def pad_tokens(ids, pad_token_id):
    """dict of ``input_ids`` int64 and ``attention_mask`` bool ``[batch, seq]`` from a list of the ids of each text."""
    mask = pad([np.ones(len(row)) for row in ids], bool)
    return {"input_ids": pad(ids, np.int64, pad_token_id), "attention_mask": mask}
