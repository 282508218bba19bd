"""From records to records with predictions for their texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_text
from tasks.matching.data import PAIR_KEYS, TRIPLE_KEYS, prediction_records
from tasks.scaling.formats import Found, Keys

MATCHING_KEYS = (PAIR_KEYS, TRIPLE_KEYS)


def keys_of(task: str, text_column: str) -> Keys:
    """The names of the texts in a record of a task, as alternatives."""
    return MATCHING_KEYS if task == "matching" else ((text_column,),)


def texts_of(record: dict, where: str, keys: Keys) -> tuple[str, ...]:
    """The texts of a record; raises InputError if they are not all there, or no model can read them."""
    names = next((names for names in keys if set(names) <= record.keys()), keys[0])
    texts = tuple(json_text(record, where, (name,)) for name in names)
    for name, text in zip(names, texts):
        if "\0" in text:
            raise InputError(f'{where}: "{name}" holds a NUL at character {text.index(chr(0))}; remove it')
        if len(names) > 1 and not text.strip():
            raise InputError(f'{where}: "{name}" is empty; give it a text')
    return texts


class Answers:
    """The predictions of a predictor, as records.

    The keys of a record that are not texts stay. Where one has the name of a key of the result, such as a gold
    ``label`` in classification, it becomes ``input_label``.

    Args:
        task: ``"ner"``, ``"classification"`` or ``"matching"``.
        predictor: of that task.
        keys: of the texts, see :func:`keys_of`.
    """

    def __init__(self, task, predictor, keys: Keys):
        self.predictor = predictor
        self.keys = keys
        self._results = self._scores if task == "matching" else self._of_texts

    def __call__(self, items: list[tuple[dict, tuple[str, ...]]]) -> Iterator[dict]:
        """Yields a record for each of pairs (record, its texts), in order."""
        for (record, texts), result in zip(items, self._results([texts for _, texts in items])):
            names = next(names for names in self.keys if len(names) == len(texts))
            yield {**_others(record, names, result), **result}

    def _of_texts(self, tuples):
        return self.predictor([text for (text,) in tuples])

    def _scores(self, tuples):
        for count, group in itertools.groupby(tuples, len):
            group = list(group)
            predictor = self.predictor
            scores = predictor.score_triples(group) if count == 3 else predictor.score(group)[:, None]
            yield from prediction_records(group, scores, predictor.threshold)


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


def answerable(found: Found, path: str, keys: Keys) -> tuple[dict, tuple[str, ...]]:
    """The record and its texts; raises InputError if there is something wrong with them."""
    where = f"{path}:{found.line}"
    if found.record is None:
        raise InputError(f"{where}: {found.reason}")
    return found.record, texts_of(found.record, where, keys)
