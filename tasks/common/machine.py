"""Settings of the process that must stand before paddle is imported."""

import contextlib
import ctypes
import io
import logging
import os
import platform
import sys
import warnings
import zlib  # noqa: F401  paddle 2.6.2 exports zlib symbols of its own: load the system's first

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_TRIM_THRESHOLD_BYTES = 1 << 30


def prepare_machine():
    """Give paddle the physical cores, and keep freed memory for the next step. A setting of the user's own stays."""
    # paddle sets OMP_NUM_THREADS=1 at import unless it is set
    os.environ.setdefault("OMP_NUM_THREADS", str(physical_cores()))
    # strided kernels copy transposed tensors slowly on CPU
    os.environ.setdefault("FLAGS_use_stride_kernel", "0")
    _keep_freed_memory()


def import_paddle():
    """Import paddle without what it prints at every start: notes on OMP_NUM_THREADS, ccache and setuptools."""
    for message in ("No ccache found", "Setuptools is replacing distutils"):
        warnings.filterwarnings("ignore", message=message)
    dropped = io.StringIO()
    with contextlib.redirect_stderr(dropped):
        import paddle  # noqa: F401
    # paddle gives the root logger a handler, which would drop all later warnings too
    for handler in [one for one in logging.root.handlers if getattr(one, "stream", None) is dropped]:
        logging.root.removeHandler(handler)


def physical_cores():
    """Number of physical cores this process may use; logical ones where the system does not tell."""
    logical = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            blocks = [block for block in file.read().split("\n\n") if "core id" in block]
    except OSError:
        return logical
    fields = [dict(line.split("\t", 1) for line in block.splitlines() if "\t" in line) for block in blocks]
    cores = {(field.get("physical id"), field.get("core id")) for field in fields}
    return min(logical, len(cores)) if cores else logical


def machine_in_words():
    """Processor, Python and Paddle, for what is measured here."""
    import paddle

    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"{processor}, Python {platform.python_version()}, paddlepaddle {paddle.__version__}"


def _keep_freed_memory():
    """glibc returns large blocks to the system when freed and faults their pages in again at the next step: do not."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_MMAP_MAX, 0)
            libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
