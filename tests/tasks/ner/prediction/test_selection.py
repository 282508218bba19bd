"""Which texts are selected for labeling: by entropy, each of near duplicates once."""

import json

import numpy as np
import pytest

from tasks.commands.main import main
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity
from tasks.ner.prediction.calibration import LOWEST_THRESHOLD
from tasks.ner.prediction.selection import rank, uncertainty
from tests.helpers.exports import FORMATS, export
from tests.helpers.runs import read_json_lines


@pytest.mark.parametrize("probabilities", [[], [0.0], [1.0], [0.3], [0.9999], [0.2, 0.6, 0.95]])
def test_uncertainty_is_the_joint_entropy_of_the_spans(probabilities):
    joint = np.ones(1)
    for probability in probabilities:
        joint = np.concatenate([joint * probability, joint * (1 - probability)])
    joint = joint[joint > 0]
    candidates = [Entity(0, 1, "t", 0.0, probability) for probability in probabilities]
    assert uncertainty(candidates) == pytest.approx(-(joint * np.log(joint)).sum(), rel=1e-9)


TEXTS = ["王明去年在青川市工作。", "天气很好，适合出门。", "王明去年在青川市工作！", "  ", "", "新开的书店在哪里？"]


@pytest.mark.parametrize(
    "texts, uncertainties, count, known, expected",
    [
        (TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, [], [2, 5, 1]),  # neither empty texts nor near duplicates
        (TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 2, [], [2, 5]),
        (TEXTS, [1.0] * 6, 6, [], [0, 1, 5]),  # of equals the first
        (TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, ["王明去年在 青川市工作"], [5, 1]),
        # near duplicates from four fifths of their pairs; white space does not count
        (["一二三四五六", "一二三 四五\n六", "完"], [1.0] * 3, 3, [], [0, 2]),
        (["一二三四五六", "一二三四五", "完"], [1.0] * 3, 3, [], [0, 2]),  # 4 of 5 pairs
        (["一二三四五六", "一二三四五七", "完"], [1.0] * 3, 3, [], [0, 1, 2]),  # 4 of 6
        (["一", "一", "二", "一二"], [1.0] * 4, 4, [], [0, 2, 3]),
    ],
)
def test_the_most_uncertain_distinct_texts_come_first(texts, uncertainties, count, known, expected):
    assert rank(texts, uncertainties, count, known) == expected


# ---- the verb


@pytest.fixture
def select(trained, tmp_path, write):
    """Select from texts: ``select(texts, count, *words)`` -> path of what is written."""

    def select(texts, count, *words, model=trained.model):
        given, output = write("".join(f"{text}\n" for text in texts), "given.txt"), tmp_path / "selected"
        words = [model, "--input", given, "--output", output, "--count", count, "--device", "cpu", *words]
        assert main(["select", *map(str, words)]) == 0
        return output

    return select


@pytest.mark.parametrize("format", ["trained", *FORMATS])
def test_the_texts_of_highest_entropy_come_with_what_the_model_finds(
    select, dev_texts, predictor, trained, tmp_path, format
):
    model = export(tmp_path / "exported", format, trained.model) if format != "trained" else trained.model
    records = read_json_lines(select(dev_texts, 8, model=model))
    entropies = dict(zip(dev_texts, map(uncertainty, predictor.find(dev_texts, thresholds=LOWEST_THRESHOLD))))
    assert [record["text"] for record in records] == sorted(entropies, key=entropies.get, reverse=True)[:8]
    for record, expected in zip(records, predictor([record["text"] for record in records])):
        assert record["uncertainty"] == pytest.approx(entropies[record["text"]], abs=1e-3)
        assert [e["text"] for e in record["entities"]] == [e["text"] for e in expected["entities"]]


def test_labeled_texts_and_repeated_ones_are_not_selected_and_formats_hold_the_same(select, dev_texts, corpus, capsys):
    assert len(read_json_lines(select([*dev_texts[:3], dev_texts[0], ""], 10))) == 3
    assert capsys.readouterr().err.startswith("selected 3 of 5 texts, fewer than 10")
    assert read_json_lines(select(dev_texts, 10, "--labeled", corpus.dev)) == []
    texts = [record["text"] for record in read_json_lines(select(dev_texts, 4))]
    tasks = json.loads(select(dev_texts, 4, "--format", "labelstudio").read_text(encoding="utf-8"))
    assert [task["data"]["text"] for task in tasks] == texts
    assert [example.text for example in read_examples(select(dev_texts, 4, "--format", "doccano"))] == texts


@pytest.mark.parametrize("output, place", [("new", "no.jsonl: no such file"), ("no.jsonl", "no.jsonl: is an input")])
def test_labeled_texts_are_an_input(refused, trained, write, output, place):
    if output == "no.jsonl":
        write('{"text": "甲", "label": {}}\n', "no.jsonl")
    words = ["--input", write("甲\n"), "--count", "3", "--labeled", "no.jsonl", "--output", output]
    assert place in refused("select", trained.model, *words)
