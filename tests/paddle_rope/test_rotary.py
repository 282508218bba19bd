"""The contract of the rotation: each layout, partial, scaled and learned, at any positions, against plain loops."""

import numpy as np
import paddle
import pytest
from paddle import nn

import paddle_rope.rotary
from paddle_rope import RotaryPositionEmbedding, apply_rotary, interleaved_to_half
from paddle_rope.attention.feature_maps import OrthogonalRandomFeatures
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor
from tests.helpers.pairwise import pairwise
from tests.paddle_rope import reference
from tests.paddle_rope.native.operators import views
from tests.paddle_rope.test_positions import HEAD_DIM, VARIANTS

PLACES = {
    "counted": {},
    "offset": {"offset": np.int32(700)},
    "negative offset": {"offset": -4},
    "far offset": {"offset": 1_000_000},
    "of all": {"positions": [4, 0, 2]},
    "real, offset": {"positions": [0.25, -3.5, 1e3], "offset": 9},
    "of each row": {"positions": [[0, 0, 1], [0, 1, 0]]},
    "real, far offset": {"positions": [0.25, -3.5, 1e3], "offset": 2**30},
    "one row for all": {"positions": [[-2.5, 1e3, 0.125]]},
}


@pytest.mark.equation("1.1", "1.3", "1.5", "1.6", "1.10", "1.11", "1.13", "1.14", "1.20")
@pairwise({
    "name": list(VARIANTS),
    "place": list(PLACES),
    "shape": [(2, 3, HEAD_DIM), (2, 3, 2, HEAD_DIM), (2, 3, 1, 3, HEAD_DIM)],
    "dtype, tolerance": [("float32", 2e-5), ("float64", 1e-11), ("float16", 2e-3), ("bfloat16", 2e-2)],
    "inverse": [False, True],
})  # fmt: skip
def test_outputs_and_gradients_equal_the_loops(name, place, shape, dtype, tolerance, inverse):
    rotary, inputs = RotaryPositionEmbedding(HEAD_DIM, **VARIANTS[name]), [random_tensor(*shape, dtype=dtype)]
    rotary.to(dtype="float64" if dtype == "float64" else "float32")
    where = {key: paddle.to_tensor(value) if key == "positions" else value for key, value in PLACES[place].items()}
    inputs += rotary.parameters()  # theta, if it is learned
    exact = cast(inputs, "float64")
    positions = np.broadcast_to(np.array(PLACES[place].get("positions", range(3))) + where.get("offset", 0), (2, 3))
    options = {"layout": rotary.layout, "amplitude": rotary.amplitude, "inverse": inverse}
    theta = exact[1] if rotary.learned else rotary.theta
    expected = reference.rotate(exact[0], positions, theta=theta, **options)
    rotated = rotary(inputs[0], inverse=inverse, **where)
    assert rotated.dtype == inputs[0].dtype
    assert_same(rotated, expected, inputs, exact, tolerance)
    if rotary.rotary_dim == HEAD_DIM and rotary.amplitude == 1:
        assert_close(expected.norm(), exact[0].norm(), 1e-12)
    back = rotary(rotated, inverse=not inverse, **where)
    assert_close(back, inputs[0], 4 * tolerance)


# tables
@pytest.mark.equation("1.7")
def test_the_table_grows_on_demand_and_keeps_its_values():
    rotary, long = RotaryPositionEmbedding(4), random_tensor(1, 1500, 4, dtype="float32")
    expected = reference.rotate(long.astype("float64"), range(1500))
    for length in (3, 512, 513, 1024, 1025, 1500, 3):  # 512 and 1024 fill a table
        assert_close(rotary(long[:, :length]), expected[:, :length], 1e-5)
    fresh = RotaryPositionEmbedding(4)(long).numpy()
    np.testing.assert_array_equal(rotary(long).numpy(), fresh)
    np.testing.assert_array_equal(rotary(long[:, :3]).numpy(), fresh[:, :3])
    rotary(long, offset=123_456_789)
    assert_close(rotary(long.astype("float64")), expected, 1e-14)  # a table of its own


def test_a_change_of_what_is_handed_out_does_not_reach_later_rotations():
    rotary, x = RotaryPositionEmbedding(4), random_tensor(1, 600, 4, dtype="float32")
    with views():  # as without prepare_process()
        for length in (3, 600):  # 600 is all of the table
            expected = rotary(x[:, :length]).numpy()
            for table in rotary.cos_sin(length)[:2]:
                table.zero_()
            np.testing.assert_array_equal(rotary(x[:, :length]).numpy(), expected)


# precision
@pytest.mark.equation("1.15")
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_arithmetic_is_not_under_automatic_mixed_precision(variant, amp_as_on_gpu):
    x, positions = random_tensor(1, 3, HEAD_DIM, dtype="float32"), paddle.arange(3)
    operators = [(paddle.Tensor, f"__{name}__") for name in ("mul", "add", "truediv", "neg")]
    levels = [amp_as_on_gpu(*one) for one in ((paddle_rope.rotary, "_turned"), (paddle, "cos"), *operators)][0]
    RotaryPositionEmbedding(HEAD_DIM, **variant)(x, positions=positions, inverse=True)
    assert len(levels) > 7 and {*levels} == {paddle.base.core.AmpLevel.O0}


@pytest.mark.equation("1.12")
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


# more than one number: what docs/concepts/mathematics/rotation.md builds from the public functions
def scores(q, k):
    return paddle.matmul(q, k, transpose_y=True).numpy()


@pytest.mark.equation("1.22")
def test_axial_rotation_sees_the_distance_in_rows_and_in_columns_alone():
    axis, rows, columns = RotaryPositionEmbedding(4), np.array([0, 0, 3, 5]), np.array([2, 7, 2, 1.5])
    q, k = (random_tensor(1, 1, 8).expand([1, 4, 8]) for _ in range(2))

    def turned(x, down, right):
        parts = [axis.cos_sin(paddle.to_tensor(m), dtype="float64") for m in (rows + down, columns + right)]
        return apply_rotary(x, *(paddle.concat(tables, axis=-1) for tables in zip(*(part[:2] for part in parts))))

    here = scores(turned(q, 0, 0), turned(k, 0, 0))
    assert_close(scores(turned(q, 30, -4), turned(k, 30, -4)), here, 1e-12)
    moved = [scores(turned(q, *by), turned(k, 0, 0)) for by in ((1, 0), (0, 1))]
    assert all(np.abs(other - here).max() > 1e-2 for other in (*moved, moved[0] - moved[1] + here))


@pytest.mark.equation("1.23")
def test_xpos_multiplies_each_pair_by_a_power_of_the_distance():
    rotary, positions = RotaryPositionEmbedding(8), paddle.arange(0, 900, 100)
    zeta = paddle.to_tensor((np.arange(4) / 4 + 0.4) / 1.4)
    cos, sin, layout = rotary.cos_sin(positions, dtype="float64")
    power = zeta ** (positions.astype("float64").unsqueeze(-1) / 512)
    q, k = (random_tensor(1, 1, 8).expand([1, 9, 8]) for _ in range(2))
    found = scores(apply_rotary(q, cos * power, sin * power, layout), apply_rotary(k, cos / power, sin / power, layout))
    complex_q, complex_k = (x.numpy()[0, 0, 0::2] + 1j * x.numpy()[0, 0, 1::2] for x in (q, k))
    lag = np.subtract.outer(positions.numpy(), positions.numpy())[..., np.newaxis]
    pairs = complex_q * complex_k.conj() * np.exp(1j * lag * rotary.theta) * zeta.numpy() ** (lag / 512)
    assert_close(found[0], pairs.sum(axis=-1).real, 1e-12)


# layouts and partial rotation
@pytest.mark.equation("1.8", "1.9")
@pytest.mark.parametrize("head_dim", [2, 6, 14])
def test_permuted_projection_weights_give_the_same_scores_in_the_other_layout(head_dim):
    order = interleaved_to_half(head_dim)
    assert sorted(order) == list(range(head_dim))
    rotaries = [RotaryPositionEmbedding(head_dim, layout=layout) for layout in ("interleaved", "half")]
    hidden, weights = np.random.standard_normal((2, 5, 7)), np.random.standard_normal((2, 7, head_dim))  # of q and k
    (q, k), (q_half, k_half) = (
        [rotary(paddle.to_tensor(hidden @ weight)).numpy() for weight in given]
        for rotary, given in zip(rotaries, (weights, weights[..., order]))
    )
    assert_close(q_half, q[..., order], 1e-13)
    assert_close(q_half[..., np.argsort(order)], q, 1e-13)
    assert_close(q_half @ k_half.transpose(0, 2, 1), q @ k.transpose(0, 2, 1), 1e-12)


@pytest.mark.equation("1.1")
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_strided_views_turn_as_copies_of_them(layout):
    rotary, whole = RotaryPositionEmbedding(6, layout=layout), random_tensor(2, 12, 5, dtype="float32")
    with views():
        for view in (whole.transpose([0, 2, 1])[..., ::2], whole[:, :6].transpose([0, 2, 1])):
            np.testing.assert_array_equal(rotary(view).numpy(), rotary(paddle.to_tensor(view.numpy())).numpy())
