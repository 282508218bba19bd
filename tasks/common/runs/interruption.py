"""SIGTERM and Ctrl-C: a run ends where it can be resumed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

from tasks.common.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = "\nending after this step, with a checkpoint; once more: at once\n"


class _Requests:
    """What this process was asked; signals belong to the process, and so does this."""

    signal: int | None = None
    waits = False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within this block SIGTERM and Ctrl-C raise :class:`Interrupted`, at once or, within :func:`until_saved`, later.
    Threads other than the first leave signals as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Requests.signal = None
    before = {number: signal.signal(number, _receive) for number in _SIGNALS}
    try:
        yield
    finally:
        _Requests.signal = None
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextlib.contextmanager
def until_saved() -> Iterator[None]:
    """Within this block the first signal waits for :func:`end`; the second ends the block."""
    _Requests.waits = True
    try:
        yield
    finally:
        _Requests.waits = False


def is_requested() -> bool:
    """Whether a signal waits."""
    return _Requests.signal is not None


def end() -> None:
    """Raise :class:`Interrupted` for the signal that waits, in this process or in one that trains with it."""
    raise Interrupted(_Requests.signal or signal.SIGTERM)


def _receive(number, frame):
    is_first, _Requests.signal = _Requests.signal is None, number
    if not (is_first and _Requests.waits):
        raise Interrupted(number)
    with contextlib.suppress(OSError):  # not print, which a signal may have cut
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _NOTE.encode())
