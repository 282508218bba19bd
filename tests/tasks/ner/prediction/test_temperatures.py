"""Temperatures, and tuning: chosen on dev in training, and by paddle-rope tune."""

import json
import os

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    LOWEST_THRESHOLD,
    PRIOR_CANDIDATES,
    fit_temperature,
    fit_temperatures,
    negative_log_likelihood,
    probabilities_of,
    temperatures_for,
    threshold_for_f1,
)
from paddle_rope.tasks.ner.examples import Entity, Example

NOTHING = np.array([]), np.array([])


def drawn(count, temperature, seed=0, spread=4.0):
    """Logits, and whether each is an entity, drawn with the probability sigmoid(score / temperature)."""
    random = np.random.RandomState(seed)
    scores = random.normal(1.0, spread, count)
    return scores, random.rand(count) < 1 / (1 + np.exp(-scores / temperature))


def total(scored, temperatures):
    return sum(negative_log_likelihood(*of_type, one) for of_type, one in zip(scored.values(), temperatures))


@pytest.mark.equation("6.27")
def test_it_is_the_minimum_of_the_likelihood_with_the_labels_of_platt():
    scores, labels = drawn(300, 1.5)
    p = probabilities_of(scores, 1.3)
    assert negative_log_likelihood(scores, labels, 1.3) == pytest.approx(-np.log(np.where(labels, p, 1 - p)).sum())
    right, wrong = labels.sum(), (~labels).sum()
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (wrong + 2))
    best = minimize_scalar(lambda t: negative_log_likelihood(scores, targets, t), bounds=(0.1, 20), method="bounded")
    assert fit_temperature(scores, labels) == pytest.approx(best.x, rel=1e-4)


WEAK = np.array([-0.01] * 50_000 + [0.01] * 50_000)


@pytest.mark.parametrize("scores, labels, temperature", [
    (*NOTHING, 1.0),
    (np.array([0.0]), np.array([True]), 1.0),  # sigmoid(0 / T) is one half
    (np.full(8, 2.0), np.ones(8, bool), 2 / np.log(9)),  # 9/10, by the rule of succession
    (WEAK, WEAK < 0, HIGHEST_TEMPERATURE),
    (WEAK, WEAK > 0, LOWEST_TEMPERATURE),
])  # fmt: skip
def test_few_or_extreme_candidates_have_a_bounded_temperature(scores, labels, temperature):
    assert fit_temperature(scores, labels) == pytest.approx(temperature)


@pytest.mark.equation("6.28")
def test_a_type_takes_the_temperature_of_all_the_more_the_fewer_candidates_it_has():
    scored = {
        "many": drawn(20_000, 2.0),
        "some": drawn(PRIOR_CANDIDATES, 0.5, 1),
        "few": drawn(2, 0.4),
        "none": NOTHING,
    }
    together = fit_temperature(*(np.concatenate(parts) for parts in zip(*scored.values())))
    own = {kind: fit_temperature(*of_type) for kind, of_type in scored.items()}
    many, some, few, none = fit_temperatures(scored)
    assert none == pytest.approx(together, abs=1e-4)
    assert abs(np.log(few / together)) < abs(np.log(own["few"] / together)) / 10
    assert some == pytest.approx(np.sqrt(together * own["some"]), abs=1e-4)
    assert many == pytest.approx(own["many"], rel=1e-2)


@pytest.mark.equation("6.29")
def test_the_likelihood_of_the_fitted_data_does_not_get_worse():
    for seed in range(15):
        random = np.random.RandomState(seed)
        sizes, spreads = random.randint(0, 60, 4), np.exp(random.normal(0, 0.7, 4))
        scored = {kind: drawn(*of_type, seed) for kind, *of_type in zip("abcd", sizes, spreads)}
        assert total(scored, fit_temperatures(scored)) <= total(scored, [1.0] * 4)
    assert fit_temperatures({}) == []
    assert fit_temperatures({"a": NOTHING, "b": NOTHING}) == [1.0, 1.0]
    sure = np.full(40, 12.0), np.ones(40, bool)  # everything is right and sure already
    assert fit_temperature(*sure) > 2 and fit_temperatures({"a": sure}) == [1.0]


@pytest.mark.parametrize("allow_overlap, counted", [(False, [True]), (True, [True, False])])
def test_candidates_that_a_better_one_overlaps_count_only_where_entities_overlap(allow_overlap, counted):
    examples = [Example("", (entity,), "x:1") for entity in (Entity(0, 2, "a"), Entity(1, 2, "b"))] * 60
    candidates = [[Entity(0, 2, "a", 3.0), Entity(0, 3, "a", 2.0), Entity(3, 4, "b", -2.0)], []] * 60
    expected = fit_temperatures({
        "a": (np.array([3.0, 2.0][: len(counted)] * 60), np.array(counted * 60)),
        "b": (np.array([-2.0] * 60), np.zeros(60, bool)),
    })  # fmt: skip
    assert temperatures_for(examples, candidates, ["a", "b"], allow_overlap) == expected


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
