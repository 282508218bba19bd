"""Packages whose names are loaded when they are first asked for (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of a package.

    Args:
        package: its ``__name__``.
        homes: from each module to the names that are loaded from it.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, sorted(home_of)
