"""What the inspection counts and finds, each on a text written for it; the verb."""

import json

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner.data.inspection import FINDINGS, inspect, length_distribution
from paddle_rope.tasks.ner.data.reading import write_examples
from tests.tasks.ner.conftest import example


def test_counts_of_each_split_and_types_that_one_lacks():
    train = [example("王明在京", (0, 2, "PER"), (3, 4, "LOC")), example("无"), example("京", (0, 1, "LOC"))]
    result = inspect({"train": train, "dev": [example("王明", (0, 2, "PER"))]})
    summary = result["splits"]["train"]
    assert summary["types"] == {"LOC": 2, "PER": 1}
    assert [summary[key] for key in ("texts", "texts_without_entities", "characters", "entities")] == [3, 1, 6, 3]
    assert result["splits"]["dev"]["types"] == {"LOC": 0, "PER": 1}
    assert [*summary["text_lengths"].values()] == [1, 1, 4, 4, 4]
    assert [*length_distribution(range(1, 101)).values()] == [1, 50, 95, 99, 100]
    assert result["missing_types"] == {"train": [], "dev": ["LOC"]}
    assert inspect({"train": LONG})["lengths"] == {  # of the first split
        "window_tokens": 600, "longest_text": 600, "longest_entity": 3, "max_entity_tokens": 32
    }  # fmt: skip


A, SAME, B, UNLABELED = (
    example("甲乙", *spans, where=f"t:{number}")
    for number, spans in enumerate(([(0, 1, "a")], [(0, 1, "a")], [(0, 2, "a")], []), 1)
)
CHAIN = example("甲乙丙丁戊己", (0, 6, "a"), (1, 4, "b"), (2, 5, "c"), (3, 4, "d"))
DEEP = example("北京大学校长", (0, 2, "LOC"), (0, 2, "GPE"), (0, 4, "ORG"), (3, 6, "PER"))
LONG = [example("王" * size, (0, 3, "PER"), where=f"x:{size}") for size in (512, 513, 600, 40)]
CASES = [  # finding, examples of train, examples of dev -> counts of both, places and words of what is shown
    ("long_text", LONG, [example("王" * 900)], (2, 0), ["x:600 600 characters: ", "x:513"]),
    ("duplicate_text", [A, SAME, B], [SAME], (1, 0), ["t:2 as t:1: '甲乙'"]),
    ("duplicate_text_other_labels", [A, SAME, B], [], (1, 0), ["t:3 as t:1: '甲乙'; only there a '甲' [0, 1]"]),
    ("leaked_text", [A], [SAME, UNLABELED], (0, 1), ["t:2 as t:1: '甲乙'"]),
    ("leaked_text_other_labels", [A], [SAME, UNLABELED], (0, 1), ["t:4"]),
    ("blank_text", [example(""), example(" \u3000\n"), A], [], (2, 0), ["x:1", "x:1"]),
    ("control_characters", [example("甲\x00\x01"), example("\ufffd"), example("甲\t\n\u3000")], [], (2, 0),
     ["x:1 U+0000 at 1 in '甲\\x00\\x01'", "x:1"]),
    ("unaligned", [example("a b👍🏽", (0, 1, "t"), (3, 5, "t"))], [], (0, 0), []),
    ("unaligned", [example("a  b👍🏽", (0, 2, "t"), (4, 5, "t"))], [], (2, 0), ["x:1 t 'a ' [0, 2]", "x:1 t '👍'"]),
    ("two_types", [DEEP], [], (1, 0), ["x:1 GPE '北京' [0, 2] and LOC '北京' [0, 2]"]),
    ("nested", [DEEP], [], (2, 0), [f"x:1 {kind} '北京' [0, 2] in ORG '北京大学' [0, 4]" for kind in ("GPE", "LOC")]),
    ("crossing", [DEEP], [], (1, 0), ["x:1 ORG '北京大学' [0, 4] and PER '学校长' [3, 6]"]),
    ("nested", [example("甲", (0, 1, "a"), (0, 1, "b"))], [], (0, 0), []),
    ("nested", [CHAIN], [], (3, 0), [f"x:1 {kind}" for kind in "bcd"]),
    ("crossing", [CHAIN], [], (1, 0), ["x:1 b '乙丙丁' [1, 4] and c '丙丁戊' [2, 5]"]),
    (  # the rarest type of the most frequent surface comes first
        "surface_of_two_types",
        [example("华为和华为", (0, 2, "ORG"), (3, 5, "TECH"), where="t:11"),
         *[example("京", (0, 1, "LOC"))] * 9, example("京", (0, 1, "PER"), where="t:10")],
        [example("京沪", (0, 1, "LOC"))], (12, 1), ["t:10 '京' is LOC 10, PER 1", "t:11 '华为' is ORG 1, TECH 1"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("name, train, dev, counts, shown", CASES)
def test_a_finding_is_counted_and_shown(name, train, dev, counts, shown):
    findings = inspect({"train": train, "dev": dev})["findings"]
    assert list(findings) == list(FINDINGS)
    found = [f"{one['where']} {one['what']}" for one in findings[name]["examples"]]
    assert tuple(findings[name]["counts"].values()) == counts and len(found) == len(shown)
    assert all(map(str.startswith, found, shown))


EDGES = {
    "white_space_edge": [" 甲", "甲\u3000", "\n甲", " "],
    "punctuation_edge": ["甲，", "《甲", "甲》", "（甲", "甲）乙，", "》甲《", "。", "”甲”", "《"],
    None: ["《甲》", "（甲）乙", "“甲”", '"甲"乙', "甲，乙", "甲", "A+", "（甲）和（乙）"],
}


@pytest.mark.parametrize("edge, surface", [(edge, surface) for edge in EDGES for surface in EDGES[edge]])
def test_white_space_and_punctuation_at_an_edge(edge, surface):
    findings = inspect({"train": [example(surface, (0, len(surface), "t"))]})["findings"]
    assert [name for name in EDGES if name and findings[name]["counts"]["train"]] == [edge] * bool(edge)


def test_the_verb_counts_what_is_wrong_and_looks_at_the_rest_if_asked_to(write, capsys):
    wrong = [write(f'{{"text": "甲", "label": [[0, 1, "a"], [0, {end}, "a"]]}}\n', f"{end}.jsonl") for end in (2, 3)]
    assert main(["inspect", *map(str, wrong)]) == 2
    shown = capsys.readouterr()
    assert "wrong in train" in shown.out and f"{wrong[1]}:1: span [0, 3]" in shown.out
    assert "2 annotations are wrong" in shown.err and "--on_error skip" in shown.err
    output = wrong[0].with_name("out.json")
    assert main(["inspect", *map(str, wrong), "--on_error", "skip", "--output", str(output)]) == 0
    of_dev = json.loads(output.read_text(encoding="utf-8"))["splits"]["dev"]
    assert of_dev["left_out"] == {"spans outside of their text": 1} and of_dev["entities"] == 1


def test_the_verb_prints_tables_and_writes_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train = [example("王明，在[b]北京[/b]", (0, 3, "PER"), (7, 9, "LOC")), example("无"), example("京", (0, 1, "[x]"))]
    write_examples(train, "train", "cluener")
    write_examples([example("无"), example("王明", (0, 2, "PER"))], "dev", "bio")
    write_examples([example("无")], "none", "jsonl")
    assert main(["inspect", "train", "dev", "--output", "out.json"]) == 0
    printed = capsys.readouterr().out
    for part in ("train (cluener)", "dev (bio)", "LOC, [x]", "dev:1  as train:2: '无'", "train:1  PER '王明，' [0, 3]"):
        assert part in printed
    with open("out.json", encoding="utf-8") as file:
        result = json.load(file)
    assert result["splits"]["dev"]["format"] == "bio" and result["splits"]["train"]["texts"] == 3
    assert result["findings"]["punctuation_edge"]["counts"] == {"train": 1, "dev": 0}
    assert main(["inspect", "train", "--examples", "0"]) == 0 and "train:1" not in capsys.readouterr().out
    assert main(["inspect", "none"]) == 0 and "none: no entity is labeled" in capsys.readouterr().err
