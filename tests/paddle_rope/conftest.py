"""The native operators, built once for the tests of this machine."""

import os

import paddle
import pytest

from paddle_rope.native.library import VARIABLE, compiler, library, loaded


@pytest.fixture(scope="module")
def native_operators():
    """Native operators compute in the tests of a module, whatever PADDLE_ROPE_NATIVE says: whether there are any."""
    before = os.environ.pop(VARIABLE, None)
    loaded.cache_clear()
    assert (library() is None) == (compiler() is None)
    yield library() is not None
    if before is not None:
        os.environ[VARIABLE] = before
    loaded.cache_clear()


@pytest.fixture
def amp_as_on_gpu():
    """Automatic mixed precision of level O2, which ``auto_cast`` does not switch on on a CPU: Paddle's tracer."""
    tracer = paddle.base.framework._dygraph_tracer()
    before = tracer._amp_level, tracer._amp_dtype
    tracer._amp_level, tracer._amp_dtype = paddle.base.core.AmpLevel.O2, "float16"
    yield tracer
    tracer._amp_level, tracer._amp_dtype = before
