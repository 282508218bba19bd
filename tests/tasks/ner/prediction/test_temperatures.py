"""Temperatures: found again where they are known, and nothing else changed by them."""

import json
import shutil

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tasks.ner.examples import Entity
from tasks.ner.prediction import temperatures as module
from tasks.ner.prediction.temperatures import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    PRIOR_CANDIDATES,
    fit_temperature,
    fit_temperatures,
    negative_log_likelihood,
    probabilities_of,
    temperatures_for,
)
from tasks.ner.reports.monitoring import NerMonitor
from tests.helpers.verbs import verb

tune = verb("tune")


def drawn(count, temperature, seed=0, spread=4.0):
    """Logits, and whether each is an entity, drawn with the probability sigmoid(score / temperature)."""
    random = np.random.RandomState(seed)
    scores = random.normal(1.0, spread, count)
    return scores, random.rand(count) < 1 / (1 + np.exp(-scores / temperature))


def total(scored, temperatures):
    return sum(negative_log_likelihood(*of_type, one) for of_type, one in zip(scored.values(), temperatures))


@pytest.mark.equation("6.27")
@pytest.mark.parametrize("temperature", [0.4, 1.0, 1.7, 6.0])
def test_a_known_temperature_is_found_again(temperature):
    assert fit_temperature(*drawn(40_000, temperature)) == pytest.approx(temperature, rel=0.05)


def test_probabilities_are_the_shares_that_are_right():
    scores, labels = drawn(40_000, 2.5)
    probabilities = probabilities_of(scores, fit_temperature(scores, labels))
    for low in np.arange(0, 1, 0.1):
        inside = (probabilities >= low) & (probabilities < low + 0.1)
        assert labels[inside].mean() == pytest.approx(probabilities[inside].mean(), abs=0.03)


@pytest.mark.equation("6.27")
def test_it_is_the_minimum_of_the_likelihood_with_the_labels_of_platt():
    scores, labels = drawn(300, 1.5)
    right, wrong = labels.sum(), (~labels).sum()
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (wrong + 2))
    best = minimize_scalar(lambda t: negative_log_likelihood(scores, targets, t), bounds=(0.1, 20), method="bounded")
    assert fit_temperature(scores, labels) == pytest.approx(best.x, rel=1e-4)


def test_the_likelihood_is_that_of_the_probabilities():
    scores, labels = drawn(50, 1.0)
    p = probabilities_of(scores, 1.3)
    assert negative_log_likelihood(scores, labels, 1.3) == pytest.approx(-np.log(np.where(labels, p, 1 - p)).sum())
    assert np.isfinite(negative_log_likelihood(np.array([1e4, -1e4]), np.array([0, 1])))
    assert probabilities_of([1e4, -1e4], 1.0).tolist() == [1.0, 0.0]


def test_without_candidates_it_is_1():
    assert fit_temperature(np.array([]), np.array([])) == 1.0
    assert fit_temperatures({"a": (np.array([]), np.array([])), "b": (np.array([]), np.array([]))}) == [1.0, 1.0]
    assert fit_temperatures({}) == []
    assert fit_temperatures({"a": (np.array([0.0]), np.array([True]))}) == [1.0]  # sigmoid(0 / T) is one half


def test_a_few_right_candidates_do_not_become_certain():
    scores = np.full(8, 2.0)
    p = probabilities_of(scores, fit_temperature(scores, np.ones(8, dtype=bool)))
    assert p == pytest.approx(np.full(8, 9 / 10))  # the rule of succession


def test_scores_that_say_the_opposite_have_the_highest_temperature_and_sharp_ones_a_bound():
    scores = np.array([-2.0] * 50 + [2.0] * 50)
    assert fit_temperature(scores, scores < 0) == HIGHEST_TEMPERATURE
    weak = np.array([-0.01] * 50_000 + [0.01] * 50_000)
    assert fit_temperature(weak, weak > 0) == LOWEST_TEMPERATURE


@pytest.mark.equation("6.28")
def test_a_type_with_few_candidates_takes_the_temperature_of_all():
    scored = {"many": drawn(20_000, 2.0), "few": drawn(2, 0.4), "none": (np.array([]), np.array([]))}
    together = fit_temperature(*(np.concatenate(parts) for parts in zip(*scored.values())))
    many, few, none = fit_temperatures(scored)
    assert none == pytest.approx(together, abs=1e-4)
    assert many == pytest.approx(fit_temperature(*scored["many"]), rel=1e-2)
    assert abs(np.log(few / together)) < abs(np.log(fit_temperature(*scored["few"]) / together)) / 10


@pytest.mark.equation("6.28")
def test_as_many_candidates_as_the_prior_count_as_much():
    scored = {"some": drawn(PRIOR_CANDIDATES, 0.5, seed=1), "others": drawn(5000, 3.0)}
    together = fit_temperature(*(np.concatenate(parts) for parts in zip(*scored.values())))
    mean = np.sqrt(together * fit_temperature(*scored["some"]))
    assert fit_temperatures(scored)[0] == pytest.approx(mean, abs=1e-4)


@pytest.mark.equation("6.29")
@pytest.mark.parametrize("seed", range(30))
def test_the_likelihood_of_the_fitted_data_does_not_get_worse(seed):
    random = np.random.RandomState(seed)
    scored = {
        kind: drawn(random.randint(0, 60), np.exp(random.normal(0, 0.7)), seed=100 * seed + number)
        for number, kind in enumerate("abcd")
    }
    assert total(scored, fit_temperatures(scored)) <= total(scored, [1.0] * 4)


def test_where_everything_is_right_and_sure_already_they_stay_1():
    scores = np.full(40, 12.0)
    assert fit_temperature(scores, np.ones(40, dtype=bool)) > 2
    assert fit_temperatures({"a": (scores, np.ones(40, dtype=bool))}) == [1.0]


def test_overlapping_candidates_count_only_where_entities_overlap(monkeypatch):
    gold = [[Entity(0, 2, "a")], [Entity(1, 2, "b")]]
    candidates = [[Entity(0, 2, "a", 3.0), Entity(0, 3, "a", 1.0), Entity(3, 4, "b", -2.0)], []]
    seen = []
    monkeypatch.setattr(module, "fit_temperatures", seen.append)
    for allow_overlap in (False, True):
        temperatures_for(gold, candidates, ["a", "b"], allow_overlap)
    flat, nested = ({kind: [list(part) for part in pair] for kind, pair in scored.items()} for scored in seen)
    assert flat == {"a": [[3.0], [True]], "b": [[-2.0], [False]]}
    assert nested == {"a": [[3.0, 1.0], [True, False]], "b": [[-2.0], [False]]}


# ---- in training, and the tool


def config_of(model):
    return json.loads((model / "config.json").read_text(encoding="utf-8"))


def test_training_fits_them_on_dev_and_they_change_no_score(train, trained, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.ner.recipe.temperatures_for", lambda *_: 1.0)
    monkeypatch.setattr(NerMonitor, "show", lambda *_: None)
    fitted, plain = trained, train(tmp_path / "plain", num_train_epochs=trained.config["num_train_epochs"])
    temperatures = config_of(fitted.model)["temperatures"]
    assert len(temperatures) == len(fitted.model_config["types"]) and min(temperatures) > 0
    assert set(temperatures) != {1.0}
    assert fitted.weights == plain.weights
    assert {**fitted.model_config, "temperatures": 1.0} == {**plain.model_config, "temperatures": 1.0}
    scores = [dict(run.metrics["dev"]) for run in (fitted, plain)]
    reliable, usual = (of_run.pop("reliability") for of_run in scores)
    assert scores[0] == scores[1]
    assert reliable["temperatures"] == dict(zip(fitted.model_config["types"], temperatures))
    assert reliable["uncalibrated"] == usual["calibrated"]
    found = [
        [[(e["start"], e["end"], e["type"], e["score"]) for e in record["entities"]] for record in records]
        for records in (
            map(json.loads, (run.folder / "predictions_dev.jsonl").read_text(encoding="utf-8").splitlines())
            for run in (fitted, plain)
        )
    ]
    assert found[0] == found[1] and any(found[0])


def test_a_model_that_has_not_learned_keeps_1(train, few_texts, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tasks.ner.prediction.candidates.MOST_CANDIDATES", 0.01)
    monkeypatch.setattr("tasks.ner.prediction.candidates.LEAST_BOUND", 0)
    run = train(tmp_path / "run", train_file=few_texts.train, dev_file=few_texts.dev, num_train_epochs=1)
    assert config_of(run.model).get("temperatures", 1.0) == 1.0
    assert "note: all temperatures are 1, as the model scores more than" in capsys.readouterr().out


def test_without_dev_they_are_1(train, few_texts, tmp_path):
    run = train(tmp_path / "run", train_file=few_texts.train, dev_file="", dev_fraction=0, num_train_epochs=1)
    assert run.model_config.get("temperatures", 1.0) == 1.0


@pytest.fixture
def model(trained, tmp_path):
    """The trained model, without temperatures as those of earlier versions."""
    shutil.copytree(trained.model, tmp_path / "model")
    config = config_of(tmp_path / "model")
    del config["temperatures"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path / "model"


def test_tool_tunes_only_what_is_wanted_and_both_by_default(model, corpus, trained, capsys):
    before = config_of(model)
    words = [str(model), str(corpus.dev), "--device", "cpu"]
    assert tune.main([*words, "--only", "temperatures"]) == 0
    after = config_of(model)
    temperatures = after.pop("temperatures")
    assert after == before
    assert temperatures == pytest.approx(trained.model_config["temperatures"], rel=0.05)  # other batches, same dev
    assert "config.json: temperatures written" in capsys.readouterr().out
    assert tune.main([*words, "--only", "thresholds"]) == 0
    both = config_of(model)
    assert both["temperatures"] == temperatures and any(both["thresholds"])
    assert tune.main(words) == 0
    assert config_of(model) == both
    assert "config.json: thresholds and temperatures written" in capsys.readouterr().out


def test_evaluation_tells_the_reliability_before_and_after(model, corpus, evaluate, trained, capsys):
    old = evaluate(corpus.dev, model)
    assert old["reliability"]["calibrated"] == old["reliability"]["uncalibrated"]
    new = evaluate(corpus.dev, trained.model)
    assert new["reliability"]["uncalibrated"] == old["reliability"]["uncalibrated"]
    assert sum(row["entities"] for row in new["reliability"]["calibrated"]["bins"]) == new["predicted"]
    assert {**new, "reliability": None} == {**old, "reliability": None}
    assert "with all temperatures 1" in capsys.readouterr().out
