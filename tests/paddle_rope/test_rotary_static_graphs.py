"""Rotation in static graphs: any length, batch, precision and positions, with gradients."""

import paddle
import pytest
from paddle import nn
from paddle.static import InputSpec

from paddle_rope import RotaryPositionEmbedding
from tests.helpers.comparison import assert_close, assert_same, random_tensor
from tests.paddle_rope.rotary_loops import HEAD_DIM, VARIANTS, every_variant, expected_of


class Rotating(nn.Layer):
    """A rotation, to save."""

    def __init__(self, rotary):
        super().__init__()
        self.rotary = rotary

    def forward(self, x, positions=None):
        return self.rotary(x, positions=positions)


def saved_and_loaded(layer, path, *specs):
    static = paddle.jit.to_static(layer, input_spec=list(specs), full_graph=True)
    paddle.jit.save(static, str(path / "layer"))
    return paddle.jit.load(str(path / "layer"))


class NearAndFar(nn.Layer):
    """Two tensors, the second at position one million and turned back: two rotations in one graph, to save once."""

    def __init__(self, rotary):
        super().__init__()
        self.rotary = rotary

    def forward(self, near, far):
        return self.rotary(near), self.rotary(far, offset=1_000_000, inverse=True)


@pytest.mark.equation("1.16")
@every_variant
def test_saved_graphs_rotate_any_length_and_batch_also_at_position_one_million(variant, tmp_path):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    specs = InputSpec([None, None, 3, HEAD_DIM], "float32"), InputSpec([None, None, HEAD_DIM], "float64")
    loaded = saved_and_loaded(NearAndFar(rotary), tmp_path, *specs)
    far = random_tensor(2, 3, HEAD_DIM)
    expected = expected_of(rotary, far, range(1_000_000, 1_000_003), inverse=True)
    for batch, seq in ((1, 1), (2, 7), (1, 1301)):
        near = random_tensor(batch, seq, 3, HEAD_DIM, dtype="float32")
        rotated, turned_back = loaded(near, far)
        assert_close(rotated, rotary(near), 2e-6)
        assert_close(turned_back, expected, 1e-8)


@pytest.mark.equation("1.16")
@pytest.mark.parametrize("dtype, unit", [("float32", 0), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
@pytest.mark.parametrize("axes, of_positions", [(1, "int64"), (2, "int64"), (2, "float32")])
def test_saved_graphs_take_positions_and_half_precision(dtype, unit, axes, of_positions, tmp_path):
    layer = Rotating(RotaryPositionEmbedding(HEAD_DIM, layout="half", rotary_dim=6))
    specs = InputSpec([None, None, 3, HEAD_DIM], dtype), InputSpec([None] * axes, of_positions)
    loaded = saved_and_loaded(layer, tmp_path, *specs)
    for seq in (1, 6):
        x = random_tensor(2, seq, 3, HEAD_DIM, dtype=dtype)
        positions = paddle.randint(0, 1_000_000, [2, seq][-axes:]).astype(of_positions)
        rotated = loaded(x, positions)
        assert rotated.dtype == x.dtype
        assert_close(rotated, layer(x.astype("float32"), positions), 1e-5, unit)


@pytest.mark.equation("1.16")
@pytest.mark.parametrize("name", ["plain", "half partial", "all"])
def test_gradients_through_static_graphs_equal_those_without(name):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **VARIANTS[name])
    static = paddle.jit.to_static(Rotating(rotary), full_graph=True)
    for seq in (2, 5):
        x = random_tensor(2, seq, 3, HEAD_DIM, dtype="float32")
        assert_same(static(x), rotary(x), [x, rotary.theta] if rotary.learned else [x], atol=1e-5)
