"""Relations as pictures without scripts: related entities as boxes in a row, and an arc from the head to the tail of
each relation, which ends in an arrow. Relations that cross or share an entity are in the same picture."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator

from markupsafe import Markup, escape

from paddle_rope.tasks.ner.examples import Entity

EM = 10  # units of a character
SURFACE_CHARACTERS, LONGEST_RISE = 12, 9 * EM


def arcs(
    text: str, entities: list[Entity], relations: list[dict], number_of: Callable[[str], int]
) -> Iterator[tuple[int, Markup]]:
    """The first character and the picture of each group of the relations of a record
    (:class:`paddle_rope.tasks.relations.prediction.RelationsPredictor`), ordered; ``number_of`` numbers types."""
    groups: list[list[dict]] = []
    reached = -1  # the entity up to which relations go so far
    for one in sorted(relations, key=lambda one: (min(one["head"], one["tail"]), max(one["head"], one["tail"]))):
        if min(one["head"], one["tail"]) > reached:
            groups.append([])
        groups[-1].append(one)
        reached = max(reached, one["head"], one["tail"])
    for group in groups:
        numbers = sorted({one[end] for one in group for end in ("head", "tail")})
        boxes = [(text[entities[n].start : entities[n].end], number_of(entities[n].type)) for n in numbers]
        places = {number: place for place, number in enumerate(numbers)}
        named = [(places[one["head"]], places[one["tail"]], _label(one)) for one in group]
        yield entities[numbers[0]].start, _picture(boxes, named)


def _label(relation):
    return f"{relation['type']} {relation['probability']:.2f}"


def _width(text):
    return EM * sum(1 if unicodedata.east_asian_width(symbol) in "WFA" else 0.58 for symbol in text)


def _picture(boxes, relations):
    surfaces = [one if len(one) <= SURFACE_CHARACTERS else f"{one[:SURFACE_CHARACTERS]}…" for one, _ in boxes]
    gap = EM + max((0.75 * _width(label) - 4 * EM for *_, label in relations), default=0)
    middles, edge = [], 0.0
    for surface in surfaces:
        middles.append(edge + _width(surface) / 2 + 0.5 * EM)
        edge += _width(surface) + EM + max(gap, EM)
    width, between, drawn, highest = edge - max(gap, EM), Counter(), [], 0.0
    for head, tail, label in relations:
        pair = min(head, tail), max(head, tail)
        # farther entities have higher arcs, and so does each further relation of a pair
        rise = min(LONGEST_RISE, 1.6 * EM * (pair[1] - pair[0] or 1).bit_length()) + 1.5 * EM * between[pair]
        between[pair] += 1
        highest = max(highest, rise)
        start, end = middles[head] - 4 * (head == tail), middles[tail] + 4 * (head == tail)
        bend = -rise / 0.75  # of a cubic curve, whose highest point is at three quarters
        drawn.append(
            f'<path d="M{start:.0f} 0C{start:.0f} {bend:.0f} {end:.0f} {bend:.0f} {end:.0f} 0"/>'
            f'<path class="arrow" d="M{end:.0f} 0l-2.2 -4.5h4.4z"/>'
            f'<text x="{(start + end) / 2:.0f}" y="{-rise - 2:.0f}" class="label">{escape(label)}</text>'
        )
    for middle, surface, (_, number) in zip(middles, surfaces, boxes):
        size = _width(surface) + EM
        drawn.append(
            f'<rect class="t{number}" x="{middle - size / 2:.0f}" width="{size:.0f}" height="16" rx="3"/>'
            f'<text x="{middle:.0f}" y="11.5">{escape(surface)}</text>'
        )
    left, top = -1.5 * EM, -highest - 1.2 * EM
    size = width - 2 * left, 18 - top
    box = f"{left:.0f} {top:.0f} {size[0]:.0f} {size[1]:.0f}"
    style = f"width:{size[0] / EM:.1f}em;height:{size[1] / EM:.1f}em"
    return Markup(f'<svg class="arcs" lang="zh" role="img" viewBox="{box}" style="{style}">{"".join(drawn)}</svg>')
