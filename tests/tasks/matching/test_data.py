"""Pairs and triples: labels, triples without labels, predictions, splits and folds."""

import json
from itertools import chain

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.matching.arguments import MatchingArguments
from tasks.matching.data import Example, ExampleStream, prediction_records, read_labeled, task_of
from tasks.matching.splits import cut_fold, read_splits

TRIPLE = '{{"A": "甲", "B": "乙{0}", "C": "丙{0}"{1}}}\n'


def parts(examples):
    return [(*example.texts, example.label) for example in examples]


def streamed(path):
    return list(chain.from_iterable(ExampleStream(path)))


@pytest.mark.parametrize("label, task", [("3.8", "grades"), ("2", "grades"), ("-1", "grades"), ("1.0", "pairs")])
def test_labels_other_than_0_and_1_are_grades(write, label, task):
    examples = read_labeled(write(f"{{x\ty\t{label}\nx\tz\t0\n"))
    assert examples[0].texts == ("{x", "y") and examples[0].label == float(label) and task_of(examples) == task


def test_place_of_an_example_counts_headers_and_blank_lines(write):
    path = write("q1\tq2\tlabel\n\nx\ty\t1\n")
    assert read_labeled(path)[0].where == f"{path}:3"


def test_what_is_predicted_needs_no_labels_and_keeps_its_order(write):
    assert parts(streamed(write("sentence1\tsentence2\nx\ty\nv\tw\t1\n"))) == [("x", "y", None), ("v", "w", None)]
    for content in (
        '[{"A": "甲", "B": "乙", "C": "丙"},\n {"A": "丁", "B": "戊", "C": "己"}]',
        "A,B,C\n甲,乙,丙\n丁,戊,己\n",
    ):
        path = write(content)
        found = [example.texts for example in streamed(path)]
        assert found == [("甲", "乙", "丙"), ("丁", "戊", "己")]
        assert {frozenset(example.texts) for example in read_labeled(path)} == set(map(frozenset, found))


def test_candidates_of_unlabeled_triples_are_exchanged_at_random_always_in_the_same_way(write):
    path = write("".join(TRIPLE.format(number, "") for number in range(400)))
    examples = read_labeled(path)
    for number, (anchor, first, second, label) in enumerate(parts(examples)):
        closer, farther = (first, second) if label == 1 else (second, first)
        assert (anchor, closer, farther) == ("甲", f"乙{number}", f"丙{number}")
    labels = [example.label for example in examples]
    assert 150 < sum(labels) < 250 and labels != sorted(labels) and task_of(examples) == "triples"
    assert read_labeled(path) == examples
    assert [example.texts[1] for example in streamed(path)] == [f"乙{number}" for number in range(400)]


def test_triples_with_labels_stay_as_they_are(write):
    lines = [TRIPLE.format(number, f', "label": "{"BC"[number % 3 == 0]}"') for number in range(60)]
    expected = [("甲", f"乙{number}", f"丙{number}", float(number % 3 != 0)) for number in range(60)]
    assert parts(read_labeled(write("".join(lines)))) == expected


def test_predictions_are_labeled_data_in_turn(write):
    pairs, triples = [("x", "y"), ("v", "w")], [("a", "b", "c"), ("d", "e", "f")]
    of_pairs = list(prediction_records(pairs, np.array([[0.5], [0.25]]), threshold=0.5))
    of_triples = list(prediction_records(triples, np.array([[0.5, 0.75], [1.0, -1.0]])))
    assert of_pairs[0] == {"sentence1": "x", "sentence2": "y", "score": 0.5, "label": 1}
    assert of_triples[0] == {"A": "a", "B": "b", "C": "c", "scores": [0.5, 0.75], "label": "C"}
    assert "label" not in next(prediction_records(pairs, np.array([[0.5], [0.25]])))
    for records, texts, labels in ((of_pairs, pairs, [1, 0]), (of_triples, triples, [0, 1])):
        examples = read_labeled(write("".join(json.dumps(record) + "\n" for record in records)))
        assert parts(examples) == [(*of_example, label) for of_example, label in zip(texts, labels)]


# ---- splits and folds


def keys_of(train, dev=None, **options):
    return MatchingArguments(train_file=train, dev_file=dev, dev_fraction=0.2, **options)


def test_each_example_is_tested_in_one_fold_and_first_texts_stay_together():
    examples = [Example((f"A{n * n % 30}", f"B{n}", f"C{n}"), 1.0, str(n)) for n in range(100)]
    tested = []
    for fold in range(1, 6):
        rest, part = cut_fold(examples, 5, fold, seed=3)
        assert rest == [example for example in examples if example not in part]
        assert part == [example for example in examples if example in part]
        assert not {example.text for example in rest} & {example.text for example in part}
        tested += part
    assert sorted(tested, key=examples.index) == examples
    parts = [cut_fold(examples, 5, 1, seed)[1] for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]
    with pytest.raises(InputError, match="40 folds"):
        cut_fold(examples, 40, 1, seed=0)


def test_folds_have_about_as_many_examples():
    examples = [Example((f"A{number // 2}", "B"), 1.0, "") for number in range(100)]
    assert [len(cut_fold(examples, 5, fold, seed=0)[1]) for fold in range(1, 6)] == [20] * 5


@pytest.mark.parametrize("folds", [{}, {"folds": 3, "fold": 2}], ids=str)
def test_first_texts_are_in_one_split_alone(data, folds):
    splits = read_splits(keys_of(data.triples, **folds), seed=0)
    texts = {name: {example.text for example in examples} for name, examples in splits.items()}
    assert texts.keys() == ({"train", "dev", "test"} if folds else {"train", "dev"})
    assert sum(map(len, splits.values())) == 48
    assert sum(map(len, texts.values())) == len(set.union(*texts.values())) == 24
    assert len(texts["dev"]) == round(0.2 * len(texts["train"] | texts["dev"]))


@pytest.mark.parametrize(
    "train, dev, said",
    [
        ("a\tb\t0\nc\td\t1\n", '{"A": "x", "B": "y", "C": "z"}', "dev:1: triples, but .*train:1 has pairs"),
        ("a\tb\t0\nc\td\t1\n", "a\tb\t0\nc\td\t3\n", "dev:2: label 3"),
        ("a\tb\t0\nc\td\t1\n", "a\tb\t1\nc\td\t1\n", "dev: all labels are 1"),
        ("a\tb\t0\nc\td\t3\n", "a\tb\t0\nc\td\t1\n", None),  # 0 and 1 are grades too
    ],
)
def test_splits_have_one_task(write, train, dev, said):
    keys = keys_of(str(write(train, "train")), str(write(dev, "dev")))
    if said is None:
        assert read_splits(keys, seed=0).keys() == {"train", "dev"}
    else:
        with pytest.raises(InputError, match=said):
            read_splits(keys, seed=0)
