"""The compiled operators as functions of a library, compiled once per machine into the user's cache folder."""

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor
from paddle.base import core
from paddle.base.framework import EagerParamBase

from paddle_rope.machine import processor_flags, processors

VARIABLE = "PADDLE_ROPE_NATIVE"
_LEVELS = 1 << 32  # number of values of the 32-bit random numbers for dropout
SOURCES = Path(__file__).parent / "csrc"
_LIBRARIES = Path(paddle.__file__).parent / "libs"  # shipped with Paddle
COMPILERS = ("g++", "clang++", "c++")
# No -ffast-math, which would make the whole process flush subnormal numbers; the last two let loops be vectorized.
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math")
# Tried in turn until one compiles: a compiler may lack the flag for its own processor, or OpenMP.
MORE_FLAGS = (("-march=native", "-fopenmp"), ("-mcpu=native", "-fopenmp"), ("-fopenmp",), ("-fopenmp-simd",))


def library() -> Any:
    """The shared library, a ``ctypes.CDLL``; None for the reason that :func:`state_in_words` gives."""
    return loaded()[0]


def state_in_words() -> str:
    """Whether the operators are used on this machine and, if not, why; in one line."""
    return f"native operators: {loaded()[1]}"


@functools.cache
def loaded() -> tuple[Any, str]:
    """The library and its path, or None and the reason; files that other users may have written are not loaded."""
    if os.environ.get(VARIABLE) == "0":
        return None, f"off, {VARIABLE}=0"
    try:
        path = library_path()
    except RuntimeError:
        return None, "none, the user has no home folder to keep them in"
    if not path.is_file():
        if compiler() is None:
            return None, "none, no C++ compiler found; everything works without them, slower"
        return None, "not built; python -m paddle_rope.native builds them"
    problem = foreign(path)
    if problem is None:
        try:
            return _load(path), str(path)
        except (OSError, AttributeError):  # not a library, or not ours
            problem = f"{path} cannot be loaded, or this Paddle has no libmklml_intel.so"
    return None, f"none, {problem}; python -m paddle_rope.native builds them again after you delete it"


def _load(path):
    """The library at a path, using the matrix products of Paddle's own libraries, in bfloat16 if oneDNN has them."""
    found: Any = ctypes.CDLL(str(path))
    products = ctypes.CDLL(str(_LIBRARIES / "libmklml_intel.so"))
    found.set_sgemm(ctypes.cast(products.cblas_sgemm, ctypes.c_void_p))
    found.has_bfloat16 = False
    for one in _LIBRARIES.glob("libdnnl.so*"):
        with contextlib.suppress(OSError):
            found.dnnl = ctypes.c_void_p(ctypes.CDLL(str(one))._handle)
            found.has_bfloat16 = bool(found.set_dnnl(found.dnnl, int("amx_bf16" in processor_flags())))
    return found


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library with contiguous tensors and arrays, None, texts, integers and floats. Of integers,
    which are passed as 64 bits, a narrower parameter reads the low ones."""
    getattr(library(), name)(*(_IN_C[type(one)](one) for one in arguments))


def _pointer(x):
    return ctypes.c_void_p(x.data_ptr())


_IN_C: dict[type, Any] = {
    Tensor: _pointer,
    EagerParamBase: _pointer,
    np.ndarray: lambda x: ctypes.c_void_p(x.ctypes.data),
    str: lambda x: ctypes.c_char_p(x.encode()),
    int: ctypes.c_int64,
    float: ctypes.c_float,
    type(None): lambda _: None,
}


def contiguous(tensor: Tensor | None) -> Tensor | None:
    """The tensor, copied if it is not contiguous."""
    return tensor if tensor is None or tensor.is_contiguous() else tensor.contiguous()


def dropout_arguments(p: float) -> tuple[int, int]:
    """Threshold and seed of a dropout with probability p < 1."""
    threshold = min(round(p * _LEVELS), _LEVELS - 1)
    return threshold, random_seed() if threshold else 0


def random_seed() -> int:
    """The next number, below 2^64, of Paddle's generator for the CPU, which ``paddle.seed`` seeds."""
    return core.default_cpu_generator().random()


# ---- compilation


class BuildError(Exception):
    """The library could not be built; the message gives the reason."""


def compiler() -> str | None:
    """The command of a C++ compiler: ``CXX`` if it is set, or one of :data:`COMPILERS`; None if there is none."""
    given = os.environ.get("CXX", "").strip()
    return next((name for name in ([given] if given else COMPILERS) if shutil.which(shlex.split(name)[0])), None)


@functools.cache
def library_path() -> Path:
    """The path of the library for this machine, built or not; its name depends on the sources, Paddle and processor.
    Raises RuntimeError if the user has no home folder."""
    hashed = hashlib.sha256()
    for part in (*FLAGS, paddle.__version__, _LIBRARIES, platform.platform(), platform.machine()):
        hashed.update(f"{part}\n".encode())
    for one in processors()[:1]:
        hashed.update(f"{one.get('model name')} {one.get('flags')}\n".encode())
    for source in _files("*.h", "*.cc"):
        hashed.update(source.name.encode() + source.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(cache) if os.path.isabs(cache) else Path("~/.cache").expanduser()
    return folder / "paddle_rope" / f"native-{hashed.hexdigest()[:16]}.so"


def foreign(path: Path) -> str | None:
    """Why other users could replace a path, in words; None if only this user and root can write there."""
    for part in _passed_through(path):
        status = part.lstat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{part} belongs to another user"
        is_shared = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX  # as /tmp: owners keep their files
        is_writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)
        if is_writable and not is_shared:
            return f"others may write to {part}"
    return None


def _passed_through(path):
    """Yield every folder and link that the look-up of a path passes through, links of links too, and its end."""
    place, names = Path(), [*reversed(path.absolute().parts)]
    while names:
        name = names.pop()
        one = place.parent if name == os.pardir else place / name  # of an absolute path the first name is /
        yield one
        if one.is_symlink():
            names += reversed(Path(os.readlink(one)).parts)
        else:
            place = one


def is_missing() -> bool:
    """Whether the library is wanted and could be built, but has not been."""
    with contextlib.suppress(RuntimeError):  # nowhere to keep it
        return os.environ.get(VARIABLE) != "0" and not library_path().is_file() and compiler() is not None
    return False


def build() -> None:
    """Build :func:`library_path` unless it exists and others cannot write to it; do nothing without a compiler. Raises
    BuildError if the compiler fails, or the cache folder cannot be written, or others may write to it."""
    try:
        path, program = library_path(), compiler()
    except RuntimeError:  # nowhere to keep it
        return
    if program is None or _is_built(path):
        return
    loaded.cache_clear()
    try:
        _make_private(path.parent)
        if problem := foreign(path.parent):
            raise BuildError(f"{problem}; remove that permission (chmod go-w), or set XDG_CACHE_HOME")
        with _alone_in(path.parent), tempfile.TemporaryDirectory(dir=path.parent) as folder:
            if _is_built(path):  # by another process, meanwhile
                return
            made = Path(folder) / path.name
            _compile(program, made)
            made.chmod(0o700)
            with open(made, "rb") as file:
                os.fsync(file.fileno())
            os.replace(made, path)
    except OSError as error:
        raise BuildError(f"{path}: cannot be written ({error})") from None


def _is_built(path):
    return path.is_file() and foreign(path) is None


@contextlib.contextmanager
def _alone_in(folder):
    """Wait until no other process is in this block with the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_private(folder):
    """Create a folder and its parents for this user alone, or make this user's folder unwritable for others."""
    if folder.is_dir():
        status = folder.stat()
        if status.st_uid == os.geteuid():
            folder.chmod(stat.S_IMODE(status.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
        return
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _compile(program, output):
    sources = _files("*.cc")
    objects = [f"{source.stem}.o" for source in sources]
    for more in MORE_FLAGS:
        for step in ([*FLAGS, *more, "-c", *sources], ["-shared", *objects, *_openmp(more), "-o", output]):
            command = [*shlex.split(program), *map(str, step)]
            done = subprocess.run(command, cwd=output.parent, capture_output=True, text=True, errors="replace")
            if done.returncode:
                break
        else:
            return
    failed = done.stderr or "no message"
    lines = [line for line in failed.splitlines() if "error" in line] or failed.splitlines()
    raise BuildError(f"{program} cannot compile the native operators: {lines[0].strip()[:300]}")


def _openmp(flags):
    """Linker arguments for Paddle's own OpenMP, to share its threads; a second thread pool would wait for the first."""
    if "-fopenmp" not in flags:
        return ()
    shipped = _LIBRARIES / "libiomp5.so"
    return (str(shipped), f"-Wl,-rpath,{shipped.parent}") if shipped.is_file() else ("-fopenmp",)


def _files(*patterns):
    return sorted(path for pattern in patterns for path in SOURCES.glob(pattern))
