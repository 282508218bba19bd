"""spaCy's JSON: its training tuples, see :mod:`tasks.ner.formats.span_records`, and the documents of its version 2.

Documents: ``[{"id": 0, "paragraphs": [{"raw": "...", "sentences": [{"tokens": [{"orth": "...", "ner": "B-name"},
...]}]}]}]``, tags by the scheme BILUO. Each paragraph is an example; its text is ``raw``, or the tokens joined.

Source: https://v2.spacy.io/api/annotation#json-input
"""

from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.records import Records, check_like, reader
from tasks.ner.formats.span_records import LISTED, listed_entities
from tasks.ner.formats.tagging import OUTSIDE, decode_tags, join_tokens, parse_tag

PARAGRAPHS = "paragraphs"
_PREFIXES = {"U": "S", "L": "E"}  # of BILUO -> of BIOES
_read_tuples = reader(("entities",), LISTED, listed_entities)


def read(records: Records, name: str) -> list[Example]:
    examples = []
    for where, record in records:
        if PARAGRAPHS in record:
            examples += [_example(*paragraph, where) for paragraph in _paragraphs(record, where)]
        else:
            examples += _read_tuples([(where, record)], name)
    return examples


def texts_of(record: dict, where: str) -> list[str]:
    """The texts of a record of paragraphs, with labels or without."""
    return [text for _, text, *_ in _paragraphs(record, where)]


def _paragraphs(record: dict, where: str) -> Iterator[tuple[dict, str, list[list[dict]], list[tuple[int, int]]]]:
    """Of each paragraph its object, its text, the tokens of each sentence, and the half-open characters of all."""
    for content in check_like(record[PARAGRAPHS], [{}], PARAGRAPHS, where):
        sample = [{"tokens": [{"orth": "word"}]}]
        sentences = [one["tokens"] for one in check_like(content.get("sentences", []), sample, "sentences", where)]
        words = [token["orth"] for tokens in sentences for token in tokens]
        if not all(words):
            raise InputError(f'{where}: the "orth" of a token is empty; remove the token')
        if content.get("raw") is None:
            text, offsets = join_tokens(words)
        else:
            text = json_text(content, where, ("raw",))
            offsets = _found_in(text, words, where)
        if not text:
            raise InputError(f"{where}: a paragraph has no text; remove it")
        check_encodable(text, "a paragraph", where)
        yield content, text, sentences, offsets


def _found_in(text, words, where):
    """The half-open characters of words in a text, one after the other with white space between."""
    offsets, end = [], 0
    for word in words:
        begin = end
        while not word[0].isspace() and text[begin : begin + 1].isspace():
            begin += 1
        if not text.startswith(word, begin):
            raise InputError(
                f"{where}: expected token {shown(word)} in the raw text after {end} characters, found "
                f"{shown(text[end : end + 20])}; correct the tokens or the text"
            )
        end = begin + len(word)
        offsets.append((begin, end))
    return offsets


def _example(content, text, sentences, offsets, where):
    entities, first = [], 0  # token of the paragraph with which the sentence begins
    for tokens in sentences:
        tags = [_tag(token.get("ner", "O"), where) for token in tokens]
        for start, end, type_ in decode_tags(tags, must_close=True)[0]:
            entities.append(Entity(offsets[first + start][0], offsets[first + end - 1][1], type_))
        first += len(tokens)
    if "entities" in content:
        entities += listed_entities(check_like(content["entities"], LISTED, "entities", where), text, where)
    elif not any("ner" in token for tokens in sentences for token in tokens):
        raise InputError(f'{where}: no token has a "ner", the file is unlabeled; give labeled data, or predict with it')
    return make_example(text, entities, where)


def _tag(tag, where):
    if tag in ("", "-", None):  # not labeled
        return OUTSIDE
    parsed = parse_tag(_PREFIXES.get(tag[:1], tag[:1]) + tag[1:]) if isinstance(tag, str) else None
    if parsed is None:
        raise InputError(f"{where}: unknown tag {shown(tag)}; BILUO has B-X, I-X, L-X, U-X and O")
    check_encodable(tag, "a tag", where)
    return parsed
