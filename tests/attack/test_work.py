"""Work and answers are linear in the bytes that come in, at each door; and what is not linear is noticed."""

import pytest

from tests.attack.text_doors import Sent
from tests.attack.work import KINDS, LEAST_BYTES, LEAST_SECONDS, Cost, faults, tried
from tests.tasks.serving.conftest import skip_without_extra


@pytest.mark.parametrize("kind", KINDS)
def test_work_and_answer_are_linear_in_the_bytes_that_come_in(kind):
    if kind == "request":
        skip_without_extra()
    for name, door in KINDS[kind].items():
        costs, found = tried(*door)
        assert not found, (name, costs)


def test_work_and_answers_that_grow_with_the_square_are_noticed():
    def pairs(n):
        text = b"a" * n
        return Sent(n, lambda: sum(one == other for one in text for other in text))

    costs, found = tried(pairs, 700)
    assert [one.split()[0] for one in found] == ["seconds", "answered"], costs


@pytest.mark.parametrize("grown, count", [(4, 0), (9, 0), (11, 1), (16, 1)])
def test_growth_counts_above_a_bound_and_a_least_cost(grown, count):
    for scale, expected in ((2, count), (1 / 20, 0)):
        seconds, answered = LEAST_SECONDS * scale, LEAST_BYTES * scale
        for last in (Cost(40, seconds * grown, 0), Cost(40, 0, answered * grown)):
            assert len(faults([Cost(10, seconds, answered), last])) == expected
