"""Standard output and error of a command: what may stand there, and what happens when nobody reads it."""

import contextlib
import functools
import os
import re
import sys

from tasks.common.errors import EXIT_BAD_INPUT, InputError, exit_on_input_error, visible

# How progress bars begin a line anew, and go up a line, in writes of their own.
_LINE_ANEW = re.compile("\r?")
_LINES_UP = re.compile("(?:\x1b\\[A)+")


class Output:
    """A stream of text, in which texts of users cannot give orders to the terminal.

    Args:
        stream: what is written to.
        name: for messages.
        is_open: False where what is written goes nowhere.
        escapes: whether what a terminal obeys is written as escapes; not in data.
    """

    def __init__(self, stream, name, is_open=True, escapes=True):
        self.stream, self.name, self.is_open, self.escapes = stream, name, is_open, escapes

    def write(self, text):
        if self.escapes and not _LINES_UP.fullmatch(text):
            begin = _LINE_ANEW.match(text).end()
            self._do(self.stream.write, text[:begin] + visible(text[begin:], "\n\t"))
        else:
            self._do(self.stream.write, text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        self._do(self.stream.flush)

    def __getattr__(self, name):  # encoding, fileno, isatty, reconfigure ...
        return getattr(self.stream, name)

    def _do(self, act, *arguments):
        try:
            act(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            write_nowhere(self.stream)
            reason = f"cannot be written ({error.strerror}); give it a place with room"
            raise InputError(f"{self.name}: {reason}") from None


def write_nowhere(stream):
    """What is still to be written to a stream that cannot take it goes nowhere, also at the exit of the process."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file
        number, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextlib.contextmanager
def visible_streams():
    """Within, standard output and error are of class :class:`Output`, and show what the locale cannot by its number."""
    if isinstance(sys.stdout, Output):
        yield
        return
    before = sys.stdout, sys.stderr
    _fill_closed_files()
    sys.stdout, sys.stderr = _output(sys.stdout, "standard output"), _output(sys.stderr, "standard error")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _output(stream, name):
    if stream is None:  # closed by who called
        return Output(open(os.devnull, "w", encoding="utf-8"), name, is_open=False)  # noqa: SIM115  open to the end
    if hasattr(stream, "reconfigure"):  # not where it is replaced by a stream of text
        stream.reconfigure(errors="backslashreplace")
    return Output(stream, name)


def _fill_closed_files():
    """Standard streams that are closed: else the next file that is opened would get their number, and their texts."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least free number, which is this one


def on_terminal(main):
    """Wrap a command's ``main(argv) -> int``: its streams are :func:`visible_streams`, its language is that of the
    locale, an ``InputError`` becomes one line, and where the reader of standard output, such as ``head``, has left, it
    ends without a word."""
    main = exit_on_input_error(main)
    flush = exit_on_input_error(lambda _: sys.stdout.flush() or 0)

    @functools.wraps(main)
    def wrapped(argv=None):
        with visible_streams():
            try:
                try:
                    status = main(argv)
                except SystemExit:
                    if flush():
                        return EXIT_BAD_INPUT
                    raise
                return flush() or status
            except BrokenPipeError:
                write_nowhere(sys.stdout)
                write_nowhere(sys.stderr)
                return 1

    return wrapped


def check_standard_output():
    """Raise InputError if standard output, to which results are to be written, is closed."""
    if sys.stdout is None or not getattr(sys.stdout, "is_open", True):
        raise InputError("standard output is closed, and results were to be written there; give a file")


@contextlib.contextmanager
def standard_output():
    """Standard output in UTF-8, whatever the locale, for data, which are written as they are. When the reader, such as
    ``head``, leaves, the work ends."""
    check_standard_output()
    stream = getattr(sys.stdout, "stream", sys.stdout)
    if hasattr(stream, "reconfigure"):  # not where it is replaced by a stream of text
        stream.reconfigure(encoding="utf-8", newline="\n")
    output = Output(stream, "standard output", escapes=False)
    try:
        yield output
        output.flush()
    except BrokenPipeError:
        write_nowhere(stream)
        sys.exit(0)


def progress_bar(stream):
    """On a terminal: bytes of a file, so that the time left is known, or texts of a pipe."""
    from tqdm import tqdm

    unit = {"unit": "B", "unit_scale": True, "total": stream.size} if stream.size else {"unit": "text"}
    return tqdm(disable=not sys.stderr.isatty(), **unit)
