"""A run over many documents, which goes on where it stopped.

The folder of a run holds

- ``manifest.json``: the plan, with the input file, the first and the last record of each part;
- ``part-00000.jsonl``, ...: results in the order of the records, renamed to this when they are complete;
- ``rejected.jsonl``, if anything was rejected: place, reason and the record itself;
- ``summary.json``, written last: the numbers of records, and the speed and memory of the last call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from paddle_rope.machine import prepare_process
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, write_json
from tasks.common.runs.locks import locked
from tasks.scaling.answers import keys_of
from tasks.scaling.plan import MANIFEST_FILE, begun_options, is_begun, make_plan
from tasks.scaling.sources import open_source
from tasks.scaling.worker import Job, part_file, rejected_file

REJECTED_FILE = "rejected.jsonl"
SUMMARY_FILE = "summary.json"
INTERRUPTED = 130  # exit status, as shells have it


def run_documents(job: Job, inputs: list[str], part_records: int, run_parts: Callable) -> int:
    """Do what is not finished yet of a run; returns the exit status.

    Args:
        job: what is to be done.
        inputs: files, or folders of files.
        part_records: records of a part at most.
        run_parts: called with the job, the parts and the events, as
            :func:`tasks.scaling.processes.run_in_processes` takes them.

    Raises:
        InputError: see :func:`tasks.scaling.plan.make_plan` and :func:`~tasks.scaling.plan.is_begun`; another process
            works on the run, no record could be answered, or as ``run_parts``.
    """
    job = _with_precision(job)
    plan, parts = make_plan(job, inputs, part_records)
    is_begun(job.output, plan)
    left = _unfinished(job, parts)
    with _Call(job, plan, parts, left) as call:
        try:
            if left:
                run_parts(job, left, call)
        except KeyboardInterrupt:
            call.close()
            count = len(parts) - len(left) + len(call.finished)
            note = f"stopped: {count} of {len(parts)} parts are finished; run the same command again to go on"
            print(note, file=sys.stderr)
            return INTERRUPTED
    return _finish(job, parts, call)


def _with_precision(job):
    """The job with ``--bf16`` decided: as the run was begun, or else what is faster here. The decision is in the
    manifest, so that all processes and all calls of a run use the same precision."""
    if not job.options.get("bf16"):
        return job
    prepare_process()
    from paddle_rope.native.products import DECISION, bfloat16_is_faster, why_no_bfloat16
    from tasks.common.predictor import FLOAT32_NOTE

    is_on = begun_options(job.output).get("bf16")
    if not isinstance(is_on, bool):
        is_on = why_no_bfloat16() is not None or bfloat16_is_faster()  # where it cannot be, predictors say so
        if not is_on:
            print(FLOAT32_NOTE, file=sys.stderr)
    os.environ[DECISION] = str(int(is_on))
    return dataclasses.replace(job, options={**job.options, "bf16": is_on})


class _Call:
    """One call of a run and its events: from the opening of the model it locks the folder and counts finished parts."""

    def __init__(self, job, plan, parts, left):
        self.job, self.plan = job, plan
        self.finished = []  # tasks.scaling.worker.Done
        self._records_of_part = {part.number: _records([part]) for part in parts}
        total, remaining = map(_records, (parts, left))
        self._bar = tqdm(
            total=total,
            initial=total - remaining,
            unit=" documents",
            disable=not sys.stderr.isatty(),
            smoothing=0.05,
        )
        self._stack = contextlib.ExitStack()
        self._is_ready = False
        self._started = self.seconds = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ready(self):
        """The model is open: write the manifest of a new run."""
        if self._is_ready:
            return
        folder = Path(self.job.output)
        folder.mkdir(parents=True, exist_ok=True)
        if not self._stack.enter_context(locked(folder)):
            raise InputError(f"{folder}: another process works on this run; wait for its end")
        if not is_begun(self.job.output, self.plan):
            write_json(folder / MANIFEST_FILE, self.plan)
        self._remove_begun_files()
        self._stack.callback(self._remove_begun_files)
        self._is_ready = True
        self._started = time.perf_counter()

    def done(self, done):
        """A part is finished."""
        self.finished.append(done)
        self._bar.update(self._records_of_part[done.number])
        self.seconds = time.perf_counter() - self._started

    def close(self):
        """Release the folder."""
        self._bar.close()
        self._stack.close()

    def _remove_begun_files(self):
        """Remove the unfinished files of killed processes."""
        for folder in (Path(self.job.output), rejected_file(self.job, 0).parent):
            for path in folder.glob(".part-*.tmp"):
                path.unlink(missing_ok=True)


def _unfinished(job, parts):
    """The parts whose results are missing or incomplete; a power cut may truncate a file under its final name."""
    written = {part: _results(job, part) for part in parts if part_file(job, part.number).exists()}
    fewer = [part for part, results in written.items() if results != _records([part])]
    damaged = {}
    for path, of_file in itertools.groupby(fewer, key=lambda part: part.path):
        with contextlib.closing(open_source(path, keys_of(job.task, job.text_column))) as source:
            for part in of_file:
                blank_lines = sum(found.record is None and not found.reason for found in source.read(part))
                if written[part] + blank_lines != _records([part]):
                    damaged[part] = part_file(job, part.number).name
    if damaged:
        first = next(iter(damaged.values()))
        note = f"computing {len(damaged)} of {len(parts)} parts again: {first} does not match the manifest"
        print(f"{job.output}: {note}", file=sys.stderr)
    return [part for part in parts if part not in written or part in damaged]


def _results(job, part):
    """Lines of results and of rejected records that a part has."""
    rejected = rejected_file(job, part.number)
    return _lines(part_file(job, part.number)) + (_lines(rejected) if rejected.exists() else 0)


def _records(parts):
    return sum(part.last - part.first + 1 for part in parts)


def _finish(job, parts, call):
    """Join the files of rejected records, write the summary and print it; returns the exit status."""
    folder = Path(job.output)
    answered = sum(_lines(part_file(job, part.number)) for part in parts)
    reports = [path for path in (rejected_file(job, part.number) for part in parts) if path.exists()]
    rejected = sum(map(_lines, reports))
    if reports:
        with atomic_writer(folder / REJECTED_FILE, binary=True) as file:
            for path in reports:
                with open(path, "rb") as report:
                    shutil.copyfileobj(report, file)
    summary = {"records": _records(parts), "answered": answered, "rejected": rejected, "parts": len(parts)}
    if call.finished:
        documents = sum(done.answered for done in call.finished)
        megabytes = [done.megabytes for done in call.finished]
        summary["last_call"] = {
            "answered": documents,
            "seconds": round(call.seconds, 1),
            "documents_per_second": round(documents / call.seconds, 1),
            "megabytes_first": max(megabytes[: len(megabytes) // 4 or 1]),
            "megabytes_last": max(megabytes[-(len(megabytes) // 4) or -1 :]),
        }
    if call.finished or not (folder / SUMMARY_FILE).exists():
        write_json(folder / SUMMARY_FILE, summary)
    if not answered and rejected:
        raise InputError(f"{folder / REJECTED_FILE}: every record was rejected; see the reasons there")
    speed = "nothing was left to do"
    if call.finished:
        speed = "{answered:,} in this call in {seconds} s, {documents_per_second} a second".format(
            **summary["last_call"]
        )
    note = f", {rejected:,} rejected (see {folder / REJECTED_FILE})" if rejected else ""
    print(f"{folder}: {answered:,} documents in {len(parts):,} part{'s' * (len(parts) > 1)}{note}; {speed}")
    return 0


def _lines(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
