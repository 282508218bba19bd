"""From records to records with predictions for their texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_text
from tasks.matching.data import PAIR_KEYS, TRIPLE_KEYS, prediction_records
from tasks.scaling.formats import Keys


def keys_of(task: str, text_column: str) -> Keys:
    """The names of the texts in a record of a task, as alternatives."""
    return (PAIR_KEYS, TRIPLE_KEYS) if task == "matching" else ((text_column,),)


def texts_of(record: dict, where: str, keys: Keys) -> tuple[str, ...]:
    """The texts of a record; raises InputError if one is missing, or no model can read it."""
    names = next((names for names in keys if set(names) <= record.keys()), keys[0])
    texts = tuple(json_text(record, where, (name,)) for name in names)
    for name, text in zip(names, texts):
        if "\0" in text:
            raise InputError(f'{where}: "{name}" holds a NUL at character {text.index(chr(0))}; remove it')
        if len(names) > 1 and not text.strip():
            raise InputError(f'{where}: "{name}" is empty; give it a text')
    return texts


def answers(predictor: Any, keys: Keys, items: list[tuple[dict, tuple[str, ...]]]) -> Iterator[dict]:
    """Yields the prediction for each item, in order, with the other keys of its record. A key that the prediction has,
    too, such as a gold ``label`` in classification, becomes ``input_label``.

    Args:
        predictor: of entities or classes, for one text; of matching, for pairs and triples.
        keys: of the texts, see :func:`keys_of`.
        items: pairs of a record and its texts.
    """
    for count, group in itertools.groupby(items, lambda item: len(item[1])):
        records, texts = zip(*group)
        if count == 1:
            results = predictor([text for (text,) in texts])
        else:
            scores = predictor.score_triples(texts) if count == 3 else predictor.score(texts)[:, None]
            results = prediction_records(texts, scores, predictor.threshold)
        names = next(names for names in keys if len(names) == count)
        for record, result in zip(records, results):
            yield {**_others(record, names, result), **result}


def _others(record, names, result):
    """The keys of a record that are not its texts, under names that the result does not have."""
    others = {}
    for key, value in record.items():
        if key not in names:
            name = key
            while name in result or (name != key and name in record):
                name = f"input_{name}"
            others[name] = value
    return others
