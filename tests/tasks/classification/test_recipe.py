"""Training, evaluation and prediction of documents, by the verbs."""

import io
import json

import numpy as np
import pytest

from tasks.classification.data import read_labeled
from tasks.classification.prediction import Classifier
from tasks.commands.main import main
from tasks.recipes import open_predictor
from tests.helpers import runs
from tests.helpers.exports import FORMATS, export
from tests.helpers.threads import assert_threads_get_what_one_caller_gets

CLASSES = ["交通", "体育", "天气", "美食"]


@pytest.fixture(scope="module")
def classifier(trained):
    return Classifier(trained.model, "cpu")


@pytest.fixture(scope="module")
def texts(demo):
    return [example.text for example in read_labeled(demo)][:64]


def test_run_leaves_scores_classes_and_predictions(trained, demo):
    metrics, config = trained.metrics, trained.model_config
    assert metrics["dev"]["accuracy"] > 0.7 and metrics["dev"]["texts"] == len(trained.predictions) == 40
    assert (config["classes"], config["pooling"], config["attention"]) == (CLASSES, "mean", "linear")
    assert sum(metrics["texts_cut"].values()) == sum(len(example.text) > 48 for example in read_labeled(demo))
    right = [record["label"] == record["gold"] for record in trained.predictions]
    assert np.mean(right) == metrics["dev"]["accuracy"]


def test_training_goes_on_from_a_trained_folder_with_another_attention(train, trained, demo, tmp_path):
    cold = train(tmp_path / "cold", num_train_epochs=1, attention="softmax")
    keys = {"pretrained": trained.model, "attention": "softmax", "train_file": demo, "dev_file": "", "test_file": ""}
    warm = runs.train(
        demo.with_name("pretrained.yaml"), tmp_path / "warm", **keys, dev_fraction=0.25, learning_rate=1e-8
    )
    assert warm.model_config["attention"] == "softmax"
    assert warm.metrics["dev"]["accuracy"] > cold.metrics["dev"]["accuracy"]


def test_evaluation_gives_the_scores_of_training_and_refuses_an_unknown_class(trained, demo, tmp_path, refused, write):
    held = {record["text"] for record in trained.predictions}
    lines = [line for line in demo.open(encoding="utf-8") if json.loads(line)["text"] in held]
    words = [trained.model, write("".join(lines)), "--output", tmp_path / "scores.json", "--device", "cpu"]
    assert main(["evaluate", *map(str, words)]) == 0
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8")) == trained.metrics["dev"]
    path = write("下雨\t天气\n看戏\t戏剧\n")
    assert f"{path}:2: label '戏剧' is unknown to the model" in refused(
        "evaluate", trained.model, path, "--device", "cpu"
    )


@pytest.mark.parametrize("longest, is_cut", [(12, False), (9, True)])
def test_prediction_says_that_texts_are_cut(trained, longest, is_cut, monkeypatch, capsys):
    texts = "门将扑出点球，比分是。\n门将扑出点球，比分是二\n门将扑出点球，比分是三\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(texts.encode("utf-8"))))
    words = [str(trained.model), "--device", "cpu", "--batch_size", "1", "--max_characters", str(longest)]
    assert main(["predict", *words]) == 0
    assert capsys.readouterr().err.count("--max_characters 9") == is_cut


def test_batches_threads_and_what_lies_beyond_max_characters_change_nothing(trained, classifier, texts):
    together = classifier.probabilities(texts)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-5)
    apart = Classifier(trained.model, "cpu", batch_size=1)
    longer = [text[:48] + "雨" * (len(text) > 48) for text in texts]
    np.testing.assert_allclose(apart.probabilities(longer), together, atol=1e-5)
    assert_threads_get_what_one_caller_gets(classifier.probabilities, texts)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_exported_model_gives_what_the_trained_one_gives(trained, classifier, texts, tmp_path, format):
    exported = open_predictor(export(tmp_path / "exported", format, trained.model), batch_size=4)
    assert isinstance(exported, Classifier) and exported.classes == CLASSES
    np.testing.assert_allclose(exported.probabilities(texts), classifier.probabilities(texts), atol=1e-5)
    assert_threads_get_what_one_caller_gets(exported.probabilities, texts)
