"""Labeled files read a second time, as plainly as can be and without the project's code: what a reader may lose shows
in the comparison. Each function takes the text of a file that the reader has accepted.

A reading is a list of (text, set of (start, end, type)), half-open in characters.
"""

import csv
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
    header, rows = _cells_of(text)
    for usual, others in (("text", ("text", "sentence", "content", "body")), ("label", ("label", "labels", "class"))):
        places = [place for other in others for place, name in enumerate(header) if name.lower() == other]
        header = [usual if [place] == places[:1] else name for place, name in enumerate(header)]
    return [dict(zip(header, row, strict=True)) for row in rows if row]


def _cells_of(text):
    """(header, rows) of CSV or TSV; blank lines are empty rows."""
    lines = lines_of(text)
    while not lines[0].strip(BLANKS):
        del lines[0]
    lines[0] = lines[0].strip(" \r")  # edges of a header are no part of its names
    if "\t" in lines[0]:
        rows = [[_unquoted(cell) for cell in line.split("\t")] if line.strip(BLANKS) else [] for line in lines]
    else:
        is_spaced = ", " in re.sub('"[^"]*"', "", lines[0])
        rows = list(csv.reader([line + "\n" for line in lines], skipinitialspace=is_spaced))
    return [name.strip().strip('"') for name in rows[0]], rows[1:]


def _unquoted(cell):
    inner = cell[1:-1]
    is_quoted = cell[:1] == cell[-1:] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else cell


def cluener(text):
    def spans(label):
        return {(a, b + 1, kind) for kind, of in label.items() for pairs in of.values() for a, b in pairs}

    return [(one["text"], spans(one["label"])) for one in records(text)]


def doccano(text):
    return [(one["text"], set(map(tuple, one["label"] if "label" in one else one["labels"]))) for one in records(text)]


def _of_objects(start, end, kind):
    return lambda text: [(one["text"], {(e[start], e[end], e[kind]) for e in one["entities"]}) for one in records(text)]


doccano_entities = _of_objects("start_offset", "end_offset", "label")
jsonl = _of_objects("start", "end", "type")


def cmeee(text):
    def spans(entities):
        return {(e["start_idx"], e["start_idx"] + len(e["entity"]), e["type"]) for e in entities}

    return [(one["text"], spans(one["entities"])) for one in records(text)]


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
    found = []
    for one in records(text):
        if "paragraphs" not in one:
            found.append((one["text"], set(map(tuple, one["entities"]))))
        for paragraph in one.get("paragraphs", ()):
            sentences = [sentence["tokens"] for sentence in paragraph.get("sentences", ())]
            raw = paragraph.get("raw")
            if raw is None:
                raw = tagged([token["orth"] for tokens in sentences for token in tokens])[0]
            spans, end = set(map(tuple, paragraph.get("entities", ()))), 0
            for tokens in sentences:
                places = []  # (start, end) of each token
                for token in tokens:
                    start = raw.index(token["orth"], end)
                    end = start + len(token["orth"])
                    places.append((start, end))
                tags = [(token.get("ner") or "O").replace("U-", "S-", 1).replace("L-", "E-", 1) for token in tokens]
                chunks = _chunks(["O" if tag == "-" else tag for tag in tags])
                spans |= {(places[a][0], places[b - 1][1], kind) for a, b, kind in chunks}
            found.append((raw, spans))
    return found


def columns(text):
    """BIO, BIOES, BMES in columns: the tag stands behind the last blank, or in the only column of tags."""
    found, rows, count = [], [], None
    for line in [*lines_of(text), ""] if _tokens_of_table(text) is None else []:
        line = line.rstrip(BLANKS)
        cells = line.split("\t") if "\t" in line else line.split()
        if not line or line.startswith("-DOCSTART-"):
            found.append(rows)
            rows = []
        elif rows or not (line.startswith("# ") and not _is_tag(line.split()[-1])):
            cut = max(line.rfind(" "), line.rfind("\t"))
            if count is None:
                are_tags = [place for place, cell in enumerate(cells) if place and _is_tag(cell)]
                is_two = cut == 1 or not set(line[:cut]) & set(BLANKS)
                count, tag = (2, 1) if is_two else (len(cells), are_tags[0] if len(are_tags) == 1 else -1)
            rows.append((cells[0], cells[tag]) if count > 2 else (line[:cut], line[cut + 1 :]))
    found = [rows for rows in _tokens_of_table(text) or found if rows]
    return [tagged([token for token, _ in rows], [tag for _, tag in rows]) for rows in _without_places(found)]


def _is_tag(cell):
    return cell == "O" or re.fullmatch(r"[BIMES]-(?s:.*\S.*)", cell) is not None


def _tokens_of_table(text):
    """Sentences of a table that names columns of tokens and tags; None where the text is none."""
    try:
        header, rows = _cells_of(text)
    except (ValueError, LookupError, csv.Error):
        return None
    names = [name.lower() for name in header]
    token = [names.index(key) for key in ("token", "word", "char", "character") if key in names]
    tag = [names.index(key) for key in ("tag", "ner_tag", "ner", "label", "bio") if key in names]
    of = [names.index(key) for key in ("sentence #", "sentence_id", "sentence", "sent_id") if key in names]
    if not token or not tag or re.search(r"[。，！？；：、“”!?;{}\[\]\x02]", "".join(header)):
        return None
    found, before = [[]], None
    for row in rows:
        number = row[of[0]] if row and of else ""
        if not row or not (row[token[0]] or row[tag[0]]) or (number.strip() and number != before):
            found.append([])
        before = number if number.strip() else before
        if row and row[token[0]]:
            found[-1].append((row[token[0]], row[tag[0]].strip()))
    return found


def _without_places(found):
    """Weibo's files: the number of a character in its word stands behind it, in 99 % of the tokens or more."""
    bare, lengths, begun = [], [], False
    for rows in found:
        bare.append([])
        following = 0
        for token, tag in rows:
            match = re.fullmatch(rf"(?s)(.+?)({following}|0)", token)
            begun |= bool(match and match[2] == "1")
            bare[-1].append((match[1] if match else token, tag))
            lengths.append(len(match[1]) if match else 0)
            following = int(match[2]) + 1 if match else following and following + 1
    return bare if begun and lengths.count(1) >= 0.99 * len(lengths) else found


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
    **{one.__name__: one for one in (cluener, doccano, cmeee, tokens, spacy)},
    "doccano_entities": doccano_entities,
    "jsonl": jsonl,
    **dict.fromkeys(("bio", "bioes", "bmes"), columns),
    **dict.fromkeys(("bio_sentences", "bioes_sentences", "bmes_sentences"), sentences),
}
