"""Data in memory, checked as files are; the part held out, texts that are there twice, batches of like length."""

import itertools
import json
import operator
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.training.data import NO_DATA, hold_out
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.common.training.trainer import LengthGroupedBatchSampler
from paddle_rope.tasks.ner.examples import Entity
from paddle_rope.tasks.recipes import evaluate, get_predictor, get_recipe, train_config
from tests.tasks.ner.conftest import error_of
from tests.tasks.tiny_recipes import ENCODER

TINY = {**ENCODER, "num_train_epochs": 2, "vocab_min_count": 1}
NER = [
    {"text": "叶老桂在医院。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "陆雨桐在学校。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "没有人。", "entities": []},
]


def test_a_part_of_train_is_held_out_and_evaluation_names_places(write, tmp_path):
    file = str(write(NER, "test.jsonl"))
    config = {**TINY, "recipe": "ner", "test_file": file, "dev_fraction": 0.3, "output_dir": str(tmp_path / "run")}
    result = train_config(config, {"train": iter(NER)})
    assert result["dev"]["support"] + 1 in (1, 2) and result["test"]["support"] == 2
    inputs = json.loads((tmp_path / "run" / "inputs.json").read_text(encoding="utf-8"))
    assert set(inputs) == {file, "train (in memory)"}
    scores = [evaluate(tmp_path / "run/model", data, device="cpu") for data in (NER, file)]
    places = [[example.pop("where") for example in one.pop("worst_examples", [])] for one in scores]
    assert scores[0] == scores[1] and all(place.startswith("data[") for place in places[0])


def test_numbers_of_numpy_and_tuples_are_plain_data(tmp_path):
    labels = [(np.int64(0), np.int64(3), "name")], ((0, 3, "name"),)
    rows = [{"text": "叶老桂在医院。", "label": label} for label in labels]
    examples, _ = get_predictor("ner").labeled.read_records(rows, "train")
    expected = [((Entity(0, 3, "name"),), f"train[{number}]") for number in (0, 1)]
    assert [(example.entities, example.where) for example in examples] == expected


WRONG_SPAN = {"text": "叶老桂", "entities": [{"start": 0, "end": 4, "type": "name"}]}
WRONG_ROWS = [
    ([*NER, WRONG_SPAN], r"^train\[3\]: span \[0, 4\] is not in the text of 3 characters"),
    ([NER[0], "叶老桂"], r"^train\[1\]: '叶老桂' is not a record"),
    ([{**NER[0], "id": object()}], r"^train\[0\]: object is not plain data; give strings"),
    ([{"text": "叶老桂"}], r'^train\[0\]: no "entities" or "label"'),
    ([{"text": "叶老\ud800", "entities": []}], r"^train\[0\]: .* surrogate"),
    ([NER[0], {"text": "一" * 600, "entities": []}], r"^train\[1\]"),
    ([], "^train: there is no record"),
    *((rows, "^train: .* is not a list of records") for rows in (5, NER[0], "data.jsonl")),
    ([NER[2]], "^train: no entity is labeled"),
]
ALIKE = [{"text": "甲", "label": "a"}] * 3


@pytest.mark.parametrize("recipe, config, data, message", [
    *(("ner", {"dev_fraction": 0}, {"train": rows}, message) for rows, message in WRONG_ROWS),
    *(("ner", {}, data, "is not a dict of train, dev, test") for data in ({"training": NER}, NER)),
    ("ner", {"train_file": "x"}, {"train": NER}, "both train and train_file are given"),
    ("ner", {}, {"dev": NER}, "no 'train_file'"),
    ("ner", {"train_file": "(in memory)"}, None, "of a run that had its data in memory"),
    ("pretraining", {}, {"train": ["甲"]}, "this recipe reads files only"),
    ("classification", {}, {"train": ALIKE}, "^train: all texts have the label 'a'"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, recipe, config, data, message):
    with pytest.raises(InputError, match=message):
        train_config({**TINY, **config, "recipe": recipe, "output_dir": str(tmp_path / "run")}, data)
    assert list(tmp_path.iterdir()) == []


# ---- the part that is held out


def examples(texts, labels=()):
    places = enumerate(itertools.zip_longest(texts, labels, fillvalue=()), 1)
    return [SimpleNamespace(text=text, where=f"f:{number}", labels=of_text) for number, (text, of_text) in places]


labels_of = operator.attrgetter("labels")


def texts_of(part):
    return {example.text for example in part}


@pytest.mark.parametrize("way", ["random", "stratified"])
def test_a_text_that_is_there_twice_is_on_one_side_and_order_does_not_matter(way):
    given = examples([f"text {n % 50}" for n in range(80)])
    rest, held = hold_out(given, 0.2, way, labels_of)
    assert texts_of(rest).isdisjoint(texts_of(held)) and len(texts_of(held)) == 10
    assert sorted(rest + held, key=given.index) == given
    assert texts_of(hold_out(given[::-1], 0.2, way, labels_of)[1]) == texts_of(held)
    assert "f:1: one text cannot be cut in two" in error_of(hold_out, examples(["a", "a"]), 0.5, way, labels_of)


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


def test_groups_of_each_size_are_held_out():  # together, and with their labels: tests/tasks/matching
    sizes = [1] * 100 + [2] * 30 + [5] * 12
    given = examples([f"{group} {n}" for group, size in enumerate(sizes) for n in range(size)])
    _, held = hold_out(given, 0.2, "stratified", labels_of, lambda example: example.text.split()[0])
    assert {sizes[int(example.text.split()[0])] for example in held} == {1, 2, 5}


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
    return recipe.read(Settings({}, keys, SimpleNamespace(seed=1), {}), NO_DATA).examples


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


@settings(max_examples=30)
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


def test_each_epoch_and_seed_has_an_order_that_leaves_random_numbers_alone():
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
