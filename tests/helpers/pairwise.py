"""Cases of tests with several parameters: each two values of two parameters meet, not all values of all."""

import itertools

import pytest


def pairwise(parameters):
    """A decorator like products of ``pytest.mark.parametrize``, of fewer cases. ``parameters`` map a name to its
    values; a name may be several, ``"shape, width"``, with tuples as values."""
    names, values = list(parameters), list(parameters.values())
    cases = [
        pytest.param(
            *(x for name, of_name, at in zip(names, values, case) for x in _each(name, of_name[at])),
            id="-".join(_shown(name, of_name[at]) for name, of_name, at in zip(names, values, case)),
        )
        for case in pairwise_cases([len(of_name) for of_name in values])
    ]
    return pytest.mark.parametrize(", ".join(names), cases)


def pairwise_cases(sizes):
    """Tuples of numbers below ``sizes`` in which every two numbers of every two places meet; always the same."""
    places = list(itertools.combinations(range(len(sizes)), 2))
    left = {(a, x, b, y): None for a, b in places for x in range(sizes[a]) for y in range(sizes[b])}  # an ordered set
    cases = []
    while left:
        a, x, b, y = next(iter(left))
        chosen = {a: x, b: y}
        for place in range(len(sizes)):
            if place not in chosen:
                start = len(cases)  # of values that are as good another one each time
                options = [(start + number) % sizes[place] for number in range(sizes[place])]
                chosen[place] = max(options, key=lambda value: _new(left, chosen, place, value))
        case = tuple(chosen[place] for place in range(len(sizes)))
        for a, b in places:
            left.pop((a, case[a], b, case[b]), None)
        cases.append(case)
    return cases


def _new(left, chosen, place, value):
    """How many pairs that are left a value would make."""
    return sum(((a, x, place, value) if a < place else (place, value, a, x)) in left for a, x in chosen.items())


def _each(name, value):
    return value if "," in name else (value,)


def _shown(name, value):
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return "-".join(getattr(one, "__name__", str(one)) for one in _each(name, value))
