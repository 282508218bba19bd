"""Tag sequences of flat named entities, BIO and BMES: from lines to tags and from tags to spans.

A tag is ``O`` or ``<prefix>-<type>``; a parsed tag is the pair (prefix, type), ``("O", "")`` for ``O``.

* BIO: ``B-X`` begins an entity of type X, ``I-X`` continues it.
* BMES: ``B-X`` begins, ``M-X`` continues and ``E-X`` ends an entity of type X, ``S-X`` is one of a single token.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasks.common.errors import InputError

BLANKS = " \t"
OUTSIDE = ("O", "")
BIO_TAGS = "O, B-X, I-X"
BMES_TAGS = "O, B-X, M-X, E-X, S-X"
ONLY_BIO = frozenset("I")
ONLY_BMES = frozenset("MES")

_PREFIXES = frozenset("BIMES")
_CONTINUING = frozenset("IME")
_ENDING = frozenset("ES")


@dataclass
class Sentence:
    line: int  # of its first token, from 1; one token a line follows
    tokens: list[str]
    tags: list[tuple[str, str]]


def parse_tag(tag: str) -> tuple[str, str] | None:
    """(prefix, type) of a BIO or BMES tag, or None if it is neither."""
    if tag == "O":
        return OUTSIDE
    prefix, hyphen, type_ = tag.partition("-")
    if prefix in _PREFIXES and hyphen and type_.strip():
        return prefix, type_
    return None


def format_tag(tag: tuple[str, str]) -> str:
    """The inverse of ``parse_tag``."""
    prefix, type_ = tag
    return f"{prefix}-{type_}" if type_ else prefix


def decode_tags(tags: list[tuple[str, str]], must_close: bool) -> tuple[list[tuple[int, int, str]], list[int]]:
    """Spans of one sentence's parsed tags, and the places where the tags are not well-formed.

    Spans are (start, end, type) in tokens, half-open, from left to right. ``must_close`` is True for BMES, where
    an entity that ``B-`` began has to be ended by ``E-``.

    Sequences that are not well-formed are read by the convention of conlleval: an I, M or E that does not continue
    an entity of the same type begins a new one, and an entity that is not closed ends where its run of the same
    type ends. Each such place is returned as the index of the tag that cannot follow the one before it;
    ``len(tags)`` stands for the end of the sentence.
    """
    spans = []
    faults = []
    start = None
    open_type = ""
    for index, (prefix, type_) in enumerate(tags):
        if start is None and prefix == "O":
            continue
        if start is None or prefix not in _CONTINUING or type_ != open_type:
            if prefix in _CONTINUING or (must_close and start is not None):
                faults.append(index)
            if start is not None:
                spans.append((start, index, open_type))
            start = None if prefix == "O" else index
            open_type = type_
        if prefix in _ENDING:
            spans.append((start, index + 1, open_type))
            start = None
    if start is not None:
        spans.append((start, len(tags), open_type))
        if must_close:
            faults.append(len(tags))
    return spans, faults


def describe_fault(tags: list[tuple[str, str]], index: int) -> str:
    """A fault of ``decode_tags`` in words, such as ``I-PER after O``."""
    if index == len(tags):
        return f"{format_tag(tags[-1])} at the end of a sentence"
    if index == 0:
        return f"{format_tag(tags[0])} at the beginning of a sentence"
    return f"{format_tag(tags[index])} after {format_tag(tags[index - 1])}"


# ---- lines


def split_tag(line: str) -> tuple[str, str]:
    """Token and tag of a line, split at the last space or tab; the token is empty if there is none."""
    cut = max(line.rfind(" "), line.rfind("\t"))
    return line[: max(cut, 0)], line[cut + 1 :]


def read_sentences(lines: list[str], name: str) -> tuple[list[Sentence], bool]:
    """The sentences of a tagged file, and whether its tags are BMES (otherwise BIO)."""
    sentences = []
    tokens = []
    tags = []
    known = {}  # tag -> parsed tag; a tag is checked where it first occurs
    first_of = {}  # prefix -> (tag, line) of its first occurrence
    for number, line in enumerate(lines, 1):
        token, tag = split_tag(line)
        parsed = known.get(tag)
        if parsed is None or not token:
            if not line.strip(BLANKS):
                if tokens:
                    sentences.append(Sentence(number - len(tokens), tokens, tags))
                    tokens, tags = [], []
                continue
            parsed = known[tag] = _check_tagged_line(token, tag, number, name, first_of)
        tokens.append(token)
        tags.append(parsed)
    if tokens:
        sentences.append(Sentence(len(lines) + 1 - len(tokens), tokens, tags))
    return sentences, not ONLY_BMES.isdisjoint(first_of)


def _check_tagged_line(token: str, tag: str, number: int, name: str, first_of: dict) -> tuple[str, str]:
    """The parsed tag of a line whose tag is new in the file; notes the prefix in ``first_of``."""
    where = f"{name}:{number}"
    if not token or not tag:
        missing = "no tag" if token or parse_tag(tag) is None else "no character before the tag"
        raise InputError(
            f"{where}: {missing} in {_shown(token + tag)}; write one character, one space or tab "
            "and its tag, such as '中 B-LOC', and end a sentence with an empty line"
        )
    parsed = parse_tag(tag)
    if parsed is None:
        raise InputError(
            f"{where}: unknown tag {_shown(tag)}; allowed are {BIO_TAGS} (BIO) or {BMES_TAGS} (BMES), "
            "X being an entity type"
        )
    prefix = parsed[0]
    first_of.setdefault(prefix, (tag, number))
    for mine, others in ((ONLY_BIO, ONLY_BMES), (ONLY_BMES, ONLY_BIO)):
        clash = min((first_of[other] for other in others & first_of.keys()), key=lambda seen: seen[1], default=None)
        if prefix in mine and clash is not None:
            raise InputError(
                f"{where}: tag {_shown(tag)} mixes BIO and BMES, after {_shown(clash[0])} in line {clash[1]}; write "
                f"all tags as BIO ({BIO_TAGS}) or all as BMES ({BMES_TAGS}; for BIOES, replace I- by M-)"
            )
    return parsed


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
