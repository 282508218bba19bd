"""The commands of this environment, for messages that show a command to paste."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def own_command() -> str:
    """The command that calls this command line again, quoted for a shell: ``paddle-rope`` if the search path finds the
    running installation, else the path of its script, or ``python -m paddle_rope`` with the running Python."""
    return _command("paddle-rope", "paddle_rope")


def visualdl_command() -> str:
    """The command that calls VisualDL in the same environment."""
    return _command("visualdl", "visualdl.server.app")


def quoted(path: os.PathLike) -> str:
    """A path, quoted for a shell."""
    return shlex.quote(str(path))


def _command(script, module):
    path = Path(sys.executable).with_name(script)
    return _program(path) if path.is_file() else f"{_program(Path(sys.executable))} -m {module}"


def _program(path):
    """Name of a program if the search path finds it; else its path, relative if it is below the working folder."""
    path, here = Path(os.path.abspath(path)), Path.cwd()  # not resolved: the Python of an environment is a link
    found = shutil.which(path.name)
    if found is not None and Path(os.path.abspath(found)) == path:
        return path.name
    return quoted(path.relative_to(here) if path.is_relative_to(here) else path)
