"""The printed tables: what they say, and that they stay readable whatever the data are."""

import re

import pytest

from tasks.ner.data.reading import Entity, Example
from tasks.ner.metrics import entity_scores
from tasks.ner.reports.error_analysis import error_analysis, worst_examples
from tasks.ner.reports.printed import (
    MOST_CONFUSED,
    MOST_ERRORS,
    MOST_TYPES,
    print_errors,
    print_scores,
    print_worst_examples,
)


@pytest.fixture
def printed(capsys):
    def printed(function, *arguments):
        function(*arguments)
        return capsys.readouterr().out

    return printed


def scores(types):
    return entity_scores([{Entity(0, 1, kind) for kind in types}], [set()], types)


@pytest.mark.parametrize("kind", ["[bold]a", "[/]", "a\nb", "\x1b[31mred", "类 型"])
def test_types_are_printed_as_they_are_and_obeyed_by_no_terminal(printed, kind):
    shown = kind.replace("\n", "\\n").replace("\x1b", "\\x1b")
    output = printed(print_scores, "[/] title", scores([kind]))
    assert f"│ {shown} " in output and "[/] title" in output and "\x1b" not in output
    gold, found = [{Entity(0, 2, kind)}], [{Entity(0, 2, "b"), Entity(1, 3, kind)}]
    assert shown in printed(print_errors, error_analysis(gold, found, [kind, "b"]))
    examples = [Example("a[bold]\x1b[2J\n", (Entity(0, 2, kind),), "f:1")]
    output = printed(print_worst_examples, worst_examples(examples, [[Entity(0, 2, "b", 1.0)]], 1))
    assert f"gold {shown} 'a['" in output and "    a[bold]\\x1b[2J\\n\n" in output and "\x1b" not in output


def test_errors_and_confusion_by_hand(printed):
    gold = [{Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(6, 8, "b")}]
    found = [{Entity(0, 2, "b"), Entity(3, 6, "a"), Entity(10, 11, "b")}]
    output = printed(print_errors, error_analysis(gold, found, ["a", "b"]))
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in output.splitlines() if "│" in line]
    assert rows[:5] == [
        ["type: right boundaries, wrong type", "1"],
        ["boundary: right type, wrong boundaries: 1 too long, 0 too short, 0 crossing", "1"],
        ["both: wrong type and boundaries, but overlapping", "0"],
        ["missed: gold, and nothing found there", "1"],
        ["spurious: found, and nothing gold there", "1"],
    ]
    assert rows[5:9] == [
        ["a  a", ".", "1", "1", "."],
        ["b  b", ".", ".", ".", "1"],
        ["other span", "1", ".", "", ""],
        ["spurious", ".", "1", "", ""],
    ]


def test_of_a_thousand_types_the_most_frequent_are_printed_and_the_most_frequent_confusions(printed):
    types = [f"type {number:03}" for number in range(1000)]
    gold = [
        {Entity(0, 1, kind) for kind in types},
        {Entity(0, 1, types[900]), Entity(5, 6, types[7])},
        {Entity(0, 1, types[7])},
    ]
    found = [
        {Entity(0, 1, kind) for kind in types},
        {Entity(0, 1, types[3]), Entity(5, 6, types[900])},
        {Entity(0, 1, types[900])},
    ]
    output = printed(print_scores, "t", entity_scores(gold, found, types))
    assert len(output.splitlines()) < MOST_TYPES + 12
    assert "│ type 007" in output and "│ type 900" in output and "│ type 999" not in output
    assert f"and {1000 - MOST_TYPES} types with fewer gold entities" in output
    output = printed(print_errors, error_analysis(gold, found, types))
    assert len(output.splitlines()) < 40
    pairs = re.findall(r"gold (type \d+), predicted (type \d+) +│ +(\d+) ", output)
    assert pairs == [("type 007", "type 900", "2"), ("type 900", "type 003", "1")]
    types = types[: MOST_CONFUSED + 9]
    gold, found = [{Entity(0, 1, kind)} for kind in types], [{Entity(0, 1, kind)} for kind in types[1:] + types[:1]]
    output = printed(print_errors, error_analysis(gold, found, types))
    assert output.count(", predicted type") == MOST_CONFUSED
    assert f"the first {MOST_CONFUSED} of {len(types)}" in output


def test_long_texts_and_many_errors_are_cut(printed):
    entities = tuple(Entity(n, n + 1, "a") for n in range(0, 3 * MOST_ERRORS, 2))
    examples = [Example("甲" * 100_000, (*entities, Entity(500, 99_000, "a")), "f:1")]
    output = printed(print_worst_examples, worst_examples(examples, [[]], 1))
    assert len(output) < 3000
    assert f"f:1: {len(entities) + 1} errors" in output and f"and {len(entities) + 1 - MOST_ERRORS} more" in output
    assert "... (100000 characters)" in output


def test_without_errors_there_are_no_worst_examples(printed):
    assert printed(print_worst_examples, []) == ""
