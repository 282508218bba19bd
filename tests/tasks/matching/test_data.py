"""Pairs and triples: labels, triples without labels, predictions, splits, folds and scores."""

import json
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tasks.common.errors import InputError
from tasks.matching.arguments import MatchingArguments
from tasks.matching.data import Example, ExampleStream, cut_fold, prediction_records, read_labeled, read_splits, task_of
from tasks.matching.evaluation import best_threshold, matching_scores

TRIPLE = '{{"A": "甲", "B": "乙{0}", "C": "丙{0}"{1}}}\n'


def parts(examples):
    return [(*example.texts, example.label) for example in examples]


def streamed(path):
    return list(chain.from_iterable(ExampleStream(path)))


@pytest.mark.parametrize("label, task", [("3.8", "grades"), ("2", "grades"), ("-1", "grades"), ("1.0", "pairs")])
def test_labels_other_than_0_and_1_are_grades(write, label, task):
    path = write(f"q1\tq2\tlabel\n\n{{x\ty\t{label}\nx\tz\t0\n")
    first, *_ = examples = read_labeled(path)
    assert (first.texts, first.label, first.where) == (("{x", "y"), float(label), f"{path}:3")
    assert task_of(examples) == task


@pytest.mark.parametrize("content, texts", [
    ("sentence1\tsentence2\nx\ty\nv\tw\t1\n", [("x", "y"), ("v", "w")]),
    ('[{"A": "甲", "B": "乙", "C": "丙"},\n {"A": "a", "B": "b", "C": "c"}]', [("甲", "乙", "丙"), ("a", "b", "c")]),
    ("A,B,C\n甲,乙,丙\n丁,戊,己\n", [("甲", "乙", "丙"), ("丁", "戊", "己")]),
])  # fmt: skip
def test_what_is_predicted_needs_no_labels_and_keeps_its_order(write, content, texts):
    assert parts(streamed(write(content))) == [(*one, None) for one in texts]


def test_candidates_of_unlabeled_triples_are_exchanged_at_random_always_in_the_same_way(write):
    path = write("".join(TRIPLE.format(number, "") for number in range(400)))
    examples = read_labeled(path)
    for number, (anchor, first, second, label) in enumerate(parts(examples)):
        closer, farther = (first, second) if label == 1 else (second, first)
        assert (anchor, closer, farther) == ("甲", f"乙{number}", f"丙{number}")
    labels = [example.label for example in examples]
    assert 150 < sum(labels) < 250 and labels != sorted(labels) and task_of(examples) == "triples"
    assert read_labeled(path) == examples
    lines = [TRIPLE.format(number, f', "label": "{"BC"[number % 3 == 0]}"') for number in range(60)]
    expected = [("甲", f"乙{number}", f"丙{number}", float(number % 3 != 0)) for number in range(60)]
    assert parts(read_labeled(write("".join(lines)))) == expected


def test_predictions_are_labeled_data_in_turn(write):
    pairs, triples = [("x", "y"), ("v", "w")], [("a", "b", "c"), ("d", "e", "f")]
    of_pairs = list(prediction_records(pairs, np.array([[0.5], [0.25]]), threshold=0.5))
    of_triples = list(prediction_records(triples, np.array([[0.5, 0.75], [1.0, -1.0]])))
    assert (of_pairs[0]["score"], of_triples[0]["scores"]) == (0.5, [0.5, 0.75])
    assert "label" not in next(prediction_records(pairs, np.array([[0.5], [0.25]])))
    for records, texts, labels in ((of_pairs, pairs, [1, 0]), (of_triples, triples, [0, 1])):
        examples = read_labeled(write("".join(json.dumps(record) + "\n" for record in records)))
        assert parts(examples) == [(*of_example, label) for of_example, label in zip(texts, labels)]


# ---- splits and folds


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
    with pytest.raises(InputError, match="40 folds"):
        cut_fold(examples, 40, 1, seed=0)


@pytest.mark.parametrize("folds", [{}, {"folds": 3, "fold": 2}], ids=str)
def test_first_texts_are_in_one_split_alone(data, folds):
    splits = read_splits(keys_of(data.triples, **folds), seed=0)
    texts = {name: {example.text for example in examples} for name, examples in splits.items()}
    assert texts.keys() == ({"train", "dev", "test"} if folds else {"train", "dev"})
    assert sum(map(len, splits.values())) == 48
    assert sum(map(len, texts.values())) == len(set.union(*texts.values())) == 24
    assert len(texts["dev"]) == round(0.2 * len(texts["train"] | texts["dev"]))


@pytest.mark.parametrize("train, dev, said", [
    ("a\tb\t0\nc\td\t1\n", '{"A": "x", "B": "y", "C": "z"}', "dev:1: triples, but .*train:1 has pairs"),
    ("a\tb\t0\nc\td\t1\n", "a\tb\t0\nc\td\t3\n", "dev:2: label 3"),
    ("a\tb\t0\nc\td\t1\n", "a\tb\t1\nc\td\t1\n", "dev: all labels are 1"),
    ("a\tb\t0\nc\td\t3\n", "a\tb\t0\nc\td\t1\n", None),  # 0 and 1 are grades too
])  # fmt: skip
def test_splits_have_one_task(write, train, dev, said):
    keys = keys_of(str(write(train, "train")), str(write(dev, "dev")))
    if said is None:
        assert read_splits(keys, seed=0).keys() == {"train", "dev"}
    else:
        with pytest.raises(InputError, match=said):
            read_splits(keys, seed=0)


# ---- scores


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


@settings(max_examples=50, derandomize=True)
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
