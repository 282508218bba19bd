"""Exported models: the same entities from a static graph."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import evaluate_ner
import export_ner
import numpy as np
import paddle
import predict_ner
import pytest
from paddle import inference

from tasks.common.deployment import export as exporting
from tasks.common.deployment.graphs import write_onnx_graph, write_paddle_graph
from tasks.common.errors import InputError
from tasks.common.exported.folder import GRAPH_FILES, ONNX_FILE, write_checksums
from tasks.common.inference import evaluated
from tasks.ner import NerPredictor
from tasks.ner.export import NerExporter, add_spans
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.exported import ExportedNerModel
from tests.common.exported.graph_bytes import field
from tests.exports import FORMATS, export
from tests.verbs import verb

tune_threshold = verb("tune", "ner")
ROOT = Path(__file__).resolve().parents[3]

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "types": ["a", "b"],
    "head_size": 8,
}


@pytest.fixture(scope="module", params=FORMATS)
def exported(request, trained, tmp_path_factory):
    """The folder of the trained model's export. Do not change its files."""
    return export("ner", tmp_path_factory.mktemp("exported") / "model", request.param, trained.model)


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copied")


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


@pytest.mark.parametrize("format", FORMATS)
def test_several_models_become_one(trained, train, corpus, tmp_path, format):
    other = train(tmp_path / "other", seed=43, attention="linear", num_train_epochs=4).model
    together = export("ner", tmp_path / "together", format, trained.model, other)
    assert_finds_the_same([trained.model, other], together, [record["text"] for record in corpus.dev_records])


def test_word_features_and_short_spans_go_along(train, corpus, tmp_path):
    options = {"features": "segmentation,bigrams,gazetteer", "max_span_length": 9, "tune_thresholds": True}
    run = train(tmp_path / "run", num_train_epochs=4, **options)
    for format in FORMATS:
        exported = export("ner", tmp_path / format, format, run.model)
        assert_finds_the_same(run.model, exported, [record["text"] for record in corpus.dev_records])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "options",
    [
        {"span_head": "dense"},
        {"max_span_length": 5},
        {"span_head": "dense", "max_span_length": 3, "attention": "linear"},
        {"attention": ["linear", "softmax"], "feature_map": "favor"},
        {"attention": "linear", "feature_map": "softmax_exp", "normalizer": "none", "position_embedding": "qkvo"},
        {"attention": ["window", "linear"], "attention_window": 3, "max_span_length": 5},
        {"attention": "window", "attention_window": 40, "score_scaling_length": 20},
        {"attention": "softmax", "score_scaling_length": 20},
        {"attention": "linear", "decay": [0.9, 0.5]},
        {"attention": ["linear", "softmax"], "decay": "token", "normalizer": "none"},
        {
            "attention": "linear",
            "normalizer": "none",
            "convolutions": ["input", "value", "output"],
            "output_gate": True,
        },
        {"attention": ["linear", "softmax"], "feature_map": "hedgehog", "convolutions": ["input"]},
        {"attention": "linear", "feature_map": "identity", "normalizer": "subtracted_mean"},
        {"version": 2, "rotary_learned": True},
        {"position_embedding": "alibi"},
        {"position_embedding": "none", "span_rope": False},
        {"features": {"tables": {"words": 9}, "flags": 3}},
        {"features": {"tables": {}, "flags": 4}},
    ],
    ids=str,
)
def test_graphs_of_all_kinds_score_texts_of_any_length_and_number(options, format, tmp_path):
    config = NerConfig(**{**SIZES, **options}, temperatures=[0.5, 2.0])
    model = NerModel(config)
    model.eval()
    for parameter in model.parameters():
        parameter.set_value(0.4 * paddle.randn(parameter.shape))
    batches = [random_batch(config, texts, length) for texts, length in ((2, 7), (1, 1), (3, 70))]
    expected = [evaluated(model, batch).numpy() for batch in batches]
    bounds = [between(expected[2][:, kind]) for kind in range(2)]
    spans = model.find_spans(batches[2], bounds)
    exporter, folder = NerExporter(), tmp_path / "model"
    folder.mkdir()
    config.save_pretrained(str(folder))
    if format == "onnx":
        write_onnx_graph(model, exporter.inputs(config), folder, "logits", lambda graph: exporter.finish(graph, config))
    else:
        write_paddle_graph(model, exporter.inputs(config), folder)
    exported = ExportedNerModel(folder, "cpu")
    for batch, scores in zip(batches, expected):
        np.testing.assert_allclose(exported.graph.run(batch)[0], scores, rtol=1e-4, atol=1e-4)
        if format == "paddle":
            np.testing.assert_allclose(by_paddle_alone(folder)(**batch), scores, rtol=1e-4, atol=1e-4)
    found = exported.find_spans(batches[2], bounds)
    assert [[span[:3] for span in sorted(of_text)] for of_text in found] == [
        [span[:3] for span in sorted(of_text)] for of_text in spans
    ]
    assert sum(map(len, spans)) > 10
    if format == "onnx":
        given = {**batches[2], "thresholds": np.array(bounds, dtype=np.float32)}
        found, scores, probabilities = exported.graph.run(given, ("spans", "scores", "probabilities"))
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


@pytest.mark.parametrize("format", FORMATS)
def test_the_graph_runs_without_the_project(trained, tmp_path, format):
    exported = export("ner", tmp_path / "exported", format, trained.model)
    vocab = (exported / "vocab.txt").read_text(encoding="utf-8").split("\n")
    text = "王明在青川市。"
    ids = [vocab.index(token) if token in vocab else vocab.index("[UNK]") for token in ["[CLS]", *text, "[SEP]"]]
    is_token = [0 < place < len(ids) - 1 for place in range(len(ids))]
    given = {"input_ids": [ids], "attention_mask": [[True] * len(ids)], "token_mask": [is_token]}
    types = trained.model_config["types"]
    if format == "paddle":
        logits = by_paddle_alone(exported)(**given)
        entities = [(first - 1, last, types[kind]) for kind, first, last in zip(*np.where(logits[0] > 0))]
    else:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(exported / "model.onnx"), providers=["CPUExecutionProvider"])
        (spans,) = session.run(["spans"], {name: np.array(value) for name, value in given.items()})
        entities = [(start - 1, end - 1, types[kind]) for _, kind, start, end in spans]
    expected = NerPredictor(trained.model, "cpu")([text])[0]["entities"]
    assert sorted(entities) == [(entity["start"], entity["end"], entity["type"]) for entity in expected] != []


@pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")
@pytest.mark.parametrize("longest, band", [(1, None), (3, None), (2, 6)])
def test_the_graph_alone_finds_no_span_beyond_the_bound(longest, band):
    import onnx
    import onnxruntime

    shape = [None, 2, None, None]
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, shape)
    given = onnx.helper.make_tensor_value_info("given", onnx.TensorProto.FLOAT, shape)
    same = onnx.helper.make_node("Identity", ["given"], ["logits"])
    graph = onnx.helper.make_graph([same], "graph", [given], [logits])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    add_spans(model, 2, [0.0, 1.0], 1.0, banded=band is not None, max_entity_tokens=longest)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    values = np.random.default_rng(3).normal(size=[3, 2, 9, band or 9]).astype(np.float32)
    values[:, :, ~(np.arange(9)[:, None] <= np.arange(9)) if band is None else slice(4, 9)] = -1e4

    def spans(**more):
        found, scores = session.run(["spans", "scores"], {"given": values, **more})
        columns = found[:, 3] - 1 - (found[:, 2] if band else 0)
        assert np.array_equal(scores, values[found[:, 0], found[:, 1], found[:, 2], columns])
        return {tuple(span) for span in found.tolist()}

    every = spans(max_entity_tokens=np.array([9]))
    assert any(end - first > longest for *_, first, end in every)
    assert spans() == {span for span in every if span[3] - span[2] <= longest} != set()


def test_a_folder_of_before_reads_and_finds_as_it_did(trained, copied, corpus):
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    lengths = {name: config.pop(name) for name in ("window_tokens", "longest_text", "longest_entity")}
    assert lengths == {name: trained.model_config[name] for name in lengths} and None not in lengths.values()
    (copied / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_checksums(copied)
    assert NerPredictor(copied, "cpu").reading == (config["max_tokens"], config["max_tokens"] // 4, None)
    texts = [record["text"] for record in corpus.dev_records]
    assert_finds_the_same(trained.model, copied, texts, max_tokens=64, max_entity_tokens=0)


def fails(tool, capsys, *words):
    assert tool.main([*map(str, words)]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error and len(error.splitlines()) == 1
    return error


@pytest.mark.parametrize("damage", ["shorter", "missing", "changed"])
@pytest.mark.parametrize("name", ["model.onnx", "inference.pdiparams", "vocab.txt", "README.md"])
def test_damaged_files_are_one_line(copied, capsys, damage, name):
    file = copied / name
    if not file.is_file():
        file = copied / ("inference.pdiparams" if name == "model.onnx" else "model.onnx")
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "shorter" else b"garbage\n")
    error = fails(predict_ner, capsys, copied)
    assert "is not the file that was exported; copy the whole folder again" in error or "missing" in error


def test_a_graph_that_would_write_a_file_writes_nothing(copied, tmp_path, capsys):
    (graph,) = [copied / name for name in (ONNX_FILE, *GRAPH_FILES) if (copied / name).is_file()]
    target = tmp_path / "mine.txt"
    target.write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    if graph.suffix == ".json":
        content = json.loads(graph.read_text(encoding="utf-8"))
        operators = content["program"]["regions"][0]["blocks"][0]["ops"]
        path = {"N": "file_path", "AT": {"#": "0.a_str", "D": str(target)}}
        save = {"#": "1.save", "A": [path], "I": [{"%": 1}], "O": [], "OA": []}
        operators.insert(next(n for n, operator in enumerate(operators) if operator["#"] != "p"), save)
        graph.write_text(json.dumps(content), encoding="utf-8")
    elif graph.suffix == ".pdmodel":
        path = field(1, b"file_path") + field(2, 2) + field(5, str(target).encode())
        save = field(3, b"save") + field(1, field(1, b"X") + field(2, b"linear_0.b_0")) + field(4, path)
        graph.write_bytes(graph.read_bytes() + field(1, field(1, 1) + field(2, 0) + field(4, save)))
    else:
        secret = field(1, b"location") + field(2, str(target).encode())
        graph.write_bytes(graph.read_bytes() + field(7, field(5, field(13, secret) + field(14, 1))))
    write_checksums(copied)
    kind = "<external data>" if graph.suffix == ".onnx" else "save"
    error = fails(predict_ner, capsys, copied)
    assert f"{graph}: holds '" in error and kind in error and "was not loaded" in error
    assert sorted(tmp_path.rglob("*")) == before and target.read_text(encoding="utf-8") == "mine"


def test_a_folder_without_a_graph_or_with_a_file_named_twice_is_an_error(copied, capsys):
    sums = copied / "SHA256SUMS"
    whole = sums.read_text(encoding="utf-8")
    sums.write_text(whole + whole.splitlines(keepends=True)[0], encoding="utf-8")
    assert "it names a file twice" in fails(predict_ner, capsys, copied)
    sums.write_text(whole, encoding="utf-8")
    for name in ("inference.json", "inference.pdmodel"):
        if (copied / name).is_file():
            (copied / name).unlink()
            write_checksums(copied)
            assert "it does not name all files" in fails(predict_ner, capsys, copied)


@pytest.mark.parametrize("sums", ["", "nothing\n", None])
def test_incomplete_checksums_are_an_error(copied, capsys, sums):
    lines = (copied / "SHA256SUMS").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if "vocab.txt" not in line) if sums is None else sums
    (copied / "SHA256SUMS").write_text(kept, encoding="utf-8")
    assert "SHA256SUMS is damaged" in fails(predict_ner, capsys, copied)


def test_a_file_that_was_not_exported_is_an_error(trained, copied, capsys):
    shutil.copyfile(trained.model / "model.safetensors", copied / "model.safetensors")
    assert "model.safetensors: was not exported with the others" in fails(predict_ner, capsys, copied)


def test_folders_of_version_0_1_are_named(copied, capsys):
    (copied / "SHA256SUMS").rename(copied / "inference.sha256")
    assert "was exported by version 0.1; export the trained model again" in fails(predict_ner, capsys, copied)


@pytest.mark.parametrize(
    "key, value", [("types", 3), ("max_tokens", 0), ("window_tokens", 0), ("thresholds", ["a"]), ("temperatures", -1.0)]
)
def test_a_configuration_that_cannot_be_is_an_error(copied, capsys, key, value):
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    (copied / "config.json").write_text(json.dumps({**config, key: value}), encoding="utf-8")
    write_checksums(copied)
    assert f"config.json is damaged or does not fit the other files (ValueError: {key}" in fails(
        predict_ner, capsys, copied
    )


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


@pytest.mark.parametrize("format", FORMATS)
def test_a_graph_that_scores_otherwise_is_not_left_behind(trained, tmp_path, monkeypatch, format):
    def changed(self, model):
        model.head.dense.weight.set_value(1.1 * model.head.dense.weight)
        return model

    monkeypatch.setattr(NerExporter, "layer", changed)
    with pytest.raises(InputError, match="not written, as the exported model's scores differ"):
        exporting.export(NerExporter(), [trained.model], tmp_path / "new", format)
    assert list(tmp_path.iterdir()) == []


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
    plain = export("ner", tmp_path / "plain", "onnx", trained.model)
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
    exported = export("ner", tmp_path / "exported", "onnx", trained.model)
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


def test_paddle_2_exports_no_onnx(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "give --format paddle" in fails(export_ner, capsys, trained.model, "--output", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_a_newer_paddle_is_named(trained, tmp_path, capsys, monkeypatch):
    copied = export("ner", tmp_path / "copied", "paddle", trained.model)
    graph = next(path for path in (copied / "inference.json", copied / "inference.pdmodel") if path.is_file())
    graph.rename(copied / "inference.json")
    write_checksums(copied)
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "was exported by Paddle 3, which this Paddle 2.6.2 cannot read" in fails(predict_ner, capsys, copied)
