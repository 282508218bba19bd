"""Colors of types: those that nest are told apart best."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import COLORS, EDGES, looks_of
from tests.tasks.ner.page.parsing import page, record

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
LUMINANCE = (0.2126, 0.7152, 0.0722)


def linear(color):
    channels = np.array(color.split(), dtype=float) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def distance(color, other):
    """How far two colors are apart in OKLab, in the vision in which they are nearest."""
    colors = [
        [np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ np.clip(np.array(vision) @ linear(one), 0, 1))]
        for one in (color, other)
        for vision in VISIONS
    ]
    one, two = np.split(np.concatenate(colors), 2)
    return np.linalg.norm(one - two, axis=1).min()


def contrast(color, other):
    """Contrast of two colors by WCAG 2, from 1 to 21."""
    dark, light = sorted(float(linear(one) @ LUMINANCE) for one in (color, other))
    return (light + 0.05) / (dark + 0.05)


def test_colors_are_told_apart_in_every_vision_neighbors_best():
    colors = [color for color, _ in COLORS]
    assert min(distance(*pair) for pair in combinations(colors, 2)) > 0.075
    assert min(distance(*pair) for pair in pairwise(colors[:7])) > 0.17 and distance(*colors[:2]) > 0.25
    assert distance("0 0 0", "255 255 255") == pytest.approx(1, abs=1e-3)  # of OKLab's lightness


def test_names_on_colors_and_edges_on_both_backgrounds_can_be_read():
    white, black, dark = "255 255 255", "0 0 0", "22 24 29"
    for color, ink in COLORS:
        of_ink = {"#ffffff": contrast(color, white), "#000000": contrast(color, black)}
        assert of_ink[ink] == max(of_ink.values()) >= 4.5
        assert min(contrast(color, white), contrast(color, dark)) >= 2.9


def inside(*pairs):
    """A text for each pair, in which an entity of the second type is in one of the first."""
    return [[Entity(0, 9, outer), Entity(2, 5, inner)] for outer, inner in pairs]


@pytest.mark.parametrize(
    "texts, order",
    [
        ([], "abcd"),
        (inside(*["dc"] * 9, *["ab"] * 8), "cdab"),
        (inside("ad", "da", "bc"), "adbc"),
        ([[Entity(0, 4, "b"), Entity(2, 6, "d")]], "bdac"),  # crossing entities count as nested
        ([[Entity(0, 2, "b"), Entity(2, 6, "d")]], "abcd"),  # neighbors do not
    ],
)
def test_types_that_nest_most_often_get_the_first_colors(texts, order):
    looks = looks_of("abcd", texts)
    assert [looks[kind]["color"] for kind in order] == [color for color, _ in COLORS[:4]]


def test_types_share_a_look_only_when_all_are_used():
    types = [f"t{number}" for number in range(35)]
    looks = [tuple(look.values()) for look in looks_of(types, []).values()]
    assert len(set(looks)) == len(COLORS) * len(EDGES) == 30 and looks_of([], []) == {}
    color, ink = COLORS[0]
    assert f".t0{{--c:{color};--ink:{ink};--edge:{EDGES[0]}}}" in page(record("ab", (0, 1, "a", 1.0)))
