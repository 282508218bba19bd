"""Standard output and error of a command: user text cannot control the terminal, and a closed pipe is not an error."""

import contextlib
import functools
import os
import re
import sys

from paddle_rope.tasks.common.errors import InputError, exit_status, visible

# How progress bars return to the start of a line, and move up lines, in separate writes.
_LINE_ANEW = re.compile("\r?")
_LINES_UP = re.compile("(?:\x1b\\[A)+")


class Output:
    """A text stream that writes control characters as escapes, unless ``escapes`` is False, as for data. ``name`` is
    for messages; if ``is_open`` is False, everything written is dropped."""

    def __init__(self, stream, name, is_open=True, escapes=True):
        self.stream, self.name, self.is_open, self.escapes = stream, name, is_open, escapes

    def write(self, text):
        shown = text
        if self.escapes and not _LINES_UP.fullmatch(text):
            begin = _LINE_ANEW.match(text).end()
            shown = text[:begin] + visible(text[begin:], "\n\t")
        self._do(self.stream.write, shown)
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
            raise InputError(f"{self.name}: cannot be written ({error.strerror}); give it a place with room") from None


def write_nowhere(stream):
    """Discard everything written to a stream from now on, including at the exit of the process."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file
        number, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextlib.contextmanager
def visible_streams():
    """Within the block, standard output and error are :class:`Output`; characters outside the locale are escaped."""
    if isinstance(sys.stdout, Output):
        yield
        return
    for number in range(3):  # the next file that is opened would get the number, and the output, of a closed one
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least free number, which is this one
    output, errors = _output(sys.stdout, "standard output"), _output(sys.stderr, "standard error")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        yield


def _output(stream, name):
    if stream is None:  # the caller closed it
        return Output(open(os.devnull, "w", encoding="utf-8"), name, is_open=False)  # noqa: SIM115  open to the end
    if hasattr(stream, "reconfigure"):  # a replacement such as StringIO does not have it
        stream.reconfigure(errors="backslashreplace")
    return Output(stream, name)


def on_terminal(main):
    """Wrap a command's ``main(argv)``: it runs within :func:`visible_streams`, an ``InputError`` becomes one line, and
    the command ends silently if the reader of its output, such as ``head``, has closed the pipe."""

    def flushed(argv):
        try:
            return main(argv)
        finally:
            sys.stdout.flush()

    @functools.wraps(main)
    def wrapped(argv=None):
        with visible_streams():
            try:
                return exit_status(flushed, argv)
            except BrokenPipeError:
                write_nowhere(sys.stdout)
                write_nowhere(sys.stderr)
                return 1

    return wrapped


def check_standard_output():
    """Raise InputError if standard output is closed but results are to be written to it."""
    if sys.stdout is None or not getattr(sys.stdout, "is_open", True):
        raise InputError("standard output is closed, and results were to be written there; give a file")


@contextlib.contextmanager
def standard_output():
    """Standard output for data: UTF-8 in every locale, nothing escaped. The process ends when the reader, such as
    ``head``, closes the pipe."""
    check_standard_output()
    stream = getattr(sys.stdout, "stream", sys.stdout)
    if hasattr(stream, "reconfigure"):  # a replacement such as StringIO does not have it
        stream.reconfigure(encoding="utf-8", newline="\n")
    output = Output(stream, "standard output", escapes=False)
    try:
        yield output
        output.flush()
    except BrokenPipeError:
        write_nowhere(stream)
        sys.exit(0)
