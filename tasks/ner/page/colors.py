"""Colors of entity types: those that are nested most often are the farthest apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations, permutations

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import nested_pieces, parents_of

# Red, green and blue, and the ink that is read best on it, the vivid ones first. Each has a contrast of at least 3 with
# the light and with the dark background. They keep apart in normal vision and in simulated protanopia, deuteranopia and
# tritanopia: distance 0.079 or more.
WHITE, BLACK = "#ffffff", "#000000"
COLORS = (
    ("0 119 204", WHITE), ("221 119 0", BLACK), ("221 0 170", BLACK), ("0 119 34", WHITE), ("136 17 255", WHITE),
    ("221 0 0", WHITE), ("51 153 238", BLACK), ("136 85 119", WHITE), ("187 136 136", BLACK), ("170 102 102", BLACK),
)  # fmt: skip
VIVID = 7
# When the colors are used up they come again with the next kind of edge.
EDGES = ("1.5px solid", "1.5px dotted", "3px double")
STYLES = len(COLORS) * len(EDGES)
SAME_COLOR = 0.02  # what another edge counts as a distance
APART = 0.02  # what a pair of types counts that are never nested, as a share of all nested entities

# What linear red, green and blue look like without the cones for long, medium or short waves: Machado et al. 2009, "A
# physiologically-based model for simulation of color vision deficiency", table 1, severity 1.
VISIONS = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)
# From linear red, green and blue to OKLab: B. Ottosson 2020, "A perceptual color space for image processing".
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def styles_of(types: Sequence[str], entities: Iterable[list[Entity]]) -> list[int]:
    """For each type the number of its style: color ``number % len(COLORS)``, edge ``number // len(COLORS)``.

    A pair of types weighs as much as one is nested in the other. From the heaviest pair on, types take the free styles
    with the least sum of weight / (distance of the colors)² over the types that have one: the heaviest pair gets the
    two colors that are farthest apart. Of more than ``STYLES`` types, those that are nested least share styles.

    Args:
        types: those that occur.
        entities: of each text, ordered.
    """
    nested = _nested(entities)
    totals: Counter = Counter()
    for pair, times in nested.items():
        totals.update(dict.fromkeys(pair, times))
    busiest = sorted(types, key=lambda kind: -totals[kind])[:STYLES]  # of equals the first of the types
    least = APART * max(1, nested.total())
    pairs = {(a, b): nested[a, b] + nested[b, a] + least for a, b in combinations(busiest, 2)}
    weights = {**pairs, **{(b, a): weight for (a, b), weight in pairs.items()}}
    rounds = -(-len(busiest) // len(COLORS))
    free = list(range(VIVID if len(busiest) <= VIVID else rounds * len(COLORS)))
    style_of: dict[str, int] = dict(zip(busiest, free)) if len(busiest) == 1 else {}

    def cost(chosen):
        placed = [*style_of.items(), *chosen[:-1]]
        kind, style = chosen[-1]
        own = sum(weights[kind, other] / _distance_of_styles(style, taken) ** 2 for other, taken in placed)
        return own + (cost(chosen[:-1]) if chosen[1:] else 0.0)

    for pair in sorted(pairs, key=lambda pair: -pairs[pair]):
        kinds = [kind for kind in pair if kind not in style_of]
        if kinds:
            choices = (list(zip(kinds, styles)) for styles in permutations(free, len(kinds)))
            style_of.update(min(choices, key=cost))
            free = [style for style in free if style not in style_of.values()]
    return [style_of.get(kind, number % STYLES) for number, kind in enumerate(types)]


def type_styles(styles: Sequence[int]) -> Iterable[str]:
    """The rules of the style sheet for types, by their numbers: color, ink, edge, and what hides the others when some
    types are chosen to be shown alone."""
    for number, style in enumerate(styles):
        color, ink = COLORS[style % len(COLORS)]
        kind, hidden = f".t{number}", f"body:has(.only:checked):not(:has(#only{number}:checked))"
        yield f"{kind}{{--c:{color};--ink:{ink};--edge:{EDGES[style // len(COLORS)]}}}\n"
        yield f"{hidden} mark{kind}{{all:unset}}{hidden} mark{kind}::after{{content:none}}"
        yield f"{hidden} nav {kind}{{display:none}}\n"


@cache
def distance(color: str, other: str) -> float:
    """How far two colors, as in ``COLORS``, are apart in OKLab, in the vision in which they are nearest."""
    return min(
        sum((a - b) ** 2 for a, b in zip(_oklab(color, vision), _oklab(other, vision))) ** 0.5 for vision in VISIONS
    )


def _distance_of_styles(one, other):
    color, other_color = one % len(COLORS), other % len(COLORS)
    return SAME_COLOR if color == other_color else distance(COLORS[color][0], COLORS[other_color][0])


def _nested(entities):
    """How often an entity of one type lies directly in one of another: Counter of (outer type, inner type)."""
    nested: Counter = Counter()
    for of_text in entities:
        pieces = nested_pieces(of_text)
        for piece, parent in zip(pieces, parents_of(pieces)):
            if parent is not None and pieces[parent].entity.type != piece.entity.type:
                nested[pieces[parent].entity.type, piece.entity.type] += 1
    return nested


def _oklab(color, vision):
    channels = (int(value) / 255 for value in color.split())
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    seen = [min(max(value, 0.0), 1.0) for value in _times(vision, linear)]
    return _times(_TO_LAB, [value ** (1 / 3) for value in _times(_TO_CONES, seen)])


def _times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]
