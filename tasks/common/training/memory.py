"""Labeled data in memory instead of files: lists of records, which are read and checked as lines of JSON are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tasks.common.errors import InputError, did_you_mean
from tasks.common.texts.text_files import IN_MEMORY, RecordsName, shown

SPLITS = ("train", "dev", "test")


class MemoryData(NamedTuple):
    """Labeled data that a run was given in memory."""

    examples: dict[str, list]  # by split
    fingerprints: dict[str, str]  # what inputs.json says of them


class LabeledData(NamedTuple):
    """How a recipe reads labeled data."""

    read_file: Callable[[Any], list]  # path -> examples
    read_lines: Callable[[list[str], str], list]  # the lines of a file, or as many records in memory, and their name
    example_class: type
    record_of: Callable[[Any], dict[str, Any]]  # an example -> a dict as a line of JSON holds it

    def read_records(self, records: Iterable[Any], name: str) -> tuple[list, str]:
        """The examples of records, dicts as lines of JSON or examples, and their SHA-256; raises InputError if there is
        no record, or something in one is wrong. The fourth record of the list ``train`` is called ``train[3]``."""
        if isinstance(records, (str, bytes, dict)) or not isinstance(records, Iterable):
            raise InputError(
                f"{name}: {shown(records)} is not a list of records; give dicts as the lines of a file hold"
            )
        lines = []
        for number, record in enumerate(records):
            record = self.record_of(record) if isinstance(record, self.example_class) else record
            where = f"{name}[{number}]"
            if not isinstance(record, dict):
                raise InputError(f"{where}: {shown(record)} is not a record; give a dict as a line of a file holds")
            try:
                lines.append(json.dumps(record, default=_plain))
            except (TypeError, ValueError, RecursionError) as error:
                raise InputError(f"{where}: {error}; give strings, numbers, lists and dicts") from None
        if not lines:
            raise InputError(f"{name}: there is no record in it; give labeled data")
        digest = hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()
        return self.read_lines(lines, RecordsName(name)), digest


def read_memory(data: Any, labeled: LabeledData | None) -> MemoryData:
    """Labeled data in memory, a dict from splits to records or examples, read and checked; None: no data."""
    found = MemoryData({}, {})
    if data is None:
        return found
    if labeled is None:
        raise InputError("data: this recipe reads files only; name them in the configuration")
    if not isinstance(data, dict):
        raise InputError(f"data: {shown(data)} is not a dict; write data={{'train': records, 'dev': records}}")
    for split, records in data.items():
        if split not in SPLITS:
            suggestion = did_you_mean(str(split), SPLITS) or f"give {', '.join(SPLITS)}"
            raise InputError(f"data: unknown split {split!r}; {suggestion}")
        found.examples[split], found.fingerprints[f"{split} {IN_MEMORY}"] = labeled.read_records(records, split)
    return found


def config_with(config: dict[str, Any], data: Iterable[str]) -> dict[str, Any]:
    """A configuration in which splits of ``data`` replace files; raises InputError if both are given."""
    for split in data:
        if config.get(f"{split}_file") not in (None, "", IN_MEMORY):
            raise InputError(f"data: {split} is given, and {split}_file, too; leave one out")
    return {**config, **{f"{split}_file": IN_MEMORY for split in data}}


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain data")
