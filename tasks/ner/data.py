"""Readers of named entity data, with validation. Standard library only.

``read_examples`` reads labelled data; the content of the file decides which of three formats it is:

* CLUENER JSON lines, ``{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}``: type, surface, then pairs of
  first and last character (the end is INCLUSIVE in the file). Other keys are ignored.
* BIO and BMES: one token (usually one character) and its tag a line, separated by a space or tab; an empty line
  ends a sentence. See ``tasks.ner.tagging``.

``read_texts`` reads text to predict: JSON lines with a ``text``, or plain text, one text a line.

Files are UTF-8, with or without byte order mark; lines end with LF or CRLF. All other line separators of Unicode
are characters like any other. Offsets count characters (code points), and spans in memory are half-open.

Whatever is wrong with a file raises ``tasks.common.errors.InputError``: one line with ``path:line``, what is wrong
and how to mend it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.common.errors import InputError
from tasks.ner.tagging import BLANKS, Sentence, decode_tags, describe_fault, parse_tag, read_sentences, split_tag

STDIN = "-"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, order=True)
class Entity:
    """A typed span of characters: ``text[start:end]``."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Example:
    """A labelled text. The entities are sorted and distinct; they may be nested or overlap."""

    text: str
    entities: tuple[Entity, ...]
    where: str  # "path:line" of the first line, for error messages


def read_examples(path: str | os.PathLike) -> list[Example]:
    """Labelled examples of a CLUENER (JSON lines), BIO or BMES file, in the order of the file.

    Tag sequences that are not well-formed are read by the convention of conlleval (``tagging.decode_tags``) and
    reported in one line of this module's log.
    """
    name = os.fspath(path)
    lines = _split_lines(_decode(_read_bytes(name), name))
    first = _first_non_blank(lines)
    if first is None:
        raise InputError(f"{name}:1: the file is empty or has only blank lines; give labelled data, {_FORMATS}")
    if _looks_like_json(first):
        return _read_json_examples(lines, name)
    return _read_tagged_examples(lines, name)


def read_texts(source: str | os.PathLike) -> list[tuple[str, str]]:
    """Texts to predict from a file, or from standard input if ``source`` is ``-``: pairs (text, "path:line").

    If the first line that is not blank is a JSON object with a ``text``, the input is JSON lines: every line needs
    a string ``text`` (which may be empty), other keys such as ``label`` are ignored and blank lines are skipped.

    Otherwise it is plain text, one text a line, exactly as it stands without its line end. An empty line is an
    empty text, so that results stay in line with the input; only the nothing after the last line end is no line.
    """
    name = os.fspath(source)
    if name == STDIN:
        name = "<stdin>"
        content = _read_stdin(name)
    else:
        content = _decode(_read_bytes(name), name)
    if not content:
        raise InputError(f"{name}:1: the input is empty; give plain text, one text a line, or JSON lines with a text")
    lines = _split_lines(content)
    if _is_json_text(_first_non_blank(lines)):
        return [(_json_text(record, where), where) for where, record in _json_records(lines, name)]
    if not lines[-1] and content.endswith("\n"):
        lines.pop()
    return [(line, f"{name}:{number}") for number, line in enumerate(lines, 1)]


def entity_types(*example_lists: Iterable[Example]) -> list[str]:
    """The sorted distinct entity types of lists of examples."""
    return sorted({entity.type for examples in example_lists for example in examples for entity in example.entities})


# ---- files and lines

_FORMATS = (
    'JSON lines such as {"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}} '
    "or one character and its BIO or BMES tag a line such as '中 B-LOC'"
)


def _read_bytes(name: str) -> bytes:
    try:
        if os.path.isdir(name):
            raise InputError(f"{name}: is a directory; give the path of a file in it")
        with open(name, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise InputError(f"{name or repr(name)}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: cannot be read ({reason}); check the path and its permissions") from None


def _read_stdin(name: str) -> str:
    if sys.stdin is None:
        raise InputError(f"{name}:1: standard input is closed; pipe text into it or give the path of a file")
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:  # replaced by a stream of text
        return sys.stdin.read()
    return _decode(buffer.read(), name)


def _decode(data: bytes, name: str) -> str:
    """UTF-8 to text, without the byte order mark."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "gb18030"
        raise InputError(
            f"{name}:{line}: not UTF-8 (byte {error.start} of the input); convert it, "
            f"e.g. iconv -f {encoding} -t utf-8 OLD > NEW"
        ) from None


def _split_lines(content: str) -> list[str]:
    """Lines without LF or CRLF. Not ``str.splitlines``, which also splits at characters such as U+2028."""
    lines = content.split("\n")
    if "\r" in content:
        lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def _first_non_blank(lines: list[str]) -> str | None:
    return next((line for line in lines if line.strip(BLANKS)), None)


def _shown(value: object, limit: int = 60) -> str:
    """A value as one line of limited length for a message."""
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."


# ---- JSON lines


def _looks_like_json(line: str) -> bool:
    """Whether a line is meant as a JSON object, and not as the character ``{`` and its tag."""
    line = line.strip(BLANKS)
    return line.startswith("{") and (line.endswith("}") or parse_tag(split_tag(line)[1]) is None)


def _is_json_text(line: str | None) -> bool:
    if line is None or not line.strip(BLANKS).startswith("{"):
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "text" in record


def _json_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of the lines that are not blank."""
    for number, line in enumerate(lines, 1):
        if line.strip(BLANKS):
            where = f"{name}:{number}"
            yield where, _parse_json(line, where)


def _parse_json(line: str, where: str) -> dict:
    remedy = 'every line of this file has to be one JSON object such as {"text": "...", "label": {}}'

    def distinct(pairs):
        record = dict(pairs)
        if len(record) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{where}: key {_shown(twice)} is repeated in a JSON object; merge its values into one")
        return record

    try:
        record = json.loads(line, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: broken JSON at column {error.colno} ({error.msg}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: JSON that cannot be read ({error}); {remedy}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: JSON {_shown(record)} is not an object; {remedy}")
    return record


def _json_text(record: dict, where: str) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        found = f'"text" is {_shown(text)}, not a string' if "text" in record else 'there is no "text"'
        raise InputError(f'{where}: {found}; give each line its text as in {{"text": "..."}}')
    _check_encodable(text, '"text"', where)
    return text


def _check_encodable(text: str, what: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: {what} holds half of a surrogate pair ({text[error.start]!r} at character {error.start}); "
            "write the character itself or both halves"
        ) from None


def _read_json_examples(lines: list[str], name: str) -> list[Example]:
    examples = []
    for where, record in _json_records(lines, name):
        text = _json_text(record, where)
        if not text:
            raise InputError(f'{where}: "text" is empty; remove the line or give it a text')
        if "label" not in record:
            raise InputError(
                f'{where}: no "label", the file is unlabelled; give labelled data (a text without entities has '
                '"label": {}) or use the file for prediction only'
            )
        entities = set(_json_entities(record["label"], text, where))
        examples.append(Example(text, tuple(sorted(entities)), where))
    return examples


def _json_entities(label: object, text: str, where: str) -> Iterator[Entity]:
    """Entities of a CLUENER label: {type: {surface: [[first, last], ...]}}."""
    shape = 'write it as {"type": {"surface": [[first, last]]}}'
    if not isinstance(label, dict):
        raise InputError(f'{where}: "label" is {_shown(label)}, not an object; {shape}')
    for type_, surfaces in label.items():
        if not type_.strip():
            raise InputError(f"{where}: the entity type {type_!r} is empty; name it; {shape}")
        _check_encodable(type_, "an entity type", where)
        if not isinstance(surfaces, dict):
            raise InputError(f"{where}: label {_shown(type_)} is {_shown(surfaces)}, not an object; {shape}")
        for surface, pairs in surfaces.items():
            if not isinstance(pairs, list):
                raise InputError(f"{where}: the spans of {_shown(surface)} are {_shown(pairs)}, not a list; {shape}")
            for pair in pairs:
                start, last = _check_span(pair, surface, text, where)
                yield Entity(start, last + 1, type_)


def _check_span(pair: object, surface: str, text: str, where: str) -> tuple[int, int]:
    """First and last character of a span, after checking that it is in the text and holds the surface."""
    of = f"{_shown(pair)} of {_shown(surface)}"
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(offset) is int for offset in pair)):
        raise InputError(f"{where}: span {of} is not a pair of integers; write it as [first, last]")
    start, last = pair
    if not 0 <= start <= last < len(text):
        raise InputError(
            f"{where}: span {of} is not in the text of {len(text)} characters; offsets count characters from 0, "
            "the last is included: 0 <= first <= last < length"
        )
    found = text[start : last + 1]
    if found != surface:
        hint = f" (here [{start}, {last - 1}])" if text[start:last] == surface else ""
        raise InputError(
            f"{where}: span {_shown(pair)} holds {_shown(found)}, but the label says {_shown(surface)}; correct the "
            f"offsets, which count characters from 0, the last included{hint}, or the surface"
        )
    return start, last


# ---- one token and its tag a line: BIO, BMES


def _read_tagged_examples(lines: list[str], name: str) -> list[Example]:
    sentences, must_close = read_sentences(lines, name)
    examples = []
    faults = []
    for sentence in sentences:
        spans, places = decode_tags(sentence.tags, must_close)
        faults += [(sentence, place) for place in places]
        examples.append(
            Example("".join(sentence.tokens), _character_entities(spans, sentence.tokens), f"{name}:{sentence.line}")
        )
    if faults:
        _report_faults(faults, name)
    return examples


def _character_entities(spans: list[tuple[int, int, str]], tokens: list[str]) -> tuple[Entity, ...]:
    """Entities in characters from spans in tokens."""
    if not spans:
        return ()
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return tuple(Entity(offsets[start], offsets[end], type_) for start, end, type_ in spans)


def _report_faults(faults: list[tuple[Sentence, int]], name: str) -> None:
    sentence, place = faults[0]
    line = sentence.line + min(place, len(sentence.tags) - 1)
    count = "1 tag sequence is" if len(faults) == 1 else f"{len(faults)} tag sequences are"
    logger.warning(
        "%s:%d: %s not well-formed (first: %s); read as if each began a new entity; "
        "an entity that is not closed ends with its last tag",
        name,
        line,
        count,
        describe_fault(sentence.tags, place),
    )
