"""The native operators, built once for the tests of this machine and in use in this folder alone."""

import os

import pytest

from paddle_rope.native.build import build, compiler
from paddle_rope.native.library import VARIABLE, library
from paddle_rope.native.products import DECISION, why_no_bfloat16


@pytest.fixture(scope="module", autouse=True)
def built():
    """Builds the operators; without a C++ compiler there is nothing to test."""
    if compiler() is None:
        pytest.skip("no C++ compiler here, so no native operators")
    before = os.environ.pop(VARIABLE, None)
    build()
    library.cache_clear()
    assert library() is not None
    yield
    if before is not None:
        os.environ[VARIABLE] = before
    library.cache_clear()


@pytest.fixture
def has_bfloat16(monkeypatch):
    """Skips where the processor does not multiply bfloat16; where it does, ``--bf16`` is in bfloat16, fast or slow."""
    why = why_no_bfloat16()
    monkeypatch.setenv(DECISION, "1")
    if why is not None:
        pytest.skip(f"no products in bfloat16: {why}")
