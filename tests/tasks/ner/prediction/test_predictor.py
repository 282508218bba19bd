"""Entities of one model and of several, damaged folders; what all predictors promise: tests/tasks/test_predictors.py"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file, save_file

from paddle_rope.tasks.common.export.operators import message_class
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.common.model_folder import GRAPH_FILES, ONNX_FILE, write_checksums
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import first_overlap
from tests.helpers.models import FORMATS, export, write_small_ner
from tests.tasks.ner.conftest import error_of, spans_of

KEYS = ["start", "end", "type", "text", "score", "probability"]


def test_records_have_the_promised_form_whatever_the_texts(predictor, trained, dev_texts):
    texts = [*dev_texts, "", " \t", "".join(dev_texts), "\U0001f44d\U0001f3fb \u3000e\u0301 " + dev_texts[0]]
    assert len(texts[-2]) > 10 * predictor.max_tokens
    records = predictor(texts)
    assert [record["text"] for record in records] == texts and predictor([]) == []
    assert [len(record["entities"]) > 0 for record in records[-4:]] == [False, False, True, True]
    for record in records:
        for entity in record["entities"]:
            assert list(entity) == KEYS and entity["type"] in predictor.types and entity["score"] > 0
            assert record["text"][entity["start"] : entity["end"]] == entity["text"] != ""
    for spans in spans_of(records):
        assert spans == sorted(set(spans))
    assert records[-2]["entities"][-1]["start"] > len(texts[-2]) - 2 * predictor.max_tokens
    large = NerPredictor(trained.model, "cpu", max_tokens=5000)
    text = "".join(dev_texts)[: predictor.max_tokens]  # is read whole
    assert predictor([text]) == large([text]) != [{"text": text, "entities": []}]


def logits_of(predictor, texts):
    """Logits of all texts, one after the other."""
    tokenized = [predictor.tokenize(text) for text in texts]
    batch = pad_spans(tokenized, predictor.tokenizer.pad_token_id, with_labels=False)
    return evaluated(predictor.model, batch).numpy().astype("float64").ravel()


def test_scores_of_several_models_are_averaged(predictor, trained, other, corpus, evaluate, dev_texts):
    both = NerPredictor([trained.model, other], "cpu")
    predictors = (predictor, NerPredictor(other, "cpu"), both)
    first, second, mean = (logits_of(one, dev_texts[:4]) for one in predictors)
    is_span = first > -1e3  # others are masked
    assert is_span.sum() > 1000 and np.abs(first - second)[is_span].max() > 1
    np.testing.assert_allclose(mean[is_span], ((first + second) / 2)[is_span], atol=1e-5)
    found = sum(len(record["entities"]) for record in both(dev_texts))
    assert evaluate(corpus.dev, trained.model, other)["predicted"] == found


def test_several_models_take_mean_thresholds_and_the_least_lengths(predictor, trained, copy_with, dev_texts):
    assert NerPredictor([trained.model] * 2, "cpu")(dev_texts) == predictor(dev_texts)
    lengths = {"max_characters": 20, "window_tokens": 18, "longest_entity": 50, "longest_text": None}
    both = NerPredictor([trained.model, copy_with(thresholds=[1.0] * 6, **lengths)], "cpu")
    assert both.model.config.thresholds == [0.5] * 6
    assert (both.model.config.max_characters, both.longest_text) == (20, trained.model_config["longest_text"])
    assert both.window_settings == (18, 9, 100)


def test_a_model_finds_overlaps_only_where_they_may(predictor, copy_with, dev_texts):
    flat = NerPredictor(copy_with(allow_overlap=False), "cpu")
    for one in (predictor, flat):
        assert any(map(first_overlap, one.find(dev_texts))) == one.model.config.allow_overlap == (one is predictor)


@pytest.mark.parametrize("key, value", [("types", list("abcdef")), ("allow_overlap", False), ("vocab.txt", None)])
def test_models_that_read_or_find_otherwise_are_refused(trained, copy_with, key, value):
    folder = copy_with(**{key: value} if value is not None else {})
    if value is None:
        (folder / "SHA256SUMS").unlink()
        lines = (folder / key).read_text(encoding="utf-8").splitlines()
        (folder / key).write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n", encoding="utf-8")
    assert f"model: its {key} differs from" in error_of(NerPredictor, [trained.model, folder], "cpu")


# ---- folders with a damaged file: one line that names the folder and the remedy
DAMAGES = yaml.safe_load(Path(__file__).with_name("damages.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory):
    """dict from a kind of model to a folder with random weights."""
    home, examples = tmp_path_factory.mktemp("models"), read_examples(corpus.train)
    plain = write_small_ner(home / "plain", examples, max_characters=64)
    features = write_small_ner(home / "features", examples, with_features=True)
    return {"plain": plain, "features": features, "exported": export(home / "exported", FORMATS[0], plain)}


def damage(path, old=None, new=None, cut=None, content=None, gone=False, without=None):
    whole = path.read_bytes()
    if old is not None:
        content = whole.replace(old.encode(), new.encode())
        assert content != whole
    elif cut is not None:
        content = whole[:cut]
    path.unlink()
    if without is not None:
        path.write_bytes(whole)
        weights = load_file(path)
        del weights[without]
        save_file(weights, path, metadata={"format": "np"})
    elif not gone:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.slow
@pytest.mark.parametrize("case", DAMAGES, ids=lambda case: case["name"])
def test_a_damaged_file_is_one_line_with_the_folder_and_the_remedy(case, refused, models, tmp_path, write):
    case = dict(case)
    _, place, kind, sums = case.pop("name"), case.pop("place"), case.pop("of", "plain"), case.pop("sums", False)
    folder, file = shutil.copytree(models[kind], tmp_path / "model"), case.pop("file")
    names = ("model.onnx", "inference.pdiparams") if file == "weights" else (file,)
    damage(next(folder / name for name in names if (folder / name).is_file()), **case)
    if sums:
        write_checksums(folder)
    message = refused("predict", folder, "--input", write("甲\n"), "--output", "found.jsonl")
    assert message.startswith(str(folder)) and place in message
    assert kind == "exported" or "OUTPUT_DIR/model" in message or "removed" in message


def test_weights_that_have_changed_are_refused_and_thresholds_may_change(models, tmp_path, refused, write, corpus):
    folder, texts = shutil.copytree(models["plain"], tmp_path / "model"), write("甲\n")
    write_checksums(folder, "config.json")
    config, weights = folder / "config.json", folder / "model.safetensors"
    config.write_text(config.read_text("utf-8").replace('"thresholds": 0.0', '"thresholds": 1.5'), encoding="utf-8")
    assert NerPredictor(folder, "cpu").model.config.thresholds == 1.5
    (folder / "notes.txt").write_text("mine")
    content = bytearray(weights.read_bytes())
    content[-2] ^= 64
    weights.write_bytes(content)
    message = refused("predict", folder, "--input", texts)
    assert message.startswith(f"{weights}: is missing, or not the file that was written; copy the whole folder again")
    train = f"train --recipe ner --train_file {corpus.train} --output_dir new --pretrained MODEL --head_size 8"
    for words in (train, "export MODEL --output new", "convert-weights MODEL new --to huggingface"):
        assert refused(*words.replace("MODEL", str(folder)).split()) == message
    (folder / "SHA256SUMS").unlink()  # as in older folders
    assert NerPredictor(folder, "cpu").types
    tensors = load_file(weights)
    tensors["head.dense.bias"][0] = np.inf
    save_file(tensors, weights, metadata={"format": "np"})
    assert "NaN or infinite: head.dense.bias; copy" in refused("predict", folder, "--input", texts)


FOREIGN = {  # tests/tasks/common/export/test_operators.py has all kinds
    ".json": b'{"program": {"#": "1.save"}}',
    ".pdmodel": message_class(".pdmodel")(blocks=[{"operators": [{"operator": [b"save"]}]}]).SerializeToString(),
    ".onnx": message_class(".onnx")(functions=[b""]).SerializeToString(),
}


def test_a_graph_that_could_write_a_file_is_refused(models, tmp_path, refused):
    folder = shutil.copytree(models["exported"], tmp_path / "model")
    (graph,) = [folder / name for name in (ONNX_FILE, *GRAPH_FILES) if (folder / name).is_file()]
    graph.write_bytes(FOREIGN[graph.suffix])
    write_checksums(folder)
    assert f"{graph}: holds '" in refused("predict", folder)
