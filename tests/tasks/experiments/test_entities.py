"""F1 of NER models against the length of the text."""

import json

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.experiments.entities import first_texts, join_neighbors
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Entity, Example
from tests.helpers.models import write_demo_ner


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    return write_demo_ner(tmp_path_factory.mktemp("demo"))


def test_documents_hold_all_texts_with_their_entities(demo):
    examples = read_examples(demo[1])
    texts = first_texts(examples, 300)
    assert texts == examples[: len(texts)]
    assert sum(len(text.text) for text in texts[:-1]) < 300 <= sum(len(text.text) for text in texts)
    documents = join_neighbors(texts, 100)
    assert max(len(document.text) for document in documents) <= 100
    surfaces = [[one.surface(entity) for one in group for entity in one.entities] for group in (documents, texts)]
    assert surfaces[0] == surfaces[1]
    examples = [Example(text, (), "x:1") for text in ("一二三", "a", "b", "四五六七八九", "十", "")]
    joined = [document.text for document in join_neighbors(examples, 5)]
    assert joined == ["一二三a", "b", "四五六七八九", "十"]  # only a text alone is longer
    assert [one.text for one in join_neighbors([Example(text, (), "x:1") for text in "abc"], 4)] == ["a b", "c"]


@pytest.mark.parametrize("texts, joined, last", [
    (("去北京", "", "北京大学。"), "去北京北京大学。", (3, 7)),
    (("NBA", "2010年"), "NBA 2010年", (4, 8)),
    (("NBA", "在"), "NBA在", (3, 4)),
    (("NBA.", "A"), "NBA.A", (4, 5)),
    (("é", "A"), "éA", (1, 2)),
])  # fmt: skip
def test_joined_entities_keep_their_texts_and_only_ascii_words_are_kept_apart(texts, joined, last):
    end = min(4, len(texts[-1]))
    *first, final = [Example(text, (), f"x:{number}") for number, text in enumerate(texts)]
    (document,) = join_neighbors([*first, Example(final.text, (Entity(0, end, "a"),), "x:9")], 100)
    assert (document.text, document.where, document.entities[0][:2]) == (joined, "x:0", last)


def test_report_and_numbers_of_a_model(demo, tmp_path, capsys):
    (model, data), output = demo, tmp_path / "out.json"
    words = ["benchmark", "entities", model, "--input", data, "--output", output, "--lengths", 50, 200]
    words += ["--characters", 400, "--whole", "--names", "one", "--device", "cpu"]
    assert main([*map(str, words)]) == 0
    numbers = json.loads(output.read_text(encoding="utf-8"))
    shown = capsys.readouterr().out
    cases = [(row["model"], row["reading"], row["length"]) for row in numbers["rows"]]
    assert cases == [("one", reading, length) for reading in ("default", "whole") for length in (None, 50, 200)]
    assert len({row["support"] for row in numbers["rows"]}) == 1
    alone, whole = numbers["rows"][0], numbers["rows"][3]  # texts that fit into the window are read whole in either way
    assert alone["correct"] == whole["correct"] and alone["predicted"] == whole["predicted"] > 0
    assert "\n| model | reads | alone | 50 | 200 |\n" in shown and f"| one | whole | {whole['f1']:.4f} |" in shown
