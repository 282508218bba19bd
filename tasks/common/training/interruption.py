"""One-line messages for what ends a run from outside: SIGTERM and Ctrl-C, after which it can be resumed, a full disk,
too little memory, a removed folder."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from paddle_rope.tasks.common.errors import NO_ROOM, InputError, Interrupted, is_out_of_memory
from paddle_rope.tasks.common.process import own_command, quoted
from paddle_rope.tasks.common.training.run import CONFIG_FILE, MODEL_FOLDER

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTE = "\nending after this step, with a checkpoint; once more: at once\n"
_LIGHTER = "shorter texts, a smaller --per_device_train_batch_size or --recompute true, or end other programs"


class _Requests:
    """Signals that this process has received: one state for the process."""

    signal: int | None = None
    waits = False


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within this block SIGTERM and Ctrl-C raise :class:`Interrupted`, at once or, within :func:`until_saved`, later.
    In threads other than the main one it does nothing."""
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
    """Whether a signal is pending."""
    return _Requests.signal is not None


def end() -> None:
    """Raise :class:`Interrupted` for the pending signal, of this process or of one that trains with it."""
    raise Interrupted(_Requests.signal or signal.SIGTERM)


def _receive(number, frame):
    is_first, _Requests.signal = _Requests.signal is None, number
    if not (is_first and _Requests.waits):
        raise Interrupted(number)
    with contextlib.suppress(OSError):  # not print, which the signal may have interrupted
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _NOTE.encode())


@contextlib.contextmanager
def explained(output_dir: Path) -> Iterator[None]:
    """Within this block a run works in its folder. Raises Interrupted after a signal, with a message that says how to
    continue the run; InputError if the disk is full, memory ran out, or the folder was removed."""
    try:
        yield
    except Interrupted as error:
        model = output_dir / MODEL_FOLDER
        usable = f"the best weights so far are in {model}; " if model.is_dir() else ""
        raise Interrupted(error.number, f"{output_dir}: ended by a signal; {usable}{_remedy(output_dir)}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            remedy = f"make room, then {_remedy(output_dir)}"
            raise InputError(f"{output_dir}: no room left to write ({error}); {remedy}") from None
        if is_out_of_memory(error):
            raise InputError(f"{output_dir}: out of memory; train anew with {_LIGHTER}") from None
        if isinstance(error, FileNotFoundError) and output_dir in Path(str(error.filename)).parents:
            raise InputError(f"{output_dir}: was removed while the run worked in it; train anew") from None
        raise


def _remedy(output_dir):
    if (output_dir / CONFIG_FILE).is_file():
        return f"go on with: {own_command()} train --resume {quoted(output_dir)}"
    return "train anew: nothing had been written"
