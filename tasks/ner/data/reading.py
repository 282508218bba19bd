"""Labeled data and texts: reading with validation, and writing. Standard library only.

Offsets count characters (code points), and spans in memory are half-open, whatever a file has. An error in a file
raises ``InputError``: one line with ``path:line``, what is wrong and how to fix it.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from paddle_rope.tasks.common.datasets import check_there
from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.files import atomic_writer
from paddle_rope.tasks.common.texts.streams import TextStream
from paddle_rope.tasks.common.texts.tables import TEXT, TOKENS
from paddle_rope.tasks.common.texts.text_files import STDIN, encodable, first_non_blank, read_text, split_lines
from paddle_rope.tasks.ner import formats
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.formats import brat, label_studio, span_records, tags
from paddle_rope.tasks.ner.formats.records import labeled_records, text_of
from paddle_rope.tasks.ner.formats.source import SKIP, STOP, Faults, Source, faults_of, key_of
from paddle_rope.tasks.ner.formats.tagging import join_tokens

logger = logging.getLogger(__name__)

QUICK_BYTES = 10_000_000  # read in a second or two
_NO_DATA = (".", "_", "README", "LICENSE", "dataset_info")  # prefixes of file names


def read_examples(
    path: str | os.PathLike, format: str | None = None, fields: str | None = None, on_error: str = STOP
) -> list[Example]:
    """Labeled examples of a file (``-`` is standard input), in its order, or of the files of a folder, in the order of
    their names. A folder with ``.ann`` files is read as brat; in others, subfolders and files whose names begin with a
    dot, an underscore, README, LICENSE or dataset_info are left out.

    ``format`` is one of ``FORMATS``; None recognizes it by the content. ``fields`` are the keys of records that have
    other names than the usual ``NAMES``, such as ``"text=content,start=begin"``. With ``on_error`` ``"skip"``,
    annotations that are wrong are left out and counted in this module's log; otherwise they raise InputError.
    """
    with faults_of(os.fspath(path), on_error) as faults:
        return read_labeled(path, format, fields, faults)[0]


def read_labeled(
    path: str | os.PathLike, format: str | None = None, fields: str | None = None, faults: Faults | None = None
) -> tuple[list[Example], str]:
    """The examples as from :func:`read_examples`, and the name of the format. If ``faults`` are given, they get what is
    wrong, which is left out."""
    if format is not None:
        formats.check_format(format)
    check_there(os.fspath(path))
    examples, recognized = _read(path, format, fields, faults)
    if not examples:
        first = next(iter(faults.messages.values()), ["give labeled data"])[0] if faults else ""
        raise InputError(f"{path}: no text is left in it; {first}")
    return examples, recognized


def _read(path, format, fields, faults):
    if format == brat.NAME or (format is None and brat.is_brat(path)):
        return brat.read(path, faults), brat.NAME
    if os.path.isdir(path):
        files = [one for one in brat.files_in(Path(path)) if not one.name.startswith(_NO_DATA) and one.is_file()]
        if not files:
            raise InputError(f"{path}: is a directory without files of labeled data; give the path of a file in it")
        read = [_read(file, format, fields, faults) for file in sorted(files)]
        return [example for found, _ in read for example in found], ", ".join(dict.fromkeys(name for _, name in read))
    content, name = read_text(path)
    source = Source(name, fields, faults, None if path == STDIN else os.fspath(path))
    lines = split_lines(content)
    recognized = formats.recognize(lines, source) if format is None or first_non_blank(lines) is None else format
    examples = formats.TEXT_FORMATS[recognized].read(lines, source)
    if not examples and faults is None:
        raise InputError(f"{name}:1: there is no text in it; give labeled data")
    return examples, recognized


def check_early(keys: Any) -> None:
    """Raise InputError if a training file of at most ``QUICK_BYTES`` is wrong or has no entity; ``keys`` are the
    recipe's."""
    file = Path(keys.train_file)
    if keys.on_error != SKIP and file.is_file() and file.stat().st_size <= QUICK_BYTES:
        check_labeled(read_examples(file, fields=keys.fields), file)


def check_labeled(examples: list[Example], name: str | os.PathLike) -> None:
    """Raise InputError if no entity is labeled in ``examples`` of ``name``."""
    if not any(example.entities for example in examples):
        raise InputError(f"{name}: no entity is labeled in it; give data with entities")


def note_unlabeled(examples: list[Example], name: str | os.PathLike) -> None:
    """Print a note on standard error if no entity is labeled in ``examples`` of ``name``; this is no error here."""
    if not any(example.entities for example in examples):
        print(visible(f"note: {name}: no entity is labeled in it"), file=sys.stderr)


def read_lines(lines: list[str], name: str, fields: str | None = None, on_error: str = STOP) -> list[Example]:
    """Labeled examples as in :func:`read_examples`, from the lines of the file ``name`` or of records in memory."""
    with faults_of(name, on_error) as faults:
        source = Source(name, fields, faults)
        return formats.TEXT_FORMATS[formats.recognize(lines, source)].read(lines, source)


def write_examples(examples: list[Example], target: str | os.PathLike | TextIO, format: str) -> None:
    """Write labeled examples in one of ``FORMATS``, all or nothing, to a path, an open text file or, for brat, a new or
    empty folder. Raises InputError if the target cannot be written, or the format cannot hold an example. Relations
    that it cannot hold are left out, and counted in this module's log."""
    formats.check_format(format)
    if not examples:
        raise InputError("there are no examples to write; give data with at least one text")
    empty = next((example for example in examples if not example.text), None)
    if empty is not None and format != "jsonl":
        raise InputError(f"{empty.where}: an empty text, which only jsonl holds; remove it, or write jsonl")
    if format == brat.NAME:
        if not isinstance(target, (str, os.PathLike)):
            raise InputError("brat documents need a folder; give the path of one")
        brat.write(examples, target)
        return
    content = encodable("".join(formats.TEXT_FORMATS[format].write(examples)))
    related = [example for example in examples if example.relations]
    if related and format not in formats.FORMATS_OF_RELATIONS:
        count, others = sum(len(example.relations) for example in related), ", ".join(formats.FORMATS_OF_RELATIONS)
        lost = f"left out {count} relations, which {format} cannot hold; the formats that keep them are {others}"
        logger.warning("%s: %s", related[0].where, lost)
    if isinstance(target, (str, os.PathLike)):
        with atomic_writer(target) as file:
            file.write(content)
    else:
        target.write(content)


class EntityTextStream(TextStream):
    """The texts of a ``TextStream``, also of labeled data in any format except brat."""

    form_of = staticmethod(formats.labeled_form)

    def __init__(self, source, chunk_items=2048, fields=None):
        super().__init__(source, chunk_items)
        self._source = Source(self.name, fields)

    def records_of(self, lines):
        return labeled_records(lines, self._source)

    def items_of_record(self, record, where):
        record = self._source.named(record, where)
        if span_records.PARAGRAPHS in record:
            return [(text, where) for text, *_ in span_records.paragraphs_of(record, where)]
        if isinstance(record.get("data"), dict):
            return [(label_studio.text_of(record["data"], where), where)]
        key = key_of(record, TEXT, where)
        if isinstance(record.get(key), list) or (key is None and key_of(record, TOKENS, where)):
            return [(join_tokens(tags.tokens_of(record, where))[0], where)]
        return [(text_of(record, where), where)]

    def items_of_tagged(self, lines):
        return [(example.text, example.where) for example in read_lines(lines, self.name)]
