"""Training, evaluation and prediction of documents, by the tools."""

import io
import json
import shutil

import numpy as np
import pytest
import train_classification

from paddle_rope.roformer import CharTokenizer
from tasks.classification.batching import ClassificationDataset, TextCollator
from tasks.classification.data import Example, read_examples
from tasks.classification.evaluation import print_data_report
from tasks.classification.prediction import Classifier
from tasks.common.errors import InputError
from tasks.common.runs.locks import locked
from tasks.common.training.monitor import VisualDLMonitor
from tests.helpers.verbs import verb

evaluate_classification = verb("evaluate")
predict_classification = verb("predict")

CLASSES = ["交通", "体育", "天气", "美食"]


@pytest.fixture
def demo(pytestconfig):
    return pytestconfig.rootpath / "configs" / "classification" / "demo.jsonl"


@pytest.fixture(scope="module")
def classifier(trained):
    return Classifier(trained.model, "cpu")


# ---- batches


def test_text_is_read_from_its_beginning_and_what_is_cut_is_counted(capsys):
    examples = [Example("甲乙丙丁", "x", "f:1"), Example("甲", "y", "f:2"), Example("丁丙乙", "y", "f:3")]
    tokenizer = CharTokenizer.from_corpus(["甲乙丙丁"], 1)
    dataset = ClassificationDataset(examples, tokenizer, ["x", "y"], max_characters=2)
    assert [text.ids for text in dataset.texts] == [tokenizer.encode(text)[0] for text in ("甲乙", "甲", "丁丙")]
    assert (dataset.cut, dataset.cut_characters) == (2, 3)
    print_data_report({"train": dataset})
    print_data_report({"test": ClassificationDataset(examples, tokenizer, ["x", "y"], max_characters=4)})
    cut, whole = capsys.readouterr().out.splitlines()
    assert cut.endswith("; 2 texts are cut to --max_characters 2, 38% of the characters are not read")
    assert whole.startswith("test: 3 texts, 8 characters") and "max_characters" not in whole


def test_batch_is_padded_at_its_end():
    tokenizer = CharTokenizer.from_corpus(["甲乙"], 1)
    dataset = ClassificationDataset([Example("甲乙", "y", "f:1"), Example("甲", "x", "f:2")], tokenizer, ["x", "y"], 9)
    batch = TextCollator(tokenizer.pad_token_id)(dataset.texts)
    assert batch["attention_mask"].tolist() == [[True] * 4, [True] * 3 + [False]]
    assert batch["input_ids"][1, 3] == tokenizer.pad_token_id
    assert batch["labels"].tolist() == [1, 0]


# ---- training


def test_run_leaves_scores_classes_and_predictions(trained, demo):
    assert trained.metrics["dev"]["accuracy"] > 0.7
    assert trained.metrics["dev"]["texts"] == 40
    assert trained.model_config["classes"] == CLASSES
    assert trained.model_config["id2label"] == {str(index): name for index, name in enumerate(CLASSES)}
    assert trained.model_config["pooling"] == "mean"
    assert (
        trained.metrics["texts_cut"]["train"]
        == sum(len(text.text) > 48 for text in read_examples(demo)) - trained.metrics["texts_cut"]["dev"]
    )
    records = [json.loads(line) for line in (trained.folder / "predictions_dev.jsonl").open(encoding="utf-8")]
    right = sum(record["label"] == record["gold"] for record in records)
    assert right / len(records) == trained.metrics["dev"]["accuracy"]


def test_without_dev_data_all_texts_are_learned_and_the_last_weights_kept(train, demo, tmp_path, capsys):
    run = train(tmp_path / "run", dev_fraction=0, test_file=str(demo), ema_decay=0.9)
    assert "no dev data: the last epoch is kept" in capsys.readouterr().out
    assert run.metrics["test"]["texts"] == len(read_examples(demo)) == 160
    assert "dev" not in run.metrics and run.metrics["test"]["accuracy"] > 0.7
    assert not (run.folder / "predictions_dev.jsonl").exists()


class PowerCut(Exception):
    """Ends a run at once."""


@pytest.fixture
def cut_run(train, tmp_path, monkeypatch):
    """``cut_run(step, key=value ...)``: the folder of a run that ended after this step."""

    def cut_run(step, **options):
        def cut(self, args, state, control, **kwargs):
            if state.global_step == step:
                raise PowerCut

        with monkeypatch.context() as patch, pytest.raises(PowerCut):
            patch.setattr(VisualDLMonitor, "on_step_end", cut)
            train(tmp_path / "cut", **options)
        return tmp_path / "cut"

    return cut_run


def test_resumed_run_ends_as_if_it_had_not_been_cut(train, cut_run, tmp_path):
    options = {"num_train_epochs": 3, "ema_decay": 0.5, "hidden_dropout_prob": 0.1}
    whole = train(tmp_path / "whole", **options)
    folder = cut_run(10, **options)
    assert train_classification.main(["--resume", str(folder)]) == 0
    for name in ("model/model.safetensors", "model/config.json", "predictions_dev.jsonl"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name


def test_run_does_not_go_on_with_other_data_or_beside_another_process(cut_run, demo, tmp_path, fails):
    shutil.copy(demo, tmp_path / "texts.jsonl")
    folder = cut_run(10, train_file=str(tmp_path / "texts.jsonl"))
    with locked(folder):
        message = fails(train_classification, "--resume", folder)
        assert "another process works on this run" in message
    with open(tmp_path / "texts.jsonl", "a", encoding="utf-8") as file:
        file.write('{"text": "一场雨", "label": "天气"}\n')
    assert "texts.jsonl: has changed since the run began" in fails(train_classification, "--resume", folder)


def test_training_that_diverges_ends_with_what_to_do(demo, tmp_path, config_file, capsys):
    words = ["--train_file", str(demo), "--learning_rate", "1e30", "--logging_steps", "1"]
    assert train_classification.main([str(config_file), *words, "--output_dir", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert "the training loss is " in message and "lower learning_rate, which is 1e+30" in message
    assert not (tmp_path / "run/metrics.json").exists()


def test_training_goes_on_from_a_trained_folder_with_another_attention(train, trained, demo, tmp_path):
    train(tmp_path / "cold", num_train_epochs=1, attention="softmax")
    words = ["--pretrained", trained.model, "--attention", "softmax", "--output_dir", tmp_path / "warm", "--train_file",
             demo, "--dev_file=", "--dev_fraction", "0.25", "--test_file=", "--learning_rate", "1e-8"]  # fmt: skip
    assert train_classification.main([str(demo.with_name("pretrained.yaml")), *map(str, words)]) == 0
    warm, cold = (
        json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8")) for name in ("warm", "cold")
    )
    assert json.loads((tmp_path / "warm/model/config.json").read_text(encoding="utf-8"))["attention"] == "softmax"
    assert warm["dev"]["accuracy"] > cold["dev"]["accuracy"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--max_characters", "0"], "configuration: max_characters must be"),
        (["--pooling", "last"], "configuration: pooling must be one of"),
        (["--train_file", "missing"], "missing: no such file; check the path"),
        (["--polling", "mean"], "unknown key 'polling'; did you mean 'pooling'?"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_line_and_leaves_nothing(fails, tmp_path, monkeypatch, demo, words, said):
    monkeypatch.chdir(tmp_path)
    config = demo.with_name("demo.yaml")
    assert said in fails(train_classification, config, "--train_file", demo, "--output_dir", "run", *words)
    assert list(tmp_path.iterdir()) == []


# ---- evaluation and prediction


def test_evaluation_gives_the_same_scores_as_training(trained, demo, tmp_path):
    held = {json.loads(line)["text"] for line in (trained.folder / "predictions_dev.jsonl").open(encoding="utf-8")}
    lines = [line for line in demo.open(encoding="utf-8") if json.loads(line)["text"] in held]
    (tmp_path / "dev.jsonl").write_text("".join(lines), encoding="utf-8")
    words = [trained.model, tmp_path / "dev.jsonl", "--output", tmp_path / "scores.json", "--device", "cpu"]
    assert evaluate_classification.main(list(map(str, words))) == 0
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8")) == trained.metrics["dev"]


def test_evaluation_refuses_a_class_that_the_model_does_not_know(fails, trained, tmp_path):
    (tmp_path / "data").write_text("下雨\t天气\n看戏\t戏剧\n", encoding="utf-8")
    message = fails(evaluate_classification, trained.model, tmp_path / "data", "--device", "cpu")
    assert message.startswith(f"{tmp_path / 'data'}:2: label '戏剧' is unknown to the model, which knows 交通, ")


def test_tool_reads_standard_input_and_writes_the_label_and_its_probability(trained, classifier, monkeypatch, capsys):
    content = '{"sentence": "门将扑出点球，比分是二比一。", "label": 5}\n{"text": ""}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode("utf-8")), encoding="ascii"))
    assert predict_classification.main([str(trained.model), "--device", "cpu"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records == classifier(["门将扑出点球，比分是二比一。", ""])
    assert all(record["label"] in CLASSES and 0.25 <= record["probability"] <= 1 for record in records)


@pytest.mark.parametrize("longest, is_cut", [(12, False), (9, True)])
def test_prediction_says_that_texts_are_cut(trained, longest, is_cut, monkeypatch, capsys):
    texts = "门将扑出点球，比分是。\n门将扑出点球，比分是二\n门将扑出点球，比分是三\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(texts.encode("utf-8"))))
    words = [str(trained.model), "--device", "cpu", "--batch_size", "1", "--max_characters", str(longest)]
    assert predict_classification.main(words) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "--max_characters 9" in line]
    assert len(told) == is_cut


def test_batches_and_what_lies_beyond_max_characters_do_not_change_predictions(classifier, demo, monkeypatch):
    texts = [example.text for example in read_examples(demo)][:20]
    together = classifier.probabilities(texts)
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-5)
    monkeypatch.setattr(classifier, "batch_size", 1)
    apart = classifier.probabilities([text[: classifier.max_characters] + "雨" * (len(text) > 48) for text in texts])
    np.testing.assert_allclose(apart, together, atol=1e-5)


def test_damaged_folders_are_told_apart(trained, tmp_path):
    with pytest.raises(InputError, match="is a training run, not a model; give .*model$"):
        Classifier(trained.folder, "cpu")
    for path in trained.model.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    settings = {**trained.model_config, "classes": CLASSES[:1]}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="config.json is damaged"):
        Classifier(tmp_path, "cpu")
