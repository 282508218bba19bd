"""One part of the work: records are read, answered and written. Processes and Ray share it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from paddle_rope.machine import prepare_process
from tasks.common.errors import InputError, missing_paddle_named
from tasks.common.files import atomic_writer
from tasks.scaling.answers import Answers, answerable, keys_of
from tasks.scaling.formats import Found, Part, as_json
from tasks.scaling.sources import open_source

REJECTED_FOLDER = ".rejected"  # in the output: a file for each part with rejected records
DIGITS = 5
MOST_DEATHS = 3  # of processes over the same part, before it is given up


@dataclass(frozen=True)
class Job:
    """The settings of a run, the same for all its parts.

    Attributes:
        task: ``"ner"``, ``"classification"`` or ``"matching"``.
        models: folders of the model, or of several whose scores are averaged.
        output: folder of the results.
        text_column: name of the text in a record.
        chunk_records: records read and computed together.
        threads: of a process.
        options: of the predictor.
    """

    task: str
    models: tuple[str, ...]
    output: str
    text_column: str = "text"
    chunk_records: int = 2048
    threads: int = 1
    options: dict = field(default_factory=dict)


class Done(NamedTuple):
    """The outcome of a part: its number, the records answered and rejected, and the megabytes of memory that the
    process holds after it."""

    number: int
    answered: int
    rejected: int
    megabytes: int


def part_file(job: Job, number: int) -> Path:
    """The file of results of a part."""
    return Path(job.output) / f"part-{number:0{DIGITS}}.jsonl"


def rejected_file(job: Job, number: int) -> Path:
    """The file of the rejected records of a part, if there are any; it is complete before the file of results."""
    return Path(job.output) / REJECTED_FOLDER / f"part-{number:0{DIGITS}}.jsonl"


def open_job_predictor(job: Job):
    """The predictor of a job; raises InputError as predictors do."""
    prepare_process()
    from tasks.recipes import get_predictor

    models = list(job.models) if job.task == "ner" else job.models[0]
    with missing_paddle_named():
        return get_predictor(job.task)(models, show_progress=False, **job.options)


class PartWorker:
    """Turns parts into finished files, with its own predictor. Used by one thread.

    Raises:
        InputError: the predictor cannot be opened; when called, a file cannot be read or written.
    """

    def __init__(self, job: Job):
        self.job = job
        self._keys = keys_of(job.task, job.text_column)
        self._answers = Answers(job.task, open_job_predictor(job), self._keys)
        self._source = None  # stays open: the next part of a packed file begins where this one ends

    def __call__(self, part: Part) -> Done:
        """Write the files of a part, see :func:`part_file`."""
        try:
            return self._write(part)
        except (OSError, EOFError) as error:
            path = getattr(error, "filename", None) or part.path
            raise InputError(f"{path}: cannot be read or written ({error}); fix that, then run again") from None

    def _write(self, part):
        answered, rejected = 0, []
        with atomic_writer(part_file(self.job, part.number)) as file:
            for chunk in self._chunks(part):
                items = []
                for found in chunk:
                    if found.record is None and not found.reason:  # a blank line
                        continue
                    try:
                        items.append(answerable(found, part.path, self._keys))
                    except InputError as error:
                        rejected.append(_report(part, found, error))
                file.writelines(map(as_json, self._answers(items)))
                answered += len(items)
            if rejected:
                path = rejected_file(self.job, part.number)
                path.parent.mkdir(exist_ok=True)
                with atomic_writer(path) as reports:
                    reports.writelines(map(as_json, rejected))
        return Done(part.number, answered, len(rejected), _megabytes())

    def _chunks(self, part):
        if self._source is None or self._source.path != part.path:
            if self._source is not None:
                self._source.close()
            self._source = open_source(part.path, self._keys)
        chunk, count = [], 0
        for found in self._source.read(part):
            chunk.append(found)
            count += 1
            if len(chunk) == self.job.chunk_records:
                yield chunk
                chunk = []
        if chunk:
            yield chunk
        if count != part.last - part.first + 1:
            raise InputError(f"{part.path}: has changed while it was read; give it again as it was")


def _report(part, found: Found, error):
    place = f"{part.path}:{found.line}"
    return {"place": place, "reason": str(error).removeprefix(f"{place}: "), "record": found.raw}


def _megabytes():
    """Memory that this process holds now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except (OSError, ValueError):
        return 0
