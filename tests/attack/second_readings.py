"""Labeled files read a second time, as plainly as can be and without the project's code: what a reader may lose shows
in the comparison. Each function takes the text of a file that the reader has accepted.

A reading is a list of (text, set of (start, end, type)), half-open in characters.
"""

import json
import re
from collections import Counter

BLANKS = " \t"


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
    """Of JSON lines, one JSON list, or a table with JSON in its cells."""
    if text.lstrip(BLANKS + "\r\n").startswith("["):
        return [_member(one) for one in loads(text)]
    if text.lstrip(BLANKS + "\r\n").startswith("{"):
        return [loads(line) for line in lines_of(text) if line.strip(BLANKS)]
    return [{key: cell if key == "text" else _cell(cell) for key, cell in row.items()} for row in table(text)]


def _member(one):
    if isinstance(one, str):
        return {"text": one}
    return {"text": one[0], **one[1]} if isinstance(one, list) else one


def _cell(cell):
    bare = cell.strip()
    if not bare:
        return []
    try:
        return loads(bare) if bare[0] in "[{" else cell
    except RepeatedKey:
        raise
    except ValueError:
        return cell


def table(text):
    """The rows of CSV or TSV as dicts, by the csv module."""
    lines = lines_of(text)
    while not lines[0].strip(BLANKS):
        del lines[0]
    if "\t" in lines[0]:
        rows = [[_unquoted(cell) for cell in line.split("\t")] for line in lines if line.strip(BLANKS)]
    else:
        rows = [row for row in csv.reader([line + "\n" for line in lines], skipinitialspace=", " in lines[0]) if row]
    header = [name.strip().strip('"') for name in rows[0]]
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def _unquoted(cell):
    inner = cell[1:-1]
    is_quoted = cell[:1] == cell[-1:] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else cell


def cluener(text):
    return [
        (
            one["text"],
            {(a, b + 1, kind) for kind, of in one["label"].items() for spans in of.values() for a, b in spans},
        )
        for one in records(text)
    ]


def doccano(text):
    return [
        (one["text"], {tuple(span) for span in (one["label"] if "label" in one else one["labels"])})
        for one in records(text)
    ]


def doccano_entities(text):
    return [
        (one["text"], {(e["start_offset"], e["end_offset"], e["label"]) for e in one["entities"]})
        for one in records(text)
    ]


def jsonl(text):
    return [(one["text"], {(e["start"], e["end"], e["type"]) for e in one["entities"]}) for one in records(text)]


def cmeee(text):
    return [
        (
            one["text"],
            {(e["start_idx"], e["start_idx"] + len(e["entity"]), e["type"]) for e in one["entities"]},
        )
        for one in loads(text)
    ]


def columns(text):
    """BIO, BIOES, BMES in columns: the tag stands behind the last blank."""
    found, tokens, tags = [], [], []
    for line in [*lines_of(text), ""]:
        line = line.rstrip(BLANKS)
        if line:
            cut = max(line.rfind(" "), line.rfind("\t"))
            tokens.append(line[:cut])
            tags.append(line[cut + 1 :])
        elif tokens:
            found.append(_tagged(tokens, tags))
            tokens, tags = [], []
    return found


def sentences(text):
    found = []
    for line in lines_of(text):
        left, _, right = line.rpartition("\t")
        if not line.strip(BLANKS) or (not found and right.strip(BLANKS) in ("label", "labels")):
            continue
        found.append(_tagged(left.split("\x02"), right.split("\x02")))
    return found


def _tagged(tokens, tags):
    """Entities by the rule of conlleval, token by token: where a chunk ends and where one starts."""
    spans, begun, before, kind_before, place = set(), None, "O", "", 0
    for token, tag in [*zip(tokens, tags), ("", "O")]:
        letter, _, kind = tag.partition("-")
        ends = begun is not None and (before in "ES" or letter in "OBS" or kind != kind_before)
        if ends:
            spans.add((begun, place, kind_before))
            begun = None
        if letter != "O" and begun is None:
            begun = place
        before, kind_before, place = letter, kind, place + len(token)
    return "".join(tokens), spans


def brat(text, annotation):
    """One document: its text and the lines T of its annotation."""
    spans = set()
    for line in lines_of(annotation):
        if line.startswith("T"):
            kind, start, end = line.split("\t")[1].split(" ")
            spans.add((int(start), int(end), kind))
    return [(text, spans)]


def documents(text):
    """Characters of all texts of a plain file, without white space, as a set of lines."""
    return {"".join(line.split()) for line in re.split(r"\n", text) if line.strip()}


OF_FORMAT = {
    "cluener": cluener,
    "doccano": doccano,
    "doccano_entities": doccano_entities,
    "jsonl": jsonl,
    "cmeee": cmeee,
    **dict.fromkeys(("bio", "bioes", "bmes"), columns),
    **dict.fromkeys(("bio_sentences", "bioes_sentences", "bmes_sentences"), sentences),
}
