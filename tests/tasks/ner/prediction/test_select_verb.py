"""paddle-rope select: from a file of texts to those that are to be labeled."""

import json

import pytest

from tasks.commands.main import main
from tasks.ner.data.reading import read_examples
from tasks.ner.prediction.candidates import LOWEST_THRESHOLD
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.prediction.selection import uncertainty
from tests.helpers.exports import FORMATS, export


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


@pytest.fixture
def texts(corpus):
    return [record["text"] for record in corpus.dev_records]


def records_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_texts_of_highest_entropy_come_with_what_the_model_finds(select, texts, trained, capsys):
    records = records_of(select(texts, 5))
    predictor = NerPredictor(trained.model, device="cpu")
    entropies = dict(zip(texts, map(uncertainty, predictor.find(texts, thresholds=LOWEST_THRESHOLD))))
    assert [record["text"] for record in records] == sorted(entropies, key=entropies.get, reverse=True)[:5]
    assert [record["uncertainty"] for record in records] == [round(entropies[r["text"]], 4) for r in records]
    assert [record["entities"] for record in records] == [
        found["entities"] for found in predictor([record["text"] for record in records])
    ]
    assert capsys.readouterr().err == f"selected 5 of {len(texts)} texts\n"


@pytest.mark.parametrize("format", FORMATS)
def test_an_exported_model_selects_the_same_texts(select, texts, trained, tmp_path, format):
    exported = export(tmp_path / "exported", format, trained.model)
    chosen = [record["text"] for record in records_of(select(texts, 8))]
    assert [record["text"] for record in records_of(select(texts, 8, model=exported))] == chosen


def test_labeled_texts_and_repeated_ones_are_not_selected(select, texts, corpus, capsys):
    assert len(records_of(select([*texts[:3], texts[0], ""], 10))) == 3
    assert "fewer than 10: the others are empty or near duplicates" in capsys.readouterr().err
    assert records_of(select(texts, 10, "--labeled", corpus.dev)) == []


def test_formats_of_annotation_tools(select, texts):
    tasks = json.loads(select(texts, 4, "--format", "labelstudio").read_text(encoding="utf-8"))
    lines = records_of(select(texts, 4))
    assert [task["data"]["text"] for task in tasks] == [line["text"] for line in lines]
    assert all(len(task["predictions"]) == 1 for task in tasks)
    examples = read_examples(select(texts, 4, "--format", "doccano"))
    assert [example.text for example in examples] == [line["text"] for line in lines]


@pytest.mark.parametrize(
    "words, message",
    [
        (["--count", "0"], "--count 0: must be 1 or more"),
        (["--output", "given.txt"], "given.txt: is the input too; give another --output"),
        (["--labeled", "no.jsonl"], "no.jsonl: no such file"),
        (["--labeled", "labeled.jsonl", "--output", "labeled.jsonl"], "labeled.jsonl: is an input too"),
    ],
)
def test_what_is_wrong_is_said_before_the_model_is_read(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("given.txt", "labeled.jsonl"):
        (tmp_path / name).write_text('{"text": "甲", "label": {}}\n', encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert main(["select", "model", "--input", "given.txt", "--count", "3", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert sorted(tmp_path.iterdir()) == before
