"""Pairs and triples: labels, splits, folds and scores; what training learns and keeps; edges of prediction."""

import json
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load
from scipy.stats import spearmanr

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.matching.arguments import MatchingArguments
from paddle_rope.tasks.matching.data import (
    LABELED,
    Example,
    ExampleStream,
    cut_fold,
    prediction_records,
    read_splits,
    task_of,
)
from paddle_rope.tasks.matching.prediction import MatchingPredictor, best_threshold, matching_scores
from tests.helpers import runs

TRIPLE = '{{"A": "甲", "B": "乙{0}", "C": "丙{0}"{1}}}\n'


def parts(examples):
    return [(*example.texts, example.label) for example in examples]


@pytest.mark.parametrize("label, task", [("3.8", "grades"), ("2", "grades"), ("-1", "grades"), ("1.0", "pairs")])
def test_labels_other_than_0_and_1_are_grades(write, label, task):
    path = write(f"q1\tq2\tlabel\n\n{{x\ty\t{label}\nx\tz\t0\n")
    first, *_ = examples = LABELED.read_file(path)
    assert (first.texts, first.label, first.where) == (("{x", "y"), float(label), f"{path}:3")
    assert task_of(examples) == task


def test_candidates_of_unlabeled_triples_are_exchanged_at_random_in_the_same_way(write):
    path = write("".join(TRIPLE.format(number, "") for number in range(400)))
    examples = LABELED.read_file(path)
    for number, (anchor, first, second, label) in enumerate(parts(examples)):
        closer, farther = (first, second) if label == 1 else (second, first)
        assert (anchor, closer, farther) == ("甲", f"乙{number}", f"丙{number}")
    labels = [example.label for example in examples]
    assert 150 < sum(labels) < 250 and labels != sorted(labels) and task_of(examples) == "triples"
    assert LABELED.read_file(path) == examples
    lines = [TRIPLE.format(number, f', "label": "{"BC"[number % 3 == 0]}"') for number in range(60)]
    expected = [("甲", f"乙{number}", f"丙{number}", float(number % 3 != 0)) for number in range(60)]
    assert parts(LABELED.read_file(write("".join(lines)))) == expected


def test_predictions_are_labeled_data_in_turn(write):
    pairs, triples = [("x", "y"), ("v", "w")], [("a", "b", "c"), ("d", "e", "f")]
    of_pairs = list(prediction_records(pairs, np.array([[0.5], [0.25]]), threshold=0.5))
    of_triples = list(prediction_records(triples, np.array([[0.5, 0.75], [1.0, -1.0]])))
    assert (of_pairs[0]["score"], of_triples[0]["scores"]) == (0.5, [0.5, 0.75])
    assert "label" not in next(prediction_records(pairs, np.array([[0.5], [0.25]])))
    for records, texts, labels in ((of_pairs, pairs, [1, 0]), (of_triples, triples, [0, 1])):
        examples = LABELED.read_file(write("".join(json.dumps(record) + "\n" for record in records)))
        assert parts(examples) == [(*of_example, label) for of_example, label in zip(texts, labels)]


def keys_of(train, dev=None, **options):
    return MatchingArguments(train_file=train, dev_file=dev, dev_fraction=0.2, **options)


def test_each_example_is_tested_in_one_fold_and_first_texts_stay_together():
    examples = [Example((f"A{n * n % 30}", f"B{n}", f"C{n}"), 1.0, str(n)) for n in range(100)]
    folds = [cut_fold(examples, 5, fold, seed=3) for fold in range(1, 6)]
    for rest, part in folds:
        assert [one for one in examples if one in part] == part and [one for one in examples if one in rest] == rest
        assert len(rest) + len(part) == 100 and abs(len(part) - 20) < 10
        assert not {example.text for example in rest} & {example.text for example in part}
    assert sorted((one for _, part in folds for one in part), key=examples.index) == examples
    drawn = [cut_fold(examples, 5, 1, seed)[1] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_first_texts_are_in_one_split_alone(data):
    splits = read_splits(keys_of(data.triples, folds=3, fold=2), seed=0)
    texts = {name: {example.text for example in examples} for name, examples in splits.items()}
    assert texts.keys() == {"train", "dev", "test"} and sum(map(len, splits.values())) == 48
    assert sum(map(len, texts.values())) == len(set.union(*texts.values())) == 24
    assert len(texts["dev"]) == round(0.2 * len(texts["train"] | texts["dev"]))


def in_rings(sizes, triples=False):
    """Lines of pairs, or triples, of which so many share a text with the next: the second of one is the first of it."""
    names = [[f"{ring}.{number}" for number in range(size)] for ring, size in enumerate(sizes)]
    pairs = [(one, other) for ring in names for one, other in zip(ring, [*ring[1:], f"end of {ring[0]}"])]
    if triples:
        return "".join(f'{{"A": "{one}", "B": "{other}", "C": "not {one}"}}\n' for one, other in pairs)
    return "".join(f"{one}\t{other}\t{number % 2}\n" for number, (one, other) in enumerate(pairs))


@pytest.mark.parametrize("sizes, held, told", [
    ([3] * 40, 24, "by connected texts (components of {kind} that share texts: 40, the largest of 3); 100.0% of dev"),
    ([1] * 40 + [7] * 5 + [60], 27, "46, the largest of 60, which stays in train); 100.0% of dev share no text"),
    ([9] + [91], 20, "note: dev is held out by first texts (components of {kind} that share texts: 2, the largest"),
])  # fmt: skip
@pytest.mark.parametrize("way", [None, "random", "contiguous"])
@pytest.mark.parametrize("kind", ["pairs", "triples"])
def test_dev_shares_no_text_with_train_unless_most_is_connected(write, capsys, sizes, held, told, way, kind):
    path = str(write(in_rings(sizes, kind == "triples")))
    splits = read_splits(keys_of(path, dev_split=way), seed=0)
    texts = {name: {text for example in splits[name] for text in example.texts} for name in splits}
    assert told.format(kind=kind) in capsys.readouterr().out
    assert abs(len(splits["dev"]) - held) <= 4 and sum(map(len, splits.values())) == sum(sizes)
    assert texts["train"].isdisjoint(texts["dev"]) == (not told.startswith("note"))


def test_folds_share_no_text_unless_a_component_is_larger_than_a_fold(write, capsys):
    for sizes, told in (([3] * 20, "fold 2 is held out by connected"), ([30] * 2, "note: fold 2 is held out by first")):
        examples = LABELED.read_file(write(in_rings(sizes)))
        rest, part = cut_fold(examples, 4, 2, seed=0)
        texts = [{text for example in some for text in example.texts} for some in (rest, part)]
        assert told in capsys.readouterr().out and 14 <= len(part) <= 16
        assert texts[0].isdisjoint(texts[1]) == (not told.startswith("note"))


def test_0_and_1_are_grades_beside_grades(write):  # other tasks of dev: tests/tasks/commands/refusals.yaml
    files = (str(write(f"a\tb\t0\nc\td\t{highest}\n", name)) for name, highest in (("train", 3), ("dev", 1)))
    assert read_splits(keys_of(*files), seed=0).keys() == {"train", "dev"}


def test_scores_are_their_definitions():
    labels, scores = [1, 1, 0, 0, 1, 0, 0], np.array([[0.9], [0.2], [0.6], [0.1], [0.5], [0.4], [0.3]])
    correlation = {"spearman": pytest.approx(spearmanr(labels, scores[:, 0])[0])}
    of_labels = {"accuracy": 5 / 7, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3}  # 0.9, 0.6 and 0.5 are 1
    assert matching_scores("pairs", labels, scores, threshold=0.5) == {**of_labels, **correlation}
    assert matching_scores("pairs", labels, scores) == correlation
    result = matching_scores("pairs", [0, 1, 0], np.full([3, 1], 0.2), threshold=0.5)  # equal scores, no positive
    assert result == {"accuracy": pytest.approx(2 / 3), "f1": 0, "precision": 0, "recall": 0, "spearman": 0}
    grades = np.random.randint(0, 6, 30)
    scores = np.round(np.random.rand(30) + grades / 5, 1)  # with equal ones
    result = matching_scores("grades", grades, scores[:, None], threshold=0.5)
    assert result == {"spearman": pytest.approx(spearmanr(grades, scores)[0], abs=1e-6)}
    scores = np.array([[0.5, 0.4], [0.5, 0.4], [0.1, 0.9], [0.9, 0.1], [0.3, 0.3]])
    assert matching_scores("triples", [1, 0, 0, 1, 1], scores) == {"accuracy": 3 / 5}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(np.linspace(0, 1, 6, dtype=np.float32))), min_size=1))
def test_no_threshold_is_better_than_the_best(examples):
    labels, scores = map(np.array, zip(*examples))

    def accuracy(threshold):
        return matching_scores("pairs", labels, scores[:, None], threshold)["accuracy"]

    assert accuracy(best_threshold(labels, scores)) == max(map(accuracy, [*scores - 0.05, 2.0]))


def test_threshold_is_halfway_between_the_scores():
    assert best_threshold([1, 0, 1, 0], [0.75, 0.25, 0.5, 0.0]) == 0.375
    assert best_threshold([0, 0], [0.5, 0.25]) > 0.5
    assert best_threshold([1, 1], [0.5, 0.25]) == 0.25


def scores_and_labels(run):
    return tuple(np.array([record[name] for record in run.predictions]) for name in ("score", "label"))


def test_a_bi_encoder_keeps_the_threshold_and_the_epoch_that_are_best_on_dev(bi_encoder, cross_encoder, data):
    scores, labels = scores_and_labels(bi_encoder)
    assert labels.tolist() == [example.label for example in LABELED.read_file(data.pairs_dev)]
    metrics = bi_encoder.metrics
    assert metrics["dev"]["accuracy"] > 0.75 > labels.mean()
    assert metrics["dev"]["threshold"] == bi_encoder.model_config["threshold"] == best_threshold(labels, scores)
    result = matching_scores("pairs", labels, scores[:, None], metrics["dev"]["threshold"])
    assert {**result, "threshold": metrics["dev"]["threshold"]} == pytest.approx(metrics["dev"])
    curves = runs.curves(bi_encoder.folder / "vdl")
    spearman = curves["dev/spearman"]
    assert [step for step, _ in spearman] == [12 * epoch for epoch in range(1, 7)]
    assert spearman == curves["dev/score"]  # which chooses the epoch
    assert metrics["dev"]["spearman"] == pytest.approx(max(value for _, value in spearman))
    assert (metrics["chosen_by"], cross_encoder.metrics["chosen_by"]) == ("spearman", "accuracy")


def test_cross_encoder_says_1_from_one_half(cross_encoder):
    scores, labels = scores_and_labels(cross_encoder)
    config = cross_encoder.model_config
    assert (config["threshold"], config["grades"], config["type_vocab_size"]) == (0.5, [0, 1], 2)
    assert scores.min() > 0 and cross_encoder.metrics["dev"]["accuracy"] == np.mean((scores >= 0.5) == labels)


def test_model_of_triples_ranks_most_of_them_right(train, data, tmp_path):
    options = {"num_train_epochs": 4, "per_device_train_batch_size": 8, "max_tokens": 96}
    run = train(tmp_path / "run", train_file=data.triples, dev_file=data.triples, **options)
    closer, farther = (np.array([record[name] for record in run.predictions]) for name in ("closer", "farther"))
    accuracy = run.metrics["dev"]["accuracy"]
    assert run.metrics["dev"].keys() == {"accuracy"} and run.model_config.get("threshold") is None
    assert accuracy == np.mean(closer > farther) > 0.75


@pytest.mark.slow
def test_grades_are_learned(train, tmp_path):
    """The grade is how often a character stands in the second text."""
    for name, size in (("train", 160), ("dev", 40)):
        counts = np.random.randint(0, 4, size)
        texts = ["".join(np.random.permutation([*"甲" * count, *"天地人和" * 2])) for count in counts]
        lines = [f"甲甲问\t{text}\t{1 + count}\n" for text, count in zip(texts, counts)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = {"train_file": tmp_path / "train", "dev_file": tmp_path / "dev"}
    run = train(tmp_path / "run", **files, architecture="cross_encoder", num_train_epochs=3)
    assert run.metrics["dev"].keys() == {"spearman"} and run.metrics["dev"]["spearman"] > 0.8
    scores, _ = scores_and_labels(run)
    assert run.model_config["grades"] == [1, 4] and 1 < scores.min() < scores.max() < 4


def test_a_trained_model_is_a_start_for_another_task(bi_encoder, data, write, tmp_path):
    keys = {"recipe": "matching", "train_file": str(data.triples), "device": "cpu", "max_tokens": 40, "max_steps": 2}
    keys |= {"learning_rate": 1e-9, "pretrained": str(bi_encoder.model), "architecture": "bi_encoder"}
    run = runs.train(write(keys, "warm.yaml"), tmp_path / "run")
    assert run.model_config["task"] == "triples" and run.model_config.get("threshold") is None
    start, saved = load(bi_encoder.weights), load(run.weights)
    assert all(np.abs(saved[name] - start[name]).max() < 1e-6 for name in start)


@pytest.fixture(scope="module")
def predictors(bi_encoder, cross_encoder):
    return {name: MatchingPredictor(run.model, "cpu") for name, run in (("bi", bi_encoder), ("cross", cross_encoder))}


def test_dot_products_of_vectors_are_the_scores_and_find_the_same_question(predictors, data):
    encode, pairs = predictors["bi"].encode, [example.texts for example in LABELED.read_file(data.pairs_dev)]
    vectors = encode(list(chain.from_iterable(pairs)))
    assert vectors.dtype == np.float32 and vectors.shape == (2 * len(pairs), 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose((vectors[::2] * vectors[1::2]).sum(axis=1), predictors["bi"].score(pairs), atol=1e-5)
    matching = [example.texts for example in LABELED.read_file(data.pairs_dev) if example.label == 1][:10]
    queries, answers = (encode([texts[side] for texts in matching]) for side in (0, 1))
    assert (np.argmax(queries @ answers.T, axis=1) == np.arange(10)).mean() > 0.5


def test_triples_are_scored_by_a_model_of_pairs(predictors, data):
    triples = [texts for texts, _ in chain.from_iterable(ExampleStream(data.triples))][:5]
    for name in ("bi", "cross"):
        scores = predictors[name].score_triples(triples)
        np.testing.assert_allclose(scores[:, 1], predictors[name].score([(a, c) for a, _, c in triples]), atol=1e-5)


def test_nothing_has_no_scores_an_empty_text_has_a_vector_and_long_texts_are_cut(predictors, bi_encoder):
    predictor = predictors["bi"]
    assert [predictor.score([]).shape, predictor.score_triples([]).shape] == [(0,), (0, 2)]
    assert predictor.score([("a", "b")]).dtype == np.float32
    assert predictor.encode([]).shape == (0, 32)
    assert np.isfinite(predictor.encode(["", " ", "𠮷" * 100])).all()
    text, short = "怎么申请信用卡和储蓄卡", MatchingPredictor(bi_encoder.model, "cpu", max_tokens=7)
    np.testing.assert_allclose(short.encode([text]), short.encode([text[:5]]), atol=1e-6)
    assert np.abs(predictor.encode([text]) - predictor.encode([text[:5]])).max() > 1e-3


def test_vectors_of_lines_are_written_as_an_array(bi_encoder, predictors, tmp_path):
    (tmp_path / "texts").write_text("怎么申请信用卡\n\n房贷利息\n", encoding="utf-8")
    words = [bi_encoder.model, "--embed", "--input", tmp_path / "texts", "--output", tmp_path / "vectors.npy"]
    assert main(["predict", *map(str, words)]) == 0
    expected = predictors["bi"].encode(["怎么申请信用卡", "", "房贷利息"])
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-6)


def test_a_model_of_pairs_may_be_used_for_grades(bi_encoder, data, tmp_path):
    assert main(["evaluate", *map(str, (bi_encoder.model, data.grades_dev, "--output", tmp_path / "out"))]) == 0
    assert json.loads((tmp_path / "out").read_text("utf-8")).keys() == {"spearman"}
