"""The command that called this process, for messages that show a command to paste."""

import os
import shlex
import shutil
import sys
from pathlib import Path

COMMAND = "paddle-rope"
PACKAGE = "paddle_rope"


def own_command() -> str:
    """The command that calls this command line again, quoted for a shell: ``paddle-rope`` if the search path finds the
    running installation, else the path of its script, or ``python -m paddle_rope`` with the running Python."""
    called = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    as_module = f"{_python()} -m {PACKAGE}"
    if called.parts[-2:] == (PACKAGE, "__main__.py"):
        return as_module
    script = called if called.name == COMMAND else Path(sys.executable).with_name(COMMAND)
    return _program(script, (COMMAND,)) if script.is_file() else as_module


def visualdl_command() -> str:
    """The command that calls VisualDL in the same environment."""
    script = Path(sys.executable).with_name("visualdl")
    return _program(script, ("visualdl",)) if script.is_file() else f"{_python()} -m visualdl.server.app"


def quoted(path: os.PathLike) -> str:
    """A path, quoted for a shell."""
    return shlex.quote(str(path))


def _python():
    return _program(Path(sys.executable), ("python", "python3"))


def _program(path, names):
    """The one of ``names`` by which the search path finds a program; else its path, relative if it is below here."""
    path = Path(os.path.abspath(path))  # not resolved: the Python of an environment is a link to another's
    for name in names:
        found = shutil.which(name)
        if found is not None and Path(os.path.abspath(found)) == path:
            return name
    here = Path.cwd()
    return quoted(path.relative_to(here) if path.is_relative_to(here) else path)
