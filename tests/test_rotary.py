"""Rotary position embedding: relative, orthogonal, exact at any position."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, reference


def random_tensor(*shape, dtype="float32"):
    return paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)


def as_float64(x):
    return x.astype("float64").numpy()


@pytest.mark.parametrize("distance", [0, 1, 37, 4096])
@pytest.mark.parametrize("start", [1, 513, 50_000, 95_904])
def test_dot_products_depend_on_the_distance_alone(start, distance):
    rotary = RotaryPositionEmbedding(64)
    q, k = random_tensor(1, 64), random_tensor(1, 64)

    def score(m, n):
        rotated = [rotary(x, positions=paddle.to_tensor([position])) for x, position in ((q, m), (k, n))]
        return float((rotated[0] * rotated[1]).sum())

    scale = float(q.norm() * k.norm())
    assert abs(score(start, start + distance) - score(0, distance)) < 1e-3 * scale
    assert abs(score(start + distance, start) - score(distance, 0)) < 1e-3 * scale


def test_dot_products_do_depend_on_the_distance():
    rotary = RotaryPositionEmbedding(6)
    x = paddle.ones([9, 6])
    scores = paddle.matmul(rotary(x)[:1], rotary(x), transpose_y=True).numpy()[0]
    assert np.unique(scores.round(4)).size == 9


def test_rotating_by_the_distance_equals_rotating_both():
    rotary = RotaryPositionEmbedding(10)
    q, k = random_tensor(1, 10, dtype="float64"), random_tensor(1, 10, dtype="float64")
    both = (rotary(q, offset=11) * rotary(k, offset=29)).sum()
    assert abs(float(both - (q * rotary(k, offset=18)).sum())) < 1e-12


def test_norms_are_kept():
    x = random_tensor(2, 3, 701, 14)
    rotated = RotaryPositionEmbedding(14)(x)
    np.testing.assert_allclose(rotated.norm(axis=-1).numpy(), x.norm(axis=-1).numpy(), rtol=1e-5)
    assert float((rotated - x).abs().max()) > 1


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("shape", [(5, 2), (7, 6), (2, 3, 1, 4), (2, 1, 3, 11, 10)], ids=str)
@pytest.mark.parametrize("base", [10000.0, 7.5])
def test_outputs_and_gradients_equal_the_reference(shape, dtype, tolerance, base):
    x = random_tensor(*shape, dtype=dtype)
    exact = x.astype("float64")
    x.stop_gradient = exact.stop_gradient = False
    towards = random_tensor(*shape, dtype="float64")
    rotated = RotaryPositionEmbedding(shape[-1], base)(x)
    expected = reference.rotate(exact, range(shape[-2]), base)
    assert rotated.dtype == x.dtype
    assert rotated.shape == x.shape
    np.testing.assert_allclose(rotated.numpy(), expected.numpy(), rtol=0, atol=tolerance)
    (gradient,) = paddle.grad((rotated * towards.astype(dtype)).sum(), x)
    (expected_gradient,) = paddle.grad((expected * towards).sum(), exact)
    np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("offset", [1, 511, 512, 3001, -4])
def test_an_offset_shifts_all_positions(offset):
    rotary = RotaryPositionEmbedding(8)
    x = random_tensor(2, 5, 8, dtype="float64")
    expected = reference.rotate(x, range(offset, offset + 5)).numpy()
    np.testing.assert_allclose(rotary(x, offset=offset).numpy(), expected, rtol=0, atol=1e-12)
    positions = paddle.arange(offset, offset + 5)
    np.testing.assert_allclose(rotary(x, positions=positions).numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4, 6), (3, 2, 4, 6), (3, 2, 1, 4, 6)], ids=str)
@pytest.mark.parametrize(
    "positions",
    [
        [5, 0, 2, 2],
        [0.25, -3.5, 1e3, 7.0],
        [[0, 1, 2, 3], [3, 2, 1, 0], [9, 9, 100, -1]],
        [[0.5, 1.5, 2.5, 3.5], [0.0, 0.1, 0.2, 0.3], [-1.0, 0.0, 1.0, 40.0]],
        [[4, 5, 6, 7]],
    ],
    ids=["seq", "real seq", "batch seq", "real batch seq", "one row for all"],
)
def test_positions_may_be_any_numbers_for_all_rows_or_for_each(shape, positions):
    x = random_tensor(*shape, dtype="float64")
    given = paddle.to_tensor(np.array(positions))
    rotated = RotaryPositionEmbedding(6)(x, positions=given).numpy()
    rows = np.broadcast_to(np.array(positions), (3, 4))
    expected = np.stack([reference.rotate(x[row], rows[row]).numpy() for row in range(3)])
    np.testing.assert_allclose(rotated, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("where", [{}, {"offset": 700}, {"positions": [3.5, 80.0, -2.0]}], ids=str)
def test_the_inverse_undoes_the_rotation(where):
    where = {name: paddle.to_tensor(value) if name == "positions" else value for name, value in where.items()}
    rotary = RotaryPositionEmbedding(12)
    x = random_tensor(2, 3, 12, dtype="float64")
    rotated = rotary(x, **where)
    assert float((rotated - x).abs().max()) > 0.1
    np.testing.assert_allclose(rotary(rotated, inverse=True, **where).numpy(), x.numpy(), rtol=0, atol=1e-12)


def test_the_table_grows_on_demand_and_keeps_its_values():
    rotary = RotaryPositionEmbedding(4)
    long = random_tensor(1500, 4)
    short_before = rotary(long[:3]).numpy()
    rotated_long = rotary(long).numpy()
    np.testing.assert_allclose(rotated_long, reference.rotate(long.astype("float64"), range(1500)).numpy(), atol=1e-5)
    np.testing.assert_array_equal(rotated_long[:3], short_before)
    np.testing.assert_array_equal(rotary(long[:3]).numpy(), short_before)
    np.testing.assert_array_equal(RotaryPositionEmbedding(4)(long).numpy(), rotated_long)


def test_the_table_grows_by_a_single_position():
    rotary = RotaryPositionEmbedding(4)
    x = random_tensor(1026, 4)
    for length in (1, 512, 513, 1024, 1025, 1026):  # 512 and 1024 fill a table
        expected = reference.rotate(x[length - 1 : length].astype("float64"), [length - 1]).numpy()
        np.testing.assert_allclose(rotary(x[:length])[length - 1 :].numpy(), expected, rtol=0, atol=1e-5)


def test_float64_after_float32_is_still_exact():
    rotary = RotaryPositionEmbedding(4)
    x = random_tensor(9, 4, dtype="float64")
    rotary(x.astype("float32"))
    np.testing.assert_allclose(rotary(x).numpy(), reference.rotate(x, range(9)).numpy(), rtol=0, atol=1e-14)


def test_nothing_goes_into_the_checkpoint():
    rotary = RotaryPositionEmbedding(8)
    rotary(random_tensor(600, 8))
    assert len(rotary.state_dict()) == 0
    assert rotary.parameters() == []


# paddle 2.6.2 cuts off where 3.x rounds to nearest: a whole unit in the last place
@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
@pytest.mark.parametrize("as_positions", [False, True], ids=["offset", "positions"])
def test_half_precision_is_lost_in_the_rounding_of_the_output_only(dtype, unit, as_positions):
    start, head_dim = 50_000, 16
    x = random_tensor(7, head_dim).astype(dtype)
    where = {"positions": paddle.arange(start, start + 7)} if as_positions else {"offset": start}
    rotated = RotaryPositionEmbedding(head_dim)(x, **where)
    assert rotated.dtype == x.dtype
    exact = reference.rotate(x.astype("float32").astype("float64"), range(start, start + 7)).numpy()
    error = np.abs(rotated.astype("float32").numpy().astype(np.float64) - exact)
    assert (error <= unit * np.abs(exact) + 1e-6).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("as_positions", [False, True], ids=["offset", "positions"])
def test_phases_are_right_at_position_one_million(dtype, as_positions):
    head_dim, position = 4, 1_000_000
    unit = paddle.to_tensor(np.tile([1.0, 0.0], head_dim // 2)[np.newaxis], dtype=dtype)
    where = {"positions": paddle.to_tensor([position])} if as_positions else {"offset": position}
    rotated = RotaryPositionEmbedding(head_dim)(unit, **where).numpy()[0]
    phases = position * 10000.0 ** (-np.arange(0, head_dim, 2) / head_dim)
    np.testing.assert_allclose(rotated[0::2], np.cos(phases), rtol=0, atol=1e-6)
    np.testing.assert_allclose(rotated[1::2], np.sin(phases), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("amp_dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_phases_stay_exact_under_auto_cast(amp_dtype, level):
    rotary = RotaryPositionEmbedding(8)
    x = random_tensor(3, 5, 8)
    expected = reference.rotate(x.astype("float64"), range(40_000, 40_005)).numpy()
    with paddle.amp.auto_cast(dtype=amp_dtype, level=level):
        by_table = rotary(x, offset=40_000)
        by_positions = rotary(x, positions=paddle.arange(40_000, 40_005))
        half = rotary(x.astype("float16"), offset=40_000)
    np.testing.assert_allclose(by_table.numpy(), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(by_positions.numpy(), expected, rtol=0, atol=1e-5)
    assert half.dtype == paddle.float16
    np.testing.assert_allclose(half.numpy().astype(np.float64), expected, rtol=2e-3, atol=3e-3)


@pytest.mark.parametrize("head_dim", [7, 1, 0, -2])
def test_a_head_dim_without_pairs_is_an_error(head_dim):
    with pytest.raises(ValueError, match="even"):
        RotaryPositionEmbedding(head_dim)


@pytest.mark.parametrize("base", [0, -1.0])
def test_a_base_that_is_not_positive_is_an_error(base):
    with pytest.raises(ValueError, match="base"):
        RotaryPositionEmbedding(4, base)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 8), (6,)], ids=str)
def test_inputs_of_another_size_are_an_error(shape):
    with pytest.raises(ValueError, match="x must be"):
        RotaryPositionEmbedding(6)(random_tensor(*shape))


@pytest.mark.parametrize("shape", [(4,), (6,), (2, 4), (3, 5), (1, 2, 5), ()], ids=str)
def test_positions_that_do_not_fit_are_an_error(shape):
    with pytest.raises(ValueError, match="positions"):
        RotaryPositionEmbedding(6)(random_tensor(2, 5, 6), positions=paddle.zeros(shape))


def test_positions_for_each_row_need_a_batch():
    with pytest.raises(ValueError, match="batch"):
        RotaryPositionEmbedding(6)(random_tensor(5, 6), positions=paddle.zeros([2, 5]))


def test_an_offset_beside_positions_is_an_error():
    with pytest.raises(ValueError, match="not both"):
        RotaryPositionEmbedding(6)(random_tensor(2, 5, 6), offset=1, positions=paddle.arange(5))


@pytest.mark.parametrize("shape", [(7,), (2, 7)], ids=["seq", "batch"])
@pytest.mark.parametrize("options", [{}, {"layout": "half"}, {"rotary_dim": 4}, {"learned": True}], ids=str)
def test_the_rotation_at_fixed_positions_is_that_of_forward(options, shape):
    rotary = RotaryPositionEmbedding(8, **options)
    positions = paddle.to_tensor(np.random.randint(0, 5000, shape))
    rotate = rotary.at(positions)
    for dtype in ("float32", "float64"):
        x = paddle.to_tensor(np.random.standard_normal((2, 3, 7, 8)), dtype=dtype)
        np.testing.assert_array_equal(rotate(x).numpy(), rotary(x, positions=positions).numpy())
        np.testing.assert_allclose(rotate(rotate(x), inverse=True).numpy(), x.numpy(), rtol=0, atol=1e-5)
        flat = x[:, 0]  # without heads
        np.testing.assert_array_equal(rotate(flat).numpy(), rotary(flat, positions=positions).numpy())
    with pytest.raises(ValueError, match="positions must be"):
        rotate(paddle.zeros([2, 3, 6, 8]))
    np.testing.assert_array_equal(rotary.at(None)(x).numpy(), rotary(x).numpy())


def test_a_far_offset_is_exact_and_tabulates_nothing_before_it():
    rotary = RotaryPositionEmbedding(6)
    x = paddle.to_tensor(np.random.standard_normal((1, 5, 6)))
    positions = paddle.to_tensor(np.arange(5) + 123_456_789)
    np.testing.assert_allclose(
        rotary(x, offset=123_456_789).numpy(), rotary(x, positions=positions).numpy(), rtol=0, atol=1e-12
    )
    rotary(x, offset=900)
    assert all(cosine.shape[0] <= 1024 for cosine, _ in rotary._tables.values())
