"""Set-up of the process."""

import sys

from paddle_rope.machine import import_paddle, prepare_process


def show_any_text():
    """Show what the locale cannot show by its number. Called before anything is printed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not where it is replaced by a stream of text
            stream.reconfigure(errors="backslashreplace")


def prepare():
    """Called when work begins, before anything that imports paddle."""
    prepare_process()
    import_paddle()
