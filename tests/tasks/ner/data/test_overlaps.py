"""Entities inside others and across others: those that the comparison of all pairs finds."""

import random
import time

import pytest

from tasks.ner.data.inspection import overlapping_pairs
from tasks.ner.examples import Entity


def random_entities(seed):
    chance = random.Random(seed)
    length = chance.choice((3, 8, 30))
    entities = set()
    for _ in range(chance.randrange(14)):
        start = chance.randrange(length)
        end = chance.randint(start + 1, min(length, start + chance.choice((2, length))))
        entities.add(Entity(start, end, chance.choice("ab")))
    return sorted(entities)


def is_inside(one, other):
    return one[:2] != other[:2] and other.start <= one.start and one.end <= other.end


def begins_in(one, other):
    return other.start < one.start < other.end < one.end


@pytest.mark.parametrize("kind, holds", [(0, is_inside), (1, begins_in)])
def test_random_entities_have_a_partner_if_any_pair_gives_one(kind, holds):
    found = 0
    for entities in map(random_entities, range(800)):
        pairs = overlapping_pairs(entities)[kind]
        assert all(holds(*pair) for pair in pairs)
        expected = [one for one in entities if any(holds(one, other) for other in entities)]
        assert sorted(one for one, _ in pairs) == expected
        found += len(pairs)
    assert found > 500


@pytest.mark.parametrize(
    "span",
    [lambda i, n: (i, i + n), lambda i, n: (i, 2 * n - i), lambda i, n: (0, 1 + i)],
    ids=["cross", "nest", "grow"],
)
def test_entities_that_all_overlap_are_not_compared_pair_by_pair(span):
    number = 20_000
    entities = [Entity(*span(place, number), "a") for place in range(number)]
    begin = time.process_time()
    nested, crossing = overlapping_pairs(entities)
    assert len(nested) + len(crossing) == number - 1
    assert time.process_time() - begin < 5  # 200 million pairs would take minutes
