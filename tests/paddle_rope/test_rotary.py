"""Rotary position embedding: every layout, partial, scaled and learned rotation against plain loops in float64."""

import math

import numpy as np
import paddle
import pytest
from paddle import nn

import paddle_rope.rotary
from paddle_rope import (
    LinearScaling,
    NTKScaling,
    RotaryPositionEmbedding,
    YaRNScaling,
    apply_rotary,
    interleaved_to_half,
    reference,
)
from paddle_rope.attention.feature_maps import OrthogonalRandomFeatures
from tests.paddle_rope.rotary_loops import (
    HEAD_DIM,
    VARIANTS,
    every_variant,
    expected_of,
    random_tensor,
    theta_of,
    turn_by_loops,
)

MILLION = 1_000_000


def plain_theta(rotary_dim, base=10000.0):
    return [base ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2)]


# outputs and gradients


@pytest.mark.equation("1.1")
@every_variant
@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("shape", [(1, 7, HEAD_DIM), (2, 5, 3, HEAD_DIM), (2, 11, 1, 3, HEAD_DIM)], ids=str)
def test_outputs_and_gradients_equal_the_loops(variant, shape, dtype, tolerance):
    x = random_tensor(*shape, dtype=dtype)
    exact = x.astype("float64")
    x.stop_gradient = exact.stop_gradient = False
    towards = random_tensor(*shape, dtype="float64")
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    rotated = rotary(x, offset=3)
    expected = turn_by_loops(exact, range(3, 3 + shape[1]), theta_of(rotary), rotary.layout, rotary.amplitude)
    assert rotated.dtype == x.dtype
    np.testing.assert_allclose(rotated.numpy(), expected.numpy(), rtol=0, atol=tolerance)
    (gradient,) = paddle.grad((rotated * towards.astype(dtype)).sum(), x)
    (expected_gradient,) = paddle.grad((expected * towards).sum(), exact)
    np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("base", [10000.0, 7.5])
def test_the_plain_rotation_is_that_of_the_reference(base):
    x = random_tensor(2, 5, 3, 6, dtype="float64")
    expected = reference.rotate(x, range(5), base).numpy()
    np.testing.assert_allclose(RotaryPositionEmbedding(6, base)(x).numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.equation("1.6")
@every_variant
@pytest.mark.parametrize(
    "positions",
    [[4, 0, 2], [0.25, -3.5, 1e3], [[0, 0, 1], [0, 1, 0]], [[0.5, 1.5, 2.5], [-1.0, 0.0, 40.0]], [[-2.5, 1e3, 0.125]]],
    ids=["seq", "real seq", "batch seq", "real batch seq", "one row for all"],
)
def test_positions_may_be_any_numbers_for_all_rows_or_for_each(variant, positions):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    for shape in ((2, 3, HEAD_DIM), (2, 3, 2, HEAD_DIM)):
        x = random_tensor(*shape, dtype="float64")
        rotated = rotary(x, positions=paddle.to_tensor(np.array(positions))).numpy()
        for row, numbers in enumerate(np.broadcast_to(np.array(positions), (2, 3))):
            expected = expected_of(rotary, x[row : row + 1], numbers)
            np.testing.assert_allclose(rotated[row : row + 1], expected, rtol=0, atol=1e-12)


@pytest.mark.equation("1.5", "1.20")
@every_variant
@pytest.mark.parametrize("where", [{}, {"offset": 700}, {"positions": [3.5, 80.0, -2.0]}], ids=str)
def test_the_inverse_undoes_the_rotation(variant, where):
    where = {name: paddle.to_tensor(value) if name == "positions" else value for name, value in where.items()}
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    x = random_tensor(2, 3, HEAD_DIM, dtype="float64")
    rotated = rotary(x, **where)
    assert float((rotated - x).abs().max()) > 0.1
    np.testing.assert_allclose(rotary(rotated, inverse=True, **where).numpy(), x.numpy(), rtol=0, atol=1e-12)


@every_variant
@pytest.mark.parametrize("shape", [(7,), (2, 7)], ids=["seq", "batch"])
def test_the_numbers_of_a_rotation_rotate_as_forward_does(variant, shape):
    rotary, x = RotaryPositionEmbedding(HEAD_DIM, **variant), random_tensor(2, 7, 3, HEAD_DIM)
    positions = paddle.to_tensor(np.random.randint(0, 5000, shape))
    rope = rotary.cos_sin(positions)
    assert rope.cos.shape == rope.sin.shape == [*shape, rotary.rotary_dim // 2]
    np.testing.assert_array_equal(apply_rotary(x, *rope).numpy(), rotary(x, positions=positions).numpy())
    np.testing.assert_array_equal(apply_rotary(x, *rotary.cos_sin(7, offset=9)).numpy(), rotary(x, offset=9).numpy())
    back = apply_rotary(apply_rotary(x, *rope), *rope.inverse())
    np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=0, atol=1e-5)


# relative, orthogonal


@pytest.mark.equation("1.3")
@every_variant
def test_dot_products_depend_on_the_distance_alone(variant):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    q, k = random_tensor(1, 1, HEAD_DIM, dtype="float64"), random_tensor(1, 1, HEAD_DIM, dtype="float64")

    def score(m, n):
        return float((rotary(q, offset=m) * rotary(k, offset=n)).sum())

    assert abs(score(811, 830) - score(5, 24)) < 1e-11
    assert abs(score(5, 24) - score(5, 25)) > 1e-3


@pytest.mark.parametrize("distance", [0, 1, 37, 4096])
@pytest.mark.parametrize("start", [1, 513, 50_000, 95_904])
def test_dot_products_of_far_float32_vectors_depend_on_the_distance_alone(start, distance):
    rotary, q, k = RotaryPositionEmbedding(64), random_tensor(1, 1, 64), random_tensor(1, 1, 64)

    def score(m, n):
        rotated = [rotary(x, positions=paddle.to_tensor([position])) for x, position in ((q, m), (k, n))]
        return float((rotated[0] * rotated[1]).sum())

    scale = float(q.norm() * k.norm())
    assert abs(score(start, start + distance) - score(0, distance)) < 1e-3 * scale
    assert abs(score(start + distance, start) - score(distance, 0)) < 1e-3 * scale


@pytest.mark.equation("1.4")
def test_norms_are_kept():
    x = random_tensor(2, 701, 3, 14)
    rotated = RotaryPositionEmbedding(14)(x)
    np.testing.assert_allclose(rotated.norm(axis=-1).numpy(), x.norm(axis=-1).numpy(), rtol=1e-5)
    assert float((rotated - x).abs().max()) > 1


# tables


@pytest.mark.equation("1.7")
def test_the_table_grows_on_demand_and_keeps_its_values():
    rotary, long = RotaryPositionEmbedding(4), random_tensor(1, 1500, 4)
    expected = reference.rotate(long.astype("float64"), range(1500)).numpy()
    for length in (3, 512, 513, 1024, 1025, 1500, 3):  # 512 and 1024 fill a table
        np.testing.assert_allclose(rotary(long[:, :length]).numpy(), expected[:, :length], rtol=0, atol=1e-5)
    fresh = RotaryPositionEmbedding(4)(long).numpy()
    np.testing.assert_array_equal(rotary(long).numpy(), fresh)
    np.testing.assert_array_equal(rotary(long[:, :3]).numpy(), fresh[:, :3])


@pytest.mark.equation("1.6")
@pytest.mark.parametrize("offset", [1, 511, 512, 3001, -4, 123_456_789])
def test_an_offset_shifts_all_positions_and_tabulates_nothing_far_before_it(offset):
    rotary, x = RotaryPositionEmbedding(8), random_tensor(2, 5, 8, dtype="float64")
    expected = rotary(x, positions=paddle.arange(offset, offset + 5)).numpy()
    np.testing.assert_allclose(rotary(x, offset=offset).numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rotary(x, offset, paddle.arange(5)).numpy(), expected, rtol=0, atol=1e-12)
    assert all(cos.shape[0] <= 4096 for cos, _ in rotary._tables.values())


@pytest.mark.equation("1.13")
def test_float64_after_float32_is_still_exact():
    rotary, x = RotaryPositionEmbedding(4), random_tensor(1, 9, 4, dtype="float64")
    rotary(x.astype("float32"))
    np.testing.assert_allclose(rotary(x).numpy(), reference.rotate(x, range(9)).numpy(), rtol=0, atol=1e-14)


# precision


@pytest.mark.equation("1.13")
@every_variant
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float16", 1e-3), ("bfloat16", 8e-3)])
@pytest.mark.parametrize("as_positions", [False, True], ids=["offset", "positions"])
def test_phases_are_right_at_position_one_million(variant, dtype, tolerance, as_positions):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
    ones = paddle.ones([1, 1, HEAD_DIM], dtype="float32").astype(dtype)
    where = {"positions": paddle.to_tensor([MILLION])} if as_positions else {"offset": MILLION}
    if rotary.rotary_dim == HEAD_DIM and dtype == "float32":  # (1, 0) becomes (cos, sin)
        pairs = np.arange(HEAD_DIM).reshape((-1, 2) if rotary.layout == "interleaved" else (2, -1))
        ones[0, 0, paddle.to_tensor(pairs[:, 1] if rotary.layout == "interleaved" else pairs[1])] = 0.0
    rotated = rotary(ones, **where)
    assert rotated.dtype == ones.dtype
    expected = expected_of(rotary, ones.astype("float32"), [MILLION])
    error = np.abs(rotated.astype("float32").numpy() - expected)
    assert (error <= tolerance * np.maximum(1, np.abs(expected))).all()


# paddle 2.6.2 cuts off where 3.x rounds to nearest: a whole unit in the last place
@pytest.mark.equation("1.14")
@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
@pytest.mark.parametrize("as_positions", [False, True], ids=["offset", "positions"])
def test_half_precision_is_lost_in_the_rounding_of_the_output_only(dtype, unit, as_positions):
    start, head_dim = 50_000, 16
    x = random_tensor(1, 7, head_dim).astype(dtype)
    where = {"positions": paddle.arange(start, start + 7)} if as_positions else {"offset": start}
    rotated = RotaryPositionEmbedding(head_dim)(x, **where)
    assert rotated.dtype == x.dtype
    exact = reference.rotate(x.astype("float32").astype("float64"), range(start, start + 7)).numpy()
    error = np.abs(rotated.astype("float32").numpy().astype(np.float64) - exact)
    assert (error <= unit * np.abs(exact) + 1e-6).all()


@pytest.mark.equation("1.15")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("amp_dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_phases_stay_exact_under_auto_cast(amp_dtype, level):
    rotary, x = RotaryPositionEmbedding(8), random_tensor(3, 5, 8)
    expected = reference.rotate(x.astype("float64"), range(40_000, 40_005)).numpy()
    with paddle.amp.auto_cast(dtype=amp_dtype, level=level):
        by_table = rotary(x, offset=40_000)
        by_positions = rotary(x, positions=paddle.arange(40_000, 40_005))
        half = rotary(x.astype("float16"), offset=40_000)
    np.testing.assert_allclose(by_table.numpy(), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(by_positions.numpy(), expected, rtol=0, atol=1e-5)
    assert half.dtype == paddle.float16
    np.testing.assert_allclose(half.numpy().astype(np.float64), expected, rtol=2e-3, atol=3e-3)


@pytest.fixture
def amp_as_on_gpu():
    """Automatic mixed precision of level O2, which ``auto_cast`` does not switch on on a CPU."""
    tracer = paddle.base.framework._dygraph_tracer()
    before = tracer._amp_level
    tracer._amp_level = paddle.base.core.AmpLevel.O2
    yield tracer
    tracer._amp_level = before


@pytest.mark.equation("1.15")
@every_variant
def test_the_arithmetic_is_not_under_automatic_mixed_precision(variant, amp_as_on_gpu, monkeypatch):
    seen = []
    for name in ("_turn_interleaved", "_turn_half"):
        turn = getattr(paddle_rope.rotary, name)

        def recorded(*args, turn=turn):
            seen.append(amp_as_on_gpu._amp_level)
            return turn(*args)

        monkeypatch.setattr(paddle_rope.rotary, name, recorded)
    RotaryPositionEmbedding(HEAD_DIM, **variant)(random_tensor(1, 3, HEAD_DIM))
    assert seen == [paddle.base.core.AmpLevel.O0]
    assert amp_as_on_gpu._amp_level == paddle.base.core.AmpLevel.O2


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


# layouts and partial rotation


@pytest.mark.equation("1.10")
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_features_beyond_rotary_dim_pass_and_the_others_turn_as_a_smaller_head(layout):
    x = random_tensor(2, 5, 14)
    rotated = RotaryPositionEmbedding(14, layout=layout, rotary_dim=6)(x).numpy()
    small = RotaryPositionEmbedding(6, layout=layout)(x[..., :6]).numpy()
    np.testing.assert_array_equal(rotated[..., 6:], x.numpy()[..., 6:])
    np.testing.assert_allclose(rotated[..., :6], small, rtol=0, atol=1e-6)


@pytest.mark.equation("1.8")
@pytest.mark.parametrize("head_dim", [2, 6, 14])
def test_the_permutation_turns_interleaved_vectors_into_half_vectors(head_dim):
    order = interleaved_to_half(head_dim)
    assert sorted(order) == list(range(head_dim))
    x = random_tensor(2, 5, 3, head_dim, dtype="float64").numpy()
    interleaved = RotaryPositionEmbedding(head_dim)(paddle.to_tensor(x)).numpy()
    half = RotaryPositionEmbedding(head_dim, layout="half")(paddle.to_tensor(x[..., order])).numpy()
    np.testing.assert_allclose(half, interleaved[..., order], rtol=0, atol=1e-14)
    np.testing.assert_allclose(half[..., np.argsort(order)], interleaved, rtol=0, atol=1e-14)


@pytest.mark.equation("1.9")
def test_permuted_projection_weights_give_the_same_scores():
    hidden_size, heads, head_dim, seq = 7, 3, 6, 5
    hidden = np.random.standard_normal((2, seq, hidden_size))
    weights = np.random.standard_normal((2, hidden_size, heads * head_dim))  # of queries and of keys
    order = np.concatenate([head * head_dim + interleaved_to_half(head_dim) for head in range(heads)])

    def scores(weights, layout):
        rotary = RotaryPositionEmbedding(head_dim, layout=layout)
        q, k = (
            rotary(paddle.to_tensor((hidden @ weight).reshape(2, seq, heads, head_dim))).transpose([0, 2, 1, 3])
            for weight in weights
        )
        return paddle.matmul(q, k, transpose_y=True).numpy()

    expected = scores(weights, "interleaved")
    np.testing.assert_allclose(scores(weights[:, :, order], "half"), expected, rtol=0, atol=1e-12)
    assert np.abs(scores(weights, "half") - expected).max() > 0.1


@pytest.mark.equation("1.1")
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_strided_views_turn_as_copies_of_them(layout):
    flag = "FLAGS_use_stride_kernel"
    before = paddle.get_flags(flag)[flag]
    paddle.set_flags({flag: True})
    try:
        rotary = RotaryPositionEmbedding(6, layout=layout)
        whole = random_tensor(2, 12, 5)
        for view in (whole.transpose([0, 2, 1])[..., ::2], whole[:, :6].transpose([0, 2, 1])):
            np.testing.assert_array_equal(rotary(view).numpy(), rotary(paddle.to_tensor(view.numpy())).numpy())
    finally:
        paddle.set_flags({flag: before})


# scaled frequencies


@pytest.mark.equation("1.17")
def test_linear_scaling_divides_positions():
    x = random_tensor(1, 4, 8, dtype="float64")
    scaled = RotaryPositionEmbedding(8, scaling=LinearScaling(4.0))(x, offset=20)
    squeezed = RotaryPositionEmbedding(8)(x, positions=paddle.arange(20, 24).astype("float64") / 4)
    np.testing.assert_allclose(scaled.numpy(), squeezed.numpy(), rtol=0, atol=1e-13)


@pytest.mark.equation("1.18")
@pytest.mark.parametrize("rotary_dim", [4, 10])
def test_ntk_scaling_changes_the_base_so_that_the_slowest_frequency_is_interpolated(rotary_dim):
    plain = plain_theta(rotary_dim, 500.0)
    scaled = RotaryPositionEmbedding(12, 500.0, rotary_dim=rotary_dim, scaling=NTKScaling(8.0)).theta
    expected = plain_theta(rotary_dim, 500.0 * 8.0 ** (rotary_dim / (rotary_dim - 2)))
    np.testing.assert_allclose(scaled, expected, rtol=1e-14)
    assert scaled[0] == 1
    np.testing.assert_allclose(scaled[-1], plain[-1] / 8, rtol=1e-14)


@pytest.mark.equation("1.19")
def test_yarn_keeps_fast_frequencies_interpolates_slow_ones_and_mixes_between():
    # 100, 10, 1 and 0.1 turns within the original length
    scaling = YaRNScaling(5.0, original_length=200 * math.pi)
    theta = RotaryPositionEmbedding(8, scaling=scaling).theta
    share = (10 - 1) / (32 - 1)
    np.testing.assert_allclose(theta, [1, 0.1 * (share + (1 - share) / 5), 0.01 / 5, 0.001 / 5], rtol=1e-12)


@pytest.mark.equation("1.19")
def test_yarn_with_other_bounds_equals_the_equation():
    factor, length, fast, slow, base, rotary_dim = 7.0, 4096, 20.0, 2.5, 500_000.0, 66
    expected = []
    for theta in plain_theta(rotary_dim, base):
        turns = length * theta / (2 * math.pi)
        gamma = 0.0 if turns < slow else 1.0 if turns > fast else (turns - slow) / (fast - slow)
        expected.append((1 - gamma) * theta / factor + gamma * theta)
    scaling = YaRNScaling(factor, length, beta_fast=fast, beta_slow=slow)
    np.testing.assert_allclose(RotaryPositionEmbedding(rotary_dim, base, scaling=scaling).theta, expected, rtol=1e-13)


@pytest.mark.equation("1.20")
def test_yarn_multiplies_scores_by_the_square_of_its_amplitude():
    scaling = YaRNScaling(4.0, original_length=1e-9, beta_slow=0.5)  # slow in every frequency, as LinearScaling(4)
    q, k = random_tensor(1, 3, 6, dtype="float64"), random_tensor(1, 3, 6, dtype="float64")

    def scores(rotary):
        return paddle.matmul(rotary(q), rotary(k), transpose_y=True).numpy()

    linear = scores(RotaryPositionEmbedding(6, scaling=LinearScaling(4.0)))
    yarn = scores(RotaryPositionEmbedding(6, scaling=scaling))
    np.testing.assert_allclose(yarn, linear * (0.1 * math.log(4.0) + 1) ** 2, rtol=1e-12)


@pytest.mark.equation("1.21")
@pytest.mark.parametrize("scaling", [LinearScaling(1), NTKScaling(1), YaRNScaling(1, 512)], ids=str)
def test_a_factor_of_one_changes_nothing(scaling):
    rotary = RotaryPositionEmbedding(8, scaling=scaling)
    np.testing.assert_allclose(rotary.theta, plain_theta(8), rtol=1e-15)
    assert rotary.amplitude == 1


# learned frequencies


@pytest.mark.equation("1.7", "1.12")
def test_theta_is_in_the_checkpoint_if_it_is_learned_and_only_then(tmp_path):
    learned = RotaryPositionEmbedding(HEAD_DIM, rotary_dim=8, learned=True)
    np.testing.assert_array_equal(learned.theta.numpy(), np.float32(plain_theta(8)))
    assert list(learned.state_dict()) == ["theta"]
    for variant in VARIANTS.values():
        if "learned" not in variant:
            rotary = RotaryPositionEmbedding(HEAD_DIM, **variant)
            rotary(random_tensor(1, 600, HEAD_DIM))
            assert len(rotary.state_dict()) == len(rotary.parameters()) == len(rotary.buffers()) == 0
    learned.theta.set_value(learned.theta * 1.5)
    paddle.save(learned.state_dict(), str(tmp_path / "rotary.pdparams"))
    restored = RotaryPositionEmbedding(HEAD_DIM, rotary_dim=8, learned=True)
    x = random_tensor(1, 3, HEAD_DIM)
    assert float((restored(x) - learned(x)).abs().max()) > 1e-3
    restored.set_state_dict(paddle.load(str(tmp_path / "rotary.pdparams")))
    np.testing.assert_array_equal(restored(x).numpy(), learned(x).numpy())


@pytest.mark.equation("1.11")
@pytest.mark.parametrize("name", ["learned", "all"])
@pytest.mark.parametrize("inverse", [False, True], ids=["forth", "back"])
def test_gradients_of_theta_equal_finite_differences_and_the_loops(name, inverse):
    rotary = RotaryPositionEmbedding(HEAD_DIM, **VARIANTS[name]).to(dtype="float64")
    assert rotary.theta.dtype == paddle.float64
    x, towards = random_tensor(2, 5, HEAD_DIM, dtype="float64"), random_tensor(2, 5, HEAD_DIM, dtype="float64")
    positions = [0.5, 3.0, -2.0, 7.0, 1.0]

    def loss():
        return (rotary(x, positions=paddle.to_tensor(positions, dtype="float64"), inverse=inverse) * towards).sum()

    (gradient,) = paddle.grad(loss(), rotary.theta)
    theta = rotary.theta.detach().clone()
    theta.stop_gradient = False
    gain = 1 / rotary.amplitude if inverse else rotary.amplitude
    expected = turn_by_loops(x, positions, [theta[i] for i in range(len(theta))], rotary.layout, gain, inverse)
    (by_loops,) = paddle.grad((expected * towards).sum(), theta)
    np.testing.assert_allclose(gradient.numpy(), by_loops.numpy(), rtol=0, atol=1e-11)
    start, step = theta.numpy(), 1e-6
    for i in range(len(start)):
        sides = []
        for sign in (1, -1):
            moved = start.copy()
            moved[i] += sign * step
            rotary.theta.set_value(moved)
            sides.append(float(loss()))
        assert abs((sides[0] - sides[1]) / (2 * step) - float(gradient[i])) < 1e-6


@pytest.mark.equation("1.11")
def test_the_gradient_of_a_float32_theta_is_summed_as_in_float64():
    rotary = RotaryPositionEmbedding(6, learned=True)
    x, towards = random_tensor(1, 300, 6), random_tensor(1, 300, 6)
    (gradient,) = paddle.grad((rotary(x) * towards).sum(), rotary.theta)
    theta = rotary.theta.astype("float64").detach()
    theta.stop_gradient = False
    exact = turn_by_loops(x.astype("float64"), range(300), [theta[i] for i in range(3)])
    (expected,) = paddle.grad((exact * towards.astype("float64")).sum(), theta)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-5, atol=1e-3)


@pytest.mark.equation("1.11")
def test_training_moves_theta():
    rotary = RotaryPositionEmbedding(6, learned=True)
    optimizer = paddle.optimizer.SGD(0.001, parameters=rotary.parameters())
    x = random_tensor(1, 5, 6)
    goal = RotaryPositionEmbedding(6, scaling=LinearScaling(1.2))(x)
    losses = []
    for _ in range(40):
        loss = ((rotary(x) - goal) ** 2).sum()
        losses.append(float(loss))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    assert losses[-1] < 0.5 * losses[0]


# errors


@pytest.mark.equation("1.10")
@pytest.mark.parametrize("rotary_dim", [0, -2, 3, 8])
def test_a_rotary_dim_that_does_not_fit_is_an_error(rotary_dim):
    with pytest.raises(ValueError, match="rotary_dim"):
        RotaryPositionEmbedding(6, rotary_dim=rotary_dim)


@pytest.mark.equation("1.10")
def test_an_odd_head_may_turn_in_part():
    x = random_tensor(1, 4, 7, dtype="float64")
    rotary = RotaryPositionEmbedding(7, rotary_dim=4)
    np.testing.assert_allclose(rotary(x).numpy(), expected_of(rotary, x, range(4)), rtol=0, atol=1e-12)


@pytest.mark.equation("1.8")
@pytest.mark.parametrize("head_dim", [5, 0, -4])
def test_the_permutation_needs_pairs(head_dim):
    with pytest.raises(ValueError, match="even"):
        interleaved_to_half(head_dim)


@pytest.mark.parametrize("arguments", [{"layout": "halves"}, {"scaling": 2.0}, {"scaling": "yarn"}], ids=str)
def test_unknown_layouts_and_scalings_are_errors_that_name_the_known(arguments):
    with pytest.raises(ValueError, match="half|YaRNScaling"):
        RotaryPositionEmbedding(6, **arguments)


@pytest.mark.parametrize("factor", [0.5, 0, -2, math.inf, math.nan])
@pytest.mark.parametrize("scaling", [LinearScaling, NTKScaling, lambda factor: YaRNScaling(factor, 512)])
def test_a_factor_below_one_or_not_finite_is_an_error(scaling, factor):
    with pytest.raises(ValueError, match="at least 1"):
        scaling(factor)


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"original_length": 0}, "original_length"),
        ({"original_length": math.nan}, "original_length"),
        ({"original_length": 512, "beta_fast": 1.0}, "beta_slow"),
        ({"original_length": 512, "beta_slow": -1.0}, "beta_slow"),
        ({"original_length": 512, "beta_fast": math.nan}, "beta_slow"),
    ],
    ids=str,
)
def test_impossible_values_of_yarn_are_errors(arguments, word):
    with pytest.raises(ValueError, match=word):
        YaRNScaling(2.0, **arguments)


@pytest.mark.equation("1.18")
def test_ntk_scaling_of_a_single_frequency_is_an_error():
    with pytest.raises(ValueError, match="LinearScaling"):
        RotaryPositionEmbedding(8, rotary_dim=2, scaling=NTKScaling(2.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@every_variant
def test_half_precision_has_the_gradient_of_float32(variant, dtype):
    rotary, x = RotaryPositionEmbedding(HEAD_DIM, **variant), random_tensor(2, 5, HEAD_DIM).astype(dtype)
    towards, gradients = random_tensor(2, 5, HEAD_DIM), []
    for given in (x, x.astype("float32")):
        given.stop_gradient = False
        gradients += paddle.grad([rotary(given).astype("float32")], [given], [towards])
    assert gradients[0].dtype == x.dtype
    np.testing.assert_allclose(gradients[0].astype("float32").numpy(), gradients[1].numpy(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("head_dim", [7, 1, 0, -2])
def test_a_head_dim_without_pairs_is_an_error(head_dim):
    with pytest.raises(ValueError, match="even"):
        RotaryPositionEmbedding(head_dim)


@pytest.mark.parametrize("base", [0, -1.0])
def test_a_base_that_is_not_positive_is_an_error(base):
    with pytest.raises(ValueError, match="base"):
        RotaryPositionEmbedding(4, base)


@pytest.mark.parametrize("shape", [(3, 6), (2, 5, 8), (2, 5, 4), (6,)], ids=str)
def test_inputs_of_another_size_are_an_error(shape):
    with pytest.raises(ValueError, match="x must be"):
        RotaryPositionEmbedding(6)(random_tensor(*shape))


@pytest.mark.parametrize("shape", [(4,), (6,), (2, 4), (3, 5), (1, 2, 5), ()], ids=str)
def test_positions_that_do_not_fit_are_an_error(shape):
    with pytest.raises(ValueError, match="positions"):
        RotaryPositionEmbedding(6)(random_tensor(2, 5, 6), positions=paddle.zeros(shape))
