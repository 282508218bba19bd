"""Spans inside others and across others: as a loop over all pairs finds them, in fewer steps."""

import random

import pytest

from tasks.ner.data import overlaps
from tasks.ner.data.overlaps import crossing_spans, nested_spans


def slowly(spans):
    """Both, by the definition: all pairs in order, the first partner of each span."""
    nested, crossing = {}, {}
    for one in range(len(spans)):
        for other in range(one + 1, len(spans)):
            (start, end), (other_start, other_end) = spans[one], spans[other]
            if other_start >= end or spans[one] == spans[other]:
                continue
            if start == other_start:
                nested.setdefault(one, other)
            elif other_end <= end:
                nested.setdefault(other, one)
            else:
                crossing.setdefault(one, other)
                crossing.setdefault(other, one)
    return list(nested.items()), list(crossing.items())


def random_spans(seed):
    chance = random.Random(seed)
    length = chance.choice((3, 8, 30))
    spans = []
    for _ in range(chance.randrange(14)):
        start = chance.randrange(length)
        spans.append((start, chance.randint(start + 1, min(length, start + chance.choice((2, length))))))
    return sorted(spans)


def test_random_spans_have_the_partners_that_all_pairs_give():
    found = [(nested_spans(spans), crossing_spans(spans)) for spans in map(random_spans, range(800))]
    assert found == [slowly(spans) for spans in map(random_spans, range(800))]
    assert all(sum(len(of[kind]) for of in found) > 500 for kind in (0, 1))


class Counted(int):
    """A number that counts its comparisons."""

    count = 0

    def __lt__(self, other):
        Counted.count += 1
        return int(self) < int(other)

    def __eq__(self, other):
        Counted.count += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


@pytest.mark.parametrize("find", [nested_spans, crossing_spans])
@pytest.mark.parametrize(
    "span",
    [lambda i, n: (i, i + n), lambda i, n: (i, 2 * n - i), lambda i, n: (0, 1 + i)],
    ids=["cross", "nest", "grow"],
)
def test_spans_that_all_overlap_take_steps_nearly_linear_in_their_number(find, span):
    steps = []
    for number in (250, 1000):
        Counted.count = 0
        find([tuple(map(Counted, span(place, number))) for place in range(number)])
        steps.append(Counted.count)
    assert 0 < steps[1] < 6 * steps[0]  # n log n: 5 times, all pairs: 16 times


def test_the_least_of_any_part_of_a_list():
    values = [5, 3, 8, 1, 9, 2, 7]
    least = overlaps._minima(values)
    parts = [(start, end) for start in range(7) for end in range(start + 1, 8)]
    assert [least(*part) for part in parts] == [min(values[slice(*part)]) for part in parts]
    assert least(3, 3) is None
