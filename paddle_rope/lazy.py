"""Packages whose names are loaded when they are first asked for (PEP 562)."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from paddle_rope.quiet import paddle_quieted


def lazy_names(package: str, names: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``dir()``, and with it completion, shows what is public: these names, loaded or not, and those that begin with two
    underscores.

    Args:
        package: its ``__name__``.
        names: from each of its modules to the names that are loaded from it, between spaces.
    """
    home_of = {name: f"{package}.{module}" for module, words in names.items() for name in words.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with paddle_quieted():
            value = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*home_of, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return load, listed, sorted(home_of)
