"""Tagged text, BIO, BIOES and BMES (see ``tasks.ner.formats.tagging``), in two layouts of lines.

* columns: one token (usually one character) and its tag a line, separated by a space or tab; an empty line ends a
  sentence; :mod:`tasks.ner.formats.columns` has more of it;
* sentences: one sentence a line, its tokens, a tab, its tags, tokens and tags joined by U+0002 each, as in the files
  of PaddleNLP (https://github.com/PaddlePaddle/PaddleNLP, ``msra_ner``, ``peoples_daily_ner``); their first line may
  be a header, ``text_a<tab>label``.

A text is its tokens joined, see :func:`tasks.ner.formats.tagging.joined`; it is written one character a token. Tags
that are not well-formed are read by the convention of conlleval and reported in one line of this module's log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.common.errors import InputError, one_line
from tasks.common.texts.text_files import BLANKS, shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.columns import LIMIT, LINE_ENDS, read_rows, split_tag
from tasks.ner.formats.tagging import (
    SCHEMES,
    Scheme,
    decode_tags,
    describe_fault,
    encode_tags,
    joined,
    parse_tag,
    scheme_of,
)

JOINT = "\x02"
HEADER_ENDS = ("label", "labels")  # what a header ends with, which is no tag

logger = logging.getLogger(__name__)


@dataclass
class Sentence:
    where: str  # "path:line"
    line: int | None  # of its first token, from 1, if each token has a line
    tokens: list[str]
    tags: list[tuple[str, str]]

    def at(self, place: int, name: str) -> str:
        """Where a tag is."""
        return self.where if self.line is None else f"{name}:{self.line + min(place, len(self.tags) - 1)}"


def is_sentence_layout(lines: list[str]) -> bool:
    """Whether the lines are whole sentences. Sentences of one token each are the same as columns, and taken as such."""
    return any(all(JOINT in half for half in line.rpartition("\t")[::2]) for line in lines if JOINT in line)


class SchemeSearch:
    """Finds the scheme of a file whose tags it sees one after the other."""

    def __init__(self, name: str):
        self._name = name
        self._first_of: dict[str, tuple[str, int | str]] = {}  # prefix -> (tag, where) of its first occurrence
        self._seen: dict[str, int | str] = {}  # in their order

    def see(self, tag: str, where: int | str) -> None:
        """One more tag; ``where`` is a line of the file, or "path:line"."""
        if tag not in self._seen:
            self._seen[tag] = where
            parsed = parse_tag(tag)
            if parsed is not None:
                self._first_of.setdefault(parsed[0], (tag, where))

    def scheme(self) -> Scheme:
        """The scheme; raises InputError if no scheme has all the tags."""
        scheme = scheme_of(self._first_of)
        if scheme is not None:
            return scheme
        mixed = {self._first_of["I"], self._first_of["M"]}
        (earlier, at), (tag, where) = [(tag, where) for tag, where in self._seen.items() if (tag, where) in mixed]
        at = f"line {at}" if isinstance(at, int) else at
        raise InputError(
            f"{_place(self._name, where)}: tag {shown(tag)} mixes I- and M-, after {shown(earlier)} in {at}; write "
            f"all tags as {', as '.join(map(str, SCHEMES))}"
        )


def _place(name, where):
    return f"{name}:{where}" if isinstance(where, int) else where


def recognize_scheme(lines: list[str], name: str, is_sentences: bool = False) -> Scheme:
    """The scheme of a tagged file, of columns or of whole sentences."""
    search = SchemeSearch(name)
    if is_sentences:
        for number, line in enumerate(lines, 1):
            for tag in split_tag(line)[1].split(JOINT):
                search.see(tag, number)
    else:
        for row in read_rows(lines, name, tells=False):
            search.see(row.tag, row.line)
    return search.scheme()


class TagParser:
    """Parses the tags of one file and checks that they are of its scheme."""

    def __init__(self, scheme: Scheme, name: str):
        self.scheme = scheme
        self.name = name
        self.known = {"O": ("O", "")}  # a tag is checked where it first occurs

    def __call__(self, tag: str, where: int | str) -> tuple[str, str]:
        """The parsed tag; ``where`` is a line of the file, or "path:line"."""
        parsed = self.known.get(tag)
        if parsed is None:
            parsed = parse_tag(tag)
            if parsed is None:
                raise InputError(
                    f"{_place(self.name, where)}: unknown tag {shown(tag, LIMIT)}; allowed are those of "
                    f"{', '.join(map(str, SCHEMES))}, X being an entity type"
                )
            if parsed[0] not in self.scheme.prefixes:
                raise InputError(
                    f"{_place(self.name, where)}: tag {shown(tag, LIMIT)} is none of {self.scheme}; name another "
                    "format, or let it be recognized"
                )
            self.known[tag] = parsed
        return parsed


# ---- reading


def read_columns(lines: list[str], name: str, scheme: Scheme) -> list[Example]:
    parse = TagParser(scheme, name)
    sentences: list[Sentence] = []
    is_open = False
    for row in read_rows(lines, name):
        if row.token and not is_open:
            sentences.append(Sentence(f"{name}:{row.line}", row.line, [], []))
        is_open = bool(row.token)
        if is_open:
            sentences[-1].tokens.append(row.token)
            sentences[-1].tags.append(parse(row.tag, row.line))
    return as_examples(sentences, scheme, name)


def read_sentences(lines: list[str], name: str, scheme: Scheme) -> list[Example]:
    parse = TagParser(scheme, name)
    sentences = []
    for number, line in enumerate(lines, 1):
        if not line.strip(BLANKS):
            continue
        left, tab, right = line.rpartition("\t")
        if not sentences and right.strip(BLANKS) in HEADER_ENDS:
            continue
        tokens, tags = left.split(JOINT), right.split(JOINT)
        if not tab or len(tokens) != len(tags) or not all(tokens):
            found = f"{len(tokens)} tokens and {len(tags)} tags" if tab else "no tab"
            found = "an empty token" if tab and len(tokens) == len(tags) else found
            raise InputError(
                f"{name}:{number}: {found} in {shown(line, LIMIT)}; write a sentence's tokens joined by U+0002, a "
                "tab, and as many tags joined by U+0002"
            )
        sentences.append(Sentence(f"{name}:{number}", None, tokens, [parse(tag, number) for tag in tags]))
    return as_examples(sentences, scheme, name)


def as_examples(sentences: list[Sentence], scheme: Scheme, name: str) -> list[Example]:
    """The examples of sentences; tells of tags that are not well-formed."""
    examples = []
    faults = []
    for sentence in sentences:
        spans, places = decode_tags(sentence.tags, scheme.closes)
        faults += [(sentence, place) for place in places]
        text, offsets = joined(sentence.tokens)
        entities = tuple(Entity(offsets[start][0], offsets[end - 1][1], type_) for start, end, type_ in spans)
        examples.append(Example(text, entities, sentence.where))
    if faults:
        _report_faults(faults, name)
    return examples


def _report_faults(faults: list[tuple[Sentence, int]], name: str) -> None:
    sentence, place = faults[0]
    count = "1 tag sequence is" if len(faults) == 1 else f"{len(faults)} tag sequences are"
    logger.warning(
        "%s: %s not well-formed (first: %s); read as if each began a new entity; "
        "an entity that is not closed ends with its last tag",
        sentence.at(place, name),
        count,
        one_line(describe_fault(sentence.tags, place)),
    )


# ---- writing


def write_columns(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = checked_tags(example, scheme, "\n")
        yield "".join(f"{token} {tag}\n" for token, tag in zip(example.text, tags)) + "\n"


def write_sentences(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = checked_tags(example, scheme, "\n\t" + JOINT)
        yield f"{JOINT.join(example.text)}\t{JOINT.join(tags)}\n"


def checked_tags(example: Example, scheme: Scheme, separators: str) -> list[str]:
    """The tags of an example; raises InputError if tags cannot express it."""

    def fail(reason: str):
        return InputError(f"{example.where}: {reason}; remove it, or write cluener, doccano, cmeee, jsonl or brat")

    for character in separators:
        if character in example.text:
            place = example.text.index(character)
            raise fail(f"the text has {character!r} (character {place}), which separates in this format")
    for one, other in zip(example.entities, example.entities[1:]):  # sorted: if any overlap, two neighbors do
        if other.start < one.end:
            raise fail(f"{example.described(one, other)} overlap, and tags are flat")
    for entity in example.entities:
        if parse_tag(f"B-{entity.type}") is None or set(entity.type) & set(BLANKS + LINE_ENDS + JOINT):
            raise fail(f"the entity type {shown(entity.type, LIMIT)} cannot be part of a tag")
    return encode_tags(len(example.text), ((e.start, e.end, e.type) for e in example.entities), scheme)
