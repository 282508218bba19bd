"""Folders, or files, that one process at a time works on."""

import contextlib
import os

try:
    import fcntl
except ImportError:  # Windows: two processes are not kept apart there
    fcntl = None


@contextlib.contextmanager
def locked(path):
    """Whether this process has the path for itself until the end of the block; a process that dies lets go of it."""
    handle = os.open(path if fcntl else os.devnull, os.O_RDONLY)
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)
