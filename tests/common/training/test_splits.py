"""The part of the training data that is held out."""

from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.training.splits import hold_out


def examples(texts):
    return [SimpleNamespace(text=text, where=f"f:{number}") for number, text in enumerate(texts, 1)]


def test_a_text_that_is_there_twice_is_on_one_side_and_order_does_not_matter():
    given = examples([f"text {n % 50}" for n in range(80)])
    rest, held = hold_out(given, 0.2)
    assert {e.text for e in rest}.isdisjoint(e.text for e in held) and len({e.text for e in held}) == 10
    assert len(rest) + len(held) == 80
    assert {e.text for e in hold_out(given[::-1], 0.2)[1]} == {e.text for e in held}


def test_one_text_cannot_be_cut_in_two():
    with pytest.raises(InputError, match="f:1: one text cannot be cut in two"):
        hold_out(examples(["a", "a"]), 0.5)
