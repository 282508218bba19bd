"""Colors of types: those that nest are told apart best."""

from itertools import combinations

import numpy as np
import pytest

from tasks.ner.examples import Entity
from tasks.ner.page.colors import COLORS, DISTANCES, STYLES, styles_of
from tests.tasks.ner.page.parsing import page, record

TYPES = list("abcdefgh")
# What linear red, green and blue look like without the cones for long, medium or short waves: Machado et al. 2009, "A
# physiologically-based model for simulation of color vision deficiency", table 1, severity 1.
VISIONS = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)
# From linear red, green and blue to OKLab: B. Ottosson 2020, "A perceptual color space for image processing".
TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def oklab(color, vision):
    channels = np.array(color.split(), dtype=float) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ np.clip(np.array(vision) @ linear, 0, 1))


def distance(color, other):
    """How far two colors are apart in OKLab, in the vision in which they are nearest."""
    return min(np.linalg.norm(oklab(color, vision) - oklab(other, vision)) for vision in VISIONS)


PAIRS = {(near, far): DISTANCES[far][near] for near, far in combinations(range(len(COLORS)), 2)}


def nested(*pairs):
    """A text for each pair, in which an entity of the first type holds one of the second."""
    return [[Entity(0, 9, outer), Entity(2, 5, inner)] for outer, inner in pairs]


def test_colors_are_told_apart_in_every_vision():
    assert min(PAIRS.values()) > 0.075
    for (one, other), listed in PAIRS.items():
        assert distance(COLORS[one][0], COLORS[other][0]) == pytest.approx(listed, abs=1e-4)
    assert distance("0 0 0", "255 255 255") == pytest.approx(1, abs=1e-3)  # of OKLab's lightness
    assert distance("200 60 0", "110 110 0") < distance("200 60 0", "0 60 200")


@pytest.mark.parametrize("pair", [("a", "b"), ("b", "g"), ("h", "a")])
def test_the_two_types_that_nest_get_the_farthest_colors(pair):
    styles = dict(zip(TYPES, styles_of(TYPES, nested(*[pair] * 100))))
    assert PAIRS[tuple(sorted(styles[kind] for kind in pair))] == max(PAIRS.values())
    assert len(set(styles.values())) == len(TYPES)


def test_of_several_pairs_the_more_frequent_is_farther_apart():
    pairs = [("a", "b")] * 90 + [("c", "d")] * 9 + [("e", "f")]
    styles = dict(zip(TYPES, styles_of(TYPES, nested(*pairs))))
    first, second, third = (PAIRS[tuple(sorted((styles[a], styles[b])))] for a, b in (pairs[0], pairs[90], pairs[99]))
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
    content = page(record("ab", (0, 1, "a", 1.0)))
    assert f".t0{{--c:{COLORS[0][0]};--ink:{COLORS[0][1]};--edge:1.5px solid}}" in content
    assert "body:has(.only:checked):not(:has(#only0:checked)) mark.t0{all:unset}" in content
