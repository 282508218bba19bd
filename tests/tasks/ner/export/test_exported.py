"""Exported models: the same entities, and what is not written or not read."""

import itertools
import shutil

import numpy as np
import paddle
import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.export import exporter as exporting
from paddle_rope.tasks.common.model_folder import GRAPH_FILES, write_checksums
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.export import NerExporter
from tests.helpers.models import FORMATS, export


@pytest.fixture(scope="session", params=FORMATS)
def exported(request, trained, tmp_path_factory):
    """The folder of the trained model's export. Do not change its files."""
    return export(tmp_path_factory.mktemp("exported") / "model", request.param, trained.model)


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
        assert capsys.readouterr().out.count("note: word features: ") == 1


@pytest.mark.parametrize("format", FORMATS)
def test_both_are_scored_on_a_labeled_file(trained, corpus, tmp_path, capsys, format):
    export(tmp_path / "new", format, trained.model, "--check", corpus.dev)
    assert capsys.readouterr().out.count(f"{trained.metrics['dev']['f1']:.4f}") == 2


@needs_onnx
def test_int8_is_smaller_and_finds_nearly_the_same(trained, dev_texts, tmp_path):
    plain = export(tmp_path / "plain", "onnx", trained.model)
    small = export(tmp_path / "int8", "onnx", trained.model, "--quantize", "int8")
    exact, near = (
        {(row, *entity[:3]) for row, of_text in enumerate(NerPredictor(folder).find(dev_texts)) for entity in of_text}
        for folder in (plain, small)
    )
    assert len(exact & near) > 0.9 * len(exact | near)
    assert (small / "model.onnx").stat().st_size < (plain / "model.onnx").stat().st_size


@pytest.mark.parametrize("format", FORMATS)
def test_a_graph_that_scores_otherwise_is_not_left_behind(trained, tmp_path, monkeypatch, format):
    numbers = itertools.count()
    monkeypatch.setattr(NerExporter, "scores", lambda *_: np.full(3, float(next(numbers))))
    with pytest.raises(InputError, match="scores differ"):
        exporting.export(NerExporter(), [trained.model], tmp_path / "new", format)
    assert list(tmp_path.iterdir()) == []


def test_paddle_2_neither_exports_onnx_nor_reads_graphs_of_paddle_3(trained, tmp_path, refused, monkeypatch):
    exported = export(tmp_path / "exported", "paddle", trained.model)
    (graph,) = [exported / name for name in GRAPH_FILES if (exported / name).is_file()]
    shutil.move(graph, exported / "inference.json")
    write_checksums(exported)
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "--format paddle" in refused("export", trained.model, "--output", "new")
    assert "Paddle 3" in refused("predict", exported)
