"""Process settings that must be made before paddle is imported, and lazy loading of names (PEP 562)."""

import contextlib
import ctypes
import importlib
import io
import logging
import os
import platform
import sys
import warnings
import zlib  # noqa: F401  paddle 2.6.2 exports its own zlib symbols: load the system's first
from collections.abc import Callable, Iterator
from typing import Any

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_NOTES = ("No ccache found", "Setuptools is replacing distutils", "pkg_resources is deprecated")
_LOG_LEVEL = "GLOG_minloglevel"  # level of Paddle's static graph log; read once, when paddle is imported


def prepare_process() -> None:
    """Make paddle fast on CPU: call this once, before anything imports paddle.

    It sets, for the whole process, what the environment does not set already:

    - ``OMP_NUM_THREADS``, the number of threads: the physical cores that the process may use (paddle's default is 1);
    - ``FLAGS_use_stride_kernel=0``: paddle's kernels for strided tensors are slow on CPU;
    - ``MKL_DEBUG_CPU_TYPE=5`` on AMD processors with AVX2, which paddle's matrix library would otherwise not use
      (github.com/PaddlePaddle/Paddle/issues/75760).

    On Linux the process also keeps freed memory. After paddle is imported, a call changes only this and what child
    processes inherit; a RuntimeWarning says so.

    >>> import paddle_rope
    >>> paddle_rope.prepare_process()  # doctest: +SKIP
    >>> import paddle  # from here on with these settings
    """
    settings = {"OMP_NUM_THREADS": str(physical_cores()), "FLAGS_use_stride_kernel": "0"}
    if any(one.get("vendor_id") == "AuthenticAMD" and "avx2" in one.get("flags", "").split() for one in processors()):
        settings["MKL_DEBUG_CPU_TYPE"] = "5"  # otherwise MKLML of 2019 uses SSE there; 5: AVX2
    missing = [name for name in settings if name not in os.environ]
    if missing and "paddle" in sys.modules:
        warnings.warn(
            f"paddle is imported already: {', '.join(missing)} has no effect on this process any more; call "
            "paddle_rope.prepare_process() before paddle, or what imports it, is imported",
            RuntimeWarning,
            stacklevel=2,
        )
    for name in missing:
        os.environ[name] = settings[name]
    _keep_freed_memory()


def import_paddle() -> None:
    """Import paddle without the note on OMP_NUM_THREADS that it prints at every start."""
    dropped = io.StringIO()
    with contextlib.redirect_stderr(dropped):
        import paddle  # noqa: F401
    # paddle gives the root logger a handler that would drop all later warnings
    for handler in [one for one in logging.root.handlers if getattr(one, "stream", None) is dropped]:
        logging.root.removeHandler(handler)


def physical_cores() -> int:
    """Number of physical cores this process may use; of logical cores if the system does not report them."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    known = [one for one in processors() if {"processor", "physical id", "core id"} <= one.keys()]
    cores = {(one["physical id"], one["core id"]) for one in known if int(one["processor"]) in usable}
    return len(cores) or len(usable)


def machine_in_words() -> str:
    """Processor, Python and Paddle, to record with measurements."""
    import paddle

    names = [one["model name"] for one in processors() if "model name" in one]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, Python {platform.python_version()}, paddlepaddle {paddle.__version__}"


def processors() -> list[dict[str, str]]:
    """The fields that Linux reports for each logical processor; empty on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            blocks = file.read().split("\n\n")
    except OSError:
        return []
    lines = [[line.partition(":") for line in block.splitlines() if ":" in line] for block in blocks]
    return [{name.strip(): value.strip() for name, _, value in block} for block in lines if block]


def processor_flags() -> set[str]:
    """Linux's names of the instructions that the first processor has."""
    return {flag for one in processors()[:1] for flag in one.get("flags", "").split()}


def _keep_freed_memory() -> None:
    """Keep glibc from returning large freed blocks to the system, whose pages the next step would fault in again."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_MMAP_MAX, 0)
            libc.mallopt(_M_TRIM_THRESHOLD, -1)  # never


def lazy_names(package: str, names: dict[str, list[str]]) -> tuple[Callable, Callable, list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose ``names``, by its modules, load at first use.

    Type checkers, which do not run this, read the same imports under ``if TYPE_CHECKING:``.
    """
    module_of = {name: module for module, of_module in names.items() for name in of_module}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _paddle_quieted():
            value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*module_of, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return load, listed, sorted(module_of)


def quiet_paddle() -> None:
    """Ignore the warnings of Paddle, PaddleNLP and jieba about ccache and setuptools when they are imported, and
    Paddle's log of static graphs; ``GLOG_minloglevel`` is kept if it is set already."""
    for message in _NOTES:
        warnings.filterwarnings("ignore", message=message)
    os.environ.setdefault(_LOG_LEVEL, "2")


@contextlib.contextmanager
def _paddle_quieted() -> Iterator[None]:
    """:func:`quiet_paddle` while paddle is imported within the block; afterwards the process is as it was before."""
    if "paddle" in sys.modules:
        yield
        return
    had_level = _LOG_LEVEL in os.environ
    with warnings.catch_warnings():
        quiet_paddle()
        try:
            yield
        finally:
            if not had_level:
                del os.environ[_LOG_LEVEL]
