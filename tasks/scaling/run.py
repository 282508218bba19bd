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
from tasks.common.runs.run_folder import locked
from tasks.scaling.answers import keys_of
from tasks.scaling.plan import MANIFEST_FILE, begun_options, is_begun, make_plan
from tasks.scaling.sources import open_source
from tasks.scaling.worker import Job, part_file, rejected_file

REJECTED_FILE = "rejected.jsonl"
SUMMARY_FILE = "summary.json"
INTERRUPTED = 130  # exit status, as shells have it


def run_documents(job: Job, inputs: list[str], part_records: int, run_parts: Callable) -> int:
    """Do the unfinished parts of a run; returns the exit status.

    Args:
        job: the work.
        inputs: files, or folders of files.
        part_records: most records of a part.
        run_parts: called with the job and the parts; yields as :func:`tasks.scaling.processes.run_in_processes`.

    Raises:
        InputError: see :func:`tasks.scaling.plan.make_plan` and :func:`~tasks.scaling.plan.is_begun`; another process
            works on the run, no record could be answered, or as ``run_parts``.
    """
    job = _with_precision(job)
    plan, parts = make_plan(job, inputs, part_records)
    is_begun(job.output, plan)
    left, finished, seconds = _unfinished(job, parts), [], 0.0
    try:
        if left:
            with contextlib.closing(run_parts(job, left)) as results:
                next(results)  # a model is open: now files may be written
                # the processes end before the folder is released
                with _begun_folder(job, plan), contextlib.closing(results), _progress_bar(parts, left) as bar:
                    started = time.perf_counter()
                    for done in results:
                        finished.append(done)
                        bar.update(_records([parts[done.number]]))
                        seconds = time.perf_counter() - started
    except KeyboardInterrupt:
        count = len(parts) - len(left) + len(finished)
        note = f"stopped: {count} of {len(parts)} parts are finished; run the same command again to go on"
        print(note, file=sys.stderr)
        return INTERRUPTED
    return _finish(job, parts, finished, seconds)


@contextlib.contextmanager
def _begun_folder(job, plan):
    """The folder of the run, locked, with the manifest; without unfinished files of processes that were killed."""
    folder = Path(job.output)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) as is_ours:
        if not is_ours:
            raise InputError(f"{folder}: another process works on this run; wait for its end")
        if not is_begun(job.output, plan):
            write_json(folder / MANIFEST_FILE, plan)
        _remove_unfinished_files(job)
        try:
            yield
        finally:
            _remove_unfinished_files(job)


def _remove_unfinished_files(job):
    for folder in (Path(job.output), rejected_file(job, 0).parent):
        for path in folder.glob(".part-*.tmp"):
            path.unlink(missing_ok=True)


def _progress_bar(parts, left):
    total, remaining = map(_records, (parts, left))
    options = {"unit": " documents", "disable": not sys.stderr.isatty(), "smoothing": 0.05}
    return tqdm(total=total, initial=total - remaining, **options)


def _with_precision(job):
    """The job with ``--bf16`` decided: as the run was begun, or else as it is faster here. The manifest keeps the
    decision, so that all processes and all calls of a run use the same precision."""
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


def _finish(job, parts, finished, seconds):
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
    speed = "nothing was left to do"
    if finished:
        megabytes = [done.megabytes for done in finished]
        quarter = len(megabytes) // 4 or 1
        call = {"answered": sum(done.answered for done in finished), "seconds": round(seconds, 1)}
        call["documents_per_second"] = round(call["answered"] / seconds, 1)
        call |= {"megabytes_first": max(megabytes[:quarter]), "megabytes_last": max(megabytes[-quarter:])}
        summary["last_call"] = call
        speed = f"{call['answered']:,} in this call in {call['seconds']} s, {call['documents_per_second']} a second"
    if finished or not (folder / SUMMARY_FILE).exists():
        write_json(folder / SUMMARY_FILE, summary)
    if not answered and rejected:
        raise InputError(f"{folder / REJECTED_FILE}: every record was rejected; see the reasons there")
    note = f", {rejected:,} rejected (see {folder / REJECTED_FILE})" if rejected else ""
    print(f"{folder}: {answered:,} documents in {len(parts):,} part{'s' * (len(parts) > 1)}{note}; {speed}")
    return 0


def _lines(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
