"""Exported models: the same entities from a static graph."""

import json
import shutil

import evaluate_ner
import export_ner
import numpy as np
import paddle
import predict_ner
import pytest
import tune_threshold
from paddle import inference

from tasks.common.errors import InputError
from tasks.ner import NerPredictor
from tasks.ner.deployment import export as exporting
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.exported import ExportedNerModel, write_graph

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "types": ["a", "b"],
    "head_size": 8,
}


def export(output, *models):
    assert export_ner.main([*map(str, models), "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    """The folder of the trained model's export. Do not change its files."""
    return export(tmp_path_factory.mktemp("exported") / "model", trained.model)


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copied")


def found(model, texts, **options):
    records = NerPredictor(model, "cpu", **options)(texts)
    entities = [{**entity, "score": 0} for record in records for entity in record["entities"]]
    return entities, [entity["score"] for record in records for entity in record["entities"]]


def assert_finds_the_same(first, second, texts, **options):
    (entities, scores), (others, other_scores) = (found(model, texts, **options) for model in (first, second))
    assert len(entities) > 20 and entities == others
    np.testing.assert_allclose(scores, other_scores, atol=2e-4)


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}, {"max_tokens": 20}], ids=str)
def test_finds_what_the_trained_model_finds(trained, exported, corpus, options):
    assert_finds_the_same(trained.model, exported, [record["text"] for record in corpus.dev_records], **options)


def test_several_models_become_one(trained, train, corpus, tmp_path):
    other = train(tmp_path / "other", seed=43, attention="linear", num_train_epochs=4).model
    together = export(tmp_path / "together", trained.model, other)
    assert_finds_the_same([trained.model, other], together, [record["text"] for record in corpus.dev_records])


def test_word_features_go_along(train, corpus, tmp_path):
    run = train(tmp_path / "run", features="segmentation,bigrams,gazetteer", num_train_epochs=4)
    exported = export(tmp_path / "exported", run.model)
    assert_finds_the_same(run.model, exported, [record["text"] for record in corpus.dev_records])


@pytest.mark.parametrize(
    "options",
    [
        {"span_head": "dense"},
        {"max_span_length": 5},
        {"span_head": "dense", "max_span_length": 3, "attention": "linear"},
        {"attention": ["linear", "softmax"], "feature_map": "favor"},
        {"attention": "linear", "feature_map": "softmax_exp", "normalizer": "none", "position_embedding": "qkvo"},
        {"version": 2, "rotary_learned": True},
        {"position_embedding": "alibi"},
        {"position_embedding": "none", "span_rope": False},
        {"features": {"tables": {"words": 9}, "flags": 3}},
        {"features": {"tables": {}, "flags": 4}},
    ],
    ids=str,
)
def test_graphs_of_all_kinds_score_texts_of_any_length_and_number(options, tmp_path):
    config = NerConfig(**{**SIZES, **options})
    model = NerModel(config)
    model.eval()
    for parameter in model.parameters():
        parameter.set_value(0.4 * paddle.randn(parameter.shape))
    batches = [random_batch(config, texts, length) for texts, length in ((2, 7), (1, 1), (3, 70))]
    expected = [model(**batch).numpy() for batch in batches]
    write_graph(model, tmp_path)
    graph, alone = ExportedNerModel(tmp_path, config), by_paddle_alone(tmp_path)
    for batch, scores in zip(batches, expected):
        np.testing.assert_allclose(graph(**batch).numpy(), scores, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(alone(**batch), scores, rtol=1e-4, atol=1e-4)
    assert np.abs(expected[2][expected[2] > -1e3]).mean() > 0.05


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
    batch = {
        "input_ids": paddle.randint(1, config.vocab_size, [texts, length]),
        "attention_mask": paddle.arange(length) < paddle.randint(1, length + 1, [texts, 1]),
        "token_mask": paddle.rand([texts, length]) > 0.2,
    }
    if config.features and config.features["tables"]:
        batch["columns"] = paddle.randint(0, config.features["tables"]["words"], [texts, length, 3])
    if config.features and config.features["flags"]:
        batch["flags"] = paddle.rand([texts, length, config.features["flags"]]) > 0.5
    return batch


def test_the_tools_take_the_folder(trained, copied, corpus, tmp_path):
    scores = []
    for model in (trained.model, copied):
        output = tmp_path / "scores.json"
        assert evaluate_ner.main([str(model), str(corpus.dev), "--output", str(output), "--device", "cpu"]) == 0
        scores.append(json.loads(output.read_text(encoding="utf-8"))["per_type"])
    assert scores[0] == scores[1]
    assert tune_threshold.main([str(copied), str(corpus.dev), "--device", "cpu"]) == 0
    thresholds = json.loads((copied / "config.json").read_text(encoding="utf-8"))["thresholds"]
    assert len(thresholds) == len(trained.model_config["types"])
    assert NerPredictor(copied, "cpu").model.config.thresholds == thresholds


def test_paddle_alone_runs_the_graph(trained, exported):
    vocab = (exported / "vocab.txt").read_text(encoding="utf-8").split("\n")
    text = "王明在青川市。"
    ids = [vocab.index(token) if token in vocab else vocab.index("[UNK]") for token in ["[CLS]", *text, "[SEP]"]]
    is_token = [0 < place < len(ids) - 1 for place in range(len(ids))]
    given = {"input_ids": [ids], "attention_mask": [[True] * len(ids)], "token_mask": [is_token]}
    logits = by_paddle_alone(exported)(**given)
    entities = [
        (int(first) - 1, int(last), trained.model_config["types"][kind])
        for kind, first, last in zip(*np.where(logits[0] > 0))
    ]
    expected = NerPredictor(trained.model, "cpu")([text])[0]["entities"]
    assert sorted(entities) == [(entity["start"], entity["end"], entity["type"]) for entity in expected] != []


def fails(tool, capsys, *words):
    assert tool.main([*map(str, words)]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error and len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize("damage", ["shorter", "missing", "changed"])
@pytest.mark.parametrize("suffix", ["pdiparams", "graph"])
def test_damaged_files_are_one_line(copied, capsys, damage, suffix):
    (file,) = [
        path
        for path in copied.glob("inference.*")
        if (path.suffix == ".pdiparams" if suffix == "pdiparams" else path.suffix in (".json", ".pdmodel"))
    ]
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "shorter" else b"garbage\n")
    assert "is not the file that was exported; copy the whole folder again" in fails(predict_ner, capsys, copied)


def test_weights_of_the_trained_model_beside_the_graph_do_no_harm(trained, copied, corpus):
    shutil.copyfile(trained.model / "model.safetensors", copied / "model.safetensors")
    assert_finds_the_same(trained.model, copied, [record["text"] for record in corpus.dev_records])


def test_exported_models_stand_alone(trained, exported, tmp_path, capsys):
    assert "stands alone" in fails(predict_ner, capsys, trained.model, exported)
    assert "is exported already" in fails(export_ner, capsys, exported, "--output", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_cannot_be_written_is_said_before_anything_is(trained, exported, tmp_path, capsys):
    model = trained.model
    assert "is not empty" in fails(export_ner, capsys, model, "--output", exported)
    assert "is a file" in fails(export_ner, capsys, model, "--output", exported / "vocab.txt")
    assert "is not a writable folder" in fails(export_ner, capsys, model, "--output", tmp_path / "a" / "b")
    assert "is a training run, not a model" in fails(export_ner, capsys, trained.folder, "--output", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_scores_otherwise_is_not_left_behind(trained, tmp_path, monkeypatch):
    def write_another(model, folder):
        model.head.dense.weight.set_value(1.1 * model.head.dense.weight)
        write_graph(model, folder)

    monkeypatch.setattr(exporting, "write_graph", write_another)
    with pytest.raises(InputError, match="not written, as the exported model's scores differ"):
        exporting.export([trained.model], tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_a_newer_paddle_is_named(copied, capsys, monkeypatch):
    sums = copied / "inference.sha256"
    graph = next(path for path in (copied / "inference.json", copied / "inference.pdmodel") if path.is_file())
    graph.rename(copied / "inference.json")
    sums.write_text(sums.read_text(encoding="utf-8").replace(graph.name, "inference.json"), encoding="utf-8")
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "was exported by Paddle 3, which this Paddle 2.6.2 cannot read" in fails(predict_ner, capsys, copied)
