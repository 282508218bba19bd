"""The part of the training data that is held out, texts that are there twice, batches of like length."""

import functools
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paddle import nn

from tasks.common.errors import InputError
from tasks.common.inference import batched_outputs, evaluated, evaluation_mode, pad
from tasks.common.training.data import MemoryData, hold_out
from tasks.common.training.trainer import LengthGroupedBatchSampler
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


def read(name, train, dev=None):
    """The examples of a run of a recipe with these files, by split."""
    recipe = get_recipe(name)
    keys = recipe.arguments(recipe=name, train_file=str(train), dev_file=dev, dev_split="stratified", dev_fraction=0.2)
    run = recipe.run_class({}, keys, SimpleNamespace(seed=1), {}, None, MemoryData({}, {}))
    recipe.read(run)
    return run.examples


@pytest.mark.parametrize("recipe", REPEATED)
def test_each_label_has_its_share_of_what_a_recipe_holds_out(recipe, write):
    line, _, others = REPEATED[recipe]
    for rare in (5, 10, 20, 30):  # of 100
        lines = [others.format(f"甲{number}", f"乙{number}") for number in range(rare)]
        lines += [line.replace("甲", f"丙{number}") for number in range(100 - 2 * rare)]
        dev = read(recipe, write("".join(lines)))["dev"]
        assert len(dev) == 20 and sum(example.text.startswith("乙") for example in dev) == rare // 5


@pytest.mark.parametrize("recipe", REPEATED)
def test_dev_texts_of_train_and_contradictory_labels_are_told(recipe, write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line, contradiction, others = REPEATED[recipe]
    train, new = line + others.format(*"乙丙"), others.format(*"丁戊")
    files = {"train": train, "same": train, "part": others.format(*"丙乙"), "new": new, "twice": train + contradiction}
    for name, content in files.items():
        write(content, name)

    def notes(train, dev):
        read(recipe, train, dev)
        return [one for one in capsys.readouterr().out.splitlines() if one.startswith("note: ")]

    assert notes("train", "new") == []
    (note,) = notes("train", "same")
    assert "all texts of same are in train" in note
    assert "all texts of part are in train" in notes("train", "part")[0]
    (note,) = notes("twice", "new")
    assert "labeled in more than one way: 1 (" in note and "twice:1 " in note
    assert "labeled in more than one way: 2 (" in notes("train", "part")[-1]


# ---- batches
LENGTHS = np.random.RandomState(0).randint(1, 500, size=103)


def batches(lengths=LENGTHS, batch_size=8, epoch=0, **options):
    sampler = LengthGroupedBatchSampler(lengths, batch_size, **options)
    sampler.set_epoch(epoch)
    listed = list(sampler)
    assert len(listed) == len(sampler)
    return listed


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 103), batch_size=st.integers(1, 9), processes=st.integers(1, 3),
    window=st.sampled_from([1, 3, 50]), epoch=st.integers(0, 7),
)  # fmt: skip
def test_every_example_comes_in_equally_many_batches_of_each_process(size, batch_size, processes, window, epoch):
    options = {"seed": 3, "num_replicas": processes, "window": window}
    of_processes = [batches(LENGTHS[:size], batch_size, epoch, rank=rank, **options) for rank in range(processes)]
    assert len({len(listed) for listed in of_processes}) == 1
    indices = sorted(index for listed in of_processes for batch in listed for index in batch)
    assert set(indices) == set(range(size))
    if processes == 1 or size % (batch_size * processes) == 0:
        assert indices == list(range(size))  # none twice
    for step in zip(*of_processes):
        assert len({len(batch) for batch in step}) == 1


def test_each_epoch_and_seed_has_another_order_which_leaves_other_random_numbers_alone():
    before = np.random.get_state()[1].tolist()
    first, second = batches(seed=3), batches(seed=3, epoch=1)
    assert np.random.get_state()[1].tolist() == before
    assert sorted(first) != sorted(second) and batches(seed=3) == first and batches(seed=4) not in (first, second)


def test_batches_hold_like_lengths_and_come_in_mixed_order():
    listed = batches()
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in listed)
    assert padded < 1.15 * LENGTHS.sum()  # 1.8 times in random batches
    longest = [LENGTHS[batch].max() for batch in listed]
    assert longest != sorted(longest)
    pair = [batches(LENGTHS[:96], num_replicas=2, rank=rank) for rank in (0, 1)]
    assert max(abs(LENGTHS[a].mean() - LENGTHS[b].mean()) for a, b in zip(*pair)) < 50


# ---- evaluation
SIZES = [3, 50, 5, 5, 2, 0]


class Sum(nn.Layer):
    """Sums of the ids of each text; its dropout would change them in training."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(ids.astype("float32")).sum(axis=1)


def test_batches_hold_no_more_numbers_than_the_bound_the_longest_first():
    items = [SimpleNamespace(ids=[index + 1] * length) for index, length in enumerate(SIZES)]
    forward, shapes = functools.partial(evaluated, Sum()), []

    def collate(items):
        ids = pad([item.ids for item in items], np.int64, least=1)
        shapes.append(ids.shape)
        return {"ids": ids}

    found = {}
    for rows, output in batched_outputs(forward, items, collate, 2, lambda length: 2 * length**2, 60):
        found.update(zip(rows, output.tolist()))
    assert found == {index: (index + 1) * length for index, length in enumerate(SIZES)}
    assert shapes == [(1, 50), (1, 5), (1, 5), (2, 3), (1, 1)]  # 60 numbers are one text of 5 tokens, three of 3


@pytest.mark.parametrize("was_training", [True, False])
def test_model_is_as_before_also_after_an_error(was_training):
    model = Sum()
    model.train() if was_training else model.eval()
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        assert not model.training and not paddle.is_grad_enabled()
        raise ZeroDivisionError
    assert model.training == was_training and paddle.is_grad_enabled()
