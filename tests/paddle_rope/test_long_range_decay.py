"""Long-range decay: the curves equal plain sums and the rotation itself, and the bound bounds."""

import cmath
import csv
import math

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding
from paddle_rope.long_range_decay import (
    abel_bound,
    falls_until,
    frequencies,
    mean_partial_sums,
    octave_averages,
    ones_scores,
    pair_products,
    quarter_period,
)
from tasks.commands.experiment import DECAY_FILES as FILES
from tests.helpers.verbs import verb

plot_decay = verb("decay")

PNG_START = b"\x89PNG\r\n\x1a\n"
SHAPES = [(128, 10000.0), (64, 500.0), (6, 7.5), (2, 10000.0)]


def rotated_scores(q, k, base, query, keys):
    """<R_m q, R_n k> for m = query and all n in keys, by paddle in float64: ``[keys]``."""
    rotary = RotaryPositionEmbedding(len(q), base)
    m, n = paddle.to_tensor([query]), paddle.to_tensor(np.asarray(keys))
    rotated_q = rotary(paddle.to_tensor(q[np.newaxis, np.newaxis]), positions=m)
    rotated_k = rotary(paddle.to_tensor(np.tile(k, (1, len(keys), 1))), positions=n)
    return (rotated_q * rotated_k).sum(axis=-1).numpy()[0]


def partial_sum(theta, j, x):
    """S_j(x), term by term."""
    return sum(cmath.exp(1j * x * theta[i]) for i in range(j))


# ---- the mathematics


@pytest.mark.equation("1.2", "7.1")
@pytest.mark.parametrize("head_dim, base", SHAPES)
def test_frequencies_are_those_of_the_rotation(head_dim, base):
    np.testing.assert_array_equal(frequencies(head_dim, base), RotaryPositionEmbedding(head_dim, base).theta)


@pytest.mark.equation("7.3")
@pytest.mark.parametrize("head_dim, base", SHAPES)
def test_mean_partial_sums_equal_the_plain_loop(head_dim, base):
    theta = frequencies(head_dim, base)
    distances = [0, 1, 2, 17, 256, 5000, -17, 3.25]
    pairs = head_dim // 2
    expected = [sum(abs(partial_sum(theta, j, x)) for j in range(1, pairs + 1)) / pairs for x in distances]
    np.testing.assert_allclose(mean_partial_sums(theta, distances), expected, rtol=0, atol=1e-11)
    assert mean_partial_sums(theta, np.arange(3000)).max() <= (pairs + 1) / 2 + 1e-12


@pytest.mark.equation("7.3")
def test_bound_decays_with_the_distance():
    values = mean_partial_sums(frequencies(128), np.arange(257))
    averages = octave_averages(values)
    assert (np.diff(averages) < 0).all()
    assert values[200:].max() < values[0] / 3


@pytest.mark.equation("7.5")
@pytest.mark.parametrize("head_dim, base", SHAPES)
@pytest.mark.parametrize("query", [0, 1, 100, 70_000])
def test_ones_scores_are_the_dot_products_of_rotated_ones(head_dim, base, query):
    keys = np.arange(max(0, query - 300), query + 301)
    expected = rotated_scores(np.ones(head_dim), np.ones(head_dim), base, query, keys)
    scores = ones_scores(frequencies(head_dim, base), keys - query)
    assert scores[keys == query] == head_dim
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


@pytest.mark.equation("7.2")
@pytest.mark.parametrize("query", [0, 35])
def test_pair_products_give_the_dot_product_of_any_vectors(query):
    q, k = np.random.standard_normal((2, 16))
    keys = np.arange(90)
    turns = np.exp(1j * np.outer(query - keys, frequencies(16)))  # [keys, 8]
    np.testing.assert_allclose(
        (turns @ pair_products(q, k)).real, rotated_scores(q, k, 10000.0, query, keys), atol=1e-12
    )


@pytest.mark.equation("7.4")
@pytest.mark.parametrize("head_dim, base", SHAPES)
def test_abel_bound_holds_for_random_vectors_and_is_the_product_of_its_factors(head_dim, base):
    theta, keys = frequencies(head_dim, base), np.arange(400)
    for query in (0, 150):
        q, k = np.random.standard_normal((2, head_dim)) * np.random.uniform(0.1, 10) + np.random.standard_normal()
        bound = abel_bound(q, k, theta, query - keys)
        scores = rotated_scores(q, k, base, query, keys)
        assert (np.abs(scores) <= bound * (1 + 1e-12) + 1e-9).all()
        h = [*pair_products(q, k), 0]
        largest = max(abs(h[i + 1] - h[i]) for i in range(head_dim // 2))
        sums = [sum(abs(partial_sum(theta, j, 150 - n)) for j in range(1, head_dim // 2 + 1)) for n in (0, 399)]
        np.testing.assert_allclose(abel_bound(q, k, theta, [150, 150 - 399]), largest * np.array(sums), rtol=1e-11)


@pytest.mark.equation("7.4")
def test_abel_bound_can_be_reached():
    one_pair = np.array([3.0, 4.0])  # |h_0| = 25 and S_1 = 1 at distance 0
    np.testing.assert_allclose(abel_bound(one_pair, one_pair, [1.0], [0]), [25.0], rtol=1e-15)


@pytest.mark.equation("7.8")
@pytest.mark.parametrize("head_dim", [2, 128])
def test_theta_one_is_periodic_without_decay(head_dim):
    theta, distances = np.ones(head_dim // 2), np.arange(1000)
    np.testing.assert_allclose(mean_partial_sums(theta, distances), (head_dim / 2 + 1) / 2, rtol=1e-12)
    scores = ones_scores(theta, distances)
    np.testing.assert_allclose(scores, head_dim * np.cos(distances), rtol=0, atol=1e-10)
    np.testing.assert_allclose(ones_scores(theta, distances + 2 * math.pi), scores, rtol=0, atol=1e-10)
    for block in scores.reshape(20, 50):
        assert block.max() > 0.98 * head_dim and block.min() < -0.98 * head_dim


def test_quarter_period_of_a_pair_that_does_not_turn_is_infinite():
    assert quarter_period([1.0, 0.0]) == math.inf


@pytest.mark.equation("7.6")
@pytest.mark.parametrize("head_dim, base", [(128, 10000.0), (64, 10000.0), (64, 500.0), (256, 1000.0), (128, 100.0)])
def test_octave_averages_of_ones_fall_to_the_octave_of_the_quarter_period_and_rise_after_it(head_dim, base):
    theta = frequencies(head_dim, base)
    quarter = quarter_period(theta)
    averages = octave_averages(ones_scores(theta, np.arange(int(4 * quarter))))
    assert falls_until(averages) == int(math.log2(quarter)) < len(averages) - 1


@pytest.mark.equation("7.6")
@pytest.mark.parametrize("x", [0.5, 3.0, 20.0])
def test_slope_of_ones_with_many_pairs_is_the_difference_of_the_fastest_and_the_slowest_cosine(x):
    head_dim, base, step = 65536, 100.0, 1e-3
    below, above = ones_scores(frequencies(head_dim, base), [x - step, x + step])
    slope = x * (above - below) / (2 * step)
    assert abs(slope * math.log(base) / head_dim - (math.cos(x) - math.cos(x / base))) < 1e-2


@pytest.mark.equation("7.7")
def test_octaves_are_whole_and_begin_at_one():
    np.testing.assert_array_equal(octave_averages([9, 1, 2, 4, 5, 5, 5, 9, 100]), [1, 3, 6])
    np.testing.assert_array_equal(octave_averages(np.arange(7)), [1, 2.5])
    assert octave_averages([3]).size == 0


@pytest.mark.equation("7.7")
@pytest.mark.parametrize("values, last", [([3, 2, 1], 2), ([3, 2, 2, 1], 1), ([3, 4, 1], 0), ([5], 0)])
def test_falls_until_is_the_last_index_before_a_value_that_is_not_lower(values, last):
    assert falls_until(values) == last


@pytest.mark.parametrize(
    "head_dim, base", [(7, 1.0), (0, 1.0), (-2, 1.0), (4, 0), (4, -1.0), (4, math.inf), (4, math.nan)]
)
def test_frequencies_of_odd_sizes_or_impossible_bases_are_an_error(head_dim, base):
    with pytest.raises(ValueError, match="rotary_dim must be|base must be"):
        frequencies(head_dim, base)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_partial_sums([], [0]),
        lambda: ones_scores([[1.0]], [0]),
        lambda: ones_scores([1.0], 3),
        lambda: pair_products([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]),
        lambda: pair_products([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        lambda: abel_bound([1.0, 2.0], [1.0, 2.0], [1.0, 0.1], [0]),
    ],
)
def test_shapes_that_do_not_fit_are_an_error(call):
    with pytest.raises(ValueError, match="must"):
        call()


# ---- the tool


def read_csv(path):
    """{column: float64 array}."""
    with open(path, encoding="ascii", newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, dtype=np.float64).T))


@pytest.fixture
def draw(tmp_path, capsys):
    """Run the tool into a folder that does not exist yet; the folder and what was printed."""

    def draw(*words, folder="deep/figures"):
        assert plot_decay.main([*map(str, words), "--output", str(tmp_path / folder)]) == 0
        return tmp_path / folder, capsys.readouterr().out

    return draw


@pytest.mark.parametrize("head_dim, base, reach, query", [(128, 10000, 256, 0), (6, 50, 400, 90)])
def test_written_numbers_are_those_of_the_functions(draw, head_dim, base, reach, query):
    options = {"--head_dim": head_dim, "--base": base, "--max_distance": reach, "--query_position": query}
    folder, _ = draw(*(word for pair in options.items() for word in pair))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    bound, ones = read_csv(folder / "decay_bound.csv"), read_csv(folder / "decay_ones.csv")
    thetas = {
        "rope": frequencies(head_dim, base),
        "theta_0": np.zeros(head_dim // 2),
        "theta_1": np.ones(head_dim // 2),
    }
    np.testing.assert_array_equal(bound["distance"], np.arange(reach + 1))
    np.testing.assert_array_equal(ones["key_position"], np.arange(max(0, query - reach), query + reach + 1))
    np.testing.assert_array_equal(ones["distance"], ones["key_position"] - query)
    for name, theta in thetas.items():
        np.testing.assert_array_equal(bound[name], mean_partial_sums(theta, bound["distance"]))
        np.testing.assert_array_equal(ones[name], ones_scores(theta, ones["distance"]))


def test_smallest_figures_are_images_and_the_same_at_every_call(draw):
    smallest = ["--head_dim", 2, "--base", 1, "--max_distance", 1, "--query_position", 1]
    (first, _), (second, _) = draw(*smallest, folder="a"), draw(*smallest, folder="b")
    for name in ("decay_bound.png", "decay_ones.png"):
        assert (first / name).read_bytes().startswith(PNG_START)
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.parametrize("reach, verdict", [(146, "is in its"), (147, "has left its")])
def test_printed_lines_tell_on_which_side_of_the_quarter_period_the_range_ends(draw, reach, verdict):
    _, printed = draw("--base", 100, "--max_distance", reach)  # quarter period 146.17
    assert verdict in printed and "146.2" in printed


def test_existing_files_stay_unless_overwriting_is_asked_for(draw, fails):
    folder, _ = draw("--max_distance", 5, folder="out")
    (folder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    error = fails(plot_decay, "--max_distance", "6", "--output", str(folder))
    assert "decay_bound.png: exists already" in error and "--overwrite" in error
    draw("--max_distance", 6, "--overwrite", folder="out")
    after = {path: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys()
    assert {path.name for path in after if after[path] == before[path]} == {"notes.txt"}


@pytest.mark.parametrize(
    "words, message",
    [
        (["--head_dim", "7"], "--head_dim 7"),
        (["--head_dim", "0"], "--head_dim 0"),
        (["--head_dim", "many"], "--head_dim"),
        (["--base", "0"], "--base 0"),
        (["--base", "nan"], "--base nan"),
        (["--max_distance", "0"], "--max_distance 0"),
        (["--max_distance", "9999999999"], "--max_distance 9999999999"),
        (["--query_position", "-1"], "--query_position -1"),
        (["--output", "file"], "file"),
        (["--output", "file/below"], "file/below"),
        (["--output", "taken", "--overwrite"], "taken/decay_ones.csv"),
    ],
)
def test_bad_values_are_refused_by_name_and_nothing_is_written(tmp_path, fails, words, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "decay_ones.csv").mkdir(parents=True)
    assert message in fails(plot_decay, "--output", "new", *words)
