"""Frequencies that are scaled or learned, static graphs, and the other embeddings of positions."""

import math

import numpy as np
import paddle
import pytest
from paddle import nn
from paddle.static import InputSpec

from paddle_rope import (
    LinearScaling,
    NTKScaling,
    RotaryPositionEmbedding,
    YaRNScaling,
    alibi_slopes,
    sinusoidal_embedding,
)
from tests.helpers.comparison import assert_close, random_tensor
from tests.helpers.pairwise import pairwise

VARIANTS = {
    "plain": {},
    "half": {"layout": "half"},
    "half partial": {"layout": "half", "rotary_dim": 6},
    "ntk": {"scaling": NTKScaling(4.5), "layout": "half"},
    "yarn": {"scaling": YaRNScaling(4.0, original_length=300), "rotary_dim": 8},
    "learned": {"learned": True},
    "all": {"layout": "half", "rotary_dim": 8, "scaling": YaRNScaling(2.5, 40), "learned": True, "base": 50.0},
}
HEAD_DIM = 10


# ---- frequencies
def plain_theta(rotary_dim, base=10000.0):
    return [base ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2)]


SCALINGS = [  # and the base, and rotary_dim
    (LinearScaling(4.0), 10000.0, 8),
    *((NTKScaling(8.0), 500.0, rotary_dim) for rotary_dim in (4, 10)),
    (YaRNScaling(5.0, 200 * math.pi), 10000.0, 8),
    (YaRNScaling(7.0, 4096, beta_fast=20.0, beta_slow=2.5), 500_000.0, 66),
    *((scaling, 10000.0, 8) for scaling in (LinearScaling(1), NTKScaling(1), YaRNScaling(1, 512))),
]


@pytest.mark.equation("1.17", "1.18", "1.19", "1.20", "1.21")
@pytest.mark.parametrize("scaling, base, rotary_dim", SCALINGS, ids=str)
def test_scaled_frequencies_equal_their_formula_and_yarn_sharpens(scaling, base, rotary_dim):
    rotary = RotaryPositionEmbedding(2 * rotary_dim, base, rotary_dim=rotary_dim, scaling=scaling)
    plain, factor = plain_theta(rotary_dim, base), scaling.factor
    gammas = [0.0] * len(plain)
    if isinstance(scaling, YaRNScaling):
        turns = [scaling.original_length * theta / (2 * math.pi) for theta in plain]
        least, most = scaling.beta_slow, scaling.beta_fast
        gammas = [min(max((number - least) / (most - least), 0.0), 1.0) for number in turns]
        assert gammas[0] == 1 and gammas[-1] == 0 and any(0 < gamma < 1 for gamma in gammas)
    expected = [(1 - gamma) * theta / factor + gamma * theta for gamma, theta in zip(gammas, plain)]
    if isinstance(scaling, NTKScaling):  # the fastest stays, the slowest is interpolated
        assert_close(rotary.theta[[0, -1]], [1, expected[-1]], 1e-14)
        expected = plain_theta(rotary_dim, base * factor ** (rotary_dim / (rotary_dim - 2)))
    np.testing.assert_allclose(rotary.theta, expected, rtol=1e-13)
    x = random_tensor(1, 3, rotary_dim)
    rotated = rotary(paddle.concat([x, paddle.zeros_like(x)], axis=-1))
    amplitude = 0.1 * math.log(factor) + 1 if isinstance(scaling, YaRNScaling) else 1
    assert_close(rotated.norm(), amplitude * float(x.norm()), 1e-12)


# learned frequencies
@pytest.mark.equation("1.7", "1.12")
def test_theta_is_in_the_checkpoint_if_it_is_learned_and_only_then():
    learned = RotaryPositionEmbedding(HEAD_DIM, rotary_dim=8, learned=True)
    np.testing.assert_array_equal(learned.theta.numpy(), np.float32(plain_theta(8)))
    for variant in VARIANTS.values():
        rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
        rotary(paddle.ones([1, 600, HEAD_DIM]))
        assert list(rotary.state_dict()) == (["theta"] if "learned" in variant else [])
        assert len(rotary.parameters()) == len(rotary.state_dict()) and len(rotary.buffers()) == 0
    learned.theta.set_value(learned.theta * 1.5)
    restored, x = RotaryPositionEmbedding(HEAD_DIM, rotary_dim=8, learned=True), random_tensor(1, 3, HEAD_DIM)
    assert float((restored(x) - learned(x)).abs().max()) > 1e-3
    restored.set_state_dict(learned.state_dict())
    np.testing.assert_array_equal(restored(x).numpy(), learned(x).numpy())


# ---- static graphs
class Rotating(nn.Layer):
    """A rotation, to save; at given positions; or at 0, 1, 2, ..., and a second tensor turned back from position one
    million, in the same graph."""

    def __init__(self, rotary, is_placed):
        super().__init__()
        self.rotary, self.is_placed = rotary, is_placed

    def forward(self, x, more):
        if self.is_placed:
            return self.rotary(x, positions=more)
        return self.rotary(x), self.rotary(more, offset=1_000_000, inverse=True)


@pytest.mark.equation("1.16")
@pairwise({
    "name": ["plain", "half partial", "yarn", "all"],
    "dtype, tolerance, unit": [("float32", 2e-6, 0), ("bfloat16", 1e-5, 2.0**-7)],
    "positions": [None, (1, "int64"), (2, "float32")],  # axes and dtype; None: counted
})  # fmt: skip
def test_saved_graphs_rotate_any_length_and_batch_at_any_positions(name, dtype, tolerance, unit, positions, tmp_path):
    layer = Rotating(RotaryPositionEmbedding(HEAD_DIM, **VARIANTS[name]), positions is not None)
    specs = [InputSpec([None, None, 3, HEAD_DIM], dtype), InputSpec([None, None, HEAD_DIM], "float64")]
    if positions is not None:
        specs[1] = InputSpec([None] * positions[0], positions[1])
    static = paddle.jit.to_static(layer, input_spec=specs, full_graph=True)
    paddle.jit.save(static, str(tmp_path / "layer"))
    loaded = paddle.jit.load(str(tmp_path / "layer"))
    for batch, seq in ((1, 1), (2, 6), (3, 530)):
        x, far = random_tensor(batch, seq, 3, HEAD_DIM, dtype=dtype), random_tensor(batch, seq, HEAD_DIM)
        if positions is None:
            rotated, back = loaded(x, far)
            assert_close(back, layer.rotary(far, offset=1_000_000, inverse=True), 1e-8)
            exact = layer.rotary(x.astype("float32"))
        else:
            places = paddle.randint(0, 1_000_000, [batch, seq][-positions[0] :]).astype(positions[1])
            rotated, exact = loaded(x, places), layer(x.astype("float32"), places)
        assert rotated.dtype == x.dtype
        assert_close(rotated, exact, tolerance, unit)


# ---- other embeddings of positions
def embedded(positions):
    return sinusoidal_embedding(positions, 64)


@pytest.mark.equation("4.10")
def test_sinusoidal_positions_are_those_of_the_equation_up_to_a_million():
    positions, specs = np.array([0, 1, 7, 511, 65_537, 1_000_000]), [InputSpec([None], "int64")]
    static = paddle.jit.to_static(embedded, input_spec=specs, full_graph=True)
    phases = positions[:, np.newaxis] / 10000 ** (np.arange(0, 64, 2) / 64)
    for found in (embedded(paddle.to_tensor(positions)), static(paddle.to_tensor(positions))):
        assert found.dtype == paddle.float32
        assert_close(found, np.stack([np.sin(phases), np.cos(phases)], axis=-1).reshape(6, 64), 1e-6)


@pytest.mark.equation("4.13")
@pytest.mark.parametrize("heads, below", [(1, 1), (8, 8), (3, 2), (12, 8), (20, 16)])
def test_slopes_are_geometric_for_any_number_of_heads(heads, below):
    slopes = alibi_slopes(heads)
    np.testing.assert_allclose(slopes[:below], 2.0 ** (-8 * np.arange(1, below + 1) / below), rtol=1e-12)
    np.testing.assert_allclose(slopes[below:], alibi_slopes(2 * below)[0::2][: heads - below], rtol=1e-12)
    assert len(set(slopes)) == heads and all(0 < slope < 1 for slope in slopes)
