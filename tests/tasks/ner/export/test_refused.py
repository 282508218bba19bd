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

WEIGHTS = ("model.onnx", "inference.pdiparams")


def graph_of(folder):
    (graph,) = [folder / name for name in (ONNX_FILE, *GRAPH_FILES) if (folder / name).is_file()]
    return graph


def edit(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def without_line(content, name):
    return "".join(line for line in content.splitlines(keepends=True) if name not in line)


# what is done to a folder, and what the message says
CHANGES = {
    **{
        f"{name} is {damage}": (lambda folder, name=name, damage=damage: damaged(folder, name, damage), ("exported",))
        for name in ("weights", "vocab.txt", "README.md")
        for damage in ("shorter", "changed", "missing")
        if (name, damage) != ("vocab.txt", "missing")
    },
    "vocab.txt is missing": (lambda folder: (folder / "vocab.txt").unlink(), ("vocab.txt", "missing")),
    "no checksums": (lambda folder: edit(folder / "SHA256SUMS", lambda _: ""), ("SHA256SUMS is damaged",)),
    "other checksums": (lambda folder: edit(folder / "SHA256SUMS", lambda _: "x\n"), ("SHA256SUMS is damaged",)),
    "a checksum is missing": (
        lambda folder: edit(folder / "SHA256SUMS", lambda sums: without_line(sums, "vocab.txt")),
        ("SHA256SUMS is damaged", "all files"),
    ),
    "a file is named twice": (lambda folder: edit(folder / "SHA256SUMS", lambda sums: 2 * sums), ("twice",)),
    "another file": (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), ("model.safetensors",)),
    **{
        f"{key} {value}": (
            lambda folder, key=key, value=value: configured(folder, **{key: value}),
            ("config.json", key),
        )
        for key, value in (
            *(("types", 3), ("max_tokens", 0), ("window_tokens", 0)),
            *(("thresholds", ["a"]), ("temperatures", -1.0)),
        )
    },
    "other types": (
        lambda folder: configured(folder, types=list("abcdefg"), thresholds=0.0, temperatures=1.0),
        ("the graph is damaged or does not fit",),
    ),
}


def damaged(folder, name, damage):
    file = folder / name
    if name == "weights":
        (file,) = (file for file in folder.iterdir() if file.name in WEIGHTS)
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(content[: len(content) // 2] if damage == "shorter" else b"garbage\n")


def configured(folder, **values):
    edit(folder / "config.json", lambda content: json.dumps({**json.loads(content), **values}))
    write_checksums(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change, places", CHANGES.values(), ids=CHANGES)
def test_a_folder_that_is_not_as_it_was_exported_is_one_line(copied, write, refused, change, places):
    change(copied)
    error = refused("predict", copied, "--input", write("甲\n"))
    assert all(place in error for place in (str(copied), *places))


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
