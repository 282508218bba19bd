"""Exported models: the same entities, what is not written or not read; graphs of all kinds, by Paddle and ONNX Runtime,
also without the project."""

import itertools
import shutil

import numpy as np
import paddle
import pytest
from paddle import inference

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.export import exporter as exporting
from paddle_rope.tasks.common.export.operators import operators_of
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.common.model_folder import GRAPH_FILES, ONNX_FILE, write_checksums
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.export import NerExporter
from paddle_rope.tasks.ner.lengths import entity_bound
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from paddle_rope.tasks.ner.prediction.predictor import ExportedNerModel
from tests.helpers.models import FORMATS, export, like, needs_onnx, write_small_ner
from tests.paddle_rope.roformer.small_models import randomise


def assert_finds_the_same(first, second, texts, **options):
    records, others = (NerPredictor(model, "cpu", **options)(texts) for model in (first, second))
    assert sum(len(record["entities"]) for record in records) > 20 and others == like(records)


@pytest.mark.parametrize("format", FORMATS)
def test_finds_and_scores_what_the_trained_model_does(trained, exported, dev_texts, format):
    assert exported(format).printed.count(f"{trained.metrics['dev']['f1']:.4f}") == 2
    for options in ({}, {"batch_size": 1}, {"max_tokens": 20}, {"max_entity_tokens": 3}):
        assert_finds_the_same(trained.model, exported(format).model, dev_texts, **options)


@pytest.mark.slow
def test_several_models_become_one_and_features_go_along(trained, other, corpus, dev_texts, tmp_path, capsys):
    options = {"max_span_length": 9, "thresholds": [2.0, 2.5, 3.0, 2.0, 2.5, 3.0]}
    featured = write_small_ner(tmp_path / "featured", read_examples(corpus.train), with_features=True, **options)
    several = [trained.model, other]
    for format in FORMATS:
        assert_finds_the_same(several, export(tmp_path / format, format, *several), dev_texts)
        capsys.readouterr()
        exported = export(tmp_path / f"{format} with features", format, featured)
        assert_finds_the_same(featured, exported, dev_texts)
        assert capsys.readouterr().out.count("note: word features: ") == 1


@needs_onnx
def test_int8_is_smaller_and_finds_nearly_the_same(trained, exported, dev_texts, tmp_path):
    plain, small = exported("onnx").model, export(tmp_path / "int8", "onnx", trained.model, "--quantize", "int8")
    exact, near = (
        {(row, *entity[:3]) for row, of_text in enumerate(NerPredictor(folder).find(dev_texts)) for entity in of_text}
        for folder in (plain, small)
    )
    assert len(exact & near) > 0.9 * len(exact | near)
    assert (small / "model.onnx").stat().st_size < (plain / "model.onnx").stat().st_size


def test_a_graph_that_scores_otherwise_is_not_left_behind(trained, tmp_path, monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(NerExporter, "scores", lambda *_: np.full(3, float(next(numbers))))
    with pytest.raises(InputError, match="scores differ"):
        exporting.export(NerExporter(), [trained.model], tmp_path / "new", FORMATS[0])
    assert list(tmp_path.iterdir()) == []


def test_paddle_2_neither_exports_onnx_nor_reads_graphs_of_paddle_3(trained, exported, tmp_path, refused, monkeypatch):
    folder = shutil.copytree(exported("paddle").model, tmp_path / "exported")
    (graph,) = [folder / name for name in GRAPH_FILES if (folder / name).is_file()]
    shutil.move(graph, folder / "inference.json")
    write_checksums(folder)
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "--format paddle" in refused("export", trained.model, "--output", "new")
    assert "Paddle 3" in refused("predict", folder)


# ---- graphs
SIZES = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "head_size": 8}


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"span_head": "dense", "position_embedding": "alibi"},
    {"span_head": "dense", "max_span_length": 3, "attention": "linear", "decay": [0.9, 0.5]},
    {"attention": ["linear", "softmax"], "feature_map": "favor", "version": 2, "rotary": {"learned": True}},
    {"attention": "linear", "feature_map": "softmax_exp", "normalizer": "none", "position_embedding": "qkvo"},
    {"attention": ["window", "linear"], "attention_window": 3, "max_span_length": 5},
    {"position_embedding": "none", "span_rope": False, "features": {"tables": {}, "flags": 4}},
    {"attention": "linear", "convolutions": True, "output_gate": True,
     "features": {"tables": {"words": 9}, "flags": 3}},
], ids=str)  # fmt: skip
def test_graphs_of_all_kinds_score_texts_of_any_length_and_number(options, tmp_path, monkeypatch):
    layers = len(options["attention"]) if isinstance(options.get("attention"), list) else 1
    of_types = {"types": ["a", "b"], "temperatures": [0.5, 2.0], "longest_entity": 3}
    config = NerConfig(**SIZES, num_hidden_layers=layers, **options, **of_types)
    model = randomise(NerModel(config), 0.4)
    batches = [random_batch(config, texts, length) for texts, length in ((2, 7), (1, 1), (3, 70))]
    expected = [evaluated(model, batch).numpy() for batch in batches]
    bounds = [between(expected[2][:, kind]) for kind in range(2)]
    spans = model.find_spans(batches[2], bounds)
    exporter, folders = NerExporter(), {format: tmp_path / format for format in FORMATS}
    for folder in folders.values():
        config.save_pretrained(str(folder))
    exporter.write_graph(model, folders["paddle"], "paddle")
    if "onnx" in folders:  # which begins with the same graph
        written = [*folders["paddle"].glob("inference.*")]
        copied = lambda layer, inputs, to: [shutil.copy(path, to) for path in written]  # noqa: E731
        monkeypatch.setattr(exporting, "write_paddle_graph", copied)
        exporter.write_graph(model, folders["onnx"], "onnx")
        assert "Cos" not in operators_of(folders["onnx"] / ONNX_FILE)  # onnxruntime before 1.29 has none of float64
    alone = by_paddle_alone(folders["paddle"])
    for batch, scores in zip(batches, expected):
        np.testing.assert_allclose(alone(**batch), scores, rtol=1e-4, atol=1e-4)
    assert sum(map(len, spans)) > 10
    for format, folder in folders.items():
        exported = ExportedNerModel(folder, config, "cpu")
        for batch, scores in zip(batches, expected):
            np.testing.assert_allclose(exported.graph.run(batch)[0], scores, rtol=1e-4, atol=1e-4)
        for top in (None, 2):
            for found, of_text in zip(exported.find_spans(batches[2], bounds, top), spans, strict=True):
                highest = sorted(of_text, key=lambda span: -span.score)[:top]
                assert [span[:3] for span in sorted(found)] == [span[:3] for span in sorted(highest)]
        if format != "onnx":
            continue
        given = {**batches[2], "thresholds": np.array(bounds, dtype=np.float32)}
        (every,) = exported.graph.run({**given, "max_entity_tokens": np.array([70])}, ("spans",))
        found, scores, probabilities = exported.graph.run(given, ("spans", "scores", "probabilities"))
        is_short = every[:, 3] - every[:, 2] <= entity_bound(3)
        assert found.tolist() == every[is_short].tolist() and is_short.all() == (config.max_span_length is not None)
        temperatures = np.array([0.5, 2.0])[found[:, 1]]
        np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-scores / temperatures)), rtol=1e-4)


def between(logits):
    """A number that is not near any logit: about half of them are higher."""
    logits = np.sort(logits[logits > -1e3])
    middle = logits[len(logits) // 4 : 3 * len(logits) // 4 + 2]
    widest = np.argmax(np.diff(middle))
    return float(middle[widest : widest + 2].mean())


def by_paddle_alone(folder):
    """The graph of a folder by the settings that Paddle has by itself; those of Paddle 3 take oneDNN."""
    (graph,) = [path for path in folder.glob("inference.*") if path.suffix in (".json", ".pdmodel")]
    settings = inference.Config(str(graph), str(folder / "inference.pdiparams"))
    settings.disable_glog_info()
    predictor = inference.create_predictor(settings)

    def scores(**batch):
        for name, values in batch.items():
            predictor.get_input_handle(name).copy_from_cpu(np.array(values))
        predictor.run()
        return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

    return scores


def random_batch(config, texts, length):
    random = np.random.default_rng(length)
    batch = {
        "input_ids": random.integers(1, config.vocab_size, [texts, length]),
        "attention_mask": np.arange(length) < random.integers(1, length + 1, [texts, 1]),
        "token_mask": random.random([texts, length]) > 0.2,
    }
    if config.features and config.features["tables"]:
        batch["columns"] = random.integers(0, config.features["tables"]["words"], [texts, length, 3])
    if config.features and config.features["flags"]:
        batch["flags"] = random.random([texts, length, config.features["flags"]]) > 0.5
    return batch
