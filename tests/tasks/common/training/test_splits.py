"""The part of the training data that is held out."""

from types import SimpleNamespace

import pytest

from tasks.classification.arguments import ClassificationArguments
from tasks.classification.data import read_splits as classification
from tasks.common.errors import InputError
from tasks.common.training.splits import hold_out
from tasks.matching.arguments import MatchingArguments
from tasks.matching.data import read_splits as matching
from tasks.ner.arguments import NerArguments
from tasks.ner.data.splits import read_splits as ner


def examples(texts):
    return [SimpleNamespace(text=text, where=f"f:{number}") for number, text in enumerate(texts, 1)]


def texts_of(part):
    return {example.text for example in part}


def test_a_text_that_is_there_twice_is_on_one_side_and_order_does_not_matter():
    given = examples([f"text {n % 50}" for n in range(80)])
    rest, held = hold_out(given, 0.2)
    assert texts_of(rest).isdisjoint(texts_of(held)) and len(texts_of(held)) == 10 and len(rest) + len(held) == 80
    assert texts_of(hold_out(given[::-1], 0.2)[1]) == texts_of(held)
    with pytest.raises(InputError, match="f:1: one text cannot be cut in two"):
        hold_out(examples(["a", "a"]), 0.5)


def labels_of(example):
    return example.labels


@pytest.fixture
def labeled():
    """1,000 texts: a tenth with a, of which some also have b, 30 with c, the rest without a label."""
    labels = [["a"] * (n % 10 == 0) + ["b"] * (n % 50 == 0) + ["c"] * (n > 969) for n in range(1000)]
    return [SimpleNamespace(text=f"text {n}", where=f"f:{n}", labels=of_text) for n, of_text in enumerate(labels)]


@pytest.mark.parametrize("fraction", [0.1, 0.3])
def test_stratified_part_has_its_share_of_each_label(labeled, fraction):
    rest, held = hold_out(labeled, fraction, "stratified", labels_of)
    assert len(held) == 1000 * fraction and sorted(rest + held, key=labeled.index) == labeled
    for label in "abc":
        total = sum(label in example.labels for example in labeled)
        assert abs(sum(label in example.labels for example in held) - fraction * total) <= 2
    assert texts_of(hold_out(labeled[::-1], fraction, "stratified", labels_of)[1]) == texts_of(held)
    rare = [SimpleNamespace(text=f"{n}", where=f"f:{n}", labels=[f"type {n // 4}"]) for n in range(400)]
    assert len(hold_out(rare, 0.1, "stratified", labels_of)[1]) == 40


def test_contiguous_part_is_the_end_and_a_text_that_is_there_twice_stays_on_one_side():
    given = examples([f"text {n}" for n in range(20)] + ["text 3"])
    rest, held = hold_out(given, 0.25, "contiguous")
    assert [e.text for e in held] == [f"text {n}" for n in range(15, 20)]
    assert [e.text for e in rest] == [f"text {n}" for n in range(15)] + ["text 3"]


REPEATED = {  # recipe -> its function, a line, the same with another label, lines of two kinds of other texts
    "ner": (lambda **files: ner(NerArguments(**files), 1), "甲 B-x\n\n", "甲 B-y\n\n", "{0} B-x\n\n{1} B-y\n\n"),
    "classification": (
        lambda **files: classification(ClassificationArguments(**files)), "甲\tx\n", "甲\ty\n", "{0}\tx\n{1}\ty\n"
    ),
    "matching": (
        lambda **files: matching(MatchingArguments(**files), 1),
        "甲\t一\t1\n", "甲\t一\t0\n", "{0}\t一\t1\n{1}\t一\t0\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("recipe", REPEATED)
def test_dev_texts_of_train_and_contradictory_labels_are_told(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    read, line, contradiction, others = REPEATED[recipe]
    train, new = line + others.format(*"乙丙"), others.format(*"丁戊")
    files = {"train": train, "same": train, "part": others.format(*"丙乙"), "new": new, "twice": train + contradiction}
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")

    def notes(train, dev):
        read(train_file=train, dev_file=dev)
        return [one for one in capsys.readouterr().out.splitlines() if one.startswith("note: ")]

    assert notes("train", "new") == []
    (note,) = notes("train", "same")
    assert "all texts of same are in train" in note
    assert "all texts of part are in train" in notes("train", "part")[0]
    (note,) = notes("twice", "new")
    assert "labeled in more than one way: 1 (" in note and "twice:1 " in note
    assert "labeled in more than one way: 2 (" in notes("train", "part")[-1]
