"""Colors of entity types: types that are nested in each other look different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import nested_pieces

# Red, green and blue, and the ink that is read best on it; the vivid ones first, and neighbors far apart. Each has a
# contrast of at least 3 with the light and with the dark background. They keep apart in normal vision and in simulated
# protanopia, deuteranopia and tritanopia: tests/tasks/ner/page/test_colors.py computes how far.
WHITE, BLACK = "#ffffff", "#000000"
COLORS = (
    ("0 119 204", WHITE), ("221 119 0", BLACK), ("136 17 255", WHITE), ("221 0 0", WHITE), ("51 153 238", BLACK),
    ("0 119 34", WHITE), ("221 0 170", BLACK), ("136 85 119", WHITE), ("187 136 136", BLACK), ("170 102 102", BLACK),
)  # fmt: skip
# When the colors are used up they come again with the next kind of edge.
EDGES = ("1.5px solid", "1.5px dotted", "3px double")


def looks_of(types: Sequence[str], entities: Iterable[list[Entity]]) -> dict[str, dict[str, str]]:
    """``color``, ``ink`` and ``edge`` of each type that occurs, as the style sheet has them. The two types that are
    nested in each other most often get the first two colors, and so on; then come the others."""
    nested: Counter = Counter()
    for of_text in entities:
        pieces = nested_pieces(of_text)
        pairs = ({piece.parent.entity.type, piece.entity.type} for piece in pieces if piece.parent)
        nested.update(tuple(sorted(pair)) for pair in pairs if len(pair) == 2)
    ranked = dict.fromkeys([*(kind for pair, _ in nested.most_common() for kind in pair), *types])
    looks = {}
    for number, kind in enumerate(ranked):
        color, ink = COLORS[number % len(COLORS)]
        looks[kind] = {"color": color, "ink": ink, "edge": EDGES[number // len(COLORS) % len(EDGES)]}
    return looks
