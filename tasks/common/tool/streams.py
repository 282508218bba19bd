"""What a tool prints."""

import sys


def print_in_any_locale():
    """Print what the locale cannot show by its number instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not where it is replaced by a stream of text
            stream.reconfigure(errors="backslashreplace")
