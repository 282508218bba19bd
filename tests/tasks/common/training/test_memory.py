"""Training on data in memory: checked as files are. That it gives the run of the files: tests/tasks/test_recipes.py."""

import json

import numpy as np
import pytest

from tasks.classification.data import Example as ClassificationExample
from tasks.common.errors import InputError
from tasks.ner.examples import Entity, Example
from tasks.recipes import get_recipe
from tests.helpers.runs import power_cut
from tests.tasks.tiny_recipes import ENCODER

TINY = {**ENCODER, "num_train_epochs": 2, "vocab_min_count": 1}
NER = [
    {"text": "叶老桂在医院。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "陆雨桐在学校。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "没有人。", "entities": []},
]


def test_a_part_of_train_is_held_out_a_file_may_be_beside_it_and_evaluation_names_places(tmp_path):
    recipe, file = get_recipe("ner"), str(tmp_path / "test.jsonl")
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in NER), encoding="utf-8")
    config = {**TINY, "test_file": file, "dev_fraction": 0.3, "output_dir": str(tmp_path / "run")}
    result = recipe.train(config, data={"train": iter(NER)})
    assert result["dev"]["support"] + 1 in (1, 2) and result["test"]["support"] == 2
    inputs = json.loads((tmp_path / "run" / "inputs.json").read_text(encoding="utf-8"))
    assert set(inputs) == {file, "train (in memory)"}
    scores = [recipe.evaluate(tmp_path / "run/model", data, device="cpu") for data in (NER, file)]
    places = [[example.pop("where") for example in one.pop("worst_examples", [])] for one in scores]
    assert scores[0] == scores[1] and all(place.startswith("data[") for place in places[0])


def test_numbers_of_numpy_and_tuples_are_plain_data(tmp_path):
    rows = [
        {"text": "叶老桂在医院。", "label": [(np.int64(0), np.int64(3), "name")]},
        {"text": "陆雨桐在学校。", "label": ((0, 3, "name"),)},
    ]
    examples, _ = get_recipe("ner").labeled.read_records(rows, "train")
    assert [(example.entities, example.where) for example in examples] == [
        ((Entity(0, 3, "name"),), f"train[{number}]") for number in (0, 1)
    ]


WRONG_SPAN = {"text": "叶老桂", "entities": [{"start": 0, "end": 4, "type": "name"}]}
WRONG_ROWS = [
    ([*NER, WRONG_SPAN], r"^train\[3\]: span \[0, 4\] is not in the text of 3 characters"),
    ([*NER, Example("叶老桂", (Entity(0, 4, "name"),), "mine:1")], r"^train\[3\]: span \[0, 4\]"),
    ([NER[0], "叶老桂"], r"^train\[1\]: '叶老桂' is not a record"),
    ([NER[0], ClassificationExample("甲", "乙", "")], r"^train\[1\]: Example.* is not a record"),
    ([{**NER[0], "id": object()}], r"^train\[0\]: object is not plain data; give strings"),
    ([{"text": "叶老桂"}], r'^train\[0\]: no "label"'),
    ([{"text": "叶老\ud800", "entities": []}], r"^train\[0\]: .* surrogate"),
    ([NER[0], {"text": "一" * 600, "entities": []}], r"^train\[1\]"),
    ([], "^train: there is no record"),
    *((rows, "^train: .* is not a list of records") for rows in (5, NER[0], "data.jsonl")),
    ([NER[2]], "^train: no entity is labeled"),
]
ALIKE = [{"text": "甲", "label": "a"}] * 3


@pytest.mark.parametrize("recipe, config, data, message", [
    *(("ner", {"dev_fraction": 0}, {"train": rows}, message) for rows, message in WRONG_ROWS),
    ("ner", {}, {"training": NER}, "unknown split 'training'; did you mean 'train'"),
    ("ner", {}, NER, "is not a dict"),
    ("ner", {"train_file": "x"}, {"train": NER}, "train is given, and train_file, too"),
    ("ner", {}, {"dev": NER}, "no 'train_file'"),
    ("ner", {"train_file": "(in memory)"}, None, "of a run that had its data in memory"),
    ("pretraining", {}, {"train": ["甲"]}, "this recipe reads files only"),
    ("classification", {}, {"train": ALIKE}, "^train: all texts have the label 'a'"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, recipe, config, data, message):
    with pytest.raises(InputError, match=message):
        get_recipe(recipe).train({**TINY, **config, "output_dir": str(tmp_path / "run")}, data=data)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupted_run_resumes_with_the_same_data_only(tmp_path):
    ner, config = get_recipe("ner"), {**TINY, "num_train_epochs": 3}
    data, run = {"train": NER * 4, "dev": NER}, tmp_path / "run"
    ner.train({**config, "output_dir": str(tmp_path / "whole")}, data=data)
    with power_cut("on_step_end", 2):
        ner.train({**config, "output_dir": str(run)}, data=data)
    for given, message in (
        (None, "train_file is .*, of a run that had its data in memory"),
        ({"train": NER}, "dev_file is .*, of a run that had its data in memory"),
        ({**data, "train": NER * 3}, r"^train \(in memory\): has changed since the run began"),
        ({**data, "test": NER}, r"^test \(in memory\): has changed since the run began"),
    ):
        with pytest.raises(InputError, match=message):
            ner.resume(run, data=given)
    ner.resume(run, data=data)
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "run")]
    assert weights[0] == weights[1]
