"""Compute one part: read records, predict, write results. Used by processes and by Ray."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any, NamedTuple

from paddle_rope.files import read_json_object
from paddle_rope.machine import prepare_process
from paddle_rope.tasks.common.errors import InputError, missing_package_named
from paddle_rope.tasks.common.files import atomic_writer, fingerprint, json_line, write_json
from paddle_rope.tasks.common.texts.json_records import json_text
from paddle_rope.tasks.scaling.formats import Keys, Part, as_text, open_source

REJECTED_FOLDER = ".rejected"  # in the output: a file for each part with rejected records
DONE_FOLDER = ".done"  # in the output: a :class:`Done` for each finished part
_line = functools.partial(json_line, default=as_text, allow_nan=False)
MOST_DEATHS = 3  # of processes on the same part, before it is given up


@dataclass(frozen=True)
class Job:
    """The settings of a run, the same for all its parts."""

    task: str  # name of the recipe
    models: tuple[str, ...]  # folders of the model, or of several whose scores are averaged
    output: str  # folder of the results
    text_column: str = "text"  # name of the text in a record
    chunk_records: int = 2048  # records that are read and computed together
    threads: int = 1  # per process
    options: dict = field(default_factory=dict)  # of the predictor

    @functools.cached_property
    def keys(self) -> Keys:
        """The names of the texts in a record, as alternatives."""
        from paddle_rope.tasks.recipes import get_options

        return get_options(self.task).record_keys(self.text_column)

    def part_file(self, number: int) -> Path:
        """The file of results of a part."""
        return Path(self.output) / f"part-{number:05}.jsonl"

    def rejected_file(self, number: int) -> Path:
        """The file of the rejected records of a part, if there are any; complete before the file of results."""
        return Path(self.output) / REJECTED_FOLDER / f"part-{number:05}.jsonl"

    def done_file(self, number: int) -> Path:
        """The file that says what a finished part consists of, written last."""
        return Path(self.output) / DONE_FOLDER / f"part-{number:05}.json"

    def done(self, number: int) -> "Done | None":
        """The outcome of a part that is finished, and whose files are as they were written; None for others."""
        try:
            done = Done(**read_json_object(self.done_file(number)))
        except (OSError, ValueError, TypeError):
            return None
        is_counted = all(isinstance(count, int) for count in done[:4]) and done.number == number and done.results
        return done if is_counted and [done.results, done.reports] == self.fingerprints(number) else None

    def fingerprints(self, number: int) -> list:
        """Those of the files of results and of rejected records of a part."""
        return list(map(fingerprint, (self.part_file(number), self.rejected_file(number))))


class Done(NamedTuple):
    """The outcome of a part."""

    number: int
    answered: int  # records
    rejected: int  # records
    megabytes: int  # peak memory of the process so far
    results: list | None  # fingerprint of the file of results
    reports: list | None  # and of the rejected records; None if there are none


class PartWorker:
    """Turns parts into finished files, with its own predictor; for use by one thread. Raises InputError if the
    predictor cannot be opened or, when called, if a file cannot be read or written."""

    def __init__(self, job: Job):
        self.job = job
        self._source = None  # stays open: the next part of a packed file begins where this one ends
        prepare_process()
        from paddle_rope.tasks.recipes import load

        with missing_package_named():
            self._predictor = load(job.models, show_progress=False, **job.options)

    def __call__(self, part: Part) -> Done:
        """Write the files of a part."""
        try:
            return self._write(part)
        except (OSError, EOFError) as error:
            path = getattr(error, "filename", None) or part.path
            raise InputError(f"{path}: cannot be read or written ({error}); fix that, then run again") from None

    def _write(self, part):
        answered, rejected = 0, []
        with atomic_writer(self.job.part_file(part.number)) as file:
            for chunk in self._chunks(part):
                items = []
                for found in chunk:
                    where, reason = f"{part.path}:{found.line}", found.reason
                    if found.record is not None:
                        try:
                            _line(found.record)  # JSON has no infinite numbers, and Python too deep a nesting
                            items.append((found.record, texts_of(found.record, where, self.job.keys)))
                        except (InputError, ValueError, RecursionError) as error:
                            reason = str(error).removeprefix(f"{where}: ")
                    if reason:  # a blank line has no record and no reason
                        rejected.append({"place": where, "reason": reason, "record": found.raw})
                file.writelines(map(_line, answers(self._predictor, self.job.keys, items)))
                answered += len(items)
            path = self.job.rejected_file(part.number)
            path.unlink(missing_ok=True)
            if rejected:
                path.parent.mkdir(exist_ok=True)
                with atomic_writer(path) as reports:
                    reports.writelines(map(_line, rejected))
        memory = getrusage(RUSAGE_SELF).ru_maxrss >> 10
        done = Done(part.number, answered, len(rejected), memory, *self.job.fingerprints(part.number))
        path = self.job.done_file(part.number)
        path.parent.mkdir(exist_ok=True)
        write_json(path, done._asdict())
        return done

    def _chunks(self, part):
        if self._source is None or self._source.path != part.path:
            if self._source is not None:
                self._source.file.close()
            self._source = open_source(part.path, self.job.keys)
        records, count = self._source.read(part), 0
        while chunk := list(itertools.islice(records, self.job.chunk_records)):
            count += len(chunk)
            yield chunk
        if count != part.last - part.first + 1:
            raise InputError(f"{part.path}: has changed while it was read; give it again as it was")


def texts_of(record: dict, where: str, keys: Keys) -> tuple[str, ...]:
    """The texts of a record; raises InputError if one is missing, or one of several is empty."""
    names = next((names for names in keys if set(names) <= record.keys()), keys[0])
    texts = tuple(json_text(record, where, (name,)) for name in names)
    for name, text in zip(names, texts):
        if len(names) > 1 and not text.strip():
            raise InputError(f'{where}: "{name}" is empty; give it a text')
    return texts


def answers(predictor: Any, keys: Keys, items: list[tuple[dict, tuple[str, ...]]]) -> Iterator[dict]:
    """Yields the prediction for each item, a pair of a record and its texts, with the other keys of the record. A key
    that the prediction also has, such as a gold ``label`` in classification, becomes ``input_label``."""
    for count, group in itertools.groupby(items, lambda item: len(item[1])):
        records, texts = zip(*group)
        results = predictor([text for (text,) in texts] if count == 1 else texts)
        names = next(names for names in keys if len(names) == count)
        for record, result in zip(records, results):
            others = {}
            for key in (key for key in record if key not in names):
                name = key
                while name in result or (name != key and name in record):
                    name = f"input_{name}"
                others[name] = record[key]
            yield {**others, **result}
