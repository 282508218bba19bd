"""brat standoff: for each document a text ``x.txt`` and its annotation ``x.ann``, one annotation a line.

``T1<tab>Type start end<tab>surface``: offsets in characters of the whole text, half-open; a line break is a character
like any other, and a space in the surface. One document is one example. Relations, events, attributes, equivalences
and notes (R, E, A, M, *, N, #) are skipped, and counted in one line of this module's log.
Source: https://brat.nlplab.org/standoff.html
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder
from tasks.common.language import Message
from tasks.common.texts.text_files import encodable, read_text, shown, split_lines
from tasks.ner.examples import Entity, Example, make_example

NAME = "brat"
SHAPE = Message("write it as T1<tab>Type start end<tab>surface")
LONGEST_OFFSET = 18  # digits; Python refuses to read thousands
_OTHER_KINDS = tuple("REAM*N#")

logger = logging.getLogger(__name__)


def is_brat(path: str | os.PathLike) -> bool:
    """Whether a path is a folder, an annotation, or the text beside an annotation."""
    stem, suffix = os.path.splitext(path)
    return os.path.isdir(path) or suffix == ".ann" or (suffix == ".txt" and os.path.isfile(stem + ".ann"))


def read(path: str | os.PathLike) -> list[Example]:
    """The documents of a folder, ordered by name, or the one document that a path is part of."""
    path = Path(path)
    if path.is_dir():
        try:
            files = list(path.iterdir())
        except OSError as error:
            raise InputError(
                "{path}: cannot be read ({reason}); check its permissions", path=path, reason=error.strerror
            ) from None
        stems = sorted({file.with_suffix("") for file in files if file.suffix in (".ann", ".txt")})
        if not any(stem.with_name(stem.name + ".ann").is_file() for stem in stems):
            raise InputError(
                "{path}: is a directory without .ann files of brat; give the path of a file in it", path=path
            )
    elif path.suffix in (".ann", ".txt"):
        stems = [path.with_suffix("")]
    else:
        raise InputError("{path}: neither a folder nor an .ann or .txt file; give brat's folder", path=path)
    skipped = []  # "path:line" of annotations that are no entities
    examples = [_read_document(stem, skipped) for stem in stems]
    if skipped:
        logger.warning("%s: skipped %d brat annotations that are no entities", skipped[0], len(skipped))
    return examples


def _read_document(stem: Path, skipped: list[str]) -> Example:
    text_file, annotation_file = (stem.with_name(stem.name + suffix) for suffix in (".txt", ".ann"))
    for file, other in ((text_file, annotation_file), (annotation_file, text_file)):
        if not file.is_file():
            hint = Message("; a text without entities has an empty one") if file == annotation_file else ""
            raise InputError(
                "{file}: no such file beside {name}; brat needs both{hint}", file=file, name=other.name, hint=hint
            )
    text, _ = read_text(text_file)
    if not text:
        raise InputError(
            "{text_file}:1: the text is empty; remove {name} and {annotation}",
            text_file=text_file,
            name=text_file.name,
            annotation=annotation_file.name,
        )
    content, name = read_text(annotation_file)
    return make_example(text, _entities(split_lines(content), name, text, skipped), f"{text_file}:1")


def _entities(lines: list[str], name: str, text: str, skipped: list[str]) -> Iterator[Entity]:
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if not line.strip():
            continue
        if line.startswith(_OTHER_KINDS):
            skipped.append(where)
        elif line.startswith("T"):
            yield _entity(line, text, where)
        else:
            raise InputError("{where}: unknown annotation {line}; {shape}", where=where, line=shown(line), shape=SHAPE)


def _entity(line: str, text: str, where: str) -> Entity:
    columns = line.split("\t", 2)
    if len(columns) < 3:
        raise InputError(
            "{where}: {columns} columns instead of three in {line}; {shape}",
            where=where,
            columns=len(columns),
            line=shown(line),
            shape=SHAPE,
        )
    type_, _, offsets = columns[1].partition(" ")
    if ";" in offsets:
        raise InputError(
            "{where}: {span} is in several pieces, and an entity has to be one; mark it as one span from "
            "its first to its last piece, or as one entity for each piece",
            where=where,
            span=shown(columns[1]),
        )
    numbers = offsets.split(" ")
    if not type_ or len(numbers) != 2 or not all(word.isascii() and word.isdigit() for word in numbers):
        raise InputError(
            "{where}: {span} is not a type and two offsets; {shape}", where=where, span=shown(columns[1]), shape=SHAPE
        )
    are_short = all(len(word) <= LONGEST_OFFSET for word in numbers)
    start, end = map(int, numbers) if are_short else (0, 0)
    if not start < end <= len(text):
        raise InputError(
            "{where}: span {offsets:.40} is not in the text of {length} characters; offsets count characters "
            "from 0, the end is not included: 0 <= start < end <= length",
            where=where,
            offsets=offsets,
            length=len(text),
        )
    found = _in_one_line(text[start:end])
    if found != _in_one_line(columns[2]):
        raise InputError(
            "{where}: span {start} {end} holds {found}, but the annotation says {surface}; correct "
            "the offsets, which count characters from 0 (a line break is one, CR and LF are two), or the surface",
            where=where,
            start=start,
            end=end,
            found=shown(found),
            surface=shown(columns[2]),
        )
    return Entity(start, end, type_)


def _in_one_line(surface: str) -> str:
    return surface.replace("\n", " ").replace("\r", " ")


def write(examples: list[Example], folder: str | os.PathLike) -> None:
    """Write 000001.txt, 000001.ann ... into a new or empty folder, which appears only when all is written."""
    folder = Path(os.path.realpath(folder))
    if folder == Path.cwd():  # which cannot be replaced
        raise InputError("{folder}: is the folder of work; give another folder for the brat documents", folder=folder)
    digits = max(6, len(str(len(examples))))
    try:
        with atomic_folder(folder) as temporary:
            for number, example in enumerate(examples, 1):
                stem = temporary / f"{number:0{digits}}"
                stem.with_suffix(".txt").write_bytes(encodable(example.text).encode("utf-8"))
                stem.with_suffix(".ann").write_bytes(_annotation(example).encode("utf-8"))
    except OSError as error:
        raise InputError(
            "{folder}: cannot be written ({reason}); give another folder", folder=folder, reason=error.strerror
        ) from None


def _annotation(example: Example) -> str:
    lines = []
    for number, entity in enumerate(example.entities, 1):
        if any(character.isspace() for character in entity.type):
            raise InputError(
                "{where}: the entity type {type} has white space, which separates in brat; "
                "rename it, or write cluener, doccano, cmeee or jsonl",
                where=example.where,
                type=shown(entity.type),
            )
        surface = _in_one_line(example.surface(entity))
        lines.append(f"T{number}\t{entity.type} {entity.start} {entity.end}\t{surface}\n")
    return "".join(lines)
