"""Errors that a user can fix, shown as one line without a traceback, and user text made safe for a terminal."""

import argparse
import contextlib
import errno
import re
import signal
import sys

EXIT_BAD_INPUT = 2
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # error numbers of an OSError
_REMEDIES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "ask its owner for permission, or run as another user"),
    **dict.fromkeys(NO_ROOM, "make room, or give another place"),
    errno.ENAMETOOLONG: "give a shorter name",
}
OF_TRAINING = ("paddle", "paddlenlp", "safetensors", "scipy", "matplotlib", "visualdl", "zhplot")  # extra cpu or gpu
_NO_MEMORY_IN_WORDS = ("ResourceExhausted", "bad_alloc", "Out of memory", "Failed to allocate memory")
# Control characters (also those that begin escape sequences), line separators, marks and overrides of the direction of
# writing, halves of surrogate pairs.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MOST_CHARACTERS = 1000  # of a message
_LAST_CHARACTERS = 300  # kept of a longer message, because its end often says what to do


def visible(text: str, kept: str = "") -> str:
    """``text`` with escapes such as ``\\x1b`` for characters that control a terminal, except ``kept``."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in kept else repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """``text`` as one visible line; the middle of a long text is left out."""
    line, cut = visible(text), " [...] "
    if len(line) <= MOST_CHARACTERS:
        return line
    return line[: MOST_CHARACTERS - _LAST_CHARACTERS - len(cut)] + cut + line[-_LAST_CHARACTERS:]


class InputError(Exception):
    """Something the user gave is wrong.

    The message says what is wrong, where (file:line or option) and how to fix it. :func:`one_line` makes it safe to
    print, whatever names and texts of the user it contains.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


class Interrupted(KeyboardInterrupt):
    """The signal ``number``, SIGTERM or Ctrl-C, has ended the work; the message says how to continue."""

    def __init__(self, number, message=""):
        super().__init__(message)
        self.number = number


def reason_of(error: BaseException) -> str:
    """A library's error as part of a message: its type and its message, on one line of limited length."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return reason if len(reason) <= 200 else reason[:200] + "..."


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of paddle or onnxruntime says that memory ran out."""
    if isinstance(error, MemoryError):  # paddle also turns std::bad_alloc into it
        return True
    of_engines = isinstance(error, (RuntimeError, SystemError)) or type(error).__module__.startswith("onnxruntime.")
    return of_engines and any(words in str(error) for words in _NO_MEMORY_IN_WORDS)


@contextlib.contextmanager
def damage_reported(place, remedy):
    """Within this block, which reads the file ``place``, every error becomes an InputError with the remedy, unless
    memory ran out or paddle is not installed."""
    try:
        yield
    except (InputError, ModuleNotFoundError):
        raise
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        if is_out_of_memory(error):
            raise
        found = f"is damaged or does not fit the other files ({reason_of(error)})"
        raise InputError(f"{place} {found}; {remedy}") from error


@contextlib.contextmanager
def as_input_error(begin="", kind=ValueError):
    """Within this block, an error of the ``kind`` becomes an InputError with its message after ``begin``."""
    try:
        yield
    except kind as error:
        raise InputError(f"{begin}{error}") from None


@contextlib.contextmanager
def missing_package_named():
    """Within this block, importing a package of :data:`OF_TRAINING` raises InputError if it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in OF_TRAINING:
            raise
        remedy = "pip install 'paddle_rope[cpu]'"
        if name == "paddlenlp" and sys.version_info >= (3, 13):
            # its dependency tool-helpers, which is not used here, has no wheel for these versions
            remedy = "pip install --no-deps paddlenlp==2.8.1"
        without = "data are inspected, and models that were exported as ONNX predict and are evaluated, without it"
        raise InputError(f"{name} is not installed, and this needs it: {remedy}; {without}") from None


def exit_status(main, argv=None):
    """Run a tool's ``main(argv)`` and return its exit status, which is 0 if ``main`` returns None.

    An ``InputError``, a missing permission, a full disk, too long a name, a missing package or too little memory
    becomes one line on stderr and exit status 2; Ctrl-C and SIGTERM become one line and 128 plus the number of the
    signal, as shells report it.
    """
    try:
        with missing_package_named():
            return main(argv) or 0
    except InputError as error:
        message = str(error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _REMEDIES:
            message = one_line(f"{error.filename or 'the output'}: {error.strerror}; {_REMEDIES[error.errno]}")
        elif not is_out_of_memory(error):
            raise
        else:
            message = "not enough memory; give a smaller --batch_size or shorter texts, or end other programs"
    except KeyboardInterrupt as error:
        print(str(error) or "interrupted", file=sys.stderr)
        return 128 + getattr(error, "number", signal.SIGINT)
    print(f"error: {message}", file=sys.stderr)
    return EXIT_BAD_INPUT


class OneLineArgumentParser(argparse.ArgumentParser):
    """An argument parser whose complaints are ``InputError``: one line instead of the usage."""

    def error(self, message):
        raise InputError(f"{message}; see {self.prog} --help")
