"""Tagged text, BIO, BIOES and BMES (see ``tasks.ner.formats.tagging``), in two layouts of lines.

* columns: one token (usually one character) and its tag a line, separated by a space or tab; an empty line ends a
  sentence;
* sentences: one sentence a line, its tokens, a tab, its tags, tokens and tags joined by U+0002 each, as in the files
  of PaddleNLP (https://github.com/PaddlePaddle/PaddleNLP, ``msra_ner``, ``peoples_daily_ner``); their first line may
  be a header, ``text_a<tab>label``.

A text is its tokens joined without anything between; it is written one character a token. Tags that are not
well-formed are read by the convention of conlleval and reported in one line of this module's log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.texts.text_files import BLANKS, shown
from tasks.common.visible import one_line
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.tagging import SCHEMES, Scheme, decode_tags, describe_fault, encode_tags, parse_tag, scheme_of

JOINT = "\x02"
HEADER_ENDS = ("label", "labels")  # what a header ends with, which is no tag
_SEPARATORS = frozenset(BLANKS)
_LIMIT = 40

logger = logging.getLogger(__name__)


@dataclass
class Sentence:
    line: int  # of its first token, from 1
    tokens: list[str]
    tags: list[tuple[str, str]]


def split_tag(line: str) -> tuple[str, str]:
    """Token and tag of a line, split at the last space or tab before the tag; the token is empty if there is none."""
    line = line.rstrip(BLANKS)
    cut = max(line.rfind(" "), line.rfind("\t"))
    return line[: max(cut, 0)], line[cut + 1 :]


def is_sentence_layout(lines: list[str]) -> bool:
    """Whether the lines are whole sentences. Sentences of one token each are the same as columns, and taken as such."""
    return any(all(JOINT in half for half in line.rpartition("\t")[::2]) for line in lines if JOINT in line)


def recognize_scheme(lines: list[str], name: str) -> Scheme:
    """The scheme of a tagged file; raises InputError if no scheme has all its tags."""
    first_of = {}  # prefix -> (tag, line) of its first occurrence
    seen = set()
    for number, line in enumerate(lines, 1):
        for tag in split_tag(line)[1].split(JOINT):
            if tag not in seen:
                seen.add(tag)
                parsed = parse_tag(tag)
                if parsed is not None:
                    first_of.setdefault(parsed[0], (tag, number))
    scheme = scheme_of(first_of)
    if scheme is not None:
        return scheme
    (earlier, at), (tag, number) = sorted((first_of["I"], first_of["M"]), key=lambda seen: seen[1])
    raise InputError(
        "{name}:{number}: tag {tag} mixes I- and M-, after {earlier} in line {at}; write all tags as {schemes}",
        name=name,
        number=number,
        tag=shown(tag),
        earlier=shown(earlier),
        at=at,
        schemes=", as ".join(map(str, SCHEMES)),
    )


class TagParser:
    """Parses the tags of one file and checks that they are of its scheme."""

    def __init__(self, scheme: Scheme, name: str):
        self.scheme = scheme
        self.name = name
        self.known = {"O": ("O", "")}  # a tag is checked where it first occurs

    def __call__(self, tag: str, number: int) -> tuple[str, str]:
        parsed = self.known.get(tag)
        if parsed is None:
            parsed = parse_tag(tag)
            if parsed is None:
                raise InputError(
                    "{name}:{number}: unknown tag {tag}; allowed are those of {schemes}, X being an entity type",
                    name=self.name,
                    number=number,
                    tag=shown(tag, _LIMIT),
                    schemes=", ".join(map(str, SCHEMES)),
                )
            if parsed[0] not in self.scheme.prefixes:
                raise InputError(
                    "{name}:{number}: tag {tag} is none of {scheme}; name another format, or let it be recognized",
                    name=self.name,
                    number=number,
                    tag=shown(tag, _LIMIT),
                    scheme=self.scheme,
                )
            self.known[tag] = parsed
        return parsed


# ---- reading


def read_columns(lines: list[str], name: str, scheme: Scheme) -> list[Example]:
    return _as_examples(list(_column_sentences(lines, name, TagParser(scheme, name))), name, scheme, columns=True)


def _column_sentences(lines: list[str], name: str, parse: TagParser) -> Iterator[Sentence]:
    tokens, tags = [], []
    for number, line in enumerate(lines, 1):
        token, tag = split_tag(line)
        if not token or not tag:
            if line.strip(BLANKS):
                missing = (
                    Message("no tag") if token or parse_tag(tag) is None else Message("no character before the tag")
                )
                raise InputError(
                    "{name}:{number}: {missing} in {line}; write one character, one space or "
                    "tab and its tag, such as '中 B-LOC', and end a sentence with an empty line",
                    name=name,
                    number=number,
                    missing=missing,
                    line=shown(token + tag, _LIMIT),
                )
            if tokens:
                yield Sentence(number - len(tokens), tokens, tags)
                tokens, tags = [], []
            continue
        tags.append(parse(tag, number))
        if len(token) > 1 and not _SEPARATORS.isdisjoint(token):
            raise InputError(
                "{name}:{number}: more than two columns in {line}; keep one character and its tag, "
                "with one space or tab between",
                name=name,
                number=number,
                line=shown(line, _LIMIT),
            )
        tokens.append(token)
    if tokens:
        yield Sentence(len(lines) + 1 - len(tokens), tokens, tags)


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
            found = (
                Message("{tokens} tokens and {tags} tags", tokens=len(tokens), tags=len(tags))
                if tab
                else Message("no tab")
            )
            found = Message("an empty token") if tab and len(tokens) == len(tags) else found
            raise InputError(
                "{name}:{number}: {found} in {line}; write a sentence's tokens joined by U+0002, a "
                "tab, and as many tags joined by U+0002",
                name=name,
                number=number,
                found=found,
                line=shown(line, _LIMIT),
            )
        sentences.append(Sentence(number, tokens, [parse(tag, number) for tag in tags]))
    return _as_examples(sentences, name, scheme, columns=False)


def _as_examples(sentences: list[Sentence], name: str, scheme: Scheme, columns: bool) -> list[Example]:
    examples = []
    faults = []
    for sentence in sentences:
        spans, places = decode_tags(sentence.tags, scheme.closes)
        faults += [(sentence, place) for place in places]
        entities = _character_entities(spans, sentence.tokens)
        examples.append(Example("".join(sentence.tokens), entities, f"{name}:{sentence.line}"))
    if faults:
        _report_faults(faults, name, columns)
    return examples


def _character_entities(spans: list[tuple[int, int, str]], tokens: list[str]) -> tuple[Entity, ...]:
    """Entities in characters from spans in tokens."""
    if not spans:
        return ()
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return tuple(Entity(offsets[start], offsets[end], type_) for start, end, type_ in spans)


def _report_faults(faults: list[tuple[Sentence, int]], name: str, columns: bool) -> None:
    sentence, place = faults[0]
    line = sentence.line + (min(place, len(sentence.tags) - 1) if columns else 0)
    count = "1 tag sequence is" if len(faults) == 1 else f"{len(faults)} tag sequences are"
    logger.warning(
        "%s:%d: %s not well-formed (first: %s); read as if each began a new entity; "
        "an entity that is not closed ends with its last tag",
        name,
        line,
        count,
        one_line(describe_fault(sentence.tags, place)),
    )


# ---- writing


def write_columns(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = _checked_tags(example, scheme, "\n")
        yield "".join(f"{token} {tag}\n" for token, tag in zip(example.text, tags)) + "\n"


def write_sentences(examples: Iterable[Example], scheme: Scheme) -> Iterator[str]:
    for example in examples:
        tags = _checked_tags(example, scheme, "\n\t" + JOINT)
        yield f"{JOINT.join(example.text)}\t{JOINT.join(tags)}\n"


def _checked_tags(example: Example, scheme: Scheme, separators: str) -> list[str]:
    """The tags of an example; raises InputError if tags cannot express it."""

    def fail(reason: Message):
        return InputError(
            "{where}: {reason}; remove it, or write cluener, doccano, cmeee, jsonl or brat",
            where=example.where,
            reason=reason,
        )

    for character in separators:
        if character in example.text:
            place = example.text.index(character)
            raise fail(
                Message(
                    "the text has {character!r} (character {place}), which separates in this format",
                    character=character,
                    place=place,
                )
            )
    for one, other in zip(example.entities, example.entities[1:]):  # sorted: if any overlap, two neighbors do
        if other.start < one.end:
            raise fail(Message("{entities} overlap, and tags are flat", entities=example.described(one, other)))
    for entity in example.entities:
        if parse_tag(f"B-{entity.type}") is None or set(entity.type) & set(" \t\r\n" + JOINT):
            raise fail(Message("the entity type {type} cannot be part of a tag", type=shown(entity.type, _LIMIT)))
    return encode_tags(len(example.text), ((e.start, e.end, e.type) for e in example.entities), scheme)
