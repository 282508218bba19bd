"""Entity scores and precision-recall curves."""

import pytest

from tasks.ner.examples import Entity
from tasks.ner.metrics import entity_scores, precision_recall_curves

A, B, C = Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(0, 2, "b")


@pytest.mark.parametrize(
    "gold, found, expected",
    [
        # counts are summed over texts before dividing: no mean over texts
        ([{A}, {A, B, C}], [{A}, {A, (7, 8, "a"), (8, 9, "a")}], (2 / 4, 2 / 4, 2 / 4)),
        ([{A}], [{A}], (1, 1, 1)),
        ([{A}], [{(0, 3, "a")}], (0, 0, 0)),
        ([{A}], [{(1, 2, "a")}], (0, 0, 0)),
        ([{A}], [{C}], (0, 0, 0)),
        ([{A}, set()], [set(), {A}], (0, 0, 0)),
        ([{(0, 6, "b"), (0, 2, "a"), (0, 4, "b")}], [{(0, 6, "b"), (0, 2, "a")}], (1, 2 / 3, 4 / 5)),
        ([[A, A, B]], [[A, A, A]], (1, 1 / 2, 2 / 3)),
        ([set()], [set()], (0, 0, 0)),
        ([{A}], [set()], (0, 0, 0)),
        ([set()], [{A}], (0, 0, 0)),
        ([], [], (0, 0, 0)),
    ],
)
def test_precision_recall_and_f1_of_exact_spans(gold, found, expected):
    scores = entity_scores(gold, found, ["a", "b", "never"])
    assert (scores["precision"], scores["recall"], scores["f1"]) == pytest.approx(expected)
    assert set(scores["per_type"]["never"].values()) == {0}


def test_each_type_has_its_own_scores_in_the_given_order():
    scores = entity_scores([{A, B, C}], [{A, C, (4, 9, "b")}], ["b", "a"])
    assert (scores["support"], scores["predicted"], scores["correct"]) == (3, 3, 2)
    assert [(kind, row["precision"], row["recall"]) for kind, row in scores["per_type"].items()] == [
        ("b", 1 / 2, 1), ("a", 1, 1 / 2),
    ]  # fmt: skip


def curve(gold, candidates, steps):
    """The curve of type "a"; candidates are (entity, score)."""
    scored = [[entity._replace(score=score) for entity, score in of_text] for of_text in candidates]
    return precision_recall_curves(gold, scored, ["a"], steps)["a"]


LN3 = 1.0986122886681098  # the logit of 3/4


def test_a_curve_counts_what_is_above_each_threshold():
    candidates = [[(A, 2.0), (Entity(7, 9, "a"), 0.5), (C, 9.0)], [(A, -0.5), (Entity(1, 2, "a"), -1.0)]]
    found = curve([{A, B, C}, {A}], candidates, steps=4)  # above the logits -ln 3, 0, ln 3, infinity
    assert [found[name].tolist() for name in ("tp", "fp", "fn", "tn")] == [
        [2, 1, 1, 0], [2, 1, 0, 0], [1, 2, 2, 3], [0, 1, 2, 2],
    ]  # fmt: skip
    assert found["precision"].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert found["recall"].tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0.0])
    at_thresholds = curve([{A}], [[(A, 0.0), (Entity(3, 4, "a"), LN3 + 1e-9)]], steps=4)
    assert (at_thresholds["tp"].tolist(), at_thresholds["fp"].tolist()) == ([1, 0, 0, 0], [1, 1, 1, 0])


def test_a_curve_at_one_half_is_the_score_of_the_type():
    gold, candidates = [{A, B}, {A}, set()], [[(A, 1.0), (B, -1.0)], [(A, 0.1), (Entity(5, 6, "a"), 3.0)], [(C, 1.0)]]
    row = entity_scores(gold, [[e for e, score in one if score > 0] for one in candidates], ["a"])["per_type"]["a"]
    found = curve(gold, candidates, steps=100)
    assert (found["precision"][49], found["recall"][49]) == (row["precision"], row["recall"])


def test_a_curve_ends_with_the_last_precision_or_with_0_where_nothing_is_predicted():
    assert curve([{A}], [[(A, 0.5), (Entity(3, 4, "a"), 0.6)]], steps=4)["precision"].tolist() == [0.5] * 4
    nothing = curve([set()], [[]], steps=3)
    assert nothing["precision"].tolist() == nothing["recall"].tolist() == [0.0] * 3
    assert curve([[A, A._replace(score=1.0)]], [[]], steps=3)["fn"].tolist() == [1] * 3
