"""Labeled data in memory instead of files: lists of records, which are read and checked as lines of JSON are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tasks.common.errors import InputError, did_you_mean
from tasks.common.language import Message
from tasks.common.texts.text_files import IN_MEMORY, RecordsName, shown

SPLITS = ("train", "dev", "test")


class MemoryData(NamedTuple):
    """Labeled data that a run was given in memory."""

    examples: dict[str, list]  # by split
    fingerprints: dict[str, str]  # what inputs.json says of them


def read_records(
    records: Iterable[Any], name: str, record_of: Callable[[Any], Any], read_lines: Callable[[list[str], str], list]
) -> tuple[list, str]:
    """The examples of records, and their SHA-256.

    Args:
        records: dicts, each as a line of a file of JSON lines, or what ``record_of`` makes such a dict of.
        name: of the list, for messages: the fourth record of ``train`` is ``train[3]``.
        record_of: gives the dict of a record.
        read_lines: of the recipe: lines and their name -> examples.

    Raises:
        InputError: there is no record, or something in one is wrong.
    """
    if isinstance(records, (str, bytes, dict)) or not isinstance(records, Iterable):
        raise InputError(
            "{name}: {records} is not a list of records; give dicts as the lines of a file hold",
            name=name,
            records=shown(records),
        )
    lines = [_line(record_of(record), f"{name}[{number}]") for number, record in enumerate(records)]
    if not lines:
        raise InputError("{name}: there is no record in it; give labeled data", name=name)
    return read_lines(lines, RecordsName(name)), hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()


def check_splits(data: Any) -> None:
    """Raise InputError unless ``data`` is a dict with names of splits."""
    if not isinstance(data, dict):
        raise InputError(
            "data: {data} is not a dict; write data={{'train': records, 'dev': records}}", data=shown(data)
        )
    for split in data:
        if split not in SPLITS:
            raise InputError(
                "data: unknown split {split!r}; {suggestion}",
                split=split,
                suggestion=did_you_mean(str(split), SPLITS) or Message("give {splits}", splits=", ".join(SPLITS)),
            )


def config_with(config: dict[str, Any], data: Iterable[str]) -> dict[str, Any]:
    """A configuration in which splits of ``data`` stand in place of files; raises InputError if both are given."""
    for split in data:
        if config.get(f"{split}_file"):
            raise InputError("data: {split} is given, and {split}_file, too; leave one out", split=split)
    return {**config, **{f"{split}_file": IN_MEMORY for split in data}}


def check_resumed(config: dict[str, Any], data: Iterable[str], where: Any) -> None:
    """Raise InputError unless a run that is resumed gets the splits that it had in memory."""
    wanted = [split for split in SPLITS if config.get(f"{split}_file") == IN_MEMORY]
    if set(data) == set(wanted):
        return
    if not wanted:
        raise InputError("{where}: the run was trained on files only; leave data out", where=where)
    raise InputError(
        "{where}: the run had {wanted} in memory; resume it in Python with the same data",
        where=where,
        wanted=" and ".join(wanted),
    )


def _line(record, where):
    if not isinstance(record, dict):
        raise InputError(
            "{where}: {record} is not a record; give a dict as a line of a file holds",
            where=where,
            record=shown(record),
        )
    try:
        return json.dumps(record, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("{where}: {error}; give strings, numbers, lists and dicts", where=where, error=error) from None


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain data")
