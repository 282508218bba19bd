"""A resumable run over many documents.

The folder of a run holds

- ``manifest.json``: the plan, with the input file, the first and the last record of each part;
- ``part-00000.jsonl``, ...: results in the order of the records; a file gets this name when it is complete and on disk;
- ``.done/``: for each finished part its numbers of records, and size and SHA-256 of its files;
- ``rejected.jsonl``, if anything was rejected: place, reason and the record itself;
- ``summary.json``, written last: the numbers of records, and the speed and memory of the last call.
"""

import contextlib
import dataclasses
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from paddle_rope.machine import prepare_process
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import (
    atomic_writer,
    check_new_folder,
    digest_of,
    locked,
    read_json_object,
    write_json,
)
from paddle_rope.tasks.common.model_folder import refuse_incomplete
from paddle_rope.tasks.common.texts.text_files import open_bytes
from paddle_rope.tasks.scaling.formats import Part, find_files, parts_of
from paddle_rope.tasks.scaling.worker import Job

MANIFEST_FILE, REJECTED_FILE, SUMMARY_FILE = "manifest.json", "rejected.jsonl", "summary.json"
FREE_OPTIONS = {"device", "batch_size"}  # of predictors: they may change when a run is resumed
INTERRUPTED = 130  # exit status, as in shells


def run_documents(job: Job, inputs: list[str], part_records: int, run_parts: Callable) -> int:
    """Compute the unfinished parts, of at most ``part_records`` records each, of a run over files or folders; returns
    the exit status. ``run_parts(job, parts)`` yields and raises as
    :func:`paddle_rope.tasks.scaling.processes.run_in_processes`. Raises InputError if an input, the model or the output
    does not fit, before anything is written; if the folder holds another run, or another process works on this one; or
    if no record could be answered."""
    before = _manifest(job.output)
    job = _with_precision(job, before)
    plan, parts = make_plan(job, inputs, part_records)
    check_same(job.output, before, plan)
    done_before = {done.number: done for part in parts if (done := job.done(part.number))}
    left, finished, seconds = [part for part in parts if part.number not in done_before], [], 0.0
    try:
        if left:
            with contextlib.closing(run_parts(job, left)) as results:
                next(results)  # a model is open: now files may be written
                total, remaining = map(_records, (parts, left))
                shown = {"total": total, "initial": total - remaining, "unit": " documents", "smoothing": 0.05}
                shown["disable"] = not sys.stderr.isatty()
                # the processes end before the folder is released
                with _begun_folder(job, plan), contextlib.closing(results), tqdm(**shown) as bar:
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
    return _finish(job, parts, [*done_before.values(), *finished], finished, seconds)


def make_plan(job: Job, inputs: list[str], part_records: int) -> tuple[dict, list[Part]]:
    """The content of the manifest, and the parts; raises InputError if something does not fit. Nothing is written."""
    paths = find_files(inputs)
    for model in job.models:
        refuse_incomplete(model, ("config.json",))
    lists = [path for name, path in job.options.items() if name in ("dictionary", "patterns")]
    for path in lists:
        open_bytes(path).close()  # raises InputError without such a file, as for standard input
    parts = parts_of(paths, job.keys, part_records)
    options = {name: value for name, value in job.options.items() if name not in FREE_OPTIONS}
    plan = {
        "task": job.task,
        "models": {os.path.abspath(path): digest_of(Path(path)) for path in job.models},
        "inputs": {path: digest_of(Path(path)) for path in [*paths, *lists]},
        "options": {"text_column": job.text_column, "part_records": part_records, **options},
        "parts": [{"file": job.part_file(part.number).name, **part._asdict()} for part in parts],
    }
    return plan, parts


def _manifest(output: str) -> dict | None:
    """The manifest of the run in a folder, None without one; raises InputError if the folder holds something else."""
    path = Path(output) / MANIFEST_FILE
    if not path.is_file():
        check_new_folder(output, "--output")
        return None
    remedy = "give another folder as --output or remove this one"
    manifest = read_json_object(path, remedy)
    if not isinstance(manifest.get("options"), dict):
        raise InputError(f"{path}: is damaged; {remedy}")
    return manifest


def check_same(output: str, before: dict | None, plan: dict) -> None:
    """Raise InputError if a run was begun with another plan than it has now."""
    for key in plan if before is not None else ():
        then, now = before.get(key), plan[key]
        if then != now:
            difference = ""
            if isinstance(then, dict) and isinstance(now, dict):
                name = next(name for name in [*then, *now] if then.get(name) != now.get(name))
                difference = f" ({name}: {then.get(name)}, not {now.get(name)})"
            raise InputError(
                f"{output}: was begun with other {key}{difference}, so it cannot go on; give the run what it began "
                "with, or another folder as --output"
            )


@contextlib.contextmanager
def _begun_folder(job, plan):
    """Lock the folder of the run and write its manifest; at the end, remove unfinished files of killed processes."""
    folder = Path(job.output)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        before = _manifest(job.output)  # another call may have begun it meanwhile
        check_same(job.output, before, plan)
        if before is None:
            write_json(folder / MANIFEST_FILE, plan)
        try:
            yield
        finally:
            for path in folder.rglob(".part-*.tmp"):
                path.unlink(missing_ok=True)


def _with_precision(job, manifest):
    """The job with ``--bf16`` decided once, when a run is begun, for all its processes and calls."""
    if not job.options.get("bf16"):
        return job
    prepare_process()
    from paddle_rope.native.products import DECISION
    from paddle_rope.tasks.common.process import bfloat16_pays

    is_on = manifest["options"].get("bf16") if manifest else None
    if not isinstance(is_on, bool):
        is_on = bfloat16_pays()  # if it is impossible, predictors say so
    os.environ[DECISION] = str(int(is_on))
    return dataclasses.replace(job, options={**job.options, "bf16": is_on})


def _records(parts):
    return sum(part.last - part.first + 1 for part in parts)


def _finish(job, parts, done, finished, seconds):
    """Join the files of rejected records, write the summary and print it; returns the exit status. ``done`` has all
    parts, ``finished`` the ones that this call computed."""
    folder = Path(job.output)
    answered, rejected = (sum(getattr(one, name) for one in done) for name in ("answered", "rejected"))
    if rejected:
        with atomic_writer(folder / REJECTED_FILE, binary=True) as file:
            for number in sorted(one.number for one in done if one.rejected):
                with open(job.rejected_file(number), "rb") as report:
                    shutil.copyfileobj(report, file)
    summary = {"records": _records(parts), "answered": answered, "rejected": rejected, "parts": len(parts)}
    speed = "nothing was left to do"
    if finished:
        call = {"answered": sum(one.answered for one in finished), "seconds": round(seconds, 1)}
        call["documents_per_second"] = round(call["answered"] / seconds, 1)
        call["megabytes"] = max(one.megabytes for one in finished)
        summary["last_call"] = call
        speed = f"{call['answered']:,} in this call in {call['seconds']} s, {call['documents_per_second']} a second"
    if finished or not (folder / SUMMARY_FILE).exists():
        write_json(folder / SUMMARY_FILE, summary)
    if not answered and rejected:
        raise InputError(f"{folder / REJECTED_FILE}: every record was rejected; see the reasons there")
    note = f", {rejected:,} rejected (see {folder / REJECTED_FILE})" if rejected else ""
    print(f"{folder}: {answered:,} documents in {len(parts):,} part{'s' * (len(parts) > 1)}{note}; {speed}")
    return 0
