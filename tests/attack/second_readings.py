"""Labeled files read a second time, as plainly as can be and without the project's code: what a reader may lose shows
in the comparison. Each function takes the text of a file that the reader has accepted, and raises :class:`NotPlain`
where that text is no JSON.

A reading is a list of (text, set of (start, end, type)), half-open in characters.
"""

import json
from collections import Counter

BLANKS = " \t"
SPANS = ("entities", "label", "labels", "spans", "annotations")


class NotPlain(ValueError):
    """A text of another form."""


class RepeatedKey(Exception):
    """An object whose second key hides the first: no reader may accept it."""


def _object(pairs):
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise RepeatedKey(repr(twice[0])[:80])
    return dict(pairs)


def loads(text):
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deep for a plain reading") from None


def lines_of(text):
    return [line[:-1] if line.endswith("\r") else line for line in text.split("\n")]


def records(text):
    """The objects of JSON lines, or of one JSON list."""
    begin = text.lstrip(BLANKS + "\r\n")[:1]
    if begin == "[":
        return [_member(one) for one in loads(text)]
    if begin == "{":
        return [loads(line) for line in lines_of(text) if line.strip(BLANKS)]
    raise NotPlain


def _member(one):
    if isinstance(one, str):
        return {"text": one}
    return {"text": one[0], **one[1]} if isinstance(one, list) else one


def _of_records(spans_of):
    """A reading of records with a text, and spans that a function finds in them."""
    return lambda text: [(one["text"], set(spans_of(one))) for one in records(text)]


def _of_shapes(text):
    """Entities that are objects, under the keys of the samples; what is not offsets of characters is not plain."""
    found = []
    for one in records(text):
        if not one.keys().isdisjoint(("tokenized_text", "result_list", "answer", "data")):
            raise NotPlain
        entities = _named(one, *SPANS)
        spans = {(_named(e, "start", "begin"), e["end"], _named(e, "type", "label")) for e in entities}
        found.append((_named(one, "text", "content"), spans))
    return found


def _named(one, *names):
    """The value of the first of the keys that an object has and that is not empty."""
    values = [one[name] for name in names if name in one]
    return next((value for value in values if value not in ([], {})), values[0])


def _of_cluener(one):
    return ((a, b + 1, kind) for kind, of in _named(one, *SPANS).items() for pairs in of.values() for a, b in pairs)


def _of_cmeee(one):
    entities = [(e["start_idx"], e["entity"], _named(e, "type", "label")) for e in _named(one, *SPANS)]
    return [(start, start + len(surface), kind) for start, surface, kind in entities]


def brat(text, annotation):
    """One document: (its text, the entities of the lines T of its annotation)."""
    spans = set()
    for line in lines_of(annotation):
        if line.startswith("T"):
            kind, _, offsets = line.split("\t")[1].partition(" ")
            pieces = [tuple(map(int, piece.split(" "))) for piece in offsets.split(";")]
            if not any(text[end:start].strip() for (_, end), (start, _) in zip(pieces, pieces[1:])):
                spans.add((pieces[0][0], pieces[-1][1], kind))
    return text, spans


OF_FORMAT = {
    "cluener": _of_records(_of_cluener),
    "cmeee": _of_records(_of_cmeee),
    "doccano": _of_records(lambda one: map(tuple, _named(one, *SPANS))),
    "doccano_entities": _of_records(
        lambda one: [(e["start_offset"], e["end_offset"], e["label"]) for e in _named(one, *SPANS)]
    ),
    "jsonl": _of_shapes,
}
