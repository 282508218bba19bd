"""Every two values of two parameters of a test meet, in few cases."""

import itertools

import pytest

from tests.helpers.pairwise import pairwise, pairwise_cases


@pytest.mark.parametrize(
    "sizes, most", [([3], 0), ([2, 3], 6), ([2, 2, 2, 2], 7), ([4, 5, 2, 3], 22), ([5, 5, 2, 2], 27), ([1, 1, 4], 4)]
)
def test_every_two_values_meet_in_few_cases(sizes, most):
    cases = pairwise_cases(sizes)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        assert {(case[a], case[b]) for case in cases} == set(itertools.product(range(sizes[a]), range(sizes[b])))
    assert len(cases) <= most
    assert len(set(cases)) == len(cases)


@pairwise({"kind": ["a", "b"], "shape, width": [((1, 2), 3), ((4,), 5)], "masked": [False, True]})
def test_values_come_under_their_names(kind, shape, width, masked, request):
    assert request.node.name.endswith(f"[{kind}-{shape}-{width}-{'masked' if masked else 'not masked'}]")


def test_all_of_them_come():
    (mark,) = test_values_come_under_their_names.pytestmark
    given = {(kind, masked) for kind, _, _, masked in (case.values for case in mark.args[1])}
    assert given == set(itertools.product("ab", (False, True)))
