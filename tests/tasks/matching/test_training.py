"""Training: what a run learns, leaves and promises."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
import train_matching
from safetensors.numpy import load
from visualdl import LogReader

from paddle_rope.roformer import CharTokenizer, RoFormerConfig, RoFormerForMaskedLM
from tasks.common.cli.run_config import read_run_config
from tasks.common.training.monitor import VisualDLMonitor
from tasks.matching.data import read_labeled
from tasks.matching.evaluation import best_threshold, matching_scores
from tasks.matching.prediction import MatchingPredictor
from tasks.recipes import get_recipe

REPOSITORY = Path(__file__).resolve().parents[3]
MODEL_FILES = {"model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"}


def scalars(run, tag):
    (path,) = (run.folder / "vdl").glob("*.log")
    return [(record.id, record.value) for record in LogReader(file_path=str(path)).get_data("scalar", tag)]


def scores_of_predictions(run):
    return [record["score"] for record in run.predictions], [record["label"] for record in run.predictions]


# ---- what a run leaves


def test_run_leaves_the_files_that_are_promised(bi_encoder):
    assert {path.name for path in bi_encoder.model.iterdir()} == MODEL_FILES
    assert {path.name for path in bi_encoder.folder.iterdir()} == {
        "model", "metrics.json", "predictions_dev.jsonl", "config.yaml", "inputs.json", "vdl", "checkpoints",
        "epochs.csv", "epochs.md", "epochs.png",
    }  # fmt: skip
    assert bi_encoder.metrics.keys() == {"dev", "train_seconds", "parameters", "seed", "chosen_by"}
    assert bi_encoder.metrics["parameters"] == sum(array.size for array in load(bi_encoder.weights).values())


def test_bi_encoder_learns_pairs_and_keeps_the_threshold_of_dev(bi_encoder, data):
    scores, labels = scores_of_predictions(bi_encoder)
    assert labels == [example.label for example in read_labeled(data.pairs_dev)]
    assert bi_encoder.metrics["dev"]["accuracy"] > 0.75 > labels.count(1) / len(labels)
    threshold = bi_encoder.metrics["dev"]["threshold"]
    assert threshold == bi_encoder.model_config["threshold"] == best_threshold(labels, scores)
    result = matching_scores("pairs", labels, np.array(scores)[:, None], threshold)
    assert {**result, "threshold": threshold} == pytest.approx(bi_encoder.metrics["dev"])


def test_cross_encoder_says_1_from_one_half(cross_encoder):
    scores, labels = scores_of_predictions(cross_encoder)
    assert 0 < min(scores) < max(scores) < 1
    assert cross_encoder.model_config["threshold"] == 0.5 and cross_encoder.model_config["grades"] == [0, 1]
    assert cross_encoder.metrics["dev"]["accuracy"] == np.mean((np.array(scores) >= 0.5) == np.array(labels))
    assert cross_encoder.model_config["type_vocab_size"] == 2


def test_model_of_triples_ranks_most_of_them_right(of_triples):
    closer, farther = (np.array([record[name] for record in of_triples.predictions]) for name in ("closer", "farther"))
    accuracy = of_triples.metrics["dev"]["accuracy"]
    assert of_triples.metrics["dev"].keys() == {"accuracy"}
    assert accuracy == np.mean(closer > farther) > 0.75
    assert "threshold" not in of_triples.model_config or of_triples.model_config["threshold"] is None


def test_bi_encoder_learns_grades(train, data, tmp_path):
    run = train(tmp_path / "run", train_file=data.grades_train, dev_file=data.grades_dev, num_train_epochs=2)
    assert run.metrics["dev"].keys() == {"spearman"} and run.metrics["chosen_by"] == "spearman"
    assert {record["label"] for record in run.predictions} == {0, 1, 2, 3, 4, 5}
    assert run.metrics["dev"]["spearman"] > 0.8


def test_cross_encoder_learns_grades(train, tmp_path):
    """The grade is how often a character stands in the second text."""
    for name, size in (("train", 160), ("dev", 40)):
        counts = np.random.randint(0, 4, size)
        texts = ["".join(np.random.permutation([*"甲" * count, *"天地人和" * 2])) for count in counts]
        lines = [f"甲甲问\t{text}\t{1 + count}\n" for text, count in zip(texts, counts)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = {"train_file": tmp_path / "train", "dev_file": tmp_path / "dev"}
    run = train(tmp_path / "run", **files, architecture="cross_encoder", num_train_epochs=3)
    scores, _ = map(np.array, scores_of_predictions(run))
    assert run.model_config["grades"] == [1, 4]
    assert run.metrics["dev"]["spearman"] > 0.8
    assert 1 < scores.min() < scores.max() < 4


def test_model_of_the_best_epoch_is_kept(bi_encoder):
    state = max(
        (json.loads(path.read_text("utf-8")) for path in bi_encoder.folder.glob("checkpoints/*/trainer_state.json")),
        key=lambda state: state["global_step"],
    )
    values = [entry["eval_score"] for entry in state["log_history"] if "eval_score" in entry]
    assert len(values) == 6
    assert values == [entry["eval_spearman"] for entry in state["log_history"] if "eval_score" in entry]
    assert bi_encoder.metrics["dev"]["spearman"] == pytest.approx(max(values))


def test_visualdl_shows_the_loss_the_speed_and_the_scores_of_each_epoch(bi_encoder):
    assert [step for step, _ in scalars(bi_encoder, "dev/spearman")] == [12 * epoch for epoch in range(1, 7)]
    for name in ("dev/accuracy", "dev/f1", "dev/score", "dev/threshold"):
        assert len(scalars(bi_encoder, name)) == 6
    losses = [value for _, value in scalars(bi_encoder, "1_train/loss")]
    assert len(losses) == 18 and losses[-1] < losses[0] and all(map(math.isfinite, losses))
    assert all(value > 0 for _, value in scalars(bi_encoder, "1_train/characters_per_second"))


def test_dev_chooses_nothing_where_the_last_epoch_is_kept(data, tmp_path, config_file, capsys):
    words = [str(config_file), "--output_dir", str(tmp_path / "run"), "--train_file", str(data.triples), "--dev_file="]
    words += ["--num_train_epochs=1", "--max_tokens=96", "--keep_best=false"]
    assert train_matching.main([*words, "--per_device_train_batch_size=8"]) == 0
    printed = capsys.readouterr().out
    assert "keep_best is false: the last epoch is kept" in printed and "the epoch is chosen by" not in printed
    metrics = json.loads((tmp_path / "run/metrics.json").read_text("utf-8"))
    assert metrics["chosen_by"] is None and "dev" in metrics


def test_without_dev_data_the_last_weights_of_all_triples_are_kept(data, tmp_path, config_file, capsys):
    words = [str(config_file), "--output_dir", str(tmp_path / "run"), "--train_file", str(data.triples), "--dev_file="]
    words += ["--dev_fraction=0", "--test_file", str(data.triples), "--num_train_epochs=4", "--max_tokens=96"]
    assert train_matching.main([*words, "--per_device_train_batch_size=8"]) == 0
    printed = capsys.readouterr().out
    assert "train: 48 triples" in printed and "no dev data: the last epoch is kept" in printed
    metrics = json.loads((tmp_path / "run/metrics.json").read_text("utf-8"))
    assert metrics.keys() == {"test", "train_seconds", "parameters", "seed", "chosen_by"}
    assert metrics["chosen_by"] is None and metrics["test"]["accuracy"] > 0.7
    assert load((tmp_path / "run/model/model.safetensors").read_bytes())
    assert not (tmp_path / "run/predictions_dev.jsonl").exists()


# ---- folds and seeds


def test_each_fold_is_tested_once_and_the_scores_are_summed_up(train, data, tmp_path, capsys, config_file):
    words = [str(config_file), "--output_dir", str(tmp_path / "folds"), "--train_file", str(data.triples)]
    words += ["--dev_file=", "--folds=3", "--num_train_epochs=1", "--max_tokens=16"]
    assert train_matching.main(words) == 0
    folder = tmp_path / "folds"
    assert {path.name for path in folder.iterdir()} == {
        *("fold_1", "fold_2", "fold_3"),
        *("series.yaml", "runs.csv", "summary.json", "summary.md"),
    }
    metrics = [json.loads((folder / f"fold_{fold}/metrics.json").read_text("utf-8")) for fold in (1, 2, 3)]
    (summary,) = json.loads((folder / "summary.json").read_text("utf-8"))["variants"]
    scores = summary["scores"]["test.accuracy"]
    values = [of_fold["test"]["accuracy"] for of_fold in metrics]
    assert scores["values"] == values
    assert scores["mean"] == pytest.approx(np.mean(values))
    assert scores["standard_deviation"] == pytest.approx(np.std(values, ddof=1))
    printed = capsys.readouterr().out
    assert printed.endswith((folder / "summary.md").read_text("utf-8"))
    assert printed.count("---- fold") == 3 and "test accuracy | " in printed
    # one of them alone is the same
    alone = train(
        tmp_path / "alone", train_file=data.triples, dev_file="", folds=3, fold=2, num_train_epochs=1, max_tokens=16
    )
    assert alone.weights == (folder / "fold_2/model/model.safetensors").read_bytes()
    # a series that was interrupted goes on, and what is done stays
    for name in ("runs.csv", "summary.json", "summary.md", "fold_3/metrics.json"):
        (folder / name).unlink()
    done = (folder / "fold_1/metrics.json").stat().st_mtime_ns
    assert train_matching.main(["--resume", str(folder)]) == 0
    (again,) = json.loads((folder / "summary.json").read_text("utf-8"))["variants"]
    assert again["scores"] == summary["scores"]
    assert (folder / "fold_1/metrics.json").stat().st_mtime_ns == done
    assert train_matching.main(["--resume", str(folder)]) == 2
    assert "all runs are complete" in capsys.readouterr().err


def test_seeds_sum_up_the_scores_that_there_are(data, tmp_path, config_file, capsys):
    words = [str(config_file), "--output_dir", str(tmp_path / "seeds"), "--train_file", str(data.triples)]
    words += ["--dev_file=", "--seeds=1,2", "--num_train_epochs=1", "--max_tokens=16"]
    assert train_matching.main(words) == 0
    (summary,) = json.loads((tmp_path / "seeds/summary.json").read_text("utf-8"))["variants"]
    assert summary["scores"].keys() == {"dev.accuracy"}


# ---- going on


class PowerCut(Exception):
    """Ends a run at once."""


def test_resumed_run_ends_as_if_it_had_not_been_cut(train, tmp_path, monkeypatch):
    options = {
        "architecture": "cross_encoder", "num_train_epochs": 2, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "ema_decay": 0.5,
    }  # fmt: skip
    whole = train(tmp_path / "whole", **options)

    def cut(self, args, state, control, **kwargs):
        if state.global_step == 17:
            raise PowerCut

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(VisualDLMonitor, "on_step_end", cut)
        train(tmp_path / "cut", **options)
    assert train_matching.main(["--resume", str(tmp_path / "cut")]) == 0
    for name in ("model/model.safetensors", "model/config.json", "predictions_dev.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole.folder / name).read_bytes(), name


# ---- pretrained weights


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """The folder of a new masked language model, with and without token types."""
    folders = {}
    texts = [text for example in read_labeled(data.pairs_train) for text in example.texts]
    tokenizer = CharTokenizer.from_corpus(texts)
    for types in (0, 2):
        folders[types] = str(tmp_path_factory.mktemp("pretrained"))
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        paddle.seed(5)
        config = RoFormerConfig(vocab_size=len(tokenizer), type_vocab_size=types, **sizes)
        RoFormerForMaskedLM(config).save_pretrained(folders[types])
        tokenizer.save_pretrained(folders[types])
    return SimpleNamespace(plain=folders[0], typed=folders[2])


@pytest.fixture
def small(data, tmp_path):
    """A configuration without the keys of sizes."""
    path = tmp_path / "small.yaml"
    lines = [f"train_file: {data.pairs_train}", f"dev_file: {data.pairs_dev}", "device: cpu", "max_tokens: 40"]
    path.write_text("\n".join([*lines, "max_steps: 2", "learning_rate: 1e-9"]) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("architecture", ["bi_encoder", "cross_encoder"])
def test_training_starts_from_the_weights_of_a_folder(pretrained, small, tmp_path, architecture):
    words = ["--pretrained", pretrained.typed, "--architecture", architecture, "--output_dir", str(tmp_path / "run")]
    assert train_matching.main([small, *words]) == 0
    start = load((Path(pretrained.typed) / "model.safetensors").read_bytes())
    saved = load((tmp_path / "run/model/model.safetensors").read_bytes())
    encoder = [name for name in start if name.startswith("roformer.")]
    assert encoder and all(np.abs(saved[name] - start[name]).max() < 1e-6 for name in encoder)
    rest = {name.split(".")[0] for name in saved if not name.startswith("roformer.")}
    assert rest == ({"head"} if architecture == "cross_encoder" else set())


def test_a_trained_model_is_a_start_for_another_task(bi_encoder, small, data, tmp_path):
    words = ["--pretrained", str(bi_encoder.model), "--train_file", str(data.triples), "--dev_file="]
    words += ["--architecture", "bi_encoder", "--output_dir", str(tmp_path / "run")]
    assert train_matching.main([small, *words]) == 0
    config = json.loads((tmp_path / "run/model/config.json").read_text("utf-8"))
    assert config["task"] == "triples" and config.get("threshold") is None
    start, saved = load(bi_encoder.weights), load((tmp_path / "run/model/model.safetensors").read_bytes())
    assert all(np.abs(saved[name] - start[name]).max() < 1e-6 for name in start)


def test_token_type_ids_need_a_folder_with_token_types(fails, pretrained, small, tmp_path):
    words = [small, "--output_dir", "run", "--token_type_ids"]
    message = fails(train_matching, *words, "--pretrained", pretrained.plain)
    assert message.startswith(f"{pretrained.plain}: token_type_ids need a model with token types")
    assert train_matching.main([*words, "--pretrained", pretrained.typed]) == 0
    assert MatchingPredictor(tmp_path / "run/model", "cpu").model.config.token_type_ids is True


def test_linear_attention_and_a_mix_are_chosen_by_their_key(train, tmp_path):
    run = train(tmp_path / "run", attention="linear,softmax", num_hidden_layers=2, max_steps=2)
    assert run.model_config["attention"] == ["linear", "softmax"]


# ---- what cannot be


@pytest.mark.parametrize(
    "words, message",
    [
        (["--architecture", "siamese"], "architecture must be one of cross_encoder, bi_encoder, got"),
        (["--max_tokens", "4"], "max_tokens must be an integer of 5 to "),
        (["--scale", "0"], "scale must be a number of "),
        (["--pooling", "max"], "pooling must be one of first, mean, got 'max'"),
        (["--token_type_ids"], "token_type_ids tell the texts of a cross_encoder apart"),
        (["--folds", "1"], "folds must be from 2 to 1000, got 1"),
        (["--folds", "3"], "with folds dev and test are parts of train_file; leave dev_file and test_file out"),
        (["--folds", "3", "--fold", "4", "--dev_file="], "fold must be from 1 to folds, got 4 of 3 folds"),
        (["--dev_fraction", "0", "--dev_file="], "dev data choose the threshold of a bi_encoder of pairs"),
        (["--fold", "1"], "fold must be from 1 to folds, got 1 of no folds"),
        (["--folds", "many"], "folds must be a whole number, got 'many'"),
        (["--folds", "500", "--dev_file="], "different first texts do not make 500 folds"),
        (["--train_file", "missing"], "missing: no such file"),
        (["--span_head", "dense"], "key 'span_head' is a key of ner, not of this recipe; "),
        (["--metric_for_best_model", "f1"], "the recipe evaluates each epoch and keeps the best by dev score"),
        (["--num_attention_heads", "3"], "does not split into 3 heads of even size"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_value_out_of_range_is_one_line_and_makes_nothing(fails, config_file, words, message):
    assert message in fails(train_matching, config_file, "--output_dir", "run", *words)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "configs/matching").glob("*.yaml")), ids=lambda path: path.stem)
def test_configurations_of_the_project_are_right(path):
    given = {"train_file": "train", "output_dir": "runs/mine", **read_run_config(path)}
    config = get_recipe("matching").resolve({**given, "device": "cpu"}).config
    given["learning_rate"] = float(given.get("learning_rate", 1e-3))  # YAML reads 3e-5 as a string
    assert {key: config[key] for key in given} == given
    assert config["output_dir"].startswith("runs/")
