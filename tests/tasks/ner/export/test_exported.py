"""Exported models: the same entities from a static graph."""

import numpy as np
import pytest

from tasks.commands.main import main
from tasks.ner import NerPredictor
from tests.helpers.exports import FORMATS, export

needs_onnx = pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")


def found(model, texts, **options):
    found = NerPredictor(model, "cpu", **options).find(texts)
    return [[entity[:3] for entity in of_text] for of_text in found], [
        entity[3:] for of_text in found for entity in of_text
    ]


def assert_finds_the_same(first, second, texts, **options):
    (entities, scores), (others, other_scores) = (found(model, texts, **options) for model in (first, second))
    assert len(scores) > 20 and entities == others
    np.testing.assert_allclose(scores, other_scores, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"batch_size": 1}, {"max_tokens": 20}, {"max_entity_tokens": 3}], ids=str)
def test_finds_what_the_trained_model_finds(trained, exported, dev_texts, options):
    assert_finds_the_same(trained.model, exported, dev_texts, **options)


@pytest.mark.slow
def test_several_models_become_one_and_features_go_along(trained, train, dev_texts, tmp_path, capsys):
    several = [trained.model, train(tmp_path / "other", seed=43, attention="linear", num_train_epochs=4).model]
    options = {"features": "segmentation,bigrams,gazetteer", "max_span_length": 9, "tune_thresholds": True}
    featured = train(tmp_path / "run", num_train_epochs=4, **options).model
    for format in FORMATS:
        assert_finds_the_same(several, export(tmp_path / format, format, *several), dev_texts)
        capsys.readouterr()
        exported = export(tmp_path / f"{format} with features", format, featured)
        assert_finds_the_same(featured, exported, dev_texts)
        (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
        assert note.removeprefix("note: ") in (exported / "README.md").read_text(encoding="utf-8")


def test_it_is_evaluated_but_not_tuned(trained, copied, corpus, evaluate, refused):
    assert evaluate(corpus.dev, copied)["per_type"] == evaluate(corpus.dev)["per_type"]
    assert "is exported" in refused("tune", copied, corpus.dev)


@pytest.mark.parametrize("format", FORMATS)
def test_both_are_scored_on_a_labeled_file(trained, corpus, tmp_path, capsys, format):
    words = ["--output", tmp_path / "new", "--format", format, "--check", corpus.dev, "--license", "MIT"]
    assert main(["export", str(trained.model), *map(str, words)]) == 0
    f1, card = f"{trained.metrics['dev']['f1']:.4f}", (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.count(f1) == 2 and f"{f1} trained, {f1} exported" in card
    facts = ["license: MIT", f"{trained.model_config['window_tokens']} tokens", *trained.model_config["types"]]
    assert all(fact in card for fact in facts)


@needs_onnx
def test_int8_is_smaller_and_finds_nearly_the_same(trained, dev_texts, tmp_path, refused):
    plain, small = export(tmp_path / "plain", "onnx", trained.model), tmp_path / "int8"
    assert main(["export", str(trained.model), "--output", str(small), "--quantize", "int8"]) == 0
    exact, near = (
        {(row, *entity[:3]) for row, of_text in enumerate(NerPredictor(folder).find(dev_texts)) for entity in of_text}
        for folder in (plain, small)
    )
    assert len(exact & near) > 0.9 * len(exact | near)
    assert (small / "model.onnx").stat().st_size < (plain / "model.onnx").stat().st_size
    assert "int8" in (small / "README.md").read_text(encoding="utf-8")
    words = ["--output", "no", "--quantize", "int8", "--format", "paddle"]
    assert "--quantize" in refused("export", trained.model, *words)
