"""Every variant of the rotation at position one million, in half precision and under automatic mixed precision."""

import numpy as np
import paddle
import pytest
from paddle import nn

import paddle_rope.rotary
from paddle_rope import RotaryPositionEmbedding
from paddle_rope.attention.feature_maps import OrthogonalRandomFeatures
from tests.rotary_loops import HEAD_DIM, every_variant, expected_of, random_tensor


@every_variant
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float16", 1e-3), ("bfloat16", 8e-3)])
@pytest.mark.parametrize("as_positions", [False, True], ids=["offset", "positions"])
def test_phases_are_right_at_position_one_million(variant, dtype, tolerance, as_positions):
    million = 1_000_000
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    ones = paddle.ones([1, HEAD_DIM], dtype="float32").astype(dtype)
    where = {"positions": paddle.to_tensor([million])} if as_positions else {"offset": million}
    if rotary.rotary_dim == HEAD_DIM and dtype == "float32":  # (1, 0) becomes (cos, sin)
        pairs = np.arange(HEAD_DIM).reshape((-1, 2) if rotary.layout == "interleaved" else (2, -1))
        ones[0, paddle.to_tensor(pairs[:, 1] if rotary.layout == "interleaved" else pairs[1])] = 0.0
    rotated = rotary(ones, **where)
    assert rotated.dtype == ones.dtype
    expected = expected_of(rotary, ones.astype("float32"), [million])
    error = np.abs(rotated.astype("float32").numpy() - expected)
    assert (error <= tolerance * np.maximum(1, np.abs(expected))).all()


@pytest.fixture
def amp_as_on_gpu():
    """Automatic mixed precision of level O2, which ``auto_cast`` does not switch on on a CPU."""
    tracer = paddle.base.framework._dygraph_tracer()
    before = tracer._amp_level
    tracer._amp_level = paddle.base.core.AmpLevel.O2
    yield tracer
    tracer._amp_level = before


@every_variant
def test_the_arithmetic_is_not_under_automatic_mixed_precision(variant, amp_as_on_gpu, monkeypatch):
    seen = []
    for name in ("_turn_interleaved", "_turn_half"):
        turn = getattr(paddle_rope.rotary, name)

        def recorded(*args, turn=turn):
            seen.append(amp_as_on_gpu._amp_level)
            return turn(*args)

        monkeypatch.setattr(paddle_rope.rotary, name, recorded)
    RotaryPositionEmbedding(HEAD_DIM, **variant)(random_tensor(3, HEAD_DIM))
    assert seen == [paddle.base.core.AmpLevel.O0]
    assert amp_as_on_gpu._amp_level == paddle.base.core.AmpLevel.O2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("by", ["amp", "to a name", "to a dtype"])
def test_theta_and_random_features_stay_float32_where_the_model_becomes_half(dtype, by):
    from paddle.amp.auto_cast import amp_initialize  # what paddle.amp.decorate runs on a GPU, level O2

    model = nn.Sequential(nn.Linear(6, 6), RotaryPositionEmbedding(6, learned=True), OrthogonalRandomFeatures(6))
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    if by == "amp":
        amp_initialize([model], dtype=dtype, excluded_layers=None)
    else:
        model.to(dtype=dtype if by == "to a name" else getattr(paddle, dtype))
    assert model[0].weight.dtype == getattr(paddle, dtype)
    for name in ("1.theta", "2.projection"):
        kept = model.state_dict()[name]
        assert kept.dtype == paddle.float32
        np.testing.assert_array_equal(kept.numpy(), before[name])
