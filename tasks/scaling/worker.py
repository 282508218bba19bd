"""One part of the work: read records, predict, write results. Processes and Ray share it."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from paddle_rope.machine import prepare_process
from tasks.common.errors import InputError, missing_paddle_named
from tasks.common.files import atomic_writer
from tasks.scaling.answers import answers, keys_of, texts_of
from tasks.scaling.formats import Part, as_json
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


class PartWorker:
    """Turns parts into finished files, with its own predictor. Used by one thread.

    Raises:
        InputError: the predictor cannot be opened; when called, a file cannot be read or written.
    """

    def __init__(self, job: Job):
        self.job = job
        self._keys = keys_of(job.task, job.text_column)
        self._source = None  # stays open: the next part of a packed file begins where this one ends
        prepare_process()
        from tasks.recipes import get_predictor

        models = list(job.models) if job.task == "ner" else job.models[0]
        with missing_paddle_named():
            self._predictor = get_predictor(job.task)(models, show_progress=False, **job.options)

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
                    where = f"{part.path}:{found.line}"
                    try:
                        if found.record is not None:
                            items.append((found.record, texts_of(found.record, where, self._keys)))
                        elif found.reason:  # otherwise it is a blank line
                            raise InputError(found.reason)
                    except InputError as error:
                        reason = str(error).removeprefix(f"{where}: ")
                        rejected.append({"place": where, "reason": reason, "record": found.raw})
                file.writelines(map(as_json, answers(self._predictor, self._keys, items)))
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
        records, count = self._source.read(part), 0
        while chunk := list(itertools.islice(records, self.job.chunk_records)):
            count += len(chunk)
            yield chunk
        if count != part.last - part.first + 1:
            raise InputError(f"{part.path}: has changed while it was read; give it again as it was")


def _megabytes():
    """Memory that this process holds now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except (OSError, ValueError):
        return 0
