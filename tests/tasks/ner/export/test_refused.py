"""Exports that are not written, and exported folders that are not read."""

import json
import shutil

import export_ner
import paddle
import predict_ner
import pytest

from tasks.common.errors import InputError
from tasks.common.export import exporter as exporting
from tasks.common.export.folder import GRAPH_FILES, ONNX_FILE, write_checksums
from tasks.ner.export import NerExporter
from tests.helpers.exports import FORMATS, export, fails
from tests.tasks.common.export.graph_bytes import field


@pytest.mark.parametrize("damage", ["shorter", "missing", "changed"])
@pytest.mark.parametrize("name", ["weights", "vocab.txt", "README.md"])
def test_damaged_files_are_one_line(copied, capsys, damage, name):
    file = copied / name
    if name == "weights":
        (file,) = (file for file in copied.iterdir() if file.name in ("model.onnx", "inference.pdiparams"))
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "shorter" else b"garbage\n")
    error = fails(predict_ner, capsys, copied)
    assert "is not the file that was exported; copy the whole folder again" in error or "missing" in error


def test_a_graph_of_other_types_than_the_configuration_is_one_line(copied, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("甲\n", encoding="utf-8")
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    config |= {"types": [*config["types"], "one more"], "thresholds": 0.0, "temperatures": 1.0}
    (copied / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_checksums(copied)
    error = fails(predict_ner, capsys, copied, "--input", texts)
    assert f"{copied}: the graph is damaged or does not fit the other files" in error


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
    assert "is already exported" in fails(export_ner, capsys, exported, "--output", tmp_path / "again")
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


def test_paddle_2_exports_no_onnx(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "give --format paddle" in fails(export_ner, capsys, trained.model, "--output", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_a_newer_paddle_is_named(trained, tmp_path, capsys, monkeypatch):
    copied = export(tmp_path / "copied", "paddle", trained.model)
    graph = next(path for path in (copied / "inference.json", copied / "inference.pdmodel") if path.is_file())
    graph.rename(copied / "inference.json")
    write_checksums(copied)
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "was exported by Paddle 3, which this Paddle 2.6.2 cannot read" in fails(predict_ner, capsys, copied)
