"""Training: what a run promises about its metrics and log, and what its options change.

What a run of any recipe promises (its files, seeds, cut and resume, refusals) is in tests/tasks/test_recipes.py.
"""

import json

import numpy as np
import paddle
import pytest
import yaml

from paddle_rope.tasks.ner import recipe as recipe_module
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.model import NerModel
from tests.helpers.runs import curves, log_of

TYPES = ["organization", "person", "place", "position", "product", "time"]
FIGURES = ("precision", "recall", "f1")


def test_a_type_that_train_lacks_is_told_and_counts_and_is_no_output(train_few, write, evaluate, capsys):
    test = write('{"text": "张三在北京", "label": {"person": {"张三": [[0, 1]]}, "GPE": {"北京": [[3, 4]]}}}\n', "test")
    run = train_few(test.with_name("run"), test_file=test, num_train_epochs=8)
    printed = capsys.readouterr().out
    assert any("GPE" in line and str(test) in line for line in printed.splitlines())
    assert "entities may overlap; not in train, so never found: GPE\n" in printed
    assert run.model_config["types"] == TYPES
    assert [run.metrics["test"]["per_type"][kind]["support"] for kind in ("GPE", "person")] == [1, 1]
    scores = evaluate(test, run.model)
    del scores["worst_examples"]
    assert run.metrics["test"] == scores


def test_gold_that_the_model_cannot_find_is_told_and_counts_as_missed(evaluate, write, capsys):
    # the combining accent is no token of its own, so that no span of tokens ends between e and it
    label = {"organization": {"cafe": [[1, 4]]}, "animal": {"店": [[6, 6]]}}
    path = write(json.dumps({"text": "去cafe\u0301店", "label": label}), "marks.jsonl")
    scores = evaluate(path)
    printed = capsys.readouterr().out
    assert f"{path}:1 organization 'cafe'" in printed and "count as missed: animal" in printed
    for kind in ("organization", "animal"):
        assert scores["per_type"][kind]["support"] == 1 and scores["per_type"][kind]["correct"] == 0
    assert scores["errors"]["missed"] == scores["support"] == 2


@pytest.mark.slow
def test_there_may_be_a_thousand_types_of_any_name(train, evaluate, predict, write, tmp_path):
    types = [*(f"type {n:03}" for n in range(994)), "占比%", "a/b", "a b", "🙂", "长" * 200, "a\x1b[31m\n\t\x00\u202e"]
    records = []
    for number in range(100):
        label = {kind: {"乙丙": [[1, 2]]} for kind in types[10 * number : 10 * number + 10]}
        record = {"text": f"甲乙丙丁戊{number}己庚", "label": {**label, types[number // 2]: {"甲": [[0, 0]]}}}
        records.append(record)
    files = {"train_file": write(records, "data"), "dev_file": write(records[::5], "few")}
    run = train(tmp_path / "run", **files, num_train_epochs=1, per_device_train_batch_size=50)
    assert run.model_config["types"] == sorted(types) and run.metrics["dev"]["per_type"].keys() == set(types)
    assert len(predict("甲乙丙\n", run.model)) == 1 and evaluate(files["dev_file"], run.model)["support"] > 30


def test_the_log_has_scores_of_each_epoch_the_configuration_and_the_hyper_parameters(trained):
    log = log_of(trained.folder / "vdl")
    scalars = {tag: [value for _, value in values] for tag, values in curves(trained.folder / "vdl").items()}
    names = [f"dev/{name}" for name in FIGURES] + [f"dev_{name}_by_type/{kind}" for name in FIGURES for kind in TYPES]
    assert {tag for tag in scalars if tag.startswith("dev")} == set(names)
    assert {len(scalars[name]) for name in names} == {trained.config["num_train_epochs"]}
    f1 = scalars["dev/f1"]
    assert max(f1) > 0.3 and max(f1) == pytest.approx(trained.metrics["dev"]["f1"])
    for kind, row in trained.metrics["dev"]["per_type"].items():
        assert scalars[f"dev_f1_by_type/{kind}"][f1.index(max(f1))] == pytest.approx(row["f1"])
    (text,) = log.get_data("text", "configuration")
    shown = text.text.encoded_text_string.replace("\u00a0", " ").replace("\u2060", "")
    assert yaml.safe_load(shown) == trained.config
    (record,) = log.get_data("hyper_parameters", "hparam")
    values = {info.name: info for info in record.hparam.hparamInfos}
    assert values.keys() == set(NerArguments.HYPER_PARAMETERS)
    assert values["hidden_size"].int_value == 32 and values["attention"].string_value == "softmax"
    assert [info.name for info in record.hparam.metricInfos] == [f"dev/{name}" for name in FIGURES]


def test_training_that_finds_nothing_tells_it_at_the_end(train_few, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recipe_module, "find_in_windows", lambda model, texts, *_, **__: [[] for _ in texts])
    train_few(tmp_path / "run", num_train_epochs=1)
    assert "note: nothing is found in dev after 6 steps; give 300 steps or more" in capsys.readouterr().out


@pytest.mark.parametrize("span_rope", [True, False])
def test_the_span_head_rotates_unless_span_rope_is_false(train_few, tmp_path, span_rope):
    run = train_few(tmp_path / "run", num_train_epochs=1, span_rope=span_rope)
    head = NerModel.from_pretrained(str(run.model)).head
    hidden = paddle.randn([1, 1, 32]).expand([1, 6, 32])  # tokens that differ in their place alone
    scores = head(hidden, paddle.ones([1, 6], dtype="bool"))
    spans = scores.numpy()[0][(slice(None), *np.triu_indices(6))]
    assert (np.ptp(spans, axis=1) > 1e-4).all() == span_rope
