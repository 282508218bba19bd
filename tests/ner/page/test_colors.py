"""Colors of types: those that nest are told apart best."""

from itertools import combinations

import pytest

from tasks.ner.examples import Entity
from tasks.ner.page.colors import COLORS, EDGES, STYLES, distance, styles_of, type_styles

TYPES = list("abcdefgh")
DISTANCES = {pair: distance(COLORS[pair[0]][0], COLORS[pair[1]][0]) for pair in combinations(range(len(COLORS)), 2)}


def nested(*pairs):
    """A text for each pair, in which an entity of the first type holds one of the second."""
    return [[Entity(0, 9, outer), Entity(2, 5, inner)] for outer, inner in pairs]


def test_colors_are_told_apart_in_every_vision():
    assert min(DISTANCES.values()) > 0.075
    assert distance(COLORS[0][0], COLORS[0][0]) == 0
    assert distance("0 0 0", "255 255 255") == pytest.approx(1, abs=1e-3)  # of OKLab's lightness


def test_red_and_green_are_nearer_without_the_cones_for_one_of_them():
    assert distance("200 60 0", "110 110 0") < distance("200 60 0", "0 60 200")


@pytest.mark.parametrize("pair", [("a", "b"), ("b", "g"), ("h", "a")])
def test_the_two_types_that_nest_get_the_farthest_colors(pair):
    styles = dict(zip(TYPES, styles_of(TYPES, nested(*[pair] * 100))))
    assert DISTANCES[tuple(sorted(styles[kind] for kind in pair))] == max(DISTANCES.values())
    assert len(set(styles.values())) == len(TYPES)


def test_of_several_pairs_the_more_frequent_is_farther_apart():
    pairs = [("a", "b")] * 90 + [("c", "d")] * 9 + [("e", "f")]
    styles = dict(zip(TYPES, styles_of(TYPES, nested(*pairs))))
    first, second, third = (
        DISTANCES[tuple(sorted((styles[a], styles[b])))] for a, b in (pairs[0], pairs[90], pairs[99])
    )
    assert first >= second >= third > 0.1


def test_crossing_entities_count_as_nested_and_neighbors_do_not():
    crossing = [[Entity(0, 4, "a"), Entity(2, 6, "b")]] * 100
    neighbors = [[Entity(0, 2, "a"), Entity(2, 6, "b")]] * 100
    assert styles_of(TYPES, crossing) == styles_of(TYPES, nested(*[("a", "b")] * 100))
    assert styles_of(TYPES, neighbors) == styles_of(TYPES, [[]])


def test_types_share_styles_only_when_all_are_used():
    types = [f"t{number}" for number in range(STYLES + 5)]
    styles = styles_of(types, nested(("t33", "t34")))
    assert set(styles) == set(range(STYLES))
    assert styles[33] % len(COLORS) != styles[34] % len(COLORS)
    assert styles_of([], []) == []


def test_a_type_has_a_color_an_edge_and_a_rule_that_hides_it():
    first, hiding, _, *_ = type_styles([len(COLORS) + 2])
    assert first == f".t0{{--c:{COLORS[2][0]};--ink:{COLORS[2][1]};--edge:{EDGES[1]}}}\n"
    assert hiding.startswith("body:has(.only:checked):not(:has(#only0:checked)) mark.t0{")
