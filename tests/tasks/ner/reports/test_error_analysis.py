"""Kinds of errors by cases counted by hand."""

import itertools
import random

import pytest

from tasks.ner.data.reading import Entity, Example
from tasks.ner.reports.error_analysis import error_analysis, match_entities, worst_examples

TYPES = ["a", "b", "c"]


def entities(spans):
    return [Entity(*span) for span in spans]


def kinds(gold, predicted):
    return [
        (match.kind, match.gold and match.gold[:3], match.predicted and match.predicted[:3])
        for match in match_entities(entities(gold), entities(predicted))
    ]


def analyzed(gold, predicted):
    return error_analysis(list(map(entities, gold)), list(map(entities, predicted)), TYPES)


@pytest.mark.parametrize(
    "gold, predicted, kind, boundary",
    [
        ((2, 5, "a"), (2, 5, "a"), "correct", None),
        ((2, 5, "a"), (2, 5, "b"), "type", None),
        ((2, 5, "a"), (1, 5, "a"), "boundary", "too_long"),
        ((2, 5, "a"), (2, 6, "a"), "boundary", "too_long"),
        ((2, 5, "a"), (3, 4, "a"), "boundary", "too_short"),
        ((2, 5, "a"), (1, 3, "a"), "boundary", "crossing"),
        ((2, 5, "a"), (4, 9, "a"), "boundary", "crossing"),
        ((2, 5, "a"), (4, 9, "b"), "both", None),
        ((2, 5, "a"), (2, 4, "b"), "both", None),
    ],
)
def test_two_entities_that_share_a_character_are_one_pair(gold, predicted, kind, boundary):
    (match,) = match_entities([Entity(*gold)], [Entity(*predicted, 1.5)])
    assert match == (kind, Entity(*gold), Entity(*predicted, 1.5))
    if boundary:
        assert match.boundary == boundary


@pytest.mark.parametrize("predicted", [(0, 2, "a"), (5, 7, "a"), (9, 10, "b")])
def test_entities_apart_are_missed_and_spurious(predicted):
    assert set(kinds([(2, 5, "a")], [predicted])) == {("missed", (2, 5, "a"), None), ("spurious", None, predicted)}


def test_nested_entities_each_find_their_own():
    gold = [(0, 8, "a"), (0, 4, "a"), (0, 2, "b")]
    assert kinds(gold, [(0, 8, "a"), (0, 4, "b"), (0, 3, "b")]) == [
        ("boundary", (0, 2, "b"), (0, 3, "b")),
        ("type", (0, 4, "a"), (0, 4, "b")),
        ("correct", (0, 8, "a"), (0, 8, "a")),
    ]
    # the same boundaries go before the same type, and that before a larger overlap
    assert kinds([(0, 4, "a")], [(0, 4, "b"), (0, 5, "a")]) == [
        ("type", (0, 4, "a"), (0, 4, "b")),
        ("spurious", None, (0, 5, "a")),
    ]
    assert ("boundary", (0, 4, "a"), (3, 9, "a")) in kinds([(0, 4, "a")], [(0, 3, "b"), (3, 9, "a")])
    # of two with the same type the one with the larger overlap
    assert kinds([(0, 4, "a")], [(0, 3, "a"), (0, 1, "a")]) == [
        ("spurious", None, (0, 1, "a")),
        ("boundary", (0, 4, "a"), (0, 3, "a")),
    ]


def test_what_is_correct_is_in_no_other_pair():
    assert kinds([(0, 4, "a"), (1, 3, "a")], [(0, 4, "a")]) == [
        ("correct", (0, 4, "a"), (0, 4, "a")),
        ("missed", (1, 3, "a"), None),
    ]


def random_entities(random_, size):
    starts = [random_.randrange(30) for _ in range(size)]
    return {(start, start + random_.randint(1, 12), random_.choice(TYPES)) for start in starts}


@pytest.mark.parametrize("seed", range(20))
def test_every_entity_has_one_place_and_pairs_are_those_of_the_rules(seed):
    random_ = random.Random(seed)
    gold, predicted = random_entities(random_, 12), random_entities(random_, 12)
    matches = kinds(gold, predicted)
    assert sorted(wanted for _, wanted, _ in matches if wanted) == sorted(gold)
    assert sorted(found for _, _, found in matches if found) == sorted(predicted)
    missed = [wanted for kind, wanted, _ in matches if kind == "missed"]
    spurious = [found for kind, _, found in matches if kind == "spurious"]
    for (start, end, _), (other, other_end, _) in itertools.product(missed, spurious):
        assert end <= other or other_end <= start  # otherwise they would be a pair

    analysis = analyzed([gold], [predicted])
    errors = analysis["errors"]
    paired = sum(errors[kind] for kind in ("correct", "type", "boundary", "both"))
    assert paired + errors["missed"] == len(gold) and paired + errors["spurious"] == len(predicted)
    assert errors["boundary"] == errors["too_long"] + errors["too_short"] + errors["crossing"]
    confusion = analysis["confusion"]
    for kind in confusion:
        row = confusion[kind]
        of_gold = sum(row["predicted_as"].values()) + row["gold_other_boundaries"] + row["missed"]
        assert of_gold == sum(entity[2] == kind for entity in gold)
        found = sum(row["predicted_as"].get(kind, 0) for row in confusion.values())
        assert found + row["predicted_other_boundaries"] + row["spurious"] == sum(e[2] == kind for e in predicted)
    assert sum(row["support"] for row in analysis["by_length"]) == len(gold)
    assert sum(row["predicted"] for row in analysis["by_length"]) == len(predicted)


def test_counts_of_a_corpus():
    gold = [{(0, 3, "a"), (0, 1, "b"), (5, 7, "c")}, {(0, 2, "a")}, set()]
    predicted = [{(0, 3, "a"), (0, 1, "c"), (5, 8, "c")}, {(9, 12, "b")}, {(0, 1, "a")}]
    analysis = analyzed(gold, predicted)
    assert analysis["errors"] == {
        "correct": 1, "type": 1, "boundary": 1, "both": 0, "missed": 1, "spurious": 2,
        "too_long": 1, "too_short": 0, "crossing": 0,
    }  # fmt: skip
    nothing = dict.fromkeys(("gold_other_boundaries", "missed", "predicted_other_boundaries", "spurious"), 0)
    assert analysis["confusion"] == {
        "a": {"predicted_as": {"a": 1}, **nothing, "missed": 1, "spurious": 1},
        "b": {"predicted_as": {"c": 1}, **nothing, "spurious": 1},
        "c": {"predicted_as": {}, **nothing, "gold_other_boundaries": 1, "predicted_other_boundaries": 1},
    }

    def counts(row):
        return row["support"], row["predicted"], row["correct"]

    lengths = {(row["from"], row["to"]): counts(row) for row in analysis["by_length"]}
    assert lengths == {(1, 1): (1, 2, 0), (2, 2): (2, 0, 0), (3, 3): (1, 3, 1)}
    nesting = {name: counts(row) for name, row in analysis["by_nesting"].items()}
    # (0, 1, "c") and (0, 3, "a") share a character with both gold entities there
    assert nesting == {"nested": (2, 2, 1), "flat": (2, 3, 0)}


def test_without_nested_gold_entities_there_is_nothing_by_nesting():
    assert analyzed([{(0, 1, "a")}], [{(0, 3, "a"), (0, 2, "a")}])["by_nesting"] is None


def test_types_that_do_not_occur_are_not_in_the_confusion():
    types = [f"type {number}" for number in range(1000)]
    analysis = error_analysis([[Entity(0, 1, "type 7")]], [[Entity(0, 1, "type 900")]], types)
    assert list(analysis["confusion"]) == ["type 7", "type 900"]
    assert analysis["confusion"]["type 7"]["predicted_as"] == {"type 900": 1}


def test_ten_thousand_entities_of_one_text_are_matched():
    gold = {(10 * n, 10 * n + 4, "a") for n in range(10_000)}
    predicted = {(10 * n + 1, 10 * n + 5, "a") for n in range(10_000)}
    errors = analyzed([gold], [predicted])["errors"]
    assert errors["boundary"] == errors["crossing"] == 10_000


def test_worst_examples_have_the_most_errors_and_then_the_most_certain_ones():
    def example(number, *entities):
        return Example("abcdefgh", tuple(Entity(*entity) for entity in entities), f"f:{number}")

    examples = [
        example(1, (0, 2, "a")),
        example(2, (0, 2, "a"), (3, 4, "b")),
        example(3),
        example(4),
        example(5, (0, 1, "c")),
    ]
    predicted = [
        [Entity(0, 2, "a", 5.0)],
        [Entity(0, 3, "a", 0.5)],
        [Entity(1, 2, "b", 1.0)],
        [Entity(1, 2, "b", 3.00004)],
        [],
    ]
    worst = worst_examples(examples, predicted, 10)
    assert [(row["where"], row["number_of_errors"], row["highest_wrong_score"]) for row in worst] == [
        ("f:2", 2, 0.5), ("f:4", 1, 3.0), ("f:3", 1, 1.0), ("f:5", 1, None),
    ]  # fmt: skip
    assert worst[0]["errors"] == [
        {
            "kind": "too_long",
            "gold": {"start": 0, "end": 2, "type": "a", "text": "ab"},
            "predicted": {"start": 0, "end": 3, "type": "a", "text": "abc", "score": 0.5},
        },
        {"kind": "missed", "gold": {"start": 3, "end": 4, "type": "b", "text": "d"}, "predicted": None},
    ]
    assert worst_examples(examples, predicted, 2) == worst[:2]
    assert worst_examples(examples, predicted, 0) == []
