"""Scores, curves, kinds of errors, reliability of probabilities, and the tables that print them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope.tasks.ner.examples import Entity, Example
from paddle_rope.tasks.ner.metrics import (
    entity_scores,
    error_analysis,
    match_entities,
    precision_recall_curves,
    worst_examples,
)
from paddle_rope.tasks.ner.reports.printed import print_errors, print_scores, print_worst_examples
from paddle_rope.tasks.ner.reports.reliability import BINS, calibration, error_line, print_reliability, reliability
from tests.tasks.ner.conftest import labeled

A, B, C = Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(0, 2, "b")


@pytest.mark.parametrize("gold, found, expected", [
    # counts are summed over texts before dividing: no mean over texts
    ([{A}, {A, B, C}], [{A}, {A, (7, 8, "a"), (8, 9, "a")}], (2 / 4, 2 / 4, 2 / 4)),
    ([{A}], [{(0, 3, "a")}], (0, 0, 0)),
    ([{A}], [{C}], (0, 0, 0)),
    ([{A}, set()], [set(), {A}], (0, 0, 0)),
    ([{(0, 6, "b"), (0, 2, "a"), (0, 4, "b")}], [{(0, 6, "b"), (0, 2, "a")}], (1, 2 / 3, 4 / 5)),
    ([[A, A, B]], [[A, A, A]], (1, 1 / 2, 2 / 3)),
    ([{A}], [set()], (0, 0, 0)),
    ([], [], (0, 0, 0)),
])  # fmt: skip
def test_precision_recall_and_f1_of_exact_spans(gold, found, expected):
    scores = entity_scores(labeled(gold), found, ["a", "b", "never"])
    assert (scores["precision"], scores["recall"], scores["f1"]) == pytest.approx(expected)
    assert set(scores["per_type"]["never"].values()) == {0}


def test_each_type_has_its_own_scores_in_the_given_order():
    scores = entity_scores(labeled([{A, B, C}]), [{A, C, (4, 9, "b")}], ["b", "a"])
    assert (scores["support"], scores["predicted"], scores["correct"]) == (3, 3, 2)
    assert [(kind, row["precision"], row["recall"]) for kind, row in scores["per_type"].items()] == [
        ("b", 1 / 2, 1), ("a", 1, 1 / 2),
    ]  # fmt: skip


def curve(gold, candidates, steps):
    """The curve of type "a"; candidates are (entity, score)."""
    scored = [[entity._replace(score=score) for entity, score in of_text] for of_text in candidates]
    return precision_recall_curves(labeled(gold), scored, ["a", "b"], steps)["a"]


def test_a_curve_counts_what_is_above_each_threshold():
    candidates = [[(A, 2.0), (Entity(7, 9, "a"), 0.5), (C, 9.0)], [(A, -0.5), (Entity(1, 2, "a"), -1.0)]]
    found = curve([{A, B, C}, {A}], candidates, steps=4)  # above the logits -ln 3, 0, ln 3, infinity
    assert [found[name].tolist() for name in ("tp", "fp", "fn", "tn")] == [
        [2, 1, 1, 0], [2, 1, 0, 0], [1, 2, 2, 3], [0, 1, 2, 2],
    ]  # fmt: skip
    assert found["precision"].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert found["recall"].tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0.0])
    at_thresholds = curve([{A}], [[(A, 0.0), (Entity(3, 4, "a"), 1.09861229)]], steps=4)  # above ln 3
    assert (at_thresholds["tp"].tolist(), at_thresholds["fp"].tolist()) == ([1, 0, 0, 0], [1, 1, 1, 0])


def test_a_curve_ends_with_the_last_precision_or_with_0_where_nothing_is_predicted():
    assert curve([{A}], [[(A, 0.5), (Entity(3, 4, "a"), 0.6)]], steps=4)["precision"].tolist() == [0.5] * 4
    nothing = curve([set()], [[]], steps=3)
    assert nothing["precision"].tolist() == nothing["recall"].tolist() == [0.0] * 3
    assert curve([[A, A._replace(score=1.0)]], [[]], steps=3)["fn"].tolist() == [1] * 3


def entities(spans):
    return [Entity(*span) for span in spans]


def kinds(gold, predicted):
    return [
        (match.kind, match.gold and match.gold[:3], match.predicted and match.predicted[:3])
        for match in match_entities(entities(gold), entities(predicted))
    ]


PAIRS = {  # what is found in place of (2, 5, "a")
    (2, 5, "a"): "correct", (2, 5, "b"): "type", (4, 9, "b"): "both", (2, 4, "b"): "both",
    (1, 5, "a"): "too_long", (2, 6, "a"): "too_long", (3, 4, "a"): "too_short",
    (1, 3, "a"): "crossing", (4, 9, "a"): "crossing",
}  # fmt: skip


@pytest.mark.parametrize("gold, predicted, expected", [
    *(([(2, 5, "a")], [found], {(2, 5): kind}) for found, kind in PAIRS.items()),
    # entities apart
    ([(2, 5, "a")], [(0, 2, "a"), (5, 7, "a")], {(0, 2): "spurious", (2, 5): "missed", (5, 7): "spurious"}),
    # nested ones each find their own
    ([(0, 8, "a"), (0, 4, "a"), (0, 2, "b")], [(0, 8, "a"), (0, 4, "b"), (0, 3, "b")],
     {(0, 2): "too_long", (0, 4): "type", (0, 8): "correct"}),
    # the same boundaries go before the same type, and that before a larger overlap
    ([(0, 4, "a")], [(0, 4, "b"), (0, 5, "a")], {(0, 4): "type", (0, 5): "spurious"}),
    ([(0, 4, "a")], [(0, 3, "b"), (3, 9, "a")], {(0, 3): "spurious", (0, 4): "crossing"}),
    # of two with the same type the one with the larger overlap
    ([(0, 4, "a")], [(0, 3, "a"), (0, 1, "a")], {(0, 1): "spurious", (0, 4): "too_short"}),
    # what is correct is in no other pair
    ([(0, 4, "a"), (1, 3, "a")], [(0, 4, "a")], {(0, 4): "correct", (1, 3): "missed"}),
])  # fmt: skip
def test_each_entity_has_the_place_of_the_first_rule(gold, predicted, expected):
    assert {(wanted or found)[:2]: kind for kind, wanted, found in kinds(gold, predicted)} == expected


SPANS = st.sets(st.builds(lambda start, size, kind: (start, start + size, kind), st.integers(0, 30),
                          st.integers(1, 12), st.sampled_from("abc")), max_size=12)  # fmt: skip


@settings(max_examples=40)
@given(SPANS, SPANS)
def test_every_entity_has_one_place_in_each_table(gold, predicted):
    matches = kinds(gold, predicted)
    assert sorted(wanted for _, wanted, _ in matches if wanted) == sorted(gold)
    assert sorted(found for _, _, found in matches if found) == sorted(predicted)
    missed, spurious = ([one or two for kind, one, two in matches if kind == name] for name in ("missed", "spurious"))
    # otherwise they would be a pair
    assert all(one[1] <= other[0] or other[1] <= one[0] for one, other in itertools.product(missed, spurious))
    analysis = error_analysis(labeled([gold]), [entities(predicted)])
    errors = analysis["errors"]
    paired = sum(errors[kind] for kind in ("correct", "type", "boundary", "both"))
    assert paired + errors["missed"] == len(gold) and paired + errors["spurious"] == len(predicted)
    assert errors["boundary"] == errors["too_long"] + errors["too_short"] + errors["crossing"]
    assert sum(row["count"] for row in analysis["confusions"]) == errors["type"]
    assert sum(row["support"] for row in analysis["by_length"]) == len(gold)
    assert sum(row["predicted"] for row in analysis["by_length"]) == len(predicted)


def counts(row):
    return row["support"], row["predicted"], row["correct"]


def test_counts_of_a_corpus():
    gold = [{(0, 3, "a"), (0, 1, "b"), (5, 7, "c")}, {(0, 2, "a")}, set()]
    predicted = [{(0, 3, "a"), (0, 1, "c"), (5, 8, "c")}, {(9, 12, "b")}, {(0, 1, "a")}]
    analysis = error_analysis(labeled(gold), list(map(entities, predicted)))
    assert analysis["errors"] == {
        "correct": 1, "type": 1, "boundary": 1, "both": 0, "missed": 1, "spurious": 2,
        "too_long": 1, "too_short": 0, "crossing": 0,
    }  # fmt: skip
    assert analysis["confusions"] == [{"gold": "b", "predicted": "c", "count": 1}]
    lengths = {(row["from"], row["to"]): counts(row) for row in analysis["by_length"]}
    assert lengths == {(1, 1): (1, 2, 0), (2, 2): (2, 0, 0), (3, 3): (1, 3, 1)}
    # (0, 1, "c") and (0, 3, "a") share a character with both gold entities there
    nesting = {name: counts(row) for name, row in analysis["by_nesting"].items()}
    assert nesting == {"nested": (2, 2, 1), "flat": (2, 3, 0)}
    assert error_analysis(labeled(gold[1:2]), [[]])["by_nesting"] is None


def test_worst_examples_have_the_most_errors_and_then_the_most_certain_ones():
    gold = [[(0, 2, "a")], [(0, 2, "a"), (3, 4, "b")], [], [], [(0, 1, "c")]]
    found = [[(0, 2, "a", 5.0)], [(0, 3, "a", 0.5)], [(1, 2, "b", 1.0)], [(1, 2, "b", 3.00004)], []]
    examples = [Example("abcdefgh", tuple(entities(spans)), f"f:{n}") for n, spans in enumerate(gold, 1)]
    worst = worst_examples(examples, list(map(entities, found)), 10)
    assert [row["where"] for row in worst] == ["f:2", "f:4", "f:3", "f:5"]
    assert worst[0]["errors"] == [
        {
            "kind": "too_long",
            "gold": {"start": 0, "end": 2, "type": "a", "text": "ab"},
            "predicted": {"start": 0, "end": 3, "type": "a", "text": "abc", "score": 0.5},
        },
        {"kind": "missed", "gold": {"start": 3, "end": 4, "type": "b", "text": "d"}, "predicted": None},
    ]
    assert worst_examples(examples, list(map(entities, found)), 2) == worst[:2]


def test_bins_hold_equal_numbers_and_the_error_is_their_mean_distance():
    probabilities = np.array([0.55, 0.65, 0.75, 0.85, 0.95] * 4)
    result = calibration(np.log(probabilities / (1 - probabilities)), np.array([0, 1, 0, 1, 1] * 4))
    assert [row["entities"] for row in result["bins"]] == [2] * BINS
    assert [row["probability"] for row in result["bins"]] == pytest.approx(sorted(probabilities)[::2])
    assert [row["correct"] for row in result["bins"]] == [0, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    assert result["expected_calibration_error"] == pytest.approx((0.55 + 0.35 + 0.75 + 0.15 + 0.05) / 5)
    assert result["bins"][0]["from"] == pytest.approx(0.55) and result["bins"][-1]["to"] == pytest.approx(0.95)


def test_forced_entities_which_have_no_score_do_not_count():
    found = [[Entity(0, 1, "a", 2.0), Entity(1, 2, "new", float("inf"))], []]
    assert reliability(labeled(GOLD), found, ["a", "b"], 1.0)["entities"] == 1


GOLD = [[Entity(0, 1, "a"), Entity(1, 2, "b")], []]
FOUND = [[Entity(0, 1, "a", 2.0), Entity(1, 2, "b", 2.0)], [Entity(0, 1, "b", 1.0)]]


@pytest.mark.parametrize("found, temperatures, errors", [
    (FOUND, [4.0, 1.0], (((1 - 0.6225) + (1 - 0.8808) + 0.7311) / 3, ((1 - 0.8808) * 2 + 0.7311) / 3)),
    (FOUND, [1.0, 1.0], (((1 - 0.8808) * 2 + 0.7311) / 3,) * 2),
    ([[], []], [2.0, 1.0], (None, None)),
])  # fmt: skip
def test_a_type_has_its_temperature_and_both_errors_are_said(found, temperatures, errors, capsys):
    result = reliability(labeled(GOLD), found, ["a", "b"], temperatures)
    assert result["temperatures"] == dict(zip("ab", temperatures)) and result["entities"] == sum(map(len, found))
    kinds = [result[name] for name in ("calibrated", "uncalibrated")]
    assert [kind["expected_calibration_error"] for kind in kinds] == [e and pytest.approx(e, abs=1e-4) for e in errors]
    print_reliability(result)
    printed, line = capsys.readouterr().out, error_line(result)
    if errors[0] is None:
        assert printed == "" and kinds[0] == {**kinds[0], "bins": []}
    else:
        assert line in printed and all(f"{error:.3f}" in line for error in errors)
        assert "0.881 to 0.881" in printed


@pytest.mark.parametrize("kind", ["[bold]a", "[/]", "a\nb", "\x1b[31mred", "类 型"])
def test_types_and_texts_are_printed_as_they_are_and_obeyed_by_no_terminal(capsys, kind):
    gold, found = Entity(0, 2, kind), [Entity(0, 2, "b", 1.0), Entity(1, 3, kind, 0.5)]
    example = Example("a[bold]\x1b[2J\n", (gold,), "f:1")
    print_scores("[/] title", entity_scores([example], [set()], [kind]))
    print_errors(error_analysis([example], [found]))
    print_worst_examples(worst_examples([example], [found], 1))
    printed, shown = capsys.readouterr().out, kind.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert printed.count(shown) >= 3 and "\x1b" not in printed
    assert "[/] title" in printed and "a[bold]\\x1b[2J\\n\n" in printed
