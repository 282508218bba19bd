"""What is installed beside Paddle, what does not work together, and the remedy. Exit status 2 where something does not
work.

    .venv/bin/python tools/check_environment.py

It needs the standard library alone, so that it answers where
nothing else does. The limits, and their reasons, are read from the requirements and constraints of the repository.
"""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

PADDLE = ("paddlepaddle", "paddlepaddle-gpu")
SHARED = ("requirements-common.txt", "requirements-cpu.txt")
BUILT_ON_NUMPY = ("scipy", "scikit-learn", "pandas", "pyarrow", "matplotlib")
# In a process of its own: a wrong library may end it with a signal.
TRY_PADDLE = (
    "import sys, zlib; sys.path.insert(0, sys.argv[1]); "
    "from paddle_rope.machine import import_paddle, prepare_process; "
    "prepare_process(); import_paddle(); import os, paddle; import paddlenlp.trainer, visualdl; "
    "from paddle_rope.native.library import state_in_words; print(state_in_words()); "
    "print(paddle.get_device(), os.environ['OMP_NUM_THREADS'])"
)
COMPARE = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "==": lambda one, other: one == other,
}


class Limit(NamedTuple):
    """A line of a file of requirements: a package, its bounds such as ``<2`` and the comment that gives the reason."""

    name: str
    bounds: str
    reason: str

    @property
    def remedy(self):
        return f'pip install "{self.name}{self.bounds}"'

    def allows(self, version):
        found = re.findall(r"([<>=]=?)\s*([\w.]+)", self.bounds)
        return all(COMPARE[sign](*_alike(version, bound)) for sign, bound in found)


def read_limits(path):
    """list of :class:`Limit`, each with the comment above it and above its neighbors; a blank line ends that."""
    limits, reason, in_comment = [], [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = [*(reason if in_comment else []), line.lstrip("# ")]
            in_comment = True
            continue
        in_comment = False
        match = re.match(r"([\w.-]+)\s*([<>=][\w.<>=, ]*)?", line)
        if match and not line.startswith("-"):
            limits.append(Limit(match[1], (match[2] or "").strip(), " ".join(reason)))
        elif not line.strip():
            reason = []
    return limits


def problems(version_of, requires_of, environment, repository=REPOSITORY):
    """What does not work together, each as (what is wrong, remedy).

    Args:
        version_of: function from a package's name to its version, or None where it is not installed.
        requires_of: function from a package's name to what it requires, as lines of its metadata.
        environment: dict of the variables of the process.
        repository: where the files of requirements and constraints are.
    """
    found = []
    paddles = {name: version for name in PADDLE if (version := version_of(name))}
    if not paddles:
        found.append(
            (
                "paddlepaddle is not installed",
                "bash tools/test.sh, or pip install -r requirements.txt",
            )
        )
    if len(paddles) > 1:
        remedy = "pip uninstall -y paddlepaddle, then pip install --force-reinstall --no-deps paddlepaddle-gpu==2.6.2"
        found.append(("paddlepaddle and paddlepaddle-gpu are both installed, into the same folder", remedy))
    limits = [limit for name in SHARED for limit in read_limits(repository / name)]
    for limit in limits:
        if limit.name not in PADDLE and version_of(limit.name) is None:
            found.append((f"{limit.name} is not installed", limit.remedy))
    for version in sorted(set(paddles.values())):
        constraints = repository / f"constraints-{version}.txt"
        limits += read_limits(constraints) if constraints.is_file() else []
    for limit in limits:
        version = version_of(limit.name)
        if version is not None and not limit.allows(version):
            reason = f": {limit.reason}" if limit.reason else ""
            what = f"{limit.name} {version} is installed, not {limit.bounds}{reason}"
            found.append((what, limit.remedy))
    numpy = version_of("numpy")
    for name in BUILT_ON_NUMPY:
        # a line for each range of Python: one of them is for this one
        bounds = [match[1] for line in requires_of(name) if (match := re.match(r"numpy\s*([<>=][^;]*)", line))]
        if numpy and bounds and not any(Limit("numpy", one, "").allows(numpy) for one in bounds):
            what = f"{name} {version_of(name)} wants numpy{bounds[0].strip()}, and numpy {numpy} is installed"
            found.append((what, f'pip install --force-reinstall "{name}" "numpy=={numpy}"'))
    threads = environment.get("OMP_NUM_THREADS")
    if threads is not None and not (threads.isascii() and threads.isdigit() and int(threads)):
        what = f"OMP_NUM_THREADS={threads!r} is no number of threads"
        found.append((what, "export OMP_NUM_THREADS=1, or unset it: the default is all physical cores"))
    return found


def try_paddle(python=sys.executable, environment=None):
    """Import what training imports, in a process of its own.

    Returns:
        (device, threads, a line on the native operators) as str, and None; or None, and what is wrong with the remedy.
    """
    command = [python, "-W", "ignore", "-c", TRY_PADDLE, str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if done.returncode == 0:
        native, last = done.stdout.splitlines()[-2:]
        return (*last.split(), native), None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    ended = f"exit status {done.returncode}"
    if done.returncode < 0:
        ended = f"signal {-done.returncode}"
    shown = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)), "")
    remedy = "set up a new environment: bash tools/test.sh (paddle 2.6.2: bash tools/test.sh --paddle 2.6.2)"
    shown = shown[:300] or "no message"
    what = f"paddle and paddlenlp cannot be imported ({ended}): {shown}"
    return None, (what, remedy)


def version_of(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def requires_of(name):
    return (metadata.requires(name) if version_of(name) else None) or []


def main():
    """Print versions, device, threads and what does not work; returns the exit status."""
    print(f"Python {sys.version.split()[0]}, {sys.executable}")
    names = [*PADDLE, *(limit.name for name in SHARED for limit in read_limits(REPOSITORY / name))]
    names += [limit.name for path in REPOSITORY.glob("constraints-*.txt") for limit in read_limits(path)]
    for name in dict.fromkeys([*names, *BUILT_ON_NUMPY, "onnxruntime"]):
        if (version := version_of(name)) is not None:
            print(f"{name} {version}")
    found = problems(version_of, requires_of, os.environ)
    answer, problem = try_paddle()
    if answer:
        print(f"device {answer[0]}, threads {answer[1]}")
        print(answer[2])
    else:
        found.append(problem)
    if "2.6.2" in map(version_of, PADDLE):
        print("note: paddle 2.6.2 exports zlib symbols of its own: import zlib, or paddle_rope, before paddle")
    for what, remedy in found:
        print(f"error: {what}\n  remedy: {remedy}", file=sys.stderr)
    if not found:
        print("Everything works together.")
    return 2 if found else 0


def _alike(*versions):
    """Release numbers of versions as lists of the same length: 2.0 is 2."""
    numbers = [[int(part) for part in re.match(r"\d+(\.\d+)*", version)[0].split(".")] for version in versions]
    size = max(map(len, numbers))
    return [number + [0] * (size - len(number)) for number in numbers]


if __name__ == "__main__":
    sys.exit(main())
