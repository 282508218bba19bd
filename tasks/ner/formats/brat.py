"""brat standoff: for each document a text ``x.txt`` and its annotation ``x.ann``, one annotation a line.

``T1<tab>Type start end<tab>surface``: offsets in characters of the whole text, half-open; a line break is a character
like any other, and a space in the surface. One document is one example. An entity over several lines is written in
pieces, ``Type start end;start end``: pieces with nothing but white space between are one entity. Entities with other
gaps are no spans. They are skipped, and so are relations, events, attributes, equivalences and notes (R, E, A, M, *, N,
#); one line of this module's log counts each.
Source: https://brat.nlplab.org/standoff.html
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder
from tasks.common.texts.text_files import encodable, read_text, shown, split_lines
from tasks.ner.examples import Entity, Example, make_example

NAME = "brat"
SHAPE = "write it as T1<tab>Type start end<tab>surface"
PLACES = 3  # of skipped entities, in a message
LONGEST_BREAK = 200  # characters of white space between two pieces of one entity
LONGEST_OFFSET = 18  # digits; Python refuses to read thousands
_OTHER_KINDS = tuple("REAM*N#")

logger = logging.getLogger(__name__)


def is_brat(path: str | os.PathLike) -> bool:
    """Whether a path is a folder with annotations, an annotation, or the text beside an annotation."""
    stem, suffix = os.path.splitext(path)
    if os.path.isdir(path):
        return any(file.suffix == ".ann" for file in _files(Path(path)))
    return suffix == ".ann" or (suffix == ".txt" and os.path.isfile(stem + ".ann"))


def read(path: str | os.PathLike) -> list[Example]:
    """The documents of a folder, ordered by name, or the one document that a path is part of."""
    path = Path(path)
    if path.is_dir():
        stems = sorted({file.with_suffix("") for file in _files(path) if file.suffix in (".ann", ".txt")})
        if not any(stem.with_name(stem.name + ".ann").is_file() for stem in stems):
            raise InputError(f"{path}: is a directory without .ann files of brat; give the path of a file in it")
    elif path.suffix in (".ann", ".txt"):
        stems = [path.with_suffix("")]
    else:
        raise InputError(f"{path}: neither a folder nor an .ann or .txt file; give brat's folder")
    skipped = _Skipped([], [])
    examples = [_read_document(stem, skipped) for stem in stems]
    if skipped.others:
        logger.warning("%s: skipped %d brat annotations that are no entities", skipped.others[0], len(skipped.others))
    if skipped.with_gaps:
        logger.warning(
            "skipped %d brat entities with gaps, which no span can hold (%s%s): mark each from its first to its last "
            "piece, or each piece, to have them",
            len(skipped.with_gaps),
            ", ".join(skipped.with_gaps[:PLACES]),
            ", ..." if len(skipped.with_gaps) > PLACES else "",
        )
    return examples


class _Skipped(NamedTuple):
    """ "path:line" of annotations that are left out."""

    others: list[str]  # no entities
    with_gaps: list[str]


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); check its permissions") from None


def _read_document(stem: Path, skipped: _Skipped) -> Example:
    text_file, annotation_file = (stem.with_name(stem.name + suffix) for suffix in (".txt", ".ann"))
    for file, other in ((text_file, annotation_file), (annotation_file, text_file)):
        if not file.is_file():
            hint = "; a text without entities has an empty one" if file == annotation_file else ""
            raise InputError(f"{file}: no such file beside {other.name}; brat needs both{hint}")
    text, _ = read_text(text_file)
    if not text:
        raise InputError(f"{text_file}:1: the text is empty; remove {text_file.name} and {annotation_file.name}")
    content, name = read_text(annotation_file)
    return make_example(text, _entities(split_lines(content), name, text, skipped), f"{text_file}:1")


def _entities(lines: list[str], name: str, text: str, skipped: _Skipped) -> Iterator[Entity]:
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if not line.strip():
            continue
        if line.startswith(_OTHER_KINDS):
            skipped.others.append(where)
        elif line.startswith("T"):
            entity = _entity(line, text, where)
            if entity is None:
                skipped.with_gaps.append(where)
            else:
                yield entity
        else:
            raise InputError(f"{where}: unknown annotation {shown(line)}; {SHAPE}")


def _entity(line: str, text: str, where: str) -> Entity | None:
    """The entity of a line; None if it has gaps."""
    columns = line.split("\t", 2)
    if len(columns) < 3:
        raise InputError(f"{where}: {len(columns)} columns instead of three in {shown(line)}; {SHAPE}")
    type_, _, offsets = columns[1].partition(" ")
    pieces = [_piece(piece.split(" "), columns[1], text, where) for piece in offsets.split(";")]
    if not type_:
        raise InputError(f"{where}: {shown(columns[1])} is not a type and two offsets; {SHAPE}")
    gaps = [(end, start) for (_, end), (start, _) in zip(pieces, pieces[1:])]
    if any(end > start for end, start in gaps):
        raise InputError(f"{where}: the pieces of {shown(columns[1])} are not one after the other; order them")
    found = _in_one_line(" ".join(text[start:end] for start, end in pieces))
    if found != _in_one_line(columns[2]):
        raise InputError(
            f"{where}: span {offsets:.40} holds {shown(found)}, but the annotation says {shown(columns[2])}; correct "
            "the offsets, which count characters from 0 (a line break is one, CR and LF are two), or the surface"
        )
    if any(start - end > LONGEST_BREAK or text[end:start].strip() for end, start in gaps):
        return None
    return Entity(pieces[0][0], pieces[-1][1], type_)


def _piece(numbers: list[str], shape: str, text: str, where: str) -> tuple[int, int]:
    """The offsets of a piece of an entity."""
    if len(numbers) != 2 or not all(word.isascii() and word.isdigit() for word in numbers):
        raise InputError(f"{where}: {shown(shape)} is not a type and two offsets; {SHAPE}")
    are_short = all(len(word) <= LONGEST_OFFSET for word in numbers)
    start, end = map(int, numbers) if are_short else (0, 0)
    if not start < end <= len(text):
        raise InputError(
            f"{where}: span {' '.join(numbers):.40} is not in the text of {len(text)} characters; offsets count "
            "characters from 0, the end is not included: 0 <= start < end <= length"
        )
    return start, end


def _in_one_line(surface: str) -> str:
    return surface.replace("\n", " ").replace("\r", " ")


def write(examples: list[Example], folder: str | os.PathLike) -> None:
    """Write 000001.txt, 000001.ann ... into a new or empty folder, which appears only when all is written."""
    folder = Path(os.path.realpath(folder))
    if folder == Path.cwd():  # which cannot be replaced
        raise InputError(f"{folder}: is the folder of work; give another folder for the brat documents")
    digits = max(6, len(str(len(examples))))
    try:
        with atomic_folder(folder) as temporary:
            for number, example in enumerate(examples, 1):
                stem = temporary / f"{number:0{digits}}"
                stem.with_suffix(".txt").write_bytes(encodable(example.text).encode("utf-8"))
                stem.with_suffix(".ann").write_bytes(_annotation(example).encode("utf-8"))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); give another folder") from None


def _annotation(example: Example) -> str:
    lines = []
    for number, entity in enumerate(example.entities, 1):
        if any(character.isspace() for character in entity.type):
            raise InputError(
                f"{example.where}: the entity type {shown(entity.type)} has white space, which separates in brat; "
                "rename it, or write cluener, doccano, cmeee or jsonl"
            )
        surface = _in_one_line(example.surface(entity))
        lines.append(f"T{number}\t{entity.type} {entity.start} {entity.end}\t{surface}\n")
    return "".join(lines)
