"""Imports: public names that load at first use (PEP 562), and Paddle without notes that no user can act on."""

import ast
import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NOTES = ("No ccache found", "Setuptools is replacing distutils", "pkg_resources is deprecated")
_LOG_LEVEL = "GLOG_minloglevel"  # of Paddle's log of static graphs; read once, when paddle is imported


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package of this ``__name__`` and ``__file__``.

    They load at first use the names that it imports under ``if TYPE_CHECKING:``, where only type checkers see them.

    ``dir()``, and with it completion, shows these names, loaded or not, and names that begin with two underscores.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: node.module for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _paddle_quieted():
            value = getattr(importlib.import_module(str(module_of[name])), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*module_of, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return load, listed, sorted(module_of)


def quiet_paddle() -> None:
    """Ignore the warnings of Paddle, PaddleNLP and jieba about ccache and setuptools when they are imported, and
    Paddle's log of static graphs; a ``GLOG_minloglevel`` that is set stays."""
    for message in _NOTES:
        warnings.filterwarnings("ignore", message=message)
    os.environ.setdefault(_LOG_LEVEL, "2")


@contextlib.contextmanager
def _paddle_quieted() -> Iterator[None]:
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
