"""Predictions as text: the formats of ``paddle-rope predict ner``."""

from collections.abc import Iterable
from typing import TextIO

from tasks.common.texts.json_lines import json_line
from tasks.ner.examples import entities_of, make_example, without_overlaps
from tasks.ner.formats import TEXT_FORMATS

# Names of tasks.ner.formats. The first is the one with everything in it, the scores too.
FORMATS = ("jsonl", "cluener", "bio", "doccano")


def write_predictions(records: Iterable[dict], where: Iterable[str], file: TextIO, format: str) -> int:
    """Write records in one of :data:`FORMATS`.

    Args:
        records: as from :class:`tasks.ner.prediction.predictor.NerPredictor`.
        where: for each its place, for error messages.
        file: open for text.
        format: name of the format.

    Returns:
        How many entities the format could not hold and has left out.

    Raises:
        InputError: a text or a type cannot be written in the format.
    """
    left_out = 0
    for record, place in zip(records, where):
        if format == "jsonl":
            file.write(json_line(record))
            continue
        entities = entities_of(record)
        if format == "bio":
            entities = without_overlaps(entities)
            left_out += len(record["entities"]) - len(entities)
            if not record["text"]:
                file.write("\n")  # a sentence without characters
                continue
        file.writelines(TEXT_FORMATS[format].write([make_example(record["text"], entities, place)]))
    return left_out
