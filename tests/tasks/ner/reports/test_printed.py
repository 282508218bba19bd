"""The printed tables: what they say, and that they stay readable whatever the data are."""

import re

import pytest

from tasks.ner.examples import Entity, Example
from tasks.ner.metrics import entity_scores
from tasks.ner.reports.error_analysis import error_analysis, worst_examples
from tasks.ner.reports.printed import MOST_ERRORS, MOST_TYPES, print_errors, print_scores, print_worst_examples


@pytest.fixture
def printed(capsys):
    def printed(function, *arguments):
        function(*arguments)
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("kind", ["[bold]a", "[/]", "a\nb", "\x1b[31mred", "类 型"])
def test_types_and_texts_are_printed_as_they_are_and_obeyed_by_no_terminal(printed, kind):
    gold, found = Entity(0, 2, kind), [Entity(0, 2, "b", 1.0), Entity(1, 3, kind, 0.5)]
    example = Example("a[bold]\x1b[2J\n", (gold,), "f:1")
    outputs = [
        printed(print_scores, "[/] title", entity_scores([{gold}], [set()], [kind])),
        printed(print_errors, error_analysis([{gold}], [found], [kind, "b"])),
        printed(print_worst_examples, worst_examples([example], [found], 1)),
    ]
    shown = kind.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert all(shown in output and "\x1b" not in output for output in outputs)
    assert "[/] title" in outputs[0] and "a[bold]\\x1b[2J\\n\n" in outputs[2]


def rows_of(output):
    """The cells of the tables, and lines of other text."""
    lines = re.findall("│(.*)│", output)
    return [[cell.strip() for cell in line.split("│")] for line in lines]


def test_errors_and_confusion_by_hand(printed):
    gold = [{Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(6, 8, "b")}]
    found = [{Entity(0, 2, "b"), Entity(3, 6, "a"), Entity(10, 11, "b")}]
    rows = rows_of(printed(print_errors, error_analysis(gold, found, ["a", "b"])))
    assert [(row[0].split(":")[0], row[1]) for row in rows[:5]] == [
        *(("type", "1"), ("boundary", "1"), ("both", "0"), ("missed", "1"), ("spurious", "1"))
    ]
    assert "1 too long, 0 too short, 0 crossing" in rows[1][0]
    assert rows[5:9] == [
        ["a  a", ".", "1", "1", "."],
        ["b  b", ".", ".", ".", "1"],
        ["other span", "1", ".", "", ""],
        ["spurious", ".", "1", "", ""],
    ]


def test_of_a_thousand_types_the_most_frequent_are_printed_and_no_confusion(printed):
    types = [f"type {number:03}" for number in range(1000)]
    every = [Entity(0, 1, kind) for kind in types]
    gold = [every, [Entity(0, 1, types[900]), Entity(5, 6, types[7])], [Entity(0, 1, types[7])]]
    found = [every, [Entity(0, 1, types[3]), Entity(5, 6, types[900])], [Entity(0, 1, types[900])]]
    output = printed(print_scores, "t", entity_scores(list(map(set, gold)), list(map(set, found)), types))
    kinds = [row[0] for row in rows_of(output)]
    assert len(kinds) == MOST_TYPES + 1 and {types[7], types[900]} < set(kinds)
    assert f"{1000 - MOST_TYPES} types" in output
    output = printed(print_errors, error_analysis(gold, found, types))
    assert len(rows_of(output)) < 12 and "confusion between 1000 types is not printed" in output


def test_long_texts_and_many_errors_are_cut(printed):
    entities = tuple(Entity(n, n + 1, "a") for n in range(0, 3 * MOST_ERRORS, 2))
    examples = [Example("甲" * 100_000, (*entities, Entity(500, 99_000, "a")), "f:1")]
    output = printed(print_worst_examples, worst_examples(examples, [[]], 1))
    assert len(output) < 3000
    assert f"f:1: {len(entities) + 1} errors" in output and f"{len(entities) + 1 - MOST_ERRORS} more" in output
    assert "100000 characters" in output and printed(print_worst_examples, []) == ""
