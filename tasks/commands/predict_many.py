"""paddle-rope predict with many documents: files in, a folder of finished parts out, in several processes."""

import functools
import os

from paddle_rope.machine import physical_cores
from tasks.commands.options import computing, wanted, whole
from tasks.common.errors import InputError
from tasks.common.texts.text_files import STDIN

DESCRIPTION = """

Many documents: with a folder or several files as --input, or with one of the options for them, --output is a folder.
Read are .txt, .jsonl, .json, .csv and .tsv (each also with .gz) and .parquet. Results are JSON lines with the other
keys of the input. What was rejected is in rejected.jsonl. The same command again goes on where it stopped."""
PART_RECORDS = 10_000
NAMES = ("processes", "threads", "ray", "part_records", "text_column")  # of the options


def add_options(parser):
    """The options for many documents."""
    group = parser.add_argument_group("many documents")
    each = "processes, each with its own model (default: 1)"
    group.add_argument("--processes", type=whole(1), metavar="N", help=each)
    of_process = "of a process (default: cores / processes; on Ray 1)"
    group.add_argument("--threads", type=whole(1), metavar="N", help=of_process)
    place = "on Ray: the cluster of an address (auto, HOST:PORT, ray://HOST:PORT), or one of this machine"
    group.add_argument("--ray", nargs="?", const="local", metavar="ADDRESS", help=place)
    size = f"records of a finished file at most (default: {PART_RECORDS})"
    group.add_argument("--part_records", type=whole(1), metavar="N", help=size)
    group.add_argument("--text_column", metavar="NAME", help="key of the text, not of matching (default: text)")


def refuse_options(options, reason):
    """Raise InputError if one of the options for many documents is given; ``reason`` says why there is none."""
    for name in NAMES:
        if getattr(options, name) is not None:
            raise InputError(f"--{name}: {reason}; leave it out")


def is_asked_for(options):
    """Whether this is about many documents, not about a stream."""
    inputs = options.input or [STDIN]
    is_given = any(getattr(options, name) is not None for name in NAMES)
    return is_given or len(inputs) > 1 or os.path.isdir(inputs[0]) or inputs[0].endswith(".parquet")


def predict_many(task, options, chunk_records):
    """Predict many documents; returns the exit status."""
    inputs = options.input or [STDIN]
    if STDIN in inputs:
        raise InputError("--input: many documents are read from files; give files or a folder")
    if options.output == STDIN:
        raise InputError("many documents are written to a folder; give --output FOLDER")
    if (options.format or "jsonl") != "jsonl":
        raise InputError(f"--format {options.format}: many documents are written as JSON lines; leave it out")
    for name in ("html", "embed"):
        if getattr(options, name):
            raise InputError(f"--{name}: is for one file of texts; leave it out, or give one --input alone")
    processes = options.processes or 1
    threads = 1 if options.ray else max(1, physical_cores() // processes)
    from tasks.scaling.run import run_documents
    from tasks.scaling.worker import Job

    more = {"overlap": options.overlap, **wanted(options)} if task == "ner" else {}
    job = Job(
        task=task,
        models=tuple(os.path.abspath(path) for path in options.model_dirs),
        output=os.path.abspath(options.output),
        text_column=options.text_column or "text",
        chunk_records=chunk_records,
        threads=options.threads or threads,
        options={**computing(options), **more},
    )
    if options.ray is not None:
        from tasks.scaling.on_ray import run_on_ray

        run_parts = functools.partial(run_on_ray, count=processes, address=options.ray)
    else:
        from tasks.scaling.processes import run_in_processes

        run_parts = functools.partial(run_in_processes, count=processes)
    return run_documents(job, inputs, options.part_records or PART_RECORDS, run_parts)
