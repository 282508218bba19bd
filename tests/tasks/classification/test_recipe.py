"""Classes of texts: their names, splits, batches and scores; training, evaluation and prediction by the verbs."""

import io
import json

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer
from paddle_rope.tasks.classification.data import LABELED, Example, class_names
from paddle_rope.tasks.classification.prediction import ClassificationDataset, classification_scores, print_data_report
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.inference import pad_items
from tests.conftest import REPOSITORY
from tests.helpers import runs
from tests.tasks.tiny_recipes import EPOCHS

DEMO = REPOSITORY / "configs/classification/demo.jsonl"
TINY = {
    **EPOCHS, "recipe": "classification", "train_file": DEMO, "dev_fraction": 0.25, "max_characters": 48,
    "vocab_min_count": 1, "hidden_size": 32, "intermediate_size": 64, "hidden_dropout_prob": 0.05,
    "num_train_epochs": 4, "logging_steps": 4, "per_device_train_batch_size": 16,
}  # fmt: skip
LONG = "9" * 5000  # digits that Python does not read as a number


@pytest.mark.parametrize("labels, classes", [
    (["10", "9", "10"], ["9", "10"]),
    (["10", "9", "x"], ["10", "9", "x"]),
    ([LONG, "12", f"0{LONG[1:]}", "7", "007"], ["007", "7", "12", f"0{LONG[1:]}", LONG]),
])  # fmt: skip
def test_classes_are_sorted_by_number_where_all_are_numbers(labels, classes):
    assert class_names(Example("", label, "") for label in labels) == classes


def test_text_is_read_from_its_beginning_and_padded_at_its_end(capsys):
    examples = [Example("甲乙丙丁", "x", "f:1"), Example("甲", "y", "f:2"), Example("丁丙乙", "y", "f:3")]
    tokenizer = CharTokenizer.from_corpus(["甲乙丙丁"], 1)
    dataset = ClassificationDataset(examples, tokenizer, ["x", "y"], max_characters=2)
    assert [text.ids for text in dataset.texts] == [tokenizer.encode(text)[0] for text in ("甲乙", "甲", "丁丙")]
    assert (dataset.cut, dataset.cut_characters, dataset.lengths) == (2, 3, [4, 3, 4])
    batch = pad_items(list(map(dataset.__getitem__, range(3))), tokenizer.pad_token_id, np.int64)
    assert batch["attention_mask"].tolist() == [[True] * 4, [True] * 3 + [False], [True] * 4]
    assert batch["input_ids"][1, 3] == tokenizer.pad_token_id and batch["labels"].tolist() == [0, 1, 1]
    print_data_report({"train": dataset})
    assert "2 texts are cut to --max_characters 2" in capsys.readouterr().out


GOLD, FOUND = ["a", "a", "a", "b", "b", "c", "c"], ["a", "a", "b", "b", "c", "b", "b"]


def test_scores_are_those_counted_by_hand():
    scores = classification_scores(GOLD, FOUND, ["a", "b", "c", "d"])
    f1 = [2 * 2 / (3 + 2), 2 * 1 / (2 + 4), 0.0]
    assert [scores["per_class"][name]["f1"] for name in "abc"] == pytest.approx(f1)
    assert scores["per_class"]["a"] == {
        "precision": 1.0, "recall": pytest.approx(2 / 3), "f1": pytest.approx(0.8), "support": 3, "predicted": 2,
        "correct": 2,
    }  # fmt: skip
    assert (scores["accuracy"], scores["texts"]) == (pytest.approx(3 / 7), 7)
    assert scores["macro_f1"] == pytest.approx(sum(f1) / 3)  # without d, which is nowhere
    assert classification_scores(["a", "a"], ["a", "b"], ["a", "b"])["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert [tuple(row.values()) for row in scores["confusions"]] == [("c", "b", 2), ("a", "b", 1), ("b", "c", 1)]


CLASSES = ["交通", "体育", "天气", "美食"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model that has learned the classes. Do not change its files."""
    return runs.train(TINY, tmp_path_factory.mktemp("trained") / "run", attention="linear", ema_decay=0.9)


def test_run_leaves_scores_classes_and_predictions(trained):
    metrics, config = trained.metrics, trained.model_config
    assert metrics["dev"]["accuracy"] > 0.7 and metrics["dev"]["texts"] == len(trained.predictions) == 40
    assert (config["classes"], config["pooling"], config["attention"]) == (CLASSES, "mean", "linear")
    assert sum(metrics["texts_cut"].values()) == sum(len(example.text) > 48 for example in LABELED.read_file(DEMO))
    right = [record["label"] == record["gold"] for record in trained.predictions]
    assert np.mean(right) == metrics["dev"]["accuracy"]


def test_classes_that_train_does_not_have_are_no_outputs_and_count_as_wrong(tmp_path, capsys):
    dev = "球队赢得了决赛\t体育\n今天多云转晴\t天气\n这部戏演了三年\t戏剧\n"
    (tmp_path / "dev.tsv").write_text(dev, encoding="utf-8")
    run = runs.train(TINY, tmp_path / "run", dev_file=tmp_path / "dev.tsv", num_train_epochs=1)
    assert run.model_config["classes"] == CLASSES
    assert "4 classes; not in train, so never found: 戏剧\n" in capsys.readouterr().out
    assert main(["evaluate", str(run.model), str(tmp_path / "dev.tsv"), "--device", "cpu"]) == 0
    assert "which count as wrong: 戏剧\n" in capsys.readouterr().out
    missed = run.metrics["dev"]["per_class"]["戏剧"]
    assert (missed["support"], missed["predicted"], missed["f1"]) == (1, 0, 0)
    assert run.metrics["dev"]["accuracy"] <= 2 / 3


@pytest.mark.parametrize("longest, is_cut", [(12, False), (9, True)])
def test_prediction_says_that_texts_are_cut_and_reads_no_more(trained, longest, is_cut, monkeypatch, capsys):
    texts = "门将扑出点球，比分是。\n门将扑出点球，比分是二\n门将扑出点球，比分是三\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(texts.encode("utf-8"))))
    words = [str(trained.model), "--device", "cpu", "--batch_size", "1", "--max_characters", str(longest)]
    assert main(["predict", *words]) == 0
    printed, told = capsys.readouterr()
    assert told.count("--max_characters 9") == is_cut
    found = [json.loads(line) for line in printed.splitlines()]
    assert (len({(one["label"], one["probability"]) for one in found}) == 1) == is_cut
