"""Print what is installed in addition to Paddle, and a remedy for what does not work together; exit status 2 then.

    .venv/bin/python tools/check_environment.py

The limits are read from pyproject.toml and requirements/. Only pip and the standard library are needed to name what is
missing.
"""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

PADDLE = {"paddlepaddle": "cpu", "paddlepaddle-gpu": "gpu"}  # each with the extra that installs it
# In a separate process, because a wrong library may end it with a signal.
TRY_PADDLE = (
    "import sys, zlib; sys.path.insert(0, sys.argv[1]); "
    "from paddle_rope.machine import import_paddle, prepare_process; "
    "prepare_process(); import_paddle(); import os, paddle; import paddlenlp.trainer, visualdl; "
    "from paddle_rope.native.library import state_in_words; print(state_in_words()); "
    "print(paddle.get_device(), os.environ['OMP_NUM_THREADS'])"
)


def requirements_of(extra, version):
    """The requirements of an extra, with the constraints of a version of Paddle, as objects of ``packaging``."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras[extra], *extras["train"]]
    constraints = REPOSITORY / f"requirements/paddle-{version}.txt"
    constrained = constraints.read_text(encoding="utf-8").splitlines() if constraints.is_file() else []
    names = {Requirement(line).name for line in lines}
    lines += [line for line in constrained if line and line[0] != "#" and line.partition("==")[0] not in PADDLE]
    found = [Requirement(line) for line in lines]
    wanted = [one for one in found if one.name != "paddle_rope" and (one.marker is None or one.marker.evaluate())]
    return [(one, one.name in names) for one in wanted]


def problems(version_of, environment):
    """What does not work together, each as (what is wrong, remedy).

    Args:
        version_of: function from the name of a package to its version, or None where it is not installed.
        environment: dict of the variables of the process.
    """
    found = []
    paddles = {name: version for name in PADDLE if (version := version_of(name))}
    if not paddles:
        found.append(("paddlepaddle is not installed", "bash tools/test.sh, or pip install -r requirements.txt"))
    if len(paddles) == 2:
        remedy = "pip uninstall -y paddlepaddle, then pip install --force-reinstall --no-deps paddlepaddle-gpu==2.6.2"
        found.append(("paddlepaddle and paddlepaddle-gpu are both installed, into the same folder", remedy))
    name, paddle = next(iter(paddles.items()), ("paddlepaddle", None))
    for requirement, is_needed in requirements_of(PADDLE[name], paddle):
        version, remedy = version_of(requirement.name), f'pip install "{requirement.name}{requirement.specifier}"'
        if version is None and is_needed and requirement.name not in PADDLE:
            found.append((f"{requirement.name} is not installed", remedy))
        elif version is not None and version not in requirement.specifier:
            expected = f"expected {requirement.specifier}"
            found.append((f"{requirement.name} {version} is installed, {expected} with paddle {paddle}", remedy))
    threads = environment.get("OMP_NUM_THREADS")
    if threads is not None and not re.fullmatch("[1-9][0-9]*", threads):
        what = f"OMP_NUM_THREADS: expected a number of threads, got {threads!r}"
        found.append((what, "export OMP_NUM_THREADS=1, or unset it: the default is all physical cores"))
    return found


def try_paddle(python=sys.executable, environment=None):
    """Import what training imports, in a separate process.

    Returns:
        (device, threads, a line on the native operators) as str, and None; or None, and what is wrong with the remedy.
    """
    command = [python, "-W", "ignore", "-c", TRY_PADDLE, str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if done.returncode == 0:
        native, last = done.stdout.splitlines()[-2:]
        return (*last.split(), native), None
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    errors = re.findall(r"^\s*([\w.]*(?:Error|Exception|Interrupt)\b.*)", done.stderr, re.MULTILINE)
    what = f"paddle and paddlenlp cannot be imported ({ended}): {errors[-1][:300] if errors else 'no message'}"
    return None, (what, "set up a new environment: bash tools/test.sh, or bash tools/test.sh --paddle 2.6.2")


def version_of(name):
    """The version of an installed package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main():
    """Print versions, device, threads and what does not work; returns the exit status."""
    print(f"Python {sys.version.split()[0]}, {sys.executable}")
    shown = [one.name for one, _ in requirements_of("cpu", "2.6.2")]
    for name in dict.fromkeys([*PADDLE, *shown, "onnxruntime"]):
        if (version := version_of(name)) is not None:
            print(f"{name} {version}")
    found = problems(version_of, os.environ)
    answer, problem = try_paddle()
    if answer:
        device, threads, native = answer
        print(f"device {device}, threads {threads}\n{native}")
    else:
        found.append(problem)
    if "2.6.2" in map(version_of, PADDLE):
        print("note: paddle 2.6.2 exports its own zlib symbols: import zlib, or paddle_rope, before paddle")
    for what, remedy in found:
        print(f"error: {what}\n  remedy: {remedy}", file=sys.stderr)
    if not found:
        print("Everything works together.")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
