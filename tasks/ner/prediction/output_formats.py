"""Predictions as text: the formats of ``paddle-rope predict`` and ``select``."""

import sys
from collections.abc import Iterable, Iterator

from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.common.files import json_line
from paddle_rope.tasks.ner.examples import Example, entities_of, without_overlaps
from paddle_rope.tasks.ner.formats import TEXT_FORMATS
from paddle_rope.tasks.ner.formats.label_studio import prediction_task
from paddle_rope.tasks.ner.formats.records import write_list

# Names of paddle_rope.tasks.ner.formats. The first holds everything, including the scores.
FORMATS = ("jsonl", "cluener", "bio", "doccano", "labelstudio")


def written(predicted: Iterable[tuple[dict, str]], format: str, model_version: str) -> Iterator[str]:
    """The content of a file in one of :data:`FORMATS`, in pieces, as records arrive. ``predicted`` has pairs of a
    record, as from :class:`paddle_rope.tasks.ner.prediction.predictor.NerPredictor`, and a place, which an InputError
    names if a text or a type cannot be written in the format. ``model_version`` is the model's name in Label Studio. At
    the end, a note says how many entities the format could not hold."""
    if format == "labelstudio":
        yield from write_list(prediction_task(record, visible(model_version)) for record, _ in predicted)
        return
    left_out = 0
    for record, place in predicted:
        if format == "jsonl":
            yield json_line(record)
            continue
        found = entities_of(record)
        entities = without_overlaps(found) if format == "bio" else found
        left_out += len(found) - len(entities)
        if format == "bio" and not record["text"]:
            yield "\n"  # a sentence without characters
        else:
            yield from TEXT_FORMATS[format].write([Example(record["text"], tuple(entities), place)])
    if left_out:
        note = f"note: {left_out} nested or overlapping entities are left out, as BIO cannot hold them"
        print(f"{note}; --format jsonl keeps all", file=sys.stderr)
