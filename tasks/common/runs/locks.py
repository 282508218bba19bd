"""Folders that one process at a time works on."""

import contextlib
import os

try:
    import fcntl
except ImportError:  # Windows: two processes are not kept apart there
    fcntl = None


@contextlib.contextmanager
def locked(folder):
    """Whether this process has the folder for itself until the end of the block; a process that dies lets go of it."""
    handle = os.open(folder, os.O_RDONLY) if fcntl else os.open(os.devnull, os.O_RDONLY)
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)
