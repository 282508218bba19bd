"""Paddle's notes that no user can act on."""

import os
import warnings

_NOTES = ("No ccache found", "Setuptools is replacing distutils", "pkg_resources is deprecated")


def quiet_paddle() -> None:
    """Ignore the warnings of Paddle, PaddleNLP and jieba about ccache and setuptools when they are imported, and
    Paddle's log of static graphs; a ``GLOG_minloglevel`` that is set stays. Called when this library is imported."""
    for message in _NOTES:
        warnings.filterwarnings("ignore", message=message)
    os.environ.setdefault("GLOG_minloglevel", "2")
