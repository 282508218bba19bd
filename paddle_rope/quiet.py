"""Paddle's notes that no user can act on."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

_NOTES = ("No ccache found", "Setuptools is replacing distutils", "pkg_resources is deprecated")
_LOG_LEVEL = "GLOG_minloglevel"  # of Paddle's log of static graphs; read once, when paddle is imported


def quiet_paddle() -> None:
    """Ignore the warnings of Paddle, PaddleNLP and jieba about ccache and setuptools when they are imported, and
    Paddle's log of static graphs; a ``GLOG_minloglevel`` that is set stays."""
    for message in _NOTES:
        warnings.filterwarnings("ignore", message=message)
    os.environ.setdefault(_LOG_LEVEL, "2")


@contextlib.contextmanager
def paddle_quieted() -> Iterator[None]:
    """:func:`quiet_paddle` while paddle is imported within the block; afterwards the process is as it was before."""
    if "paddle" in sys.modules:
        yield
        return
    had_level = _LOG_LEVEL in os.environ
    with warnings.catch_warnings():
        quiet_paddle()
        try:
            yield
        finally:
            if not had_level:
                del os.environ[_LOG_LEVEL]
