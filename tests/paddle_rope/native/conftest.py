"""The native operators are in use in this folder."""

import pytest

from paddle_rope.native.products import DECISION, why_no_bfloat16


@pytest.fixture(scope="module", autouse=True)
def built(native_operators):
    """Without a C++ compiler there is nothing to test."""
    if not native_operators:
        pytest.skip("no C++ compiler here, so no native operators")


@pytest.fixture
def has_bfloat16(monkeypatch):
    """Skips where the processor does not multiply bfloat16; where it does, ``--bf16`` is in bfloat16, fast or slow."""
    why = why_no_bfloat16()
    monkeypatch.setenv(DECISION, "1")
    if why is not None:
        pytest.skip(f"no products in bfloat16: {why}")
