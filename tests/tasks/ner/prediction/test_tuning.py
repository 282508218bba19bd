"""Thresholds and temperatures of a trained model: chosen on dev in training, and by paddle-rope tune."""

import json
import os

import pytest

from tasks.commands.main import main
from tasks.ner.prediction.thresholds import LOWEST_THRESHOLD, threshold_for_f1


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


@pytest.mark.slow
def test_a_run_chooses_its_thresholds_on_dev(train_few, tmp_path):
    plain, lowered, tuned = (
        train_few(tmp_path / name, num_train_epochs=8, **{name: True} if name != "keep_best" else {})
        for name in ("keep_best", "threshold_for_f1", "tune_thresholds")
    )
    assert plain.weights == lowered.weights == tuned.weights
    types, before = plain.model_config["types"], plain.metrics["dev"]
    assert lowered.model_config["thresholds"] == [threshold_for_f1(before["f1"])] * len(types)
    assert lowered.metrics["dev"]["predicted"] > before["predicted"]
    assert len(tuned.model_config["thresholds"]) == len(types) and any(tuned.model_config["thresholds"])
    assert tuned.metrics["dev"]["f1"] > before["f1"]


@pytest.mark.parametrize("options", [{"learning_rate": 1e-9}, {"dev_file": "", "dev_fraction": 0}])
def test_temperatures_are_1_of_a_model_that_has_not_learned_and_without_dev(train_few, tmp_path, options):
    run = train_few(tmp_path / "run", **{"num_train_epochs": 1, **options})
    assert run.model_config.get("temperatures", 1.0) == 1.0


def test_temperatures_change_probabilities_alone(trained, copy_with, corpus, evaluate):
    fitted = trained.model_config["temperatures"]
    assert len(fitted) == len(trained.model_config["types"]) and min(fitted) > 0 and set(fitted) != {1.0}
    old, new = evaluate(corpus.dev, copy_with(temperatures=1.0)), evaluate(corpus.dev, trained.model)
    was, reliable = old.pop("reliability"), new.pop("reliability")
    assert old == new
    assert was["calibrated"] == was["uncalibrated"] == reliable["uncalibrated"] != reliable["calibrated"]
    assert reliable["temperatures"] == dict(zip(trained.model_config["types"], fitted))
    assert sum(row["entities"] for row in reliable["calibrated"]["bins"]) == new["predicted"]


def test_the_verb_writes_what_is_wanted_and_the_f1_is_as_it_says(
    copy_with, corpus, trained, evaluate, capsys, monkeypatch
):
    model = copy_with(temperatures=1.0)
    words, before = ["tune", str(model), str(corpus.dev), "--device", "cpu"], config_of(model)
    assert main([*words, "--only", "temperatures"]) == 0
    cooled = config_of(model)
    assert without(cooled, "temperatures") == without(before, "temperatures")
    # other batches, the same dev
    assert cooled["temperatures"] == pytest.approx(trained.model_config["temperatures"], rel=0.05)
    capsys.readouterr()
    assert main([*words, "--only", "thresholds"]) == 0
    tuned, printed = config_of(model), capsys.readouterr().out
    assert without(tuned, "thresholds") == without(cooled, "thresholds")
    thresholds = tuned["thresholds"]
    assert len(thresholds) == len(before["types"]) and any(thresholds) and min(thresholds) >= LOWEST_THRESHOLD
    old, new = trained.metrics["dev"]["f1"], evaluate(corpus.dev, model)["f1"]
    assert new > old and f"micro F1 {old:.4f} before, {new:.4f} after" in printed
    assert all((f"{kind}: {one:.4f}\n" in printed) == (one != 0) for kind, one in zip(before["types"], thresholds))
    content, files = (model / "config.json").read_bytes(), sorted(model.iterdir())

    def fail(*arguments):
        raise OSError("disk")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk"):
        main(words)  # both, again
    assert (model / "config.json").read_bytes() == content and sorted(model.iterdir()) == files


@pytest.mark.parametrize(
    "label, place", [({}, "no entity"), ({"animal": {"甲": [[0, 0]]}}, "data.jsonl:1: entity type")]
)
def test_data_without_an_entity_or_of_another_type_are_one_line(refused, copy_with, write, label, place):
    data = write(json.dumps({"text": "甲", "label": label}), "data.jsonl")
    assert place in refused("tune", copy_with(), data)
