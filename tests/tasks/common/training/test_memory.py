"""Training on data in memory: checked as files are. That it gives the run of the files: tests/tasks/test_recipes.py."""

import json

import numpy as np
import pytest

from tasks.classification.data import Example as ClassificationExample
from tasks.common.errors import InputError
from tasks.ner.examples import Entity, Example
from tasks.recipes import get_recipe
from tests.helpers.power_cut import power_cut

TINY = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_train_epochs": 2,
    "vocab_min_count": 1,
    "device": "cpu",
}
NER = [
    {"text": "叶老桂在医院。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "陆雨桐在学校。", "entities": [{"start": 0, "end": 3, "type": "name"}]},
    {"text": "没有人。", "entities": []},
]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_evaluation_of_records_names_their_places(tmp_path):
    recipe, folder = get_recipe("ner"), tmp_path / "run"
    recipe.train({**TINY, "output_dir": str(folder)}, data={"train": iter(NER), "dev": NER})
    file = write_lines(tmp_path / "data.jsonl", NER)
    scores = [recipe.evaluate(folder / "model", data, device="cpu") for data in (NER, file)]
    places = [[example.pop("where") for example in one.pop("worst_examples", [])] for one in scores]
    assert scores[0] == scores[1]
    assert all(place.startswith("data[") for place in places[0])


def test_without_dev_a_part_of_train_is_held_out_and_a_file_may_be_beside_it(tmp_path):
    file = write_lines(tmp_path / "test.jsonl", NER)
    config = {**TINY, "test_file": file, "dev_fraction": 0.3, "output_dir": str(tmp_path / "run")}
    result = get_recipe("ner").train(config, data={"train": NER})
    assert result["dev"]["support"] + 1 in (1, 2) and result["test"]["support"] == 2
    inputs = json.loads((tmp_path / "run" / "inputs.json").read_text(encoding="utf-8"))
    assert set(inputs) == {file, "train (in memory)"}


def test_numbers_of_numpy_and_tuples_are_plain_data(tmp_path):
    rows = [
        {"text": "叶老桂在医院。", "label": [(np.int64(0), np.int64(3), "name")]},
        {"text": "陆雨桐在学校。", "label": ((0, 3, "name"),)},
    ]
    examples, _ = get_recipe("ner").labeled.read_records(rows, "train")
    assert [example.entities for example in examples] == [(Entity(0, 3, "name"),)] * 2
    assert [example.where for example in examples] == ["train[0]", "train[1]"]


def train_ner(tmp_path, **data):
    get_recipe("ner").train({**TINY, "dev_fraction": 0, "output_dir": str(tmp_path / "run")}, data=data)


WRONG_SPAN = {"text": "叶老桂", "entities": [{"start": 0, "end": 4, "type": "name"}]}


@pytest.mark.parametrize(
    "rows, message",
    [
        ([*NER, WRONG_SPAN], r"^train\[3\]: span \[0, 4\] is not in the text of 3 characters"),
        ([*NER, Example("叶老桂", (Entity(0, 4, "name"),), "mine:1")], r"^train\[3\]: span \[0, 4\]"),
        ([NER[0], "叶老桂"], r"^train\[1\]: '叶老桂' is not a record"),
        ([NER[0], ClassificationExample("甲", "乙", "")], r"^train\[1\]: Example.* is not a record"),
        ([{**NER[0], "id": object()}], r"^train\[0\]: object is not plain data; give strings"),
        ([{"text": "叶老桂"}], r'^train\[0\]: no "label"'),
        ([{"text": "叶老\ud800", "entities": []}], r"^train\[0\]: .* surrogate"),
        ([NER[0], {"text": "一" * 600, "entities": []}], r"^train\[1\]"),
        ([], "^train: there is no record"),
        (5, "^train: 5 is not a list of records"),
        (NER[0], "^train: .* is not a list of records"),
        ("data.jsonl", "^train: 'data.jsonl' is not a list of records"),
        ([NER[2]], "^train: no entity is labeled"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        train_ner(tmp_path, train=rows)
    assert list(tmp_path.iterdir()) == []


def test_data_that_do_not_go_with_the_configuration(tmp_path):
    ner, config = get_recipe("ner"), {**TINY, "output_dir": str(tmp_path / "run")}
    with pytest.raises(InputError, match="unknown split 'training'; did you mean 'train'"):
        ner.train(config, data={"training": NER})
    with pytest.raises(InputError, match="is not a dict"):
        ner.train(config, data=NER)
    with pytest.raises(InputError, match="train is given, and train_file, too"):
        ner.train({**config, "train_file": "x"}, data={"train": NER})
    with pytest.raises(InputError, match="no 'train_file'"):
        ner.train(config, data={"dev": NER})
    with pytest.raises(InputError, match="of a run that had its data in memory"):
        ner.train({**config, "train_file": "(in memory)"})
    with pytest.raises(InputError, match="this recipe reads files only"):
        get_recipe("pretraining").train(config, data={"train": ["甲"]})
    with pytest.raises(InputError, match="^train: all texts have the label 'a'"):
        get_recipe("classification").train(config, data={"train": [{"text": "甲", "label": "a"}] * 3})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_resumes_with_the_same_data_only(tmp_path):
    ner, config = get_recipe("ner"), {**TINY, "num_train_epochs": 3}
    data = {"train": NER * 4, "dev": NER}
    ner.train({**config, "output_dir": str(tmp_path / "whole")}, data=data)

    with power_cut("on_step_end", 2):
        ner.train({**config, "output_dir": str(tmp_path / "run")}, data=data)
    run = tmp_path / "run"
    with pytest.raises(InputError, match="run: the run had train and dev in memory; resume it in Python with the same"):
        ner.resume(run)
    with pytest.raises(InputError, match="the run had train and dev"):
        ner.resume(run, data={"train": NER})
    with pytest.raises(InputError, match=r"^train \(in memory\): has changed since the run began"):
        ner.resume(run, data={**data, "train": NER * 3})
    ner.resume(run, data=data)
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "run")]
    assert weights[0] == weights[1]
