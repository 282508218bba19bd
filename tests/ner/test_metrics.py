"""Entity scores: corpus micro F1 over exact spans."""

import pytest

from tasks.ner.metrics import entity_scores

A, B, C = (0, 2, "a"), (3, 5, "a"), (0, 2, "b")


def summary(scores):
    return scores["precision"], scores["recall"], scores["f1"]


def test_scores_sum_counts_over_texts_before_dividing_and_are_no_mean_of_batches():
    gold = [{A}, {A, B, C}]
    found = [{A}, {A, (7, 8, "a"), (8, 9, "a")}]
    scores = entity_scores(gold, found, ["a", "b"])
    assert summary(scores) == pytest.approx((2 / 4, 2 / 4, 2 / 4))
    mean = sum(entity_scores([g], [f], ["a", "b"])["f1"] for g, f in zip(gold, found)) / 2
    assert scores["f1"] != pytest.approx(mean)
    assert (scores["support"], scores["predicted"], scores["correct"]) == (4, 4, 2)


@pytest.mark.parametrize("wrong", [(0, 3, "a"), (1, 2, "a"), (0, 2, "b")], ids=["end", "start", "type"])
def test_start_end_and_type_have_to_be_exact(wrong):
    assert summary(entity_scores([{A}], [{wrong}], ["a", "b"])) == (0.0, 0.0, 0.0)
    assert summary(entity_scores([{A}], [{A}], ["a", "b"])) == (1.0, 1.0, 1.0)


def test_same_span_in_another_text_does_not_count():
    assert entity_scores([{A}, set()], [set(), {A}], ["a"])["correct"] == 0


def test_each_type_has_its_own_scores_in_the_given_order():
    scores = entity_scores([{A, B, C}], [{A, C, (4, 9, "b")}], ["b", "a"])
    assert list(scores["per_type"]) == ["b", "a"]
    assert summary(scores["per_type"]["a"]) == pytest.approx((1, 1 / 2, 2 / 3))
    assert summary(scores["per_type"]["b"]) == pytest.approx((1 / 2, 1, 2 / 3))


def test_nested_entities_count_each():
    gold = [{(0, 6, "org"), (0, 2, "loc"), (0, 4, "org")}]
    scores = entity_scores(gold, [{(0, 6, "org"), (0, 2, "loc")}], ["loc", "org"])
    assert summary(scores) == pytest.approx((1, 2 / 3, 4 / 5))


@pytest.mark.parametrize("gold, found", [([set()], [set()]), ([{A}], [set()]), ([set()], [{A}]), ([], [])])
def test_quotient_without_denominator_is_zero(gold, found):
    scores = entity_scores(gold, found, ["a", "never"])
    assert summary(scores) == summary(scores["per_type"]["never"]) == (0.0, 0.0, 0.0)


def test_span_given_twice_counts_once():
    assert entity_scores([[A, A]], [[A, A, A]], ["a"])["predicted"] == 1
