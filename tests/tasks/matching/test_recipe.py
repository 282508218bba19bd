"""Training of matching models: what is learned, kept and refused."""

import numpy as np
import pytest
import train_matching
import yaml
from safetensors.numpy import load

from tasks.matching.data import read_labeled
from tasks.matching.evaluation import best_threshold, matching_scores
from tests.helpers import runs

SHORT = {"dev_file": "", "num_train_epochs": 1, "max_tokens": 16}


def scores_and_labels(run):
    return tuple(np.array([record[name] for record in run.predictions]) for name in ("score", "label"))


def test_bi_encoder_learns_pairs_and_keeps_the_threshold_and_the_epoch_that_are_best_on_dev(
    bi_encoder, cross_encoder, data
):
    scores, labels = scores_and_labels(bi_encoder)
    assert labels.tolist() == [example.label for example in read_labeled(data.pairs_dev)]
    metrics = bi_encoder.metrics
    assert metrics["dev"]["accuracy"] > 0.75 > labels.mean()
    assert metrics["dev"]["threshold"] == bi_encoder.model_config["threshold"] == best_threshold(labels, scores)
    result = matching_scores("pairs", labels, scores[:, None], metrics["dev"]["threshold"])
    assert {**result, "threshold": metrics["dev"]["threshold"]} == pytest.approx(metrics["dev"])
    spearman = runs.curve(bi_encoder.folder, "dev/spearman")
    assert [step for step, _ in spearman] == [12 * epoch for epoch in range(1, 7)]
    assert spearman == runs.curve(bi_encoder.folder, "dev/score")  # which chooses the epoch
    assert metrics["dev"]["spearman"] == pytest.approx(max(value for _, value in spearman))
    assert (metrics["chosen_by"], cross_encoder.metrics["chosen_by"]) == ("spearman", "accuracy")


def test_cross_encoder_says_1_from_one_half(cross_encoder):
    scores, labels = scores_and_labels(cross_encoder)
    config = cross_encoder.model_config
    assert (config["threshold"], config["grades"], config["type_vocab_size"]) == (0.5, [0, 1], 2)
    assert scores.min() > 0 and cross_encoder.metrics["dev"]["accuracy"] == np.mean((scores >= 0.5) == labels)


def test_model_of_triples_ranks_most_of_them_right(of_triples):
    closer, farther = (np.array([record[name] for record in of_triples.predictions]) for name in ("closer", "farther"))
    accuracy = of_triples.metrics["dev"]["accuracy"]
    assert of_triples.metrics["dev"].keys() == {"accuracy"} and of_triples.model_config.get("threshold") is None
    assert accuracy == np.mean(closer > farther) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["bi_encoder", "cross_encoder"])
def test_grades_are_learned(train, tmp_path, architecture):
    """The grade is how often a character stands in the second text."""
    for name, size in (("train", 160), ("dev", 40)):
        counts = np.random.randint(0, 4, size)
        texts = ["".join(np.random.permutation([*"甲" * count, *"天地人和" * 2])) for count in counts]
        lines = [f"甲甲问\t{text}\t{1 + count}\n" for text, count in zip(texts, counts)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = {"train_file": tmp_path / "train", "dev_file": tmp_path / "dev"}
    run = train(tmp_path / "run", **files, architecture=architecture, num_train_epochs=3)
    assert run.metrics["dev"].keys() == {"spearman"} and run.metrics["dev"]["spearman"] > 0.8
    if architecture == "cross_encoder":
        scores, _ = scores_and_labels(run)
        assert run.model_config["grades"] == [1, 4] and 1 < scores.min() < scores.max() < 4


@pytest.mark.slow
def test_each_fold_is_tested_once_and_one_of_them_alone_or_resumed_is_the_same(train, data, tmp_path, config_file):
    options = {**SHORT, "train_file": data.triples, "folds": 3}
    words = [f"--{key}={value}" for key, value in options.items()]
    assert train_matching.main([str(config_file), "--output_dir", str(tmp_path / "folds"), *words]) == 0
    folds = [runs.left_by(tmp_path / f"folds/fold_{fold}") for fold in (1, 2, 3)]
    assert len({fold.weights for fold in folds}) == 3
    assert train(tmp_path / "alone", **options, fold=2).weights == folds[1].weights
    summary = tmp_path / "folds/summary.json"
    for path in (summary, folds[2].folder / "metrics.json", folds[2].model / "model.safetensors"):
        path.unlink()
    assert train_matching.main(["--resume", str(tmp_path / "folds")]) == 0
    assert summary.is_file() and runs.left_by(folds[2].folder).weights == folds[2].weights


# ---- where it starts, and what is refused


@pytest.fixture
def warm(bi_encoder, data, tmp_path):
    """A configuration that takes its sizes from a trained model."""
    keys = {"recipe": "matching", "train_file": str(data.triples), "device": "cpu", "max_tokens": 40, "max_steps": 2}
    keys |= {"learning_rate": 1e-9, "pretrained": str(bi_encoder.model)}
    (tmp_path / "warm.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")
    return tmp_path / "warm.yaml"


def test_a_trained_model_is_a_start_for_another_task(bi_encoder, warm, tmp_path):
    run = runs.train(warm, tmp_path / "run", architecture="bi_encoder")
    assert run.model_config["task"] == "triples" and run.model_config.get("threshold") is None
    start, saved = load(bi_encoder.weights), load(run.weights)
    assert all(np.abs(saved[name] - start[name]).max() < 1e-6 for name in start)


def test_token_type_ids_need_a_folder_with_token_types(refused, bi_encoder, warm):
    said = refused("train", warm, "--output_dir", "run", "--token_type_ids")
    assert said.startswith(f"{bi_encoder.model}: token_type_ids")


@pytest.mark.parametrize("words, said", [
    ("--pooling max", "pooling"), ("--token_type_ids", "cross_encoder"), ("--folds 1", "folds must be from 2"),
    ("--folds 3", "leave dev_file and test_file out"), ("--fold 1", "fold must be from 1 to folds"),
    ("--folds 3 --fold 4 --dev_file=", "fold must be from 1 to folds"), ("--folds many", "whole number"),
    ("--folds 500 --dev_file=", "500 folds"), ("--dev_fraction 0 --dev_file=", "dev_fraction"),
])  # fmt: skip
def test_keys_that_cannot_be_are_refused(refused, config_file, words, said):
    assert said in refused("train", "--recipe", "matching", config_file, "--output_dir", "run", *words.split())
