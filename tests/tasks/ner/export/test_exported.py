"""Exported models: the same entities from a static graph."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import evaluate_ner
import export_ner
import numpy as np
import pytest

from tasks.common.export.folder import write_checksums
from tasks.ner import NerPredictor
from tasks.ner.export import NerExporter
from tests.helpers.exports import FORMATS, export, fails
from tests.helpers.verbs import verb

tune_threshold = verb("tune")
ROOT = Path(__file__).resolve().parents[4]


def found(model, texts, **options):
    found = NerPredictor(model, "cpu", **options).find(texts)
    return [[entity[:3] for entity in of_text] for of_text in found], [
        entity[3:] for of_text in found for entity in of_text
    ]


def assert_finds_the_same(first, second, texts, **options):
    (entities, scores), (others, other_scores) = (found(model, texts, **options) for model in (first, second))
    assert len(scores) > 20 and entities == others
    np.testing.assert_allclose(scores, other_scores, atol=2e-4)


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}, {"max_tokens": 20}, {"max_entity_tokens": 3}], ids=str)
def test_finds_what_the_trained_model_finds(trained, exported, corpus, options):
    assert_finds_the_same(trained.model, exported, [record["text"] for record in corpus.dev_records], **options)


def test_several_models_become_one(trained, train, corpus, tmp_path):
    other = train(tmp_path / "other", seed=43, attention="linear", num_train_epochs=4).model
    for format in FORMATS:
        together = export(tmp_path / format, format, trained.model, other)
        assert_finds_the_same([trained.model, other], together, [record["text"] for record in corpus.dev_records])


def test_word_features_and_short_spans_go_along(train, corpus, tmp_path, capsys):
    options = {"features": "segmentation,bigrams,gazetteer", "max_span_length": 9, "tune_thresholds": True}
    run = train(tmp_path / "run", num_train_epochs=4, **options)
    capsys.readouterr()
    for format in FORMATS:
        exported = export(tmp_path / format, format, run.model)
        (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
        assert "only this package's Python makes the inputs columns, flags of the graph" in note
        assert note.removeprefix("note: ") in (exported / "README.md").read_text(encoding="utf-8")
        assert_finds_the_same(run.model, exported, [record["text"] for record in corpus.dev_records])


@pytest.mark.parametrize(
    "features, inputs",
    [
        (None, None),
        ({"tables": {"words": 9}, "flags": 0}, "the inputs columns of the graph"),
        ({"tables": {}, "flags": 4}, "the inputs flags of the graph"),
    ],
)
def test_a_graph_says_which_inputs_python_makes(features, inputs):
    limits = NerExporter().limits(SimpleNamespace(features=features))
    assert (inputs is None and limits == []) or inputs in limits[0]


def test_the_tools_take_the_folder(trained, copied, corpus, tmp_path, capsys):
    scores = []
    for model in (trained.model, copied):
        output = tmp_path / "scores.json"
        assert evaluate_ner.main([str(model), str(corpus.dev), "--output", str(output), "--device", "cpu"]) == 0
        scores.append(json.loads(output.read_text(encoding="utf-8"))["per_type"])
    assert scores[0] == scores[1]
    before = (copied / "config.json").read_bytes()
    assert "is exported; tune the trained model, then export it" in fails(tune_threshold, capsys, copied, corpus.dev)
    assert (copied / "config.json").read_bytes() == before


def test_a_folder_of_before_reads_and_finds_as_it_did(trained, copied, corpus):
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    lengths = {name: config.pop(name) for name in ("window_tokens", "longest_text", "longest_entity")}
    assert lengths == {name: trained.model_config[name] for name in lengths} and None not in lengths.values()
    (copied / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_checksums(copied)
    assert NerPredictor(copied, "cpu").reading == (config["max_tokens"], config["max_tokens"] // 4, None)
    texts = [record["text"] for record in corpus.dev_records]
    assert_finds_the_same(trained.model, copied, texts, max_tokens=64, max_entity_tokens=0)


@pytest.mark.parametrize("format", FORMATS)
def test_both_are_scored_on_a_labeled_file(trained, corpus, tmp_path, capsys, format):
    words = [trained.model, "--output", tmp_path / "new", "--format", format, "--check", corpus.dev, "--license", "MIT"]
    assert export_ner.main([*map(str, words)]) == 0
    f1 = f"{trained.metrics['dev']['f1']:.4f}"
    printed, card = capsys.readouterr().out, (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    assert f"| f1 | {f1} | {f1} |" in printed
    assert f"| f1 | {f1} | {f1} |" in card and "- license: MIT" in card and f"f1 {f1}" in card
    assert all(kind in card for kind in trained.model_config["types"])
    stored = trained.model_config
    assert f"- longest text read at once: {stored['window_tokens']} tokens; longer ones in windows that share " in card
    assert f"- longest training entity: {stored['longest_entity']} tokens; longer spans than 32 are not found" in card


@pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")
def test_int8_is_smaller_and_finds_nearly_the_same(trained, corpus, tmp_path, capsys):
    plain = export(tmp_path / "plain", "onnx", trained.model)
    words = [trained.model, "--output", tmp_path / "int8", "--quantize", "int8"]
    assert export_ner.main([*map(str, words)]) == 0
    texts = [record["text"] for record in corpus.dev_records]
    exact, near = (
        {(row, *entity[:3]) for row, of_text in enumerate(NerPredictor(folder).find(texts)) for entity in of_text}
        for folder in (plain, tmp_path / "int8")
    )
    assert len(exact & near) > 0.9 * len(exact | near)
    assert (tmp_path / "int8" / "model.onnx").stat().st_size < (plain / "model.onnx").stat().st_size
    assert "weights of int8" in (tmp_path / "int8" / "README.md").read_text(encoding="utf-8")
    assert "--quantize int8 is for --format onnx" in fails(
        export_ner, capsys, trained.model, "--output", tmp_path / "no", "--quantize", "int8", "--format", "paddle"
    )


@pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")
def test_prediction_with_onnx_imports_neither_paddle_nor_paddlenlp(trained, corpus, tmp_path):
    exported = export(tmp_path / "exported", "onnx", trained.model)
    text = corpus.dev_records[0]["text"]
    program = f"""
import sys
from tasks.recipes import open_predictor
print(open_predictor({str(exported)!r})([{text!r}]))
print(sorted(name for name in ("paddle", "paddlenlp", "safetensors", "jieba", "rich") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    found, imported = done.stdout.splitlines()
    spans = [[entity[key] for key in ("start", "end", "type")] for entity in ast.literal_eval(found)[0]["entities"]]
    assert spans == [[*entity[:3]] for entity in NerPredictor(trained.model, "cpu").find([text])[0]] != []
    assert imported == "[]"
