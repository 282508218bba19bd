"""Settings of the process."""

import io
import os
import platform
import subprocess
import sys
import warnings

import pytest

from paddle_rope import prepare_process
from paddle_rope.machine import physical_cores
from tests.conftest import REPOSITORY

SETTINGS = ("OMP_NUM_THREADS", "FLAGS_use_stride_kernel", "MKL_DEBUG_CPU_TYPE")
CORES = "\n".join(f"processor\t: {i}\nphysical id\t: 0\ncore id\t\t: {i // 2}\n" for i in range(8))


def pretend(monkeypatch, content, cpus=(0, 1, 2)):
    """Linux tells ``content`` of the processors, of which the process may use ``cpus``; None: it tells nothing."""

    def opened(*_, **__):
        if content is None:
            raise FileNotFoundError
        return io.StringIO(content)

    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))


@pytest.mark.parametrize("content, cpus, cores", [
    *((CORES, range(8), 4), (CORES, range(3), 2), (CORES, {1, 2, 5}, 3)),
    *(("", range(3), 3), ("processor: 0\n", range(3), 3), (None, {1}, 1)),
])  # fmt: skip
def test_two_threads_of_a_core_count_once_where_the_system_tells(monkeypatch, content, cpus, cores):
    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))
    pretend(monkeypatch, content, cpus)
    assert physical_cores() == cores


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc alone")
def test_memory_that_was_freed_is_used_again_without_page_faults():
    code = (
        "import resource, numpy as np\n"
        "from paddle_rope import prepare_process\n"
        "prepare_process()\n"
        "for _ in range(3):\n"
        "    np.ones(8 << 20)\n"  # 64 MB, more than glibc keeps
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    _, second, third = map(int, done.stdout.split())
    assert third - second < 100


AVX2 = "fpu avx avx2 bmi2"


@pytest.mark.parametrize("vendor, flags, expected", [
    ("AuthenticAMD", AVX2, "5"), ("AuthenticAMD", "fpu avx", None), ("GenuineIntel", AVX2, None),
])  # fmt: skip
def test_settings_follow_the_processor_unless_they_are_set_and_warn_if_late(monkeypatch, vendor, flags, expected):
    pretend(monkeypatch, f"processor\t: {0}\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n")
    for name in SETTINGS:
        monkeypatch.setenv(name, "9")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare_process()
    assert [os.environ[name] for name in SETTINGS] == ["9", "9", "9"]
    for name in SETTINGS:
        monkeypatch.delenv(name)
    with pytest.warns(RuntimeWarning, match="paddle is imported already: OMP_NUM_THREADS, FLAGS_use_stride_kernel"):
        prepare_process()
    assert [os.environ.get(name) for name in SETTINGS] == [str(physical_cores()), "0", expected]
