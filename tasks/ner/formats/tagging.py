"""Tag sequences of flat named entities, BIO, BIOES and BMES: from tags to spans and back; from tokens to a text.

A tag is ``O`` or ``<prefix>-<type>``; a parsed tag is the pair (prefix, type), ``("O", "")`` for ``O``.

* BIO: ``B-X`` begins an entity of type X, ``I-X`` continues it.
* BIOES: ``B-X`` begins, ``I-X`` continues and ``E-X`` ends an entity of type X, ``S-X`` is an entity of one token.
* BMES: the same with ``M-X`` for ``I-X``.

BILUO, with ``L-X`` for ``E-X`` and ``U-X`` for ``S-X``, is read as BIOES; ``B_X`` and ``X-B`` are read as ``B-X``.
"""

from collections.abc import Iterable
from typing import NamedTuple

OUTSIDE = ("O", "")
_PREFIXES = dict(zip("BIMESLU", "BIMESES"))  # as a file may have them, and as they are parsed
_CONTINUING, _ENDING = frozenset("IME"), frozenset("ES")


class Scheme(NamedTuple):
    """The prefixes that a file's tags may have."""

    name: str
    inside: str  # the prefix that continues an entity
    closes: bool  # whether E- has to end an entity that B- began, and S- is an entity of one token

    @property
    def prefixes(self) -> str:
        return "OB" + self.inside + ("ES" if self.closes else "")

    def __str__(self) -> str:
        return f"{self.name.upper()} (O, {', '.join(f'{prefix}-X' for prefix in self.prefixes[1:])})"


BIO = Scheme("bio", "I", closes=False)
BIOES = Scheme("bioes", "I", closes=True)
BMES = Scheme("bmes", "M", closes=True)
SCHEMES = (BIO, BIOES, BMES)


def parse_tag(tag: str) -> tuple[str, str] | None:
    """(prefix, type) of a tag of any scheme, or None if it is not a tag."""
    if tag == "O":
        return OUTSIDE
    for prefix, separator, type_ in ((tag[:1], tag[1:2], tag[2:]), (tag[-1:], tag[-2:-1], tag[:-2])):
        if prefix in _PREFIXES and separator in ("-", "_") and type_.strip():
            return _PREFIXES[prefix], type_
    return None


def decode_tags(tags: list[tuple[str, str]], must_close: bool) -> tuple[list[tuple[int, int, str]], list[int]]:
    """Spans of one sentence's parsed tags, and the places where the tags are not well-formed.

    Spans are (start, end, type) in tokens, half-open, from left to right. ``must_close`` is True for BIOES and
    BMES, where an entity that ``B-`` began has to be ended by ``E-``.

    Sequences that are not well-formed are read by the convention of conlleval: an I, M or E that does not continue
    an entity of the same type begins a new one, and an entity that is not closed ends where its run of the same
    type ends. Each such place is returned as the index of the tag that cannot follow the one before it;
    ``len(tags)`` means the end of the sentence.
    """
    spans, faults = [], []
    start, open_type = None, ""
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


def encode_tags(length: int, spans: Iterable[tuple[int, int, str]], scheme: Scheme) -> list[str]:
    """The tags of a sentence of ``length`` tokens; ``spans`` are (start, end, type) and do not overlap."""
    tags = ["O"] * length
    for start, end, type_ in spans:
        tags[start:end] = [f"{scheme.inside}-{type_}"] * (end - start)
        tags[start] = f"B-{type_}"
        if scheme.closes:
            tags[end - 1] = f"E-{type_}" if end - start > 1 else f"S-{type_}"
    return tags


def join_tokens(tokens: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text of tokens, and the half-open characters of each.

    A space separates ASCII letters and digits of neighboring tokens if one of the tokens has several characters, so
    that words stay apart, and letters of a word that are one token each stay together.
    """
    parts: list[str] = []
    offsets = []
    end, before = 0, ""
    for token in tokens:
        edges = before[-1:] + token[:1]
        if len(edges) == 2 and len(before) + len(token) > 2 and edges.isascii() and edges.isalnum():
            parts.append(" ")
            end += 1
        parts.append(token)
        offsets.append((end, end + len(token)))
        end, before = end + len(token), token
    return "".join(parts), offsets
