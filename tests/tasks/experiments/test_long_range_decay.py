"""Long-range decay: the curves equal plain sums and the rotation itself, and the bound bounds."""

import cmath
import math

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.experiments.long_range_decay import (
    abel_bound,
    frequencies,
    mean_partial_sums,
    octave_averages,
    ones_scores,
    pair_products,
    quarter_period,
)

each_shape = pytest.mark.parametrize("head_dim, base", [(128, 10000.0), (64, 500.0), (6, 7.5), (2, 10000.0)])


def rotated_scores(q, k, base, query, keys):
    """<R_m q, R_n k> for m = query and all n in keys, by paddle in float64: ``[keys]``."""
    rotary = RotaryPositionEmbedding(len(q), base)
    m, n = paddle.to_tensor([query]), paddle.to_tensor(np.asarray(keys))
    rotated_q = rotary(paddle.to_tensor(q[np.newaxis, np.newaxis]), positions=m)
    rotated_k = rotary(paddle.to_tensor(np.tile(k, (1, len(keys), 1))), positions=n)
    return (rotated_q * rotated_k).sum(axis=-1).numpy()[0]


def partial_sums(theta, x):
    """|S_j(x)| for j = 1 .. d/2, term by term."""
    return [abs(sum(cmath.exp(1j * x * theta[i]) for i in range(j))) for j in range(1, len(theta) + 1)]


@pytest.mark.equation("1.2", "7.1", "7.3")
@each_shape
def test_mean_partial_sums_equal_the_plain_loop_over_the_frequencies_of_the_rotation(head_dim, base):
    theta = frequencies(head_dim, base)
    np.testing.assert_array_equal(theta, RotaryPositionEmbedding(head_dim, base).theta)
    distances, pairs = [0, 1, 2, 17, 256, 5000, -17, 3.25], head_dim // 2
    expected = [sum(partial_sums(theta, x)) / pairs for x in distances]
    np.testing.assert_allclose(mean_partial_sums(theta, distances), expected, rtol=0, atol=1e-11)
    assert mean_partial_sums(theta, np.arange(3000)).max() <= (pairs + 1) / 2 + 1e-12


@pytest.mark.equation("7.5")
@each_shape
@pytest.mark.parametrize("query", [0, 100, 70_000])
def test_ones_scores_are_the_dot_products_of_rotated_ones(head_dim, base, query):
    keys = np.arange(max(0, query - 300), query + 301)
    expected = rotated_scores(np.ones(head_dim), np.ones(head_dim), base, query, keys)
    np.testing.assert_allclose(ones_scores(frequencies(head_dim, base), keys - query), expected, rtol=0, atol=1e-9)


@pytest.mark.equation("7.2", "7.4")
@each_shape
def test_pair_products_give_every_dot_product_which_the_abel_bound_bounds(head_dim, base):
    theta, keys = frequencies(head_dim, base), np.arange(400)
    for query in (0, 150):
        q, k = np.random.standard_normal((2, head_dim)) * np.random.uniform(0.1, 10) + np.random.standard_normal()
        scores, turns = rotated_scores(q, k, base, query, keys), np.exp(1j * np.outer(query - keys, theta))
        np.testing.assert_allclose((turns @ pair_products(q, k)).real, scores, rtol=0, atol=1e-9)
        assert (np.abs(scores) <= abel_bound(q, k, theta, query - keys) * (1 + 1e-12) + 1e-9).all()
        h = [*pair_products(q, k), 0]
        largest = max(abs(h[i + 1] - h[i]) for i in range(head_dim // 2))
        expected = [largest * sum(partial_sums(theta, x)) for x in (150, -249)]
        np.testing.assert_allclose(abel_bound(q, k, theta, [150, -249]), expected, rtol=1e-11)
    one_pair = np.array([3.0, 4.0])  # |h_0| = 25 and S_1 = 1 at distance 0: the bound is reached
    np.testing.assert_allclose(abel_bound(one_pair, one_pair, [1.0], [0]), [25.0], rtol=1e-15)


@pytest.mark.equation("7.8")
@pytest.mark.parametrize("head_dim", [2, 128])
def test_theta_one_is_periodic_without_decay(head_dim):
    theta, distances = np.ones(head_dim // 2), np.arange(1000)
    np.testing.assert_allclose(mean_partial_sums(theta, distances), (head_dim / 2 + 1) / 2, rtol=1e-12)
    scores = ones_scores(theta, distances)
    np.testing.assert_allclose(scores, head_dim * np.cos(distances), rtol=0, atol=1e-10)
    np.testing.assert_allclose(ones_scores(theta, distances + 2 * math.pi), scores, rtol=0, atol=1e-10)


@pytest.mark.equation("7.6")
@pytest.mark.parametrize("head_dim, base", [(128, 10000.0), (64, 10000.0), (64, 500.0), (256, 1000.0), (128, 100.0)])
def test_octave_averages_of_ones_fall_to_the_octave_of_the_quarter_period(head_dim, base):
    theta = frequencies(head_dim, base)
    quarter = quarter_period(theta)
    averages = octave_averages(ones_scores(theta, np.arange(int(4 * quarter))))
    falls, octave = np.diff(averages) < 0, int(math.log2(quarter))
    assert falls[:octave].all() and not falls[octave]
    assert quarter_period([1.0, 0.0]) == math.inf


@pytest.mark.equation("7.7")
def test_octaves_are_whole_and_begin_at_one():
    np.testing.assert_array_equal(octave_averages([9, 1, 2, 4, 5, 5, 5, 9, 100]), [1, 3, 6])
    np.testing.assert_array_equal(octave_averages(np.arange(7)), [1, 2.5])
    assert octave_averages([3]).size == 0


# ---- the command
@pytest.mark.parametrize("head_dim, base, reach, query", [(128, 10000, 256, 0), (6, 50, 400, 90), (2, 1, 1, 1)])
def test_numbers_are_those_of_the_functions_and_figures_are_drawn(head_dim, base, reach, query, tmp_path, capsys):
    words = f"--head_dim {head_dim} --base {base} --max_distance {reach} --query_position {query} --output"
    assert main(["decay", *words.split(), str(tmp_path / "deep/figures")]) == 0
    found = {path.name: path.read_bytes() for path in (tmp_path / "deep/figures").iterdir()}
    assert found.keys() == {"decay_bound.png", "decay_ones.png"}
    assert all(content.startswith(b"\x89PNG\r\n\x1a\n") for content in found.values())
    distances, bound, ones = (line.split()[-6:] for line in capsys.readouterr().out.splitlines()[:3])
    last, theta = int(distances[-1]), frequencies(head_dim, base)
    assert last == reach
    assert bound[-1] == f"{mean_partial_sums(theta, [last])[0]:.2f}"
    assert ones[-1] == f"{ones_scores(theta, [last])[0]:.2f}"
