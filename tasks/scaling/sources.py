"""The files of a run, and how they are cut into parts."""

from __future__ import annotations

import contextlib
import os
from collections import Counter

from tasks.common.errors import InputError
from tasks.common.texts.text_files import open_bytes, reading
from tasks.scaling.formats import Csv, JsonLines, Keys, Parquet, Part, PlainText

GZIP = ".gz"
# by the end of a file's name
SOURCES = {".txt": PlainText, ".jsonl": JsonLines, ".json": JsonLines, ".csv": Csv, ".parquet": Parquet}
ENDINGS = (*SOURCES, *(f"{ending}{GZIP}" for ending in SOURCES if ending != ".parquet"))
_OR_ENDINGS = f"{', '.join(SOURCES)} or, but for Parquet, such an end and {GZIP}"


def open_source(path: str, keys: Keys) -> PlainText | Parquet:
    """The source of a file, by the end of its name; raises InputError if it cannot be read or lacks the ``keys`` of the
    texts, see :class:`~tasks.scaling.formats.PlainText`."""
    ending = next(ending for ending in ENDINGS if path.endswith(ending)).removesuffix(GZIP)
    if SOURCES[ending] is PlainText and len(keys[0]) > 1:
        names = " and ".join(keys[0])
        raise InputError(f"{path}: plain text has one text a line; give JSON lines, CSV or Parquet with {names}")
    return SOURCES[ending](path, keys)


def find_files(inputs: list[str]) -> list[str]:
    """The absolute paths of files given as they are or by their folder, of which files whose names begin with a dot or
    an underscore, and folders, are left out. Raises InputError if there is none, one is given twice, or its name has an
    unknown end."""
    found = []
    for given in inputs:
        if not os.path.isdir(given):
            found.append(given)
            continue
        names = sorted(entry.name for entry in os.scandir(given) if entry.is_file() and entry.name[0] not in "._")
        if not names:
            raise InputError(f"{given}: no files in this folder; give a folder with files that end with {_OR_ENDINGS}")
        found += [os.path.join(given, name) for name in names]
    for path in found:
        open_bytes(path).close()
        if not path.endswith(ENDINGS):
            raise InputError(f"{path}: unknown kind of file; its name has to end with {_OR_ENDINGS}")
    for path, count in Counter(map(os.path.realpath, found)).items():
        if count > 1:
            raise InputError(f"{path}: is given twice; give it once")
    return list(map(os.path.abspath, found))


def parts_of(paths: list[str], keys: Keys, size: int) -> list[Part]:
    """The parts of files, of ``size`` records at most, in order; reads each file once. Raises InputError if a file
    cannot be read, or there is no record in any."""
    spans = []
    for path in paths:
        with reading(path), contextlib.closing(open_source(path, keys)) as source:
            spans += [(path, *span) for span in source.parts(size)]
    if not spans:
        raise InputError(f"{paths[0]}: no records in it{' and the others' if len(paths) > 1 else ''}; give texts")
    return [Part(number, *span) for number, span in enumerate(spans)]
