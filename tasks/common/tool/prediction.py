"""What the prediction tools share: which models, and results that go out as they come."""

import contextlib
import os
import sys

from tqdm import tqdm


def add_model_dirs(parser):
    """The argument ``model_dirs`` of tools that average the scores of several models."""
    parser.add_argument(
        "model_dirs",
        metavar="MODEL_DIR",
        nargs="+",
        help="folder OUTPUT_DIR/model of a training run; the scores of several are averaged",
    )


@contextlib.contextmanager
def standard_output():
    """Standard output in UTF-8, whatever the locale. When the reader, such as ``head``, leaves, the work ends."""
    if hasattr(sys.stdout, "reconfigure"):  # not where it is replaced by a stream of text
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(0)


def progress_bar(stream):
    """On a terminal: bytes of a file, so that the time left is known, or texts of a pipe."""
    unit = {"unit": "B", "unit_scale": True, "total": stream.size} if stream.size else {"unit": "text"}
    return tqdm(disable=not sys.stderr.isatty(), **unit)
