"""The native operators, built once for the tests of this machine."""

import paddle
import pytest

from paddle_rope.native.library import VARIABLE, compiler, library, loaded


@pytest.fixture(scope="module")
def native_operators():
    """Native operators compute in the tests of a module, whatever PADDLE_ROPE_NATIVE says: whether there are any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(VARIABLE, raising=False)
        loaded.cache_clear()
        assert (library() is None) == (compiler() is None)
        yield library() is not None
    loaded.cache_clear()


@pytest.fixture
def amp_as_on_gpu(monkeypatch):
    """Automatic mixed precision of level O2, which ``auto_cast`` does not switch on on a CPU: Paddle's tracer. In it
    ``amp_as_on_gpu(owner, name, ...)`` is the list of the levels at which these functions are called."""
    tracer, levels = paddle.base.framework._dygraph_tracer(), []
    monkeypatch.setattr(tracer, "_amp_level", paddle.base.core.AmpLevel.O2)
    monkeypatch.setattr(tracer, "_amp_dtype", "float16")

    def recorded(owner, name):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: levels.append(tracer._amp_level) or original(*given))
        return levels

    yield recorded
    assert tracer._amp_level == paddle.base.core.AmpLevel.O2
