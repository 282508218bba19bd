"""The part of the training data that is held out, and what is told of texts that are there twice."""

from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.training.data import MemoryData, hold_out
from tasks.recipes import get_recipe


def examples(texts, labels=()):
    places = enumerate(texts, 1)
    found = [SimpleNamespace(text=text, where=f"f:{number}", labels=()) for number, text in places]
    for example, of_text in zip(found, labels):
        example.labels = of_text
    return found


def labels_of(example):
    return example.labels


def texts_of(part):
    return {example.text for example in part}


@pytest.mark.parametrize("way", ["random", "stratified"])
def test_a_text_that_is_there_twice_is_on_one_side_and_order_does_not_matter(way):
    given = examples([f"text {n % 50}" for n in range(80)])
    rest, held = hold_out(given, 0.2, way, labels_of)
    assert texts_of(rest).isdisjoint(texts_of(held)) and len(texts_of(held)) == 10
    assert sorted(rest + held, key=given.index) == given
    assert texts_of(hold_out(given[::-1], 0.2, way, labels_of)[1]) == texts_of(held)
    with pytest.raises(InputError, match="f:1: one text cannot be cut in two"):
        hold_out(examples(["a", "a"]), 0.5, way, labels_of)


@pytest.mark.parametrize("fraction", [0.1, 0.3])
def test_stratified_part_has_its_share_of_each_label(fraction):
    # a tenth with a, of which some also have b, 30 with c, the rest without a label
    labels = [["a"] * (n % 10 == 0) + ["b"] * (n % 50 == 0) + ["c"] * (n > 969) for n in range(1000)]
    given = examples([f"text {n}" for n in range(1000)], labels)
    _, held = hold_out(given, fraction, "stratified", labels_of)
    assert len(held) == 1000 * fraction
    for label in "abc":
        total = sum(label in example.labels for example in given)
        assert abs(sum(label in example.labels for example in held) - fraction * total) <= 2
    rare = examples(map(str, range(400)), [[f"type {n // 4}"] for n in range(400)])
    assert len(hold_out(rare, 0.1, "stratified", labels_of)[1]) == 40


def test_contiguous_part_is_the_end_and_a_text_that_is_there_twice_stays_on_one_side():
    given = examples([f"text {n}" for n in range(20)] + ["text 3"])
    rest, held = hold_out(given, 0.25, "contiguous")
    assert [e.text for e in held] == [f"text {n}" for n in range(15, 20)]
    assert [e.text for e in rest] == [f"text {n}" for n in range(15)] + ["text 3"]


REPEATED = {  # recipe -> a line, the same with another label, lines of two kinds of other texts
    "ner": ("甲 B-x\n\n", "甲 B-y\n\n", "{0} B-x\n\n{1} B-y\n\n"),
    "classification": ("甲\tx\n", "甲\ty\n", "{0}\tx\n{1}\ty\n"),
    "matching": ("甲\t一\t1\n", "甲\t一\t0\n", "{0}\t一\t1\n{1}\t一\t0\n"),
}


@pytest.mark.parametrize("recipe", REPEATED)
def test_dev_texts_of_train_and_contradictory_labels_are_told(recipe, write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line, contradiction, others = REPEATED[recipe]
    train, new = line + others.format(*"乙丙"), others.format(*"丁戊")
    files = {"train": train, "same": train, "part": others.format(*"丙乙"), "new": new, "twice": train + contradiction}
    for name, content in files.items():
        write(content, name)
    recipe = get_recipe(recipe)

    def notes(train, dev):
        keys = recipe.arguments(recipe=recipe.name, train_file=train, dev_file=dev)
        recipe.read(recipe.run_class({}, keys, SimpleNamespace(seed=1), {}, None, MemoryData({}, {})))
        return [one for one in capsys.readouterr().out.splitlines() if one.startswith("note: ")]

    assert notes("train", "new") == []
    (note,) = notes("train", "same")
    assert "all texts of same are in train" in note
    assert "all texts of part are in train" in notes("train", "part")[0]
    (note,) = notes("twice", "new")
    assert "labeled in more than one way: 1 (" in note and "twice:1 " in note
    assert "labeled in more than one way: 2 (" in notes("train", "part")[-1]
