"""Exports that are not written, and exported folders that are not read."""

import itertools
import json
import shutil

import numpy as np
import paddle
import pytest

from tasks.common.errors import InputError
from tasks.common.export import exporter as exporting
from tasks.common.export.folder import GRAPH_FILES, ONNX_FILE, write_checksums
from tasks.common.export.operators import message_class
from tasks.ner.export import NerExporter
from tests.helpers.exports import FORMATS, export


def graph_of(folder):
    (graph,) = [folder / name for name in (ONNX_FILE, *GRAPH_FILES) if (folder / name).is_file()]
    return graph


def edit(folder, name, change):
    """Write what ``change`` makes of a file's content; "weights" is the file that holds them."""
    (path,) = (path for path in folder.iterdir() if path.name == name or (name, path.name) in WEIGHTS)
    content = path.read_bytes()
    path.unlink()
    if change is not None:
        path.write_bytes(change(content))


def configured(**values):
    return lambda content: json.dumps({**json.loads(content), **values}).encode()


WEIGHTS = {("weights", "model.onnx"), ("weights", "inference.pdiparams")}
CHANGES = [  # file, what is done to its content, what the message says
    ("weights", lambda content: content[: len(content) // 2], "exported"),
    ("weights", None, "exported"),
    ("vocab.txt", lambda content: b"garbage\n", "exported"),
    ("vocab.txt", None, "missing"),
    ("README.md", lambda content: b"garbage\n", "exported"),
    ("SHA256SUMS", lambda content: b"x\n", "SHA256SUMS is damaged"),
    ("SHA256SUMS", lambda content: b"".join(content.splitlines(keepends=True)[1:]), "all files"),
    ("SHA256SUMS", lambda content: 2 * content, "twice"),
    ("config.json", configured(types=3), "types"),
    ("config.json", configured(window_tokens=0), "window_tokens"),
    ("config.json", configured(thresholds=["a"]), "thresholds"),
    ("config.json", configured(types=list("abcdefg"), thresholds=0.0, temperatures=1.0), "does not fit"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, change, said", CHANGES, ids=range(len(CHANGES)))
def test_a_folder_that_is_not_as_it_was_exported_is_one_line(copied, write, refused, name, change, said):
    edit(copied, name, change)
    if name == "config.json":
        write_checksums(copied)
    error = refused("predict", copied, "--input", write("甲\n"))
    assert str(copied) in error and said in error


def test_a_graph_that_would_write_a_file_writes_nothing(copied, tmp_path, refused):
    graph, target = graph_of(copied), tmp_path / "mine.txt"
    target.write_text("mine", encoding="utf-8")
    if graph.suffix == ".json":
        content = json.loads(graph.read_text(encoding="utf-8"))
        operators = content["program"]["regions"][0]["blocks"][0]["ops"]
        path = {"N": "file_path", "AT": {"#": "0.a_str", "D": str(target)}}
        save = {"#": "1.save", "A": [path], "I": [{"%": 1}], "O": [], "OA": []}
        operators.insert(next(n for n, operator in enumerate(operators) if operator["#"] != "p"), save)
        graph.write_text(json.dumps(content), encoding="utf-8")
    elif graph.suffix == ".pdmodel":
        save = {"operator": [b"save"], "inputs": [{"names": [b"linear_0.b_0"]}]}
        more = message_class(".pdmodel")(blocks=[{"operators": [save]}])
        graph.write_bytes(graph.read_bytes() + more.SerializeToString())
    else:
        place = str(target).encode()
        secret = b"\n\x08location\x12" + bytes([len(place)]) + place
        more = message_class(".onnx")(graph=[{"constant": [{"external_data": [secret], "location": [1]}]}])
        graph.write_bytes(graph.read_bytes() + more.SerializeToString())
    write_checksums(copied)
    error = refused("predict", copied)  # which leaves all files as they are
    assert f"{graph}: holds '" in error and ("<external data>" if graph.suffix == ".onnx" else "save") in error


def test_exported_models_stand_alone_and_what_cannot_be_written_is_said_before(trained, exported, refused):
    assert "stands alone" in refused("predict", trained.model, exported)
    assert "is already exported" in refused("export", exported, "--output", "again")
    for output, place in ((exported, "is not empty"), (exported / "vocab.txt", "is a file"), ("a/b", "writable")):
        assert place in refused("export", trained.model, "--output", output)


@pytest.mark.parametrize("format", FORMATS)
def test_a_graph_that_scores_otherwise_is_not_left_behind(trained, tmp_path, monkeypatch, format):
    numbers = itertools.count()
    monkeypatch.setattr(NerExporter, "scores", lambda *_: np.full(3, float(next(numbers))))
    with pytest.raises(InputError, match="scores differ"):
        exporting.export(NerExporter(), [trained.model], tmp_path / "new", format)
    assert list(tmp_path.iterdir()) == []


def test_paddle_2_neither_exports_onnx_nor_reads_graphs_of_paddle_3(trained, tmp_path, refused, monkeypatch):
    exported = export(tmp_path / "exported", "paddle", trained.model)
    shutil.move(graph_of(exported), exported / "inference.json")
    write_checksums(exported)
    monkeypatch.setattr(paddle, "__version__", "2.6.2")
    assert "--format paddle" in refused("export", trained.model, "--output", "new")
    assert "Paddle 3" in refused("predict", exported)
