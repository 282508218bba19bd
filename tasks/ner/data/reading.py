"""Labeled data and texts: reading with validation, and writing. Standard library only.

``read_examples`` and ``write_examples`` know the formats of ``tasks.ner.formats``; ``read_texts`` reads texts to
predict. Offsets count characters (code points), and spans in memory are half-open, whatever a file has.

Whatever is wrong with a file raises ``tasks.common.errors.InputError``: one line with ``path:line``, what is wrong
and how to fix it.
"""

from __future__ import annotations

import os
from typing import TextIO

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.common.texts.text_files import STDIN, encodable, first_non_blank, read_text, split_lines
from tasks.common.texts.text_stream import TextStream
from tasks.ner.examples import Entity, Example, entity_types
from tasks.ner.formats import FORMATS, TEXT_FORMATS, brat, check_format, recognize

__all__ = [
    "FORMATS", "STDIN", "Entity", "Example", "entity_types", "read_examples", "read_labeled", "read_texts",
    "write_examples",
]  # fmt: skip


def read_examples(
    path: str | os.PathLike, format: str | None = None, name: str | os.PathLike | None = None
) -> list[Example]:
    """Labeled examples of a file (or folder, for brat), in its order.

    Args:
        path: the file; ``-`` is standard input.
        format: one of ``FORMATS``; None recognizes it by the content, and brat by folder or ``.ann``.
        name: what messages call the file, for which it stands; None: ``path``. Not for brat.

    Raises:
        InputError: the file cannot be read, or something in it is wrong.
    """
    return read_labeled(path, format, name)[0]


def read_labeled(
    path: str | os.PathLike, format: str | None = None, name: str | os.PathLike | None = None
) -> tuple[list[Example], str]:
    """``read_examples``, and the name of the format."""
    if format is not None:
        check_format(format)
    if format == brat.NAME or (format is None and brat.is_brat(path)):
        return brat.read(path), brat.NAME
    content, read_from = read_text(path)
    name = read_from if name is None else os.fspath(name)
    lines = split_lines(content)
    recognized = recognize(lines, name) if format is None or first_non_blank(lines) is None else format
    examples = TEXT_FORMATS[recognized].read(lines, name)
    if not examples:
        raise InputError("{name}:1: there is no text in it; give labeled data", name=name)
    return examples, recognized


def read_lines(lines: list[str], name: str) -> list[Example]:
    """As :func:`read_examples`, from the lines of a file called ``name``, or of records in memory."""
    return TEXT_FORMATS[recognize(lines, name)].read(lines, name)


def write_examples(examples: list[Example], target: str | os.PathLike | TextIO, format: str) -> None:
    """Write labeled examples, all or nothing.

    Args:
        examples: at least one.
        target: a path, or an open file of text; a folder that is new or empty for brat.
        format: one of ``FORMATS``.

    Raises:
        InputError: the target cannot be written, or the format cannot hold an example.
    """
    check_format(format)
    if not examples:
        raise InputError("there are no examples to write; give data with at least one text")
    empty = next((example for example in examples if not example.text), None)
    if empty is not None and format != "jsonl":
        raise InputError("{where}: an empty text, which only jsonl holds; remove it, or write jsonl", where=empty.where)
    if format == brat.NAME:
        if not isinstance(target, (str, os.PathLike)):
            raise InputError("brat documents need a folder; give the path of one")
        brat.write(examples, target)
        return
    content = encodable("".join(TEXT_FORMATS[format].write(examples)))
    if isinstance(target, (str, os.PathLike)):
        with atomic_writer(target) as file:
            file.write(content)
    else:
        target.write(content)


def read_texts(source: str | os.PathLike) -> list[tuple[str, str]]:
    """All texts of a :class:`tasks.common.texts.text_stream.TextStream`: pairs (text, "path:line")."""
    return [pair for chunk in TextStream(source) for pair in chunk]
