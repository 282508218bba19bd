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
_NEVER = -1


def prepare_machine():
    """Give paddle the cores and instructions there are, keep freed memory, print whatever the locale. A setting of
    the user's own stays."""
    # paddle sets OMP_NUM_THREADS=1 at import unless it is set
    os.environ.setdefault("OMP_NUM_THREADS", str(physical_cores()))
    if _is_amd_with_avx2():
        # paddle's matrix library, MKLML of 2019, takes SSE on processors of AMD unless told (5: AVX2);
        # github.com/PaddlePaddle/Paddle/issues/75760
        os.environ.setdefault("MKL_DEBUG_CPU_TYPE", "5")
    # strided kernels copy transposed tensors slowly on CPU
    os.environ.setdefault("FLAGS_use_stride_kernel", "0")
    _keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):  # what the locale cannot show is shown by its number
        if hasattr(stream, "reconfigure"):  # not where it is replaced by a stream of text
            stream.reconfigure(errors="backslashreplace")


def import_paddle():
    """Import paddle without what it prints at every start: notes on OMP_NUM_THREADS, ccache and setuptools; and
    let jieba import pkg_resources without one."""
    for message in ("No ccache found", "Setuptools is replacing distutils", "pkg_resources is deprecated"):
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
    cores = {(one["physical id"], one["core id"]) for one in _processors() if {"physical id", "core id"} <= one.keys()}
    return min(logical, len(cores)) if cores else logical


def machine_in_words():
    """Processor, Python and Paddle, for what is measured here."""
    import paddle

    names = [one["model name"] for one in _processors() if "model name" in one]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, Python {platform.python_version()}, paddlepaddle {paddle.__version__}"


def _is_amd_with_avx2():
    return any(
        one.get("vendor_id") == "AuthenticAMD" and "avx2" in one.get("flags", "").split() for one in _processors()
    )


def _processors():
    """list of dict: what Linux tells of each logical processor; empty where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            blocks = file.read().split("\n\n")
    except OSError:
        return []
    lines = [[line.partition(":") for line in block.splitlines() if ":" in line] for block in blocks]
    return [{name.strip(): value.strip() for name, _, value in block} for block in lines if block]


def _keep_freed_memory():
    """glibc returns large blocks to the system when freed and faults their pages in again at the next step: do not."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_MMAP_MAX, 0)
            libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
