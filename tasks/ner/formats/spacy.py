"""spaCy's JSON: its training tuples, and the documents of its version 2.

* tuples: ``[["...", {"entities": [[9, 12, "name"]]}], ...]``, or objects with ``text`` and such ``entities``; offsets
  in characters, half-open;
* documents: ``[{"id": 0, "paragraphs": [{"raw": "...", "sentences": [{"tokens": [{"orth": "...", "ner": "B-name"},
  ...]}]}]}]``, tags by the scheme BILUO. Each paragraph is an example; its text is ``raw``, or the tokens joined.

Source: https://v2.spacy.io/api/annotation#json-input
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.json_records import Records, check_offsets, check_type, read_records
from tasks.ner.formats.tagging import decode_tags, joined, parse_tag

PARAGRAPHS = "paragraphs"
SHAPE = 'write it as ["text", {"entities": [[start, end, "type"]]}]'
DOCUMENT_SHAPE = 'write it as {"paragraphs": [{"raw": "text", "sentences": [{"tokens": [{"orth": ..., "ner": ...}]}]}]}'
_PREFIXES = {"U": "S", "L": "E"}  # of BILUO -> of BIOES


def read(records: Records, name: str) -> list[Example]:
    examples = []
    for where, record in records:
        if PARAGRAPHS in record:
            examples += [_of_paragraph(paragraph, where) for paragraph in _paragraphs(record, where)]
        else:
            examples += read_records([(where, record)], ("entities",), '"entities": []', _entities)
    return examples


def texts_of(record: dict, where: str) -> list[str]:
    """The texts of a record, with labels or without."""
    if PARAGRAPHS not in record:
        return [json_text(record, where)]
    return [_text(paragraph, _tokens(paragraph, where), where)[0] for paragraph in _paragraphs(record, where)]


def write(examples: Iterable[Example]) -> Iterator[str]:
    """As tuples."""
    between = "[\n"
    for example in examples:
        entities = [[entity.start, entity.end, entity.type] for entity in example.entities]
        yield between + json.dumps([example.text, {"entities": entities}], ensure_ascii=False)
        between = ",\n"
    yield "\n]\n"


def _entities(entities: object, text: str, where: str) -> Iterator[Entity]:
    if not isinstance(entities, list):
        raise InputError(f'{where}: "entities" is {shown(entities)}, not a list; {SHAPE}')
    for span in entities:
        if not (isinstance(span, list) and len(span) == 3):
            raise InputError(f"{where}: entity {shown(span)} is not [start, end, type]; {SHAPE}")
        type_ = check_type(span[2], SHAPE, where)
        yield Entity(*check_offsets(span[0], span[1], text, SHAPE, where), type_)


def _paragraphs(record, where):
    return _objects(record, PARAGRAPHS, where)


def _objects(record, key, where):
    found = record.get(key)
    if not (isinstance(found, list) and all(isinstance(one, dict) for one in found)):
        raise InputError(f'{where}: "{key}" is {shown(found)}, not a list of objects; {DOCUMENT_SHAPE}')
    return found


def _tokens(paragraph, where):
    """Lists of the tokens of each sentence."""
    if "sentences" not in paragraph:
        return []
    return [_objects(sentence, "tokens", where) for sentence in _objects(paragraph, "sentences", where)]


def _text(paragraph, sentences, where):
    """(text, half-open characters of each token)."""
    words = [token.get("orth") for tokens in sentences for token in tokens]
    if not all(isinstance(word, str) and word for word in words):
        raise InputError(f'{where}: a token has no "orth"; {DOCUMENT_SHAPE}')
    raw = paragraph.get("raw")
    if raw is None:
        text, offsets = joined(words)
    else:
        text = json_text(paragraph, where, ("raw",))
        offsets = _found_in(text, words, where)
    if not text:
        raise InputError(f"{where}: a paragraph has no text; remove it")
    check_encodable(text, "a paragraph", where)
    return text, offsets


def _found_in(text, words, where):
    """Where words stand in a text, one after the other with white space between."""
    offsets, end = [], 0
    for word in words:
        begin = end
        while not word[0].isspace() and text[begin : begin + 1].isspace():
            begin += 1
        if not text.startswith(word, begin):
            raise InputError(
                f"{where}: token {shown(word)} is not in the raw text after {end} characters, where "
                f"{shown(text[end : end + 20])} stands; correct the tokens or the text"
            )
        end = begin + len(word)
        offsets.append((begin, end))
    return offsets


def _of_paragraph(paragraph, where):
    sentences = _tokens(paragraph, where)
    text, offsets = _text(paragraph, sentences, where)
    found, before, has_tags = [], 0, False
    for tokens in sentences:
        has_tags = has_tags or any("ner" in token for token in tokens)
        tags = [_tag(token.get("ner", "O"), where) for token in tokens]
        for start, end, kind in decode_tags(tags, must_close=True)[0]:
            found.append(Entity(offsets[before + start][0], offsets[before + end - 1][1], kind))
        before += len(tokens)
    if "entities" in paragraph:
        found += _entities(paragraph["entities"], text, where)
    elif not has_tags:
        raise InputError(f'{where}: no token has a "ner", the file is unlabeled; give labeled data, or predict with it')
    return make_example(text, found, where)


def _tag(tag, where):
    if tag in ("", "-", None):  # not labeled
        return parse_tag("O")
    parsed = parse_tag(_PREFIXES.get(tag[:1], tag[:1]) + tag[1:]) if isinstance(tag, str) else None
    if parsed is None:
        raise InputError(f"{where}: unknown tag {shown(tag)}; BILUO has B-X, I-X, L-X, U-X and O")
    check_encodable(tag, "a tag", where)
    return parsed
