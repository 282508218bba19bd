"""What the sources claim, beyond the equations of other tests; the table is docs/contributing/sources.md."""

import math

import numpy as np
import paddle
import pytest
from scipy.linalg import schur

from paddle_rope import (
    EfficientGlobalPointer,
    RotaryPositionEmbedding,
    linear_attention,
    sinusoidal_embedding,
    softmax_attention,
)
from paddle_rope.tasks.experiments.long_range_decay import (
    abel_bound,
    frequencies,
    octave_averages,
    ones_scores,
    pair_products,
    smallest_base,
)
from tests.helpers.comparison import assert_close, random_tensor

OCTAVES = 2 ** np.arange(13)  # distances 1, 2, 4, ..., 4096


def rotation_matrix(position, head_dim):
    """R_m ``[head_dim, head_dim]``, from the rotated unit vectors."""
    units = paddle.eye(head_dim, dtype="float64").unsqueeze(0)
    rotated = RotaryPositionEmbedding(head_dim)(units, positions=paddle.full([head_dim], position))
    return rotated[0].numpy().T


# ---- kexue.fm 8265
def test_phases_whose_differences_see_the_distance_alone_are_arithmetic():
    # unknown: phases p_0 .. p_n and g_-n .. g_n with p_a - p_b = g_(a-b); all solutions are the null space
    n = 12
    a, b = np.indices([n + 1, n + 1]).reshape(2, -1)
    one = np.eye(3 * n + 2)
    _, sizes, directions = np.linalg.svd(one[a] - one[b] - one[2 * n + 1 + a - b])
    solutions = directions[np.count_nonzero(sizes > 1e-9) :, : n + 1]
    assert len(solutions) == 2  # an offset and a slope, nothing else
    np.testing.assert_allclose(np.diff(solutions, 2), 0, atol=1e-12)


LAWS = {
    "t": lambda t: t,
    "t squared": lambda t: t**2,
    "root of t": np.sqrt,
    "power of the base": lambda t: 10000.0**-t,
    "logarithm": np.log1p,
    "cosine": lambda t: np.cos(t * math.pi / 2),
}


def test_almost_any_smooth_monotone_law_of_frequencies_decays():
    for law, theta_of in LAWS.items():
        theta = theta_of((np.arange(2**15) + 0.5) / 2**15)
        sizes = np.abs(np.exp(1j * OCTAVES[:, np.newaxis] * theta).mean(axis=1))
        assert sizes[-1] < 0.25 * sizes[0] and sizes[8:].max() < sizes[:4].min(), law
    for theta in ([0.3], [1.0, 0.01]):  # one or two frequencies come back
        assert np.abs(np.exp(1j * np.outer(np.arange(2**15, 2**16), theta)).mean(axis=1)).max() > 0.99


def test_the_bound_by_abel_falls_below_the_trivial_one_for_smooth_vectors_only():
    theta, distances = frequencies(128), np.arange(1, 20_000)

    def bounds(products):  # q holds h, k is (1, 0) in each pair
        q, k = np.stack([products.real, products.imag], -1).reshape(-1), np.tile([1.0, 0.0], 64)
        assert np.allclose(pair_products(q, k), products)
        return abel_bound(q, k, theta, distances), np.abs(products).sum()

    abel, trivial = bounds(np.linspace(1, 1 / 64, 64) + 0j)  # falls evenly to 0: |h_(i+1) - h_i| is 1/64
    assert abel[0] > 0.9 * trivial and abel[1000:].max() < 0.4 * trivial
    for products in (np.ones(64) + 0j, np.random.standard_normal((64, 2)) @ [1, 1j]):
        abel, trivial = bounds(products)
        assert abel.min() > trivial


def test_a_score_is_an_even_part_of_real_products_and_an_odd_part_of_imaginary_ones():
    q, k = np.random.standard_normal((2, 32))
    theta, products, x = frequencies(32), pair_products(q, k), np.arange(200.0)[:, np.newaxis]
    score = {sign: (products * np.exp(1j * sign * x * theta)).sum(axis=1).real for sign in (1, -1)}
    np.testing.assert_allclose(score[1] + score[-1], 2 * (np.cos(x * theta) @ products.real), atol=1e-12)
    np.testing.assert_allclose(score[1] - score[-1], -2 * (np.sin(x * theta) @ products.imag), atol=1e-12)
    assert np.abs(pair_products(q, q).imag).max() < 1e-15  # equal vectors see the distance, not its direction


def test_the_block_diagonal_rotation_is_no_rotation_in_one_plane():
    matrix = rotation_matrix(3, 8)
    assert np.linalg.matrix_rank(matrix - np.eye(8)) == 8  # one plane alone would have rank 2
    turned = np.degrees(np.arccos(np.diag(matrix)[::2]))  # by how much the first vector of each pair turns
    np.testing.assert_allclose(turned, np.degrees(3 * frequencies(8)), atol=1e-5)


@pytest.mark.parametrize("head_dim, length", [(32, 512), (64, 512), (64, 1024), (128, 1024)])
def test_the_smallest_base_keeps_the_sum_of_cosines_from_turning_negative(head_dim, length):
    base, distances = smallest_base(head_dim, length), np.arange(length)
    assert ones_scores(frequencies(head_dim, base), distances).min() >= 0
    for smaller in np.geomspace(base / 20, base * 0.995, 40):
        assert ones_scores(frequencies(head_dim, smaller), distances).min() < 0


def test_the_sum_of_cosines_is_no_monotone_function_of_the_base():
    assert smallest_base(4, 2) == 1  # two positions allow 0.22 and above
    lowest = [ones_scores(frequencies(64, base), np.arange(1024)).min() for base in (7_754, 10_000, 15_000)]
    assert lowest[0] >= 0 > lowest[1] and lowest[2] >= 0


# ---- kexue.fm 10862
def test_any_orthogonal_rotation_of_values_is_rope_in_another_basis():
    rotation, _ = np.linalg.qr(np.random.standard_normal([8, 8]))
    rotation[:, 0] *= np.linalg.det(rotation)  # without a reflection
    blocks, basis = schur(rotation)  # rotation = basis @ blocks @ basis.T, each block turns one plane
    angles = np.arctan2(np.diag(blocks, -1)[::2], np.diag(blocks)[::2])
    rotary = RotaryPositionEmbedding(8, learned=True).to(dtype="float64")
    rotary.theta.set_value(angles)
    q, k, v = (random_tensor(1, 12, 1, 8) for _ in range(3))
    found = softmax_attention(q, k, v @ paddle.to_tensor(basis), rotary.cos_sin(12), placement="vo").numpy() @ basis.T
    powers = np.stack([np.linalg.matrix_power(rotation, m) for m in range(12)])
    weights = np.exp(q.numpy()[0, :, 0] @ k.numpy()[0, :, 0].T / math.sqrt(8))
    weights /= weights.sum(axis=1, keepdims=True)
    turned = np.einsum("jab,jb->ja", powers, v.numpy()[0, :, 0])
    np.testing.assert_allclose(found[0, :, 0], np.einsum("iba,ij,jb->ia", powers, weights, turned), atol=1e-6)


def test_what_a_rotated_value_adds_to_an_output_decays_as_scores_do():
    values = paddle.zeros([1, 4096, 1, 128])
    values[:, 0] = 1.0  # equal weights, so only the rotation of the first value by the distance is left
    zeros = paddle.zeros_like(values)
    found = softmax_attention(zeros, zeros, values, RotaryPositionEmbedding(128).cos_sin(4096), placement="vo")
    added = 4096 * found.numpy()[0, :, 0].sum(axis=-1)  # along the value
    np.testing.assert_allclose(added, ones_scores(frequencies(128), np.arange(4096)), atol=1e-2)
    assert (np.diff(octave_averages(added)) < 0).all()


# ---- the note on long-range decay: its sizes
def test_the_decay_of_4096_features_is_that_of_128_and_4_features_are_too_few_for_it():
    distances = np.arange(4096)
    wide, head, four = (ones_scores(frequencies(size), distances) / size for size in (4096, 128, 4))
    octaves = [octave_averages(values) for values in (wide, head)]
    assert np.abs(octaves[0] - octaves[1]).max() < 0.02
    assert [len(averages) for averages in octaves] == [12, 12]
    assert (np.diff(octaves) < 0).all()  # each whole octave is below the one before
    np.testing.assert_allclose(four, (np.cos(distances) + np.cos(distances / 100)) / 2, atol=1e-12)
    assert four[600:].max() > 0.99  # comes back to its first value


# ---- the comparison of position encodings
@pytest.mark.parametrize("shift", [1, 37, 500])
def test_a_shifted_sinusoidal_code_is_a_rotation_of_the_code_whatever_the_position(shift):
    near, far = paddle.arange(0, 20_000, 37), paddle.to_tensor([31_000, 70_001])
    matrix = np.linalg.lstsq(*(sinusoidal_embedding(m, 32).numpy() for m in (near, near + shift)), rcond=None)[0]
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(32), atol=1e-4)
    assert_close(sinusoidal_embedding(far + shift, 32), sinusoidal_embedding(far, 32).numpy() @ matrix, 1e-4)


def test_learned_codes_have_no_such_matrix():
    codes = paddle.randn([129, 32]).numpy()
    residual = np.linalg.lstsq(codes[:-1], codes[1:], rcond=None)[1]
    assert residual.sum() > 0.5 * (codes**2).sum()


def test_sinusoidal_codes_of_a_million_positions_differ():
    # |p_m - p_n|^2 = 2 sum_i (1 - cos((m - n) theta_i)) sees the distance alone
    squares = 64 - ones_scores(frequencies(64), np.arange(1, 1_000_001))
    assert squares.min() == squares[0] > 1.5


# ---- the two classes of the Paddle note, as PaddleNLP has them
def test_the_rotation_of_paddlenlp_is_ours_up_to_its_last_position():
    peers = pytest.importorskip("paddlenlp.layers.globalpointer")
    x = random_tensor(2, 512, 64, dtype="float32")
    ours, theirs = RotaryPositionEmbedding(64)(x), peers.RotaryPositionEmbedding(64)(x)
    assert_close(ours[:, :64], theirs[:, :64], 1e-5)
    assert_close(ours, theirs, 1e-4)  # theirs compute phases in float32
    with pytest.raises(ValueError):  # 512 is a limit there
        peers.RotaryPositionEmbedding(64)(random_tensor(1, 513, 64))
    assert RotaryPositionEmbedding(64)(random_tensor(1, 513, 64)).shape == [1, 513, 64]


def test_the_global_pointer_of_paddlenlp_scores_as_the_efficient_head():
    peers = pytest.importorskip("paddlenlp.layers.globalpointer")
    theirs, ours = peers.GlobalPointer(16, 3, head_size=8), EfficientGlobalPointer(16, 3, head_size=8)
    features = np.r_[0:16:2, 1:16:2]  # theirs alternate q and k, ours has all of q first
    types = np.r_[1:6:2, 0:6:2]  # theirs alternate the scores of ends and starts
    ours.dense.weight.set_value(theirs.dense1.weight[:, features])
    ours.dense.bias.set_value(theirs.dense1.bias[features])
    ours.type_scores.weight.set_value(theirs.dense2.weight[features][:, types])
    ours.type_scores.bias.set_value(theirs.dense2.bias[types])
    hidden, mask = paddle.randn([2, 9, 16]), paddle.to_tensor([[1] * 9, [1] * 6 + [0] * 3])
    expected, found = theirs(hidden, mask.astype("float32")).numpy(), ours(hidden, mask).numpy()
    spans = expected > -1e11  # theirs subtract 1e12, which float16 does not hold
    assert spans.sum() == 3 * (45 + 21)
    np.testing.assert_allclose(found[spans], expected[spans], atol=1e-5)
    assert (found[~spans] == -1e4).all()
    assert np.isinf(np.float16(1e12)) and np.isfinite(np.float16(-1e4))


# ---- prior art of RoPE in the numerator alone
def test_linear_attention_with_relu_is_that_of_sana_video():
    # arXiv 2509.24695: relu, queries and keys of the sum rotated, z from the unrotated ones, 1e-15 added
    q, k, v = (random_tensor(1, 12, 2, 8) for _ in range(3))
    rotary = RotaryPositionEmbedding(8)
    found = linear_attention(q, k, v, rotary.cos_sin(12), feature_map=paddle.nn.functional.relu).numpy()
    matrices = np.stack([rotation_matrix(m, 8) for m in range(12)])
    for head in range(2):
        plain_q, plain_k = (np.maximum(x.numpy()[0, :, head].astype("float64"), 0) for x in (q, k))
        turned_q, turned_k = (np.einsum("mab,mb->ma", matrices, x) for x in (plain_q, plain_k))
        z = 1 / (plain_q @ plain_k.sum(axis=0) + 1e-15)
        expected = (turned_q @ (turned_k.T @ v.numpy()[0, :, head])) * z[:, np.newaxis]
        np.testing.assert_allclose(found[0, :, head], expected, atol=1e-5)
