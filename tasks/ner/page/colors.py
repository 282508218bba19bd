"""Colors of entity types: types that nest most often get the colors that are farthest apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import nested_pieces

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

# How far each color is from those before it in OKLab (B. Ottosson 2020, "A perceptual color space for image
# processing"), in the vision in which they are nearest: the normal one, or without the cones for long, medium or short
# waves (Machado et al. 2009, table 1, severity 1). tests/tasks/ner/page/test_colors.py computes them.
DISTANCES = (
    (),
    (0.2606,),
    (0.0931, 0.1029),
    (0.0924, 0.0876, 0.1743),
    (0.0826, 0.2541, 0.1255, 0.1328),
    (0.2755, 0.1008, 0.0840, 0.0914, 0.2907),
    (0.1005, 0.2729, 0.1068, 0.1876, 0.1305, 0.2806),
    (0.1414, 0.1931, 0.0935, 0.1017, 0.1025, 0.1418, 0.1870),
    (0.1585, 0.1000, 0.1105, 0.1537, 0.1874, 0.1361, 0.1530, 0.1606),
    (0.1613, 0.1122, 0.0963, 0.0865, 0.1523, 0.0847, 0.2001, 0.0793, 0.0899),
)


def styles_of(types: Sequence[str], entities: Iterable[list[Entity]]) -> list[int]:
    """For each type the number of its style: color ``number % len(COLORS)``, edge ``number // len(COLORS)``.

    A pair of types weighs as much as one is nested in the other. From the heaviest pair on, types take the free styles
    with the least sum of weight / (distance of the colors)² over the types that have one: the heaviest pair gets the
    two colors that are farthest apart. Of more than ``STYLES`` types, the ones that nest least share styles.

    Args:
        types: names of the types that occur.
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
        own = sum(weights[kind, other] / _distance(style, taken) ** 2 for other, taken in placed)
        return own + (cost(chosen[:-1]) if chosen[1:] else 0.0)

    for pair in sorted(pairs, key=lambda pair: -pairs[pair]):
        kinds = [kind for kind in pair if kind not in style_of]
        if kinds:
            choices = (list(zip(kinds, styles)) for styles in permutations(free, len(kinds)))
            style_of.update(min(choices, key=cost))
            free = [style for style in free if style not in style_of.values()]
    return [style_of.get(kind, number % STYLES) for number, kind in enumerate(types)]


def looks_of(style: int) -> dict[str, str]:
    """``color``, ``ink`` and ``edge`` of a style, as the style sheet has them."""
    color, ink = COLORS[style % len(COLORS)]
    return {"color": color, "ink": ink, "edge": EDGES[style // len(COLORS)]}


def _distance(one, other):
    far, near = sorted((one % len(COLORS), other % len(COLORS)), reverse=True)
    return SAME_COLOR if far == near else DISTANCES[far][near]


def _nested(entities):
    """How often an entity of one type lies directly in one of another: Counter of (outer type, inner type)."""
    nested: Counter = Counter()
    for of_text in entities:
        types = [(piece.parent.entity.type, piece.entity.type) for piece in nested_pieces(of_text) if piece.parent]
        nested.update((outer, inner) for outer, inner in types if outer != inner)
    return nested
