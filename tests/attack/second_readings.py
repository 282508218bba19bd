"""Labeled files read a second time, as plainly as can be and without the project's code: what a reader may lose shows
in the comparison. Each function takes the text of a file that the reader has accepted, and raises :class:`NotPlain`
where that text needs more than a plain reading (tables, more than two columns, comments).

A reading is a list of (text, set of (start, end, type)), half-open in characters.
"""

import json
import re
from collections import Counter

BLANKS = " \t"


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


def _of_objects(start, end, kind):
    return _of_records(lambda one: [(entity[start], entity[end], entity[kind]) for entity in one["entities"]])


def _of_cluener(one):
    return ((a, b + 1, kind) for kind, of in one["label"].items() for pairs in of.values() for a, b in pairs)


def _of_cmeee(one):
    return ((e["start_idx"], e["start_idx"] + len(e["entity"]), e["type"]) for e in one["entities"])


def tokens(text):
    """Lists of tokens and tags, or strings of them."""
    found = []
    for one in records(text):
        words = next(one[key] for key in ("tokens", "words", "chars", "text") if key in one)
        tags = next(one[key] for key in ("ner_tags", "tags", "labels", "label") if key in one)
        tags = re.split(r"[\s,]+", tags.strip()) if isinstance(tags, str) else tags
        if isinstance(words, str):
            words = words.split() if len(words.split()) == len(tags) else list(words)
        found.append(tagged(words, tags))
    return found


def spacy(text):
    if '"paragraphs"' in text:
        raise NotPlain
    return [(one["text"], set(map(tuple, one["entities"]))) for one in records(text)]


def columns(text):
    """BIO, BIOES, BMES: a token and its tag in each line."""
    found = [[]]
    for line in lines_of(text):
        match = re.fullmatch(r"([^\s#]\S*)[ \t](O|[BIMES]-\S+)", line)
        if match and not match[1].startswith("-DOC") and not match[1][-1].isdigit():  # Weibo's numbers
            found[-1].append(match.groups())
        elif line:
            raise NotPlain
        else:
            found.append([])
    return [tagged(*zip(*rows)) for rows in found if rows]


def sentences(text):
    found = []
    for line in lines_of(text):
        left, _, right = line.rpartition("\t")
        if not line.strip(BLANKS) or (not found and right.strip(BLANKS) in ("label", "labels")):
            continue
        found.append(tagged(left.split("\x02"), right.split("\x02")))
    return found


def tagged(tokens, tags=()):
    """(text of tokens, their entities in characters); words of several ASCII letters or digits stay apart."""
    text, begun = "", []
    before = ""
    for token in tokens:
        edges = before[-1:] + token[:1]
        apart = len(before) + len(token) > 2 and len(edges) == 2 and re.fullmatch("[0-9A-Za-z]{2}", edges)
        begun.append(len(text) + bool(apart))
        text += " " * bool(apart) + token
        before = token
    return text, {(begun[a], begun[b - 1] + len(tokens[b - 1]), kind) for a, b, kind in _chunks(tags)}


def _chunks(tags):
    """Entities in tokens by the rule of conlleval, token by token: where a chunk ends and where one starts."""
    spans, begun, before, kind_before = [], None, "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, _, kind = tag.partition("-")
        ends = begun is not None and (before in "ES" or letter in "OBS" or kind != kind_before)
        if ends:
            spans.append((begun, place, kind_before))
            begun = None
        if letter != "O" and begun is None:
            begun = place
        before, kind_before = letter, kind
    return spans


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
    "doccano": _of_records(lambda one: map(tuple, one["label"] if "label" in one else one["labels"])),
    "doccano_entities": _of_objects("start_offset", "end_offset", "label"),
    "jsonl": _of_objects("start", "end", "type"),
    **{one.__name__: one for one in (tokens, spacy)},
    **dict.fromkeys(("bio", "bioes", "bmes"), columns),
    **dict.fromkeys(("bio_sentences", "bioes_sentences", "bmes_sentences"), sentences),
}
