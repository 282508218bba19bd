"""The native operators, built once for this machine."""

import pytest

from paddle_rope.native.build import build, compiler
from paddle_rope.native.library import library


@pytest.fixture(scope="session", autouse=True)
def built():
    """Builds the operators; without a C++ compiler, or turned off, there is nothing to test."""
    build()
    library.cache_clear()
    if library() is None:
        pytest.skip(f"no native operators here (compiler: {compiler()})")
