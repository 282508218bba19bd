"""Predictions as text: the formats of ``tools/predict_ner.py``."""

from tasks.common.texts.json_lines import json_line
from tasks.ner.examples import Entity, make_example
from tasks.ner.formats import TEXT_FORMATS

# Names of tasks.ner.formats. The first is the one with everything in it, the scores too.
FORMATS = ("jsonl", "cluener", "bio", "doccano")


def write_predictions(records, where, file, format):
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
        text, entities = record["text"], record["entities"]
        if format == "bio":
            entities = flat_entities(text, entities)
            left_out += len(record["entities"]) - len(entities)
            if not text:
                file.write("\n")  # a sentence without characters
                continue
        example = make_example(text, (Entity(e["start"], e["end"], e["type"]) for e in entities), place)
        file.writelines(TEXT_FORMATS[format].write([example]))
    return left_out


def flat_entities(text, entities):
    """Entities without a character in common: the highest score is taken first, then the next that fits, and so on."""
    taken, chosen = bytearray(len(text)), []
    for entity in sorted(entities, key=lambda entity: -entity["score"]):
        characters = slice(entity["start"], entity["end"])
        if not any(taken[characters]):
            taken[characters] = b"\x01" * (entity["end"] - entity["start"])
            chosen.append(entity)
    return chosen
