"""Which texts are selected for labeling: by entropy, each of near duplicates once."""

import json

import numpy as np
import pytest

from tasks.commands.main import main
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity
from tasks.ner.prediction.selection import rank, uncertainty
from tasks.ner.prediction.thresholds import LOWEST_THRESHOLD
from tests.helpers.exports import FORMATS, export


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
    "uncertainties, count, known, expected",
    [
        ([3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, [], [2, 5, 1]),  # neither empty texts nor near duplicates
        ([3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 2, [], [2, 5]),
        ([1.0] * 6, 6, [], [0, 1, 5]),  # of equals the first
        ([3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, ["王明去年在 青川市工作"], [5, 1]),
    ],
)
def test_the_most_uncertain_distinct_texts_come_first(uncertainties, count, known, expected):
    assert rank(TEXTS, uncertainties, count, known) == expected


@pytest.mark.parametrize(
    "one, other, is_added",
    [
        ("一二三四五六", "一二三 四五\n六", False),  # white space does not count
        ("一二三四五六", "一二三四五", False),  # 4 of 5 pairs
        ("一二三四五六", "一二三四五七", True),  # 4 of 6
        ("一", "一", False),
        ("一", "二", True),
        ("一", "一二", True),
    ],
)
def test_texts_are_near_duplicates_from_four_fifths_of_their_pairs(one, other, is_added):
    texts = [one, other, "完全不同的一句话"]
    assert rank(texts, [1.0] * 3, 3) == ([0, 1, 2] if is_added else [0, 2])


# ---- the verb


@pytest.fixture
def select(trained, tmp_path):
    """Select from texts: ``select(texts, count, *words)`` -> path of what is written."""

    def select(texts, count, *words, model=trained.model):
        given, output = tmp_path / "given.txt", tmp_path / "selected"
        given.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        words = ["--input", given, "--output", output, "--count", count, "--device", "cpu", *words]
        assert main(["select", str(model), *map(str, words)]) == 0
        return output

    return select


def records_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("format", ["trained", *FORMATS])
def test_the_texts_of_highest_entropy_come_with_what_the_model_finds(
    select, dev_texts, predictor, trained, tmp_path, format
):
    model = export(tmp_path / "exported", format, trained.model) if format != "trained" else trained.model
    records = records_of(select(dev_texts, 8, model=model))
    entropies = dict(zip(dev_texts, map(uncertainty, predictor.find(dev_texts, thresholds=LOWEST_THRESHOLD))))
    assert [record["text"] for record in records] == sorted(entropies, key=entropies.get, reverse=True)[:8]
    for record, expected in zip(records, predictor([record["text"] for record in records])):
        assert record["uncertainty"] == pytest.approx(entropies[record["text"]], abs=1e-3)
        assert [e["text"] for e in record["entities"]] == [e["text"] for e in expected["entities"]]


def test_labeled_texts_and_repeated_ones_are_not_selected(select, dev_texts, corpus, capsys):
    assert len(records_of(select([*dev_texts[:3], dev_texts[0], ""], 10))) == 3
    assert capsys.readouterr().err.startswith("selected 3 of 5 texts, fewer than 10")
    assert records_of(select(dev_texts, 10, "--labeled", corpus.dev)) == []


def test_formats_of_annotation_tools(select, dev_texts):
    texts = [record["text"] for record in records_of(select(dev_texts, 4))]
    tasks = json.loads(select(dev_texts, 4, "--format", "labelstudio").read_text(encoding="utf-8"))
    assert [task["data"]["text"] for task in tasks] == texts
    assert [example.text for example in read_examples(select(dev_texts, 4, "--format", "doccano"))] == texts


@pytest.mark.parametrize(
    "words, place",
    [
        (["--count", "0"], "--count 0"),
        (["--output", "given.txt"], "given.txt: is the input"),
        (["--labeled", "no.jsonl"], "no.jsonl: no such file"),
        (["--labeled", "labeled.jsonl", "--output", "labeled.jsonl"], "labeled.jsonl: is an input"),
    ],
)
def test_what_is_wrong_is_said_before_the_model_is_read(words, place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("given.txt", "labeled.jsonl"):
        (tmp_path / name).write_text('{"text": "甲", "label": {}}\n', encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert main(["select", "model", "--input", "given.txt", "--count", "3", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {place}")
    assert sorted(tmp_path.iterdir()) == before
