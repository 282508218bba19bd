"""A writable home folder: paddle, PaddleNLP and VisualDL create folders in it when they are imported."""

import atexit
import os
import shutil
import tempfile


def ensure_home() -> None:
    """Set ``HOME`` of this process and its children to a temporary folder if the home folder is missing or not
    writable; it is removed when the process ends. A usable home folder stays as it is, and nothing is created in it."""
    home = os.path.expanduser("~")
    made = [os.path.join(home, name) for name in (".paddlenlp", ".visualdl", ".cache/paddle")]
    if os.name != "posix" or (os.path.isabs(home) and all(map(_can_be_made, made))):
        return
    try:
        temporary = tempfile.mkdtemp(prefix="paddle_rope_home_")
    except OSError:  # there is no place for one either
        return
    atexit.register(_remove, temporary, os.getpid())
    os.environ["HOME"] = temporary


def _can_be_made(folder):
    """Whether ``folder`` is, or can become, a folder to write into."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _remove(folder, process):
    if os.getpid() == process:  # not in a copy of the process that os.fork has made
        shutil.rmtree(folder, ignore_errors=True)
