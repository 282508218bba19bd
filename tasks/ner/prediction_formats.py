"""Predictions as text: the formats of ``tools/predict_ner.py``."""

import json

from tasks.common.errors import InputError


def write_predictions(records, file, format):
    """Write records in one of :data:`FORMATS`.

    Args:
        records: as from :class:`tasks.ner.prediction.NerPredictor`.
        file: open for text.
        format: name of the format.

    Returns:
        How many entities the format could not hold and has left out.

    Raises:
        InputError: a text or a type cannot be written in the format.
    """
    write, left_out = FORMATS[format], 0
    for record in records:
        text, missing = write(record)
        file.write(text)
        left_out += missing
    return left_out


def _jsonl(record):
    return _line(record), 0


def _cluener(record):
    label = {}
    for entity in record["entities"]:
        spans = label.setdefault(entity["type"], {}).setdefault(entity["text"], [])
        spans.append([entity["start"], entity["end"] - 1])
    return _line({"text": record["text"], "label": label}), 0


def _doccano(record):
    label = [[entity["start"], entity["end"], entity["type"]] for entity in record["entities"]]
    return _line({"text": record["text"], "label": label}), 0


def _line(value):
    return json.dumps(value, ensure_ascii=False) + "\n"


def _bio(record):
    text, entities = record["text"], flat_entities(record["entities"])
    if "\n" in text:
        raise InputError(f"--format bio: a text has a line break ({text[:40]!r}), which a line cannot hold; use jsonl")
    tags = ["O"] * len(text)
    for entity in entities:
        if any(blank in entity["type"] for blank in " \t\n"):
            raise InputError(f"--format bio: type {entity['type']!r} has a blank, which ends a tag; use jsonl")
        tags[entity["start"]] = f"B-{entity['type']}"
        tags[entity["start"] + 1 : entity["end"]] = [f"I-{entity['type']}"] * (entity["end"] - entity["start"] - 1)
    lines = [f"{character} {tag}\n" for character, tag in zip(text, tags)]
    return "".join([*lines, "\n"]), len(record["entities"]) - len(entities)


def flat_entities(entities):
    """Entities without a character in common, in their order: the highest score is taken first, then the next that
    fits, and so on."""
    chosen = []
    for entity in sorted(entities, key=lambda entity: -entity["score"]):
        if all(entity["end"] <= other["start"] or other["end"] <= entity["start"] for other in chosen):
            chosen.append(entity)
    return sorted(chosen, key=lambda entity: entity["start"])


# The first is the one with everything in it.
FORMATS = {"jsonl": _jsonl, "cluener": _cluener, "bio": _bio, "doccano": _doccano}
