"""Tagged text, BIO, BIOES and BMES, in two layouts of lines and in records.

* columns: one token and its tag a line, an empty line after each sentence (``tagging.py`` describes the variants);
* sentences: one sentence a line, its tokens joined by U+0002, a tab, and its tags joined in the same way, as in the
  files of PaddleNLP (https://github.com/PaddlePaddle/PaddleNLP, ``msra_ner``). The first line may be a header;
* records: lists of tokens and of tags, as in Hugging Face's datasets (https://huggingface.co/docs/datasets). Tokens may
  also be a string, with one token per character or separated by spaces, and tags a string separated by spaces or
  commas. Tags may be numbers if their names are in the record or in the ``dataset_info.json`` beside the file.

A text is its tokens joined; it is written with one token per character. Tags that are not well-formed are read by the
convention of conlleval and reported in this module's log.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from paddle_rope.tasks.common.errors import InputError, one_line
from paddle_rope.tasks.common.texts.forms import JOINT
from paddle_rope.tasks.common.texts.json_records import check_encodable
from paddle_rope.tasks.common.texts.tables import TEXT, TOKENS
from paddle_rope.tasks.common.texts.text_files import BLANKS, shown
from paddle_rope.tasks.ner.examples import Entity, Example, first_overlap
from paddle_rope.tasks.ner.formats.records import Records, check_like
from paddle_rope.tasks.ner.formats.source import NAMES, TAG_NAMES, TAGS, Source, key_of, numbered
from paddle_rope.tasks.ner.formats.tagging import (
    BIO,
    LIMIT,
    LINE_ENDS,
    OUTSIDE,
    SCHEMES,
    Row,
    Scheme,
    decode_tags,
    encode_tags,
    join_tokens,
    parse_tag,
    read_rows,
    without_numbers,
)

_HEADER_ENDS = ("label", "labels")  # last columns of a header, which are not tags

logger = logging.getLogger(__name__)


class Sentence(NamedTuple):
    """The tokens of a sentence and as many unchecked tags."""

    where: str  # "path:line"
    tokens: list[str]
    tags: list[str]
    line_of_token: int | None = None  # line of the first token, from 1, if each token has a line

    def place(self, index: int, name: str) -> str:
        """ "path:line" of a tag."""
        if self.line_of_token is None:
            return self.where
        return f"{name}:{self.line_of_token + min(index, len(self.tags) - 1)}"


# ---- reading


def column_sentences(rows: Iterable[Row], name: str) -> list[Sentence]:
    """The sentences of columns."""
    sentences: list[Sentence] = []
    is_open = False
    for row in rows:
        if row.token and not is_open:
            sentences.append(Sentence(f"{name}:{row.line}", [], [], row.line))
        is_open = bool(row.token)
        if is_open:
            sentences[-1].tokens.append(row.token)
            sentences[-1].tags.append(row.tag)
    return sentences


def has_joined_sentences(lines: list[str]) -> bool:
    """Whether lines are whole sentences. Sentences of one token each look like columns, and are read as such."""
    return any(all(JOINT in half for half in line.rpartition("\t")[::2]) for line in lines if JOINT in line)


def joined_sentences(lines: list[str], name: str) -> list[Sentence]:
    """The sentences of lines that hold one sentence each."""
    sentences: list[Sentence] = []
    for number, line in enumerate(lines, 1):
        left, tab, right = line.rpartition("\t")
        if not line.strip(BLANKS) or (not sentences and right.strip(BLANKS) in _HEADER_ENDS):
            continue
        tokens, tags = left.split(JOINT), right.split(JOINT)
        if not tab or len(tokens) != len(tags) or not all(tokens):
            found = f"{len(tokens)} tokens and {len(tags)} tags" if tab else "no tab"
            found = "an empty token" if tab and len(tokens) == len(tags) else found
            raise InputError(
                f"{name}:{number}: {found} in {shown(line, LIMIT)}; write a sentence's tokens joined by U+0002, a "
                "tab, and as many tags joined by U+0002"
            )
        sentences.append(Sentence(f"{name}:{number}", tokens, tags))
    return sentences


def read_columns(lines: list[str], source: Source, scheme: Scheme) -> list[Example]:
    rows = without_numbers(read_rows(lines, source.name), source.name)
    return to_examples(column_sentences(rows, source.name), scheme, source)


def read_sentences(lines: list[str], source: Source, scheme: Scheme) -> list[Example]:
    return to_examples(joined_sentences(lines, source.name), scheme, source)


def find_scheme(sentences: Iterable[Sentence], name: str) -> Scheme:
    """The first scheme that has all tags of a file; raises InputError if there is none.

    Without any I or M, tags are BIO if there are only O and B, and BIOES otherwise; other schemes would read them in
    the same way.
    """
    first_of: dict[str, tuple[str, str]] = {}  # prefix or order -> tag and "path:line" of the first, in order
    seen: set[str] = set()
    for sentence in sentences:
        if seen.issuperset(sentence.tags):
            continue
        seen.update(sentence.tags)
        for index, tag in enumerate(sentence.tags):
            prefix, type_ = parse_tag(tag) or OUTSIDE
            for kind in (prefix, type_ and ("B-X" if tag.endswith(type_) else "X-B")):
                if kind not in first_of:
                    first_of[kind] = tag, sentence.place(index, name)
    for one, other in (("I", "M"), ("B-X", "X-B")):
        if one in first_of and other in first_of:
            (earlier, at), (tag, where) = [first_of[kind] for kind in first_of if kind in (one, other)]
            raise InputError(
                f"{where}: tag {shown(tag)} mixes {one} and {other}, after {shown(earlier)} in {at}; write all tags as "
                f"{', as '.join(map(str, SCHEMES))}"
            )
    return next(scheme for scheme in SCHEMES if first_of.keys() & set("BIMES") <= set(scheme.prefixes))


def to_examples(sentences: Iterable[Sentence], scheme: Scheme, source: Source) -> list[Example]:
    """The examples of sentences, whose tags have to be of the scheme; reports tags that are not well-formed."""
    examples, parsed_tags, name = [], {}, source.name
    faults, first = 0, ""

    def parsed(sentence):
        for index, tag in enumerate(sentence.tags):
            if tag not in parsed_tags:
                parsed_tags[tag] = _parse_checked(tag, scheme, sentence.place(index, name))
        return [parsed_tags[tag] for tag in sentence.tags]

    for sentence in sentences:
        tags = source.tried(parsed, sentence)
        if tags is None:
            continue
        spans, places = decode_tags(tags, scheme.closes)
        if places and not faults:
            first, at = _described(sentence.tags, places[0]), sentence.place(places[0], name)
        faults += len(places)
        text, offsets = join_tokens(sentence.tokens)
        entities = tuple(Entity(offsets[start][0], offsets[end - 1][1], type_) for start, end, type_ in spans)
        examples.append(Example(text, entities, sentence.where))
    if faults:
        count = "1 tag sequence is" if faults == 1 else f"{faults} tag sequences are"
        logger.warning(
            f"{at}: {count} not well-formed (first: {first}); read as if each began a new entity; an entity that is "
            "not closed ends with its last tag"
        )
    return examples


def _described(tags, index):
    """A fault of ``decode_tags`` in words, such as ``I-PER after O``."""
    if index == len(tags):
        return one_line(f"{tags[-1]} at the end of a sentence")
    return one_line(f"{tags[index]} after {tags[index - 1]}" if index else f"{tags[0]} at the beginning of a sentence")


def _parse_checked(tag, scheme, where):
    parsed = parse_tag(tag)
    if parsed is None:
        schemes = ", ".join(map(str, SCHEMES))
        raise InputError(f"{where}: unknown tag {shown(tag, LIMIT)}; write one of {schemes}, X being an entity type")
    if parsed[0] not in scheme.prefixes:
        raise InputError(
            f"{where}: tag {shown(tag, LIMIT)} is none of {scheme}; name another format, or let it be recognized"
        )
    return parsed


# ---- writing


def write_columns(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = tags_of(example, scheme, "\n")
        yield "".join(f"{token} {tag}\n" for token, tag in zip(example.text, tags)) + "\n"


def write_sentences(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = tags_of(example, scheme, "\n\t" + JOINT)
        yield f"{JOINT.join(example.text)}\t{JOINT.join(tags)}\n"


def tags_of(example: Example, scheme: Scheme, separators: str) -> list[str]:
    """The tags of an example; raises InputError if tags cannot express it."""

    def error(reason: str) -> InputError:
        return InputError(f"{example.where}: {reason}; remove it, or write cluener, doccano, cmeee, jsonl or brat")

    for character in separators:
        if character in example.text:
            place = example.text.index(character)
            raise error(f"the text has {character!r} (character {place}), which separates in this format")
    if overlap := first_overlap(example.entities):
        raise error(f"{example.described(*overlap)} overlap, and tags are flat")
    for entity in example.entities:
        if parse_tag(f"B-{entity.type}") is None or set(entity.type) & set(BLANKS + LINE_ENDS + JOINT):
            raise error(f"the entity type {shown(entity.type, LIMIT)} cannot be part of a tag")
    return encode_tags(len(example.text), ((e.start, e.end, e.type) for e in example.entities), scheme)


# ---- lists in records

TOKEN_KEYS = (*NAMES[TOKENS], *NAMES[TEXT])
TAG_KEYS = NAMES[TAGS]
_BETWEEN = re.compile(r"[\s,]+")


def has_tags(record: dict) -> bool:
    """Whether a record has tokens and tags, or a text and tags that are lists or strings of tags."""
    key, tokens = _first(record, TOKEN_KEYS)
    _, tags = _first(record, TAG_KEYS)
    if key is None or not isinstance(tags, list):
        return False
    if key in NAMES[TOKENS] or isinstance(tokens, list):
        return True
    return bool(tags) and all(isinstance(tag, str) and parse_tag(tag) is not None for tag in tags)


def _first(record, keys):
    """The first of ``keys`` that a record has, and its value; a string of tags is split into a list."""
    key = next((key for key in keys if key in record), None)
    value = record.get(key)
    return key, _BETWEEN.split(value.strip()) if keys is TAG_KEYS and isinstance(value, str) else value


def read_lists(records: Records, source: Source) -> list[Example]:
    sentences = source.kept(_sentence, ((record, where, source) for where, record in records))
    return to_examples(sentences, find_scheme(sentences, source.name), source)


def tokens_of(record: dict, where: str) -> list[str]:
    """The tokens of a record."""
    key, tokens = _first(record, TOKEN_KEYS)
    if isinstance(tokens, str):
        tokens = tokens.split() if key in NAMES[TOKENS] else list(tokens)
    check_like(tokens, ["中"], key or TOKEN_KEYS[0], where)
    if not tokens or not all(tokens):
        raise InputError(f"{where}: the tokens are {shown(tokens)}; give at least one, and none that is empty")
    check_encodable("".join(tokens), "a token", where)
    return tokens


def _sentence(record, where, source):
    key, tags = _first(record, TAG_KEYS)
    if key is None:
        raise InputError(f'{where}: no "{TAG_KEYS[0]}", the file is unlabeled; give labeled data, or predict with it')
    if isinstance(tags, list) and int in map(type, tags):
        tags = _named(tags, key, record, where, source)
    check_like(tags, ["B-LOC"], key, where)
    check_encodable("".join(tags), "a tag", where)
    tokens, text = tokens_of(record, where), record.get(_first(record, NAMES[TEXT])[0])
    if len(tokens) != len(tags) and isinstance(text, str) and len(text.split()) == len(tags):
        tokens = text.split()
    if len(tokens) != len(tags):
        raise InputError(f"{where}: {len(tokens)} tokens and {len(tags)} tags; give each token one tag")
    return Sentence(where, tokens, tags)


def _named(numbers, key, record, where, source):
    """The names of integer tags."""
    of_record = key_of(record, TAG_NAMES, where, (list, dict))
    names = record[of_record] if of_record else source.tag_names.get(key)
    if names is None:
        raise InputError(
            f'{where}: "{key}" holds numbers, and the names of the tags are not in the file; write them next to it '
            'with dataset.info.write_to_directory(FOLDER), or into each record as "names": ["O", "B-LOC", ...]'
        )
    names = names if isinstance(names, dict) else numbered(names)
    unknown = [number for number in numbers if type(number) is not int or str(number) not in names]
    if unknown:
        raise InputError(
            f'{where}: "{key}" has {shown(unknown[0])}, and there are {len(names)} names of tags; correct one'
        )
    return [names[str(number)] for number in numbers]


def list_records(examples: Iterable[Example]) -> Iterator[dict]:
    """Records of tokens and tags, with one token per character."""
    return ({"tokens": list(example.text), "ner_tags": tags_of(example, BIO, "")} for example in examples)
