"""Entity scores: corpus micro F1 over exact spans."""

import pytest

from tasks.ner.examples import Entity
from tasks.ner.metrics import entity_scores, precision_recall_curves

A, B, C = Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(0, 2, "b")


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
    scores = entity_scores([[A, A, B]], [[A, A, A]], ["a"])
    assert (scores["support"], scores["predicted"], scores["correct"]) == (2, 1, 1)
    curve = precision_recall_curve([[A, A._replace(score=1.0)]], [[]], "a", steps=2)
    assert curve["fn"].tolist() == [1, 1]


# ---- precision-recall curves


def precision_recall_curve(gold, candidates, kind, steps=100):
    return precision_recall_curves(gold, candidates, [kind], steps)[kind]


LN3 = 1.0986122886681098  # the logit of 3/4


def test_curve_by_hand():
    gold = [{A, B, C}, {A}]
    candidates = [
        [A._replace(score=2.0), Entity(7, 9, "a", 0.5), C._replace(score=9.0)],
        [A._replace(score=-0.5), Entity(1, 2, "a", -1.0)],
    ]
    curve = precision_recall_curve(gold, candidates, "a", steps=4)  # above the logits -ln 3, 0, ln 3, infinity
    assert curve["tp"].tolist() == [2, 1, 1, 0]
    assert curve["fp"].tolist() == [2, 1, 0, 0]
    assert curve["fn"].tolist() == [1, 2, 2, 3]
    assert curve["tn"].tolist() == [0, 1, 2, 2]
    assert curve["precision"].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert curve["recall"].tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0.0])


def test_curve_counts_what_is_above_a_threshold_not_at_it():
    curve = precision_recall_curve([{A}], [[A._replace(score=0.0), Entity(3, 4, "a", LN3 + 1e-9)]], "a", steps=4)
    assert (curve["tp"].tolist(), curve["fp"].tolist()) == ([1, 0, 0, 0], [1, 1, 1, 0])


def test_curve_at_one_half_is_the_score_of_the_type():
    gold = [{A, B}, {A}, set()]
    candidates = [
        [A._replace(score=1.0), B._replace(score=-1.0)],
        [A._replace(score=0.1), Entity(5, 6, "a", 3.0)],
        [C._replace(score=1.0)],
    ]
    found = [[entity for entity in entities if entity.score > 0] for entities in candidates]
    row = entity_scores(gold, found, ["a", "b"])["per_type"]["a"]
    curve = precision_recall_curve(gold, candidates, "a")
    assert (curve["precision"][49], curve["recall"][49]) == (row["precision"], row["recall"])


def test_curve_does_not_leap_where_nothing_is_predicted_any_more():
    curve = precision_recall_curve([{A}], [[A._replace(score=0.5), Entity(3, 4, "a", 0.6)]], "a", steps=4)
    assert curve["recall"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert curve["precision"].tolist() == [0.5, 0.5, 0.5, 0.5]


def test_curve_without_gold_or_without_predictions():
    nothing = precision_recall_curve([set()], [[]], "a", steps=3)
    assert nothing["precision"].tolist() == [0.0] * 3 and nothing["recall"].tolist() == [0.0] * 3
    assert precision_recall_curve([{A}], [[]], "a", steps=3)["fn"].tolist() == [1] * 3
