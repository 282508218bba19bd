"""Results that go out as they come."""

import contextlib
import os
import sys


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
    from tqdm import tqdm

    unit = {"unit": "B", "unit_scale": True, "total": stream.size} if stream.size else {"unit": "text"}
    return tqdm(disable=not sys.stderr.isatty(), **unit)
