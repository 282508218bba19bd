"""Train, dev and test of a run, and folds: nothing is on two sides."""

import pytest

from tasks.common.errors import InputError
from tasks.matching.arguments import MatchingArguments
from tasks.matching.examples import Example
from tasks.matching.splits import cut_fold, read_splits


def run(train, dev=None, test=None, **options):
    return MatchingArguments(train_file=train, dev_file=dev, test_file=test, dev_fraction=0.2, **options)


@pytest.fixture
def examples():
    """100 triples with 30 texts A, some of them often."""
    return [Example((f"A{n * n % 30}", f"B{n}", f"C{n}"), 1.0, str(n)) for n in range(100)]


def test_each_example_is_tested_in_one_fold_and_first_texts_stay_together(examples):
    tested = []
    for fold in range(1, 6):
        rest, part = cut_fold(examples, 5, fold, seed=3)
        assert sorted(rest + part, key=examples.index) == examples
        assert rest == [example for example in examples if example not in part]
        assert not {example.text for example in rest} & {example.text for example in part}
        tested += part
    assert sorted(tested, key=examples.index) == examples


def test_folds_have_about_as_many_examples():
    examples = [Example((f"A{number // 2}", "B"), 1.0, "") for number in range(100)]
    assert [len(cut_fold(examples, 5, fold, seed=0)[1]) for fold in range(1, 6)] == [20] * 5


def test_folds_are_drawn_by_the_seed(examples):
    parts = [cut_fold(examples, 5, 1, seed)[1] for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


def test_more_folds_than_first_texts_are_an_error(examples):
    with pytest.raises(InputError, match="different first texts do not make 40 folds"):
        cut_fold(examples, 40, 1, seed=0)


def test_without_a_dev_file_first_texts_are_held_out(data):
    splits = read_splits(run(data.triples), seed=0)
    train, dev = ({example.text for example in splits[name]} for name in ("train", "dev"))
    assert not train & dev and len(dev) == round(0.2 * len(train | dev))
    assert len(splits["train"]) + len(splits["dev"]) == 48


def test_a_fold_has_test_and_dev_apart(data):
    splits = read_splits(run(data.triples, folds=3, fold=2), seed=0)
    assert sum(map(len, splits.values())) == 48
    texts = [{example.text for example in splits[name]} for name in ("train", "dev", "test")]
    assert sum(map(len, texts)) == len(set.union(*texts)) == 24


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    return write


def test_files_that_do_not_go_together_are_an_error(write, data):
    pairs, grades = write("pairs", "a\tb\t0\nc\td\t1\n"), write("grades", "a\tb\t0\nc\td\t3\n")
    constant = write("constant", "a\tb\t1\nc\td\t1\n")
    with pytest.raises(InputError, match="triples.jsonl:1: triples, but .*pairs:1 has pairs; give one kind"):
        read_splits(run(pairs, data.triples), seed=0)
    with pytest.raises(InputError, match="grades:2: label 3, but the training data have only 0 and 1"):
        read_splits(run(pairs, grades), seed=0)
    with pytest.raises(InputError, match="constant: all labels are 1; give data with different labels"):
        read_splits(run(pairs, constant), seed=0)
    assert read_splits(run(grades, pairs), seed=0).keys() == {"train", "dev"}  # 0 and 1 are grades, too
