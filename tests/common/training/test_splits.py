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


def labels_of(example):
    return example.labels


@pytest.fixture
def labeled():
    """1,000 texts: a tenth with a, of which some also have b, 30 with c, the rest without a label."""
    return [
        SimpleNamespace(
            text=f"text {n}", where=f"f:{n}", labels=["a"] * (n % 10 == 0) + ["b"] * (n % 50 == 0) + ["c"] * (n > 969)
        )
        for n in range(1000)
    ]


@pytest.mark.parametrize("fraction", [0.1, 0.3])
def test_stratified_part_has_its_share_of_each_label(labeled, fraction):
    rest, held = hold_out(labeled, fraction, "stratified", labels_of)
    assert len(held) == 1000 * fraction and sorted(rest + held, key=labeled.index) == labeled
    for label in "abc":
        total = sum(label in example.labels for example in labeled)
        assert abs(sum(label in example.labels for example in held) - fraction * total) <= 2
    shuffled = hold_out(labeled[::-1], fraction, "stratified", labels_of)[1]
    assert {example.text for example in shuffled} == {example.text for example in held}


def test_stratified_part_of_many_rare_labels_has_its_size():
    rare = [SimpleNamespace(text=f"{n}", where=f"f:{n}", labels=[f"type {n // 4}"]) for n in range(400)]
    assert len(hold_out(rare, 0.1, "stratified", labels_of)[1]) == 40


def test_contiguous_part_is_the_end_and_a_text_that_is_there_twice_stays_on_one_side():
    given = examples([f"text {n}" for n in range(20)] + ["text 3"])
    rest, held = hold_out(given, 0.25, "contiguous")
    assert [e.text for e in held] == [f"text {n}" for n in range(15, 20)]
    assert [e.text for e in rest] == [f"text {n}" for n in range(15)] + ["text 3"]
