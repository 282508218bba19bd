"""Every two values of two parameters of a test meet, in few cases."""

import itertools

import pytest

from tests.helpers.pairwise import pairwise, pairwise_cases


@pytest.mark.parametrize("sizes, most", [([3], 0), ([2, 3], 6), ([2, 2, 2, 2], 7), ([4, 5, 2, 3], 22), ([1, 1, 4], 4)])
def test_every_two_values_meet_in_few_cases(sizes, most):
    cases = pairwise_cases(sizes)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        assert {(case[a], case[b]) for case in cases} == set(itertools.product(range(sizes[a]), range(sizes[b])))
    assert len(set(cases)) == len(cases) <= most


@pairwise({"kind": ["a", "b"], "shape, width": [((1, 2), 3), ((4,), 5)], "masked": [False, True]})
def test_values_come_under_their_names(kind, shape, width, masked, request):
    assert request.node.name.endswith(f"[{kind}-{shape}-{width}-{'masked' if masked else 'not masked'}]")
