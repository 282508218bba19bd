"""The working process: its home folder, preparation before Paddle is imported, device, rank, and its own command."""

import atexit
import contextlib
import importlib.metadata
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from paddle_rope.machine import import_paddle, prepare_process
from paddle_rope.tasks.common.errors import InputError

_TEMPORARY_HOME = "paddle_rope_home_"


def ensure_home() -> None:
    """Set ``HOME`` of this process and its children to a temporary folder if the home folder is missing or not
    writable, because paddle, PaddleNLP and VisualDL make folders in it when they are imported. The temporary folder is
    removed when the process ends; nothing is made in a usable home folder."""
    home, process = os.path.expanduser("~"), os.getpid()
    is_usable = os.path.isabs(home) and os.path.isdir(home) and os.access(home, os.W_OK | os.X_OK)
    if is_usable or os.name != "posix":
        return
    with contextlib.suppress(OSError):  # there may be no place for a temporary folder either
        os.environ["HOME"] = temporary = tempfile.mkdtemp(prefix=_TEMPORARY_HOME)
        # not in a copy of the process that os.fork has made
        atexit.register(lambda: os.getpid() == process and shutil.rmtree(temporary, ignore_errors=True))


def prepare() -> None:
    """Prepare this process for work and import paddle; call it before anything else imports paddle."""
    prepare_process()
    import_paddle()


def quiet_paddlenlp() -> None:
    """Keep PaddleNLP's warnings and errors, without colors; drop its notes on every file that it reads or writes."""
    from paddlenlp.utils.log import logger

    logger.set_level("WARNING")
    logger.format.no_color = True  # escapes are shown as such


def check_device(name: str | None) -> None:
    """Raise InputError if a GPU is wanted and the Paddle that is installed is not built for one. Imports no Paddle."""
    if name is not None and name.lower().startswith("gpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("paddlepaddle")  # the package for CPUs
            _refuse_gpu(name)


def _refuse_gpu(name):
    raise InputError(f"--device {name}: this paddle is built for CPU; use --device cpu or install paddlepaddle-gpu")


def choose_device(name: str | None = None) -> str:
    """Set paddle's device, named as for ``paddle.set_device``, and return its name; None uses a GPU if there is one.
    Raises InputError if paddle cannot use the device here."""
    import paddle

    if name is None:
        name = "gpu" if paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0 else "cpu"
    name = name.lower()  # as paddle reads it
    if name.startswith("gpu") and not paddle.is_compiled_with_cuda():
        _refuse_gpu(name)
    try:
        paddle.set_device(name)
    except (ValueError, RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(f"--device {name}: not usable here ({reason}); use --device cpu") from None
    if name == "cpu":
        _build_native_operators()
    return name


def _build_native_operators():
    """Build them where they are first needed, once per machine; without them everything works, more slowly."""
    from paddle_rope.native.library import BuildError, build, is_missing

    is_kept = "XDG_CACHE_HOME" in os.environ or _TEMPORARY_HOME not in os.environ.get("HOME", "")
    if is_first_process() and is_kept and is_missing():
        print("native operators: being built for this machine, once, in about 15 seconds", file=sys.stderr, flush=True)
        try:
            build()
        except BuildError as error:
            print(f"note: {error}; PADDLE_ROPE_NATIVE=0 goes without native operators", file=sys.stderr)


def is_first_process() -> bool:
    """Whether this process is the only one, or the one among several that prints and writes."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")) == 0  # the variable that paddle.distributed.get_rank reads


def process_count() -> int:
    """The number of processes that train together."""
    return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within this block, raise TimeoutError after so many seconds of this thread's processor time; in other threads
    than the main one there is no limit, because signals do not reach them. Before Python 3.11 a search for a regular
    expression such as ``a*b``, which fails quickly at each of many places, is left only when it has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end = time.thread_time() + seconds

    def check(number, frame):
        if time.thread_time() >= end:  # the timer also counts other threads
            raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, check)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---- commands to paste, in messages


def own_command(script: str = "paddle-rope", module: str = "paddle_rope") -> str:
    """The command that calls this command line again, or another script of this environment: its name if the search
    path finds it, else its module with this Python, quoted for a shell."""
    found = shutil.which(script)
    is_found = found is not None and os.path.abspath(found) == str(Path(sys.executable).with_name(script))
    return script if is_found else f"{quoted(sys.executable)} -m {module}"


def quoted(path: str | os.PathLike) -> str:
    """A path, quoted for a shell."""
    return shlex.quote(str(path))


def bfloat16_pays(asked: bool | None = True, says_so: bool = True) -> bool:
    """Whether to multiply in bfloat16 on this CPU: where it is faster than float32. Where it is impossible, True if it
    was ``asked`` for, which is then refused; where it is slower and was asked for, ``says_so`` prints a note."""
    from paddle_rope.native.products import bfloat16_is_faster, why_no_bfloat16

    if why_no_bfloat16() is not None:
        return bool(asked)
    if asked and says_so and not bfloat16_is_faster():
        print("note: float32 is faster than bfloat16 on this processor, so --bf16 computes in float32", file=sys.stderr)
    return bfloat16_is_faster()
