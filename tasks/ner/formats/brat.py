"""brat standoff: for each document a text ``x.txt`` and a file ``x.ann`` with one annotation per line.

``T1<tab>Type start end<tab>surface``: offsets in characters of the whole text, half-open; a line break is a character
like any other, written as a space in the surface, or as it is by some tools. A document is an example. An entity over
several lines is written in pieces, ``Type start end;start end``: pieces with only white space between them are one
entity. Entities with other gaps are not spans, so they are skipped, as are events, attributes, equivalences and notes
(E, A, M, *, N, #), and relations of skipped entities; this module's log counts them.

``R1<tab>Type Arg1:T1 Arg2:T2``: a relation. The arguments may have other names; the first is the head. Source:
https://brat.nlplab.org/standoff.html
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import atomic_folder
from paddle_rope.tasks.common.texts.text_files import encodable, read_text, shown, split_lines
from paddle_rope.tasks.ner.examples import Entity, Example, make_example
from paddle_rope.tasks.ner.formats.records import EntityIds, check_span
from paddle_rope.tasks.ner.formats.source import OTHER_TEXT, UNREADABLE, Fault, Faults, Source

NAME = "brat"
SHAPE = "write it as T1<tab>Type start end<tab>surface"
# what is skipped
OTHERS = "annotations that are no entities or relations"
CUT = "relations of events or of entities with gaps"
WITH_GAPS = "entities with gaps, which no span can hold: mark each from its first to its last piece, or mark each piece"
LONGEST_BREAK = 200  # characters of white space between two pieces of one entity
_OTHER_KINDS = tuple("EAM*N#")
_LINE_BREAK = str.maketrans("\r\n", "  ")
# Python refuses to read thousands of digits as a number
_SPAN = re.compile(r"([^ \r\n]+) ([0-9]{1,18} [0-9]{1,18}(?:;[0-9]{1,18} [0-9]{1,18})*)")
_ID = re.compile(r"[TREAMN#*][^\t ]*\t")  # what an annotation begins with
_RELATION = re.compile(r"[^\t]+\t([^ \t]+) [^ \t:]+:([^ \t]+) [^ \t:]+:([^ \t]+)[ \t]*")

logger = logging.getLogger(__name__)


def is_brat(path: str | os.PathLike) -> bool:
    """Whether a path is a folder with annotation files, an annotation file, or the text of one."""
    stem, suffix = os.path.splitext(path)
    if os.path.isdir(path):
        return any(file.suffix == ".ann" for file in files_in(Path(path)))
    return suffix == ".ann" or (suffix == ".txt" and os.path.isfile(stem + ".ann"))


def read(path: str | os.PathLike, faults: Faults | None = None) -> list[Example]:
    """The documents of a folder, ordered by name, or the one document that a path is part of."""
    path, source = Path(path), Source(os.fspath(path), faults=faults)
    files = files_in(path) if path.is_dir() else [path]
    stems = sorted({file.with_suffix("") for file in files if file.suffix in (".ann", ".txt")})
    if not stems:
        raise InputError(f"{path}: neither a folder with .ann and .txt files nor one of them; give brat's folder")
    skipped: dict[str, list[str]] = {}  # kind -> "path:line" of each
    examples = source.kept(_read_document, ((stem, skipped, source) for stem in stems))
    for what, places in skipped.items():
        logger.warning("%s: skipped %d brat %s", places[0], len(places), what)
    return examples


def files_in(folder: Path) -> list[Path]:
    """The paths in a folder; raises InputError if it cannot be read."""
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); check its permissions") from None


def _read_document(stem: Path, skipped: dict[str, list[str]], source: Source) -> Example:
    text_file, annotation_file = (stem.with_name(stem.name + suffix) for suffix in (".txt", ".ann"))
    for file, other in ((text_file, annotation_file), (annotation_file, text_file)):
        if not file.is_file():
            raise InputError(f"{file}: no such file next to {other.name}; brat needs both, an .ann may be empty")
    text, _ = read_text(text_file)
    if not text:
        raise InputError(f"{text_file}:1: the text is empty; remove {text_file.name} and {annotation_file.name}")
    content, name = read_text(annotation_file)
    entities, ids, relation_lines, relations = [], EntityIds(), [], []
    for number, line in _annotations(split_lines(content), text):
        where = f"{name}:{number}"
        if line.startswith("T"):
            found = source.tried(_entity, line, text, where)
            ids.add(line.split("\t", 1)[0], found or None)
            if found:
                entities.append(found)
            elif found == ():
                skipped.setdefault(WITH_GAPS, []).append(where)
        elif line.startswith("R"):
            relation_lines.append((line, where))
        elif line.startswith(_OTHER_KINDS):
            skipped.setdefault(OTHERS, []).append(where)
            ids.add(line.split("\t", 1)[0], None)
        elif line.strip():
            source.tried(_refuse, f"{where}: unknown annotation {shown(line)}; {SHAPE}")
    for line, where in relation_lines:  # relations may precede their entities
        related = source.tried(_related, line, ids, where)
        relations += related or []
        if related == []:
            skipped.setdefault(CUT, []).append(where)
    return make_example(text, entities, f"{text_file}:1", relations)


def _annotations(lines: list[str], text: str) -> Iterator[tuple[int, str]]:
    """The annotations with the numbers of their first lines. Lines without an ID go on with the entity before them if
    its span holds them too; otherwise each is an annotation."""
    line_break = "\r\n" if "\r\n" in text else "\n"
    begins = [0, *(number for number, line in enumerate(lines) if number and _ID.match(line)), len(lines)]
    for begin, end in pairwise(begins):
        joined = line_break.join(lines[begin:end]).rstrip("\r\n")
        if end - begin > 1 and joined.startswith("T") and _is_right(joined, text):
            yield begin + 1, joined
        else:
            yield from enumerate(lines[begin:end], begin + 1)


def _is_right(line, text):
    with suppress(InputError):
        _entity(line, text, "")
        return True
    return False


def _refuse(message):
    raise Fault(UNREADABLE, message)


def _related(line, ids, where):
    """The relation of a line as :meth:`EntityIds.related` returns it."""
    found = _RELATION.fullmatch(line)
    if found is None:
        _refuse(f"{where}: {shown(line)} is no relation; write it as R1<tab>Type Arg1:T1 Arg2:T2")
    return ids.related(found[2], found[3], found[1], where)


def _entity(line: str, text: str, where: str) -> Entity | tuple[()]:
    """The entity of a line; an empty tuple if it has gaps."""
    columns = line.split("\t", 2)
    found = _SPAN.fullmatch(columns[1]) if len(columns) == 3 else None
    if found is None:
        _refuse(f"{where}: {shown(line)} is not an identifier, a type with two offsets and a surface; {SHAPE}")
    pieces = [tuple(map(int, piece.split(" "))) for piece in found[2].split(";")]
    for start, end in pieces:
        check_span(start, end, text, where)
    gaps = [(end, start) for (_, end), (start, _) in pairwise(pieces)]
    if any(end > start for end, start in gaps):
        _refuse(f"{where}: the pieces of {shown(columns[1])} are not one after the other; order them")
    most = len(columns[2]) + 60  # a span may be very long, and many may be wrong
    surface = " ".join(text[start : min(end, start + most)] for start, end in pieces)
    if surface.translate(_LINE_BREAK) != columns[2].translate(_LINE_BREAK):
        raise Fault(
            OTHER_TEXT,
            f"{where}: span {found[2]:.40} holds {shown(surface)}, but the annotation says {shown(columns[2])}; "
            "correct the surface or the offsets, which count characters from 0 (a line break is one, CR LF two)",
        )
    if any(start - end > LONGEST_BREAK or text[end:start].strip() for end, start in gaps):
        return ()
    return Entity(pieces[0][0], pieces[-1][1], found[1])


def write(examples: list[Example], folder: str | os.PathLike) -> None:
    """Write 000001.txt, 000001.ann ... into a new or empty folder, which appears only when all is written."""
    folder = Path(os.path.realpath(folder))
    digits = max(6, len(str(len(examples))))
    try:
        with atomic_folder(folder) as temporary:
            for number, example in enumerate(examples, 1):
                for suffix, content in ((".txt", encodable(example.text)), (".ann", _annotation(example))):
                    (temporary / f"{number:0{digits}}{suffix}").write_bytes(content.encode("utf-8"))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); give another folder") from None


def _annotation(example: Example) -> str:
    lines = []
    for one in (*example.entities, *example.relations):
        if any(character.isspace() for character in one.type):
            raise InputError(
                f"{example.where}: the type {shown(one.type)} has white space, which separates in brat; rename it, or "
                "write doccano_entities or labelstudio"
            )
    for number, entity in enumerate(example.entities, 1):
        surface = example.surface(entity).translate(_LINE_BREAK)
        lines.append(f"T{number}\t{entity.type} {entity.start} {entity.end}\t{surface}\n")
    for number, (head, tail, type_) in enumerate(example.relations, 1):
        lines.append(f"R{number}\t{type_} Arg1:T{head + 1} Arg2:T{tail + 1}\n")
    return "".join(lines)
