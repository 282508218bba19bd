"""What the inspection counts and finds, each on a text written for it; the tool."""

import json

import pytest

from tasks.ner.data.inspection import FINDINGS, inspect, length_distribution, quantile
from tasks.ner.data.reading import write_examples
from tests.helpers.verbs import verb
from tests.tasks.ner.reading import example

inspect_data = verb("inspect")


def found(name, *examples, **others):
    """Counts and examples of one finding."""
    result = inspect({"train": list(examples), **others})
    assert list(result["findings"]) == list(FINDINGS)
    finding = result["findings"][name]
    return finding["counts"], [(one["where"], one["what"]) for one in finding["examples"]]


def test_counts_of_each_split_and_types_that_one_lacks():
    train = [example("王明在京", (0, 2, "PER"), (3, 4, "LOC")), example("无"), example("京", (0, 1, "LOC"))]
    result = inspect({"train": train, "dev": [example("王明", (0, 2, "PER"))]})
    summary = result["splits"]["train"]
    assert summary["types"] == {"LOC": 2, "PER": 1}
    assert [summary[key] for key in ("texts", "texts_without_entities", "characters", "entities")] == [3, 1, 6, 3]
    assert result["splits"]["dev"]["types"] == {"LOC": 0, "PER": 1}
    assert result["missing_types"] == {"train": [], "dev": ["LOC"]}


def test_long_training_texts_and_the_window_that_lengths_give_are_told():
    train = [example("王" * size, (0, 3, "PER"), where=f"x:{size}") for size in (512, 513, 600, 40)]
    counts, examples = found("long_text", *train, dev=[example("王" * 900)])
    assert counts == {"train": 2, "dev": 0}
    assert [where for where, _ in examples] == ["x:600", "x:513"] and examples[0][1].startswith("600 characters: ")
    assert inspect({"train": train})["lengths"] == {
        "window_tokens": 600, "longest_text": 600, "longest_entity": 3, "max_entity_tokens": 32
    }  # fmt: skip


def test_lengths_are_nearest_rank_quantiles_and_a_histogram_that_holds_all():
    lengths = list(range(1, 101))
    distribution = length_distribution(lengths)
    assert [distribution[key] for key in ("min", "median", "p95", "p99", "max")] == [1, 50, 95, 99, 100]
    assert distribution["histogram"] == [[0, 4, 4], [5, 8, 4], [9, 16, 8], [17, 32, 16], [33, 64, 32], [65, 128, 36]]
    assert length_distribution([7])["histogram"] == [[5, 8, 1]]
    assert length_distribution([]) is None
    assert quantile([3], 0.5) == 3 and quantile([1, 2], 0.5) == 1 and quantile([1, 2], 0.51) == 2


def test_duplicates_within_a_split_and_between_splits_by_label():
    train = [
        example("甲乙", (0, 1, "a"), where="t:1"),
        example("甲乙", (0, 1, "a"), where="t:2"),
        example("甲乙", (0, 2, "a"), where="t:3"),
        example("丙", where="t:4"),
    ]
    dev = [example("甲乙", where="d:1"), example("丙", where="d:2"), example("丁", where="d:3")]
    assert found("duplicate_text", *train, dev=dev) == ({"train": 1, "dev": 0}, [("t:2", "as t:1: '甲乙'")])
    assert found("duplicate_text_other_labels", *train, dev=dev) == (
        {"train": 1, "dev": 0},
        [("t:3", "as t:1: '甲乙'; only there a '甲' [0, 1]")],
    )
    assert found("leaked_text", *train, dev=dev) == ({"train": 0, "dev": 1}, [("d:2", "as t:4: '丙'")])
    assert found("leaked_text_other_labels", *train, dev=dev)[0] == {"train": 0, "dev": 1}


def test_blank_texts_and_control_characters():
    assert found("blank_text", example(""), example(" \u3000\n"), example("甲"))[0] == {"train": 2}
    counts, examples = found("control_characters", example("甲\x00\x01"), example("\ufffd"), example("甲\t\n\u3000"))
    assert counts == {"train": 2}
    assert examples[0] == ("x:1", "U+0000 at 1 in '甲\\x00\\x01'")


def test_entities_that_end_inside_a_token_are_unaligned():
    good = example("a b👍🏽", (0, 1, "t"), (3, 5, "t"))
    assert found("unaligned", good)[0] == {"train": 0}
    bad = example("a  b👍🏽", (0, 2, "t"), (4, 5, "t"))
    assert found("unaligned", bad) == ({"train": 2}, [("x:1", "t 'a ' [0, 2]"), ("x:1", "t '👍' [4, 5]")])


@pytest.mark.parametrize("surface", [" 甲", "甲\u3000", "\n甲", " "])
def test_white_space_at_an_edge(surface):
    assert found("white_space_edge", example(surface, (0, len(surface), "t")))[0] == {"train": 1}
    assert found("punctuation_edge", example(surface, (0, len(surface), "t")))[0] == {"train": 0}


@pytest.mark.parametrize("surface", ["甲，", "《甲", "甲》", "（甲", "甲）乙，", "》甲《", "。", "”甲”", "《"])
def test_punctuation_at_an_edge(surface):
    assert found("punctuation_edge", example(surface, (0, len(surface), "t")))[0] == {"train": 1}


@pytest.mark.parametrize(
    "surface", ["《甲》", "甲（乙）", "（甲）乙", "“甲”", '"甲"乙', "甲，乙", "甲", "A+", "（甲）和（乙）"]
)
def test_brackets_in_pairs_and_inner_punctuation_are_harmless(surface):
    assert found("punctuation_edge", example(surface, (0, len(surface), "t")))[0] == {"train": 0}


def test_nested_crossing_and_doubly_typed_entities():
    one = example("北京大学校长", (0, 2, "LOC"), (0, 2, "GPE"), (0, 4, "ORG"), (3, 6, "PER"))
    assert found("two_types", one)[1] == [("x:1", "GPE '北京' [0, 2] and LOC '北京' [0, 2]")]
    assert found("nested", one) == (
        {"train": 2},
        [("x:1", f"{type_} '北京' [0, 2] in ORG '北京大学' [0, 4]") for type_ in ("GPE", "LOC")],
    )
    assert found("crossing", one) == (
        {"train": 1},
        [("x:1", "ORG '北京大学' [0, 4] and PER '学校长' [3, 6]")],
    )
    inside = example("北京大学", (0, 4, "ORG"), (2, 4, "x"), (1, 3, "y"))
    assert found("nested", inside)[0] == {"train": 2} and found("crossing", inside)[0] == {"train": 1}
    assert found("nested", example("北京", (0, 1, "a"), (1, 2, "a")))[0] == {"train": 0}


def test_surfaces_of_two_types_begin_with_the_rarest_type_of_the_most_frequent():
    often = [example("京", (0, 1, "LOC"), where=f"t:{number}") for number in range(1, 10)]
    odd = example("京", (0, 1, "PER"), where="t:10")
    even = example("华为和华为", (0, 2, "ORG"), (3, 5, "TECH"), where="t:11")
    counts, examples = found("surface_of_two_types", even, *often, odd, dev=[example("京沪", (0, 1, "LOC"))])
    assert counts == {"train": 12, "dev": 1}
    assert examples == [("t:10", "'京' is LOC 10, PER 1"), ("t:11", "'华为' is ORG 1, TECH 1")]


def test_long_entities_are_those_beyond_99_percent_longest_first():
    examples = [example("甲" * 30, (0, 2, "t")) for _ in range(300)]
    examples += [example("甲" * 30, (0, 9, "t"), where="x:2"), example("甲" * 30, (0, 20, "t"), where="x:3")]
    counts, shown = found("long_entity", *examples)
    assert counts == {"train": 2}
    assert [where for where, _ in shown] == ["x:3", "x:2"] and shown[0][1].startswith("20 characters: t '甲")


def test_as_many_examples_are_kept_as_asked_for_and_all_are_counted():
    examples = [example(" ", where=f"x:{number}") for number in range(9)]
    finding = inspect({"train": examples}, max_examples=2)["findings"]["blank_text"]
    assert finding["counts"] == {"train": 9}
    assert [one["where"] for one in finding["examples"]] == ["x:0", "x:1"]


# ---- the tool


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = [example("王明，在[b]北京[/b]", (0, 3, "PER"), (7, 9, "LOC")), example("无"), example("京", (0, 1, "[x]"))]
    write_examples(train, "train", "cluener")
    write_examples([example("无"), example("王明", (0, 2, "PER"))], "dev", "bio")


def test_tool_prints_tables_and_writes_json(files, capsys):
    assert inspect_data.main(["train", "dev", "--output", "out.json"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "train: train (cluener)",
        "dev: dev (bio)",
        "dev has no entity of type LOC, [x], which another split has",
        "texts of an earlier split, labeled the same:\n  dev:1  as train:2: '无'",
        "train:1  PER '王明，' [0, 3]",
        "Not found: ",
    ):
        assert part in printed
    with open("out.json", encoding="utf-8") as file:
        result = json.load(file)
    assert result["splits"]["dev"]["format"] == "bio" and result["splits"]["train"]["texts"] == 3
    assert result["findings"]["punctuation_edge"]["counts"] == {"train": 1, "dev": 0}


def test_tool_takes_data_without_any_entity(tmp_path, capsys):
    write_examples([example("无")], tmp_path / "train", "jsonl")
    assert inspect_data.main([str(tmp_path / "train")]) == 0
    captured = capsys.readouterr()
    assert "min" in captured.out and f"{tmp_path}/train: no entity is labeled" in captured.err


def test_tool_shows_no_examples_when_asked_for_none(files, capsys):
    assert inspect_data.main(["train", "--examples", "0"]) == 0
    assert "train:1" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (["none"], "none: no such file; check the path"),
        (["train", "--examples", "-1"], "--examples -1: must be 0 or more"),
        (["train", "--format", "conll"], "unknown format 'conll'; the formats are"),
        (["train", "--output", "no/out"], "no/out: cannot be written ("),
        (["train", "--output", "train"], "train: is an input too; give another file"),
        (["train", "dev", "dev", "dev"], "unrecognized arguments: dev"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line(files, fails, words, message):
    assert fails(inspect_data, *words).startswith(message)
