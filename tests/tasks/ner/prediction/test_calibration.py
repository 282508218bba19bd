"""Thresholds: the best there are on labeled data, and the one for an F1; temperatures; both chosen on dev in training,
and by paddle-rope tune."""

import itertools
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner.arguments import probability
from paddle_rope.tasks.ner.calibration import (
    FIRST_TEXTS,
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    LOWEST_THRESHOLD,
    PRIOR_CANDIDATES,
    above_thresholds,
    find_candidates,
    fit_temperature,
    fit_temperatures,
    negative_log_likelihood,
    probabilities_of,
    temperatures_for,
    threshold_for_f1,
    thresholds_for,
    tune_thresholds,
)
from paddle_rope.tasks.ner.examples import Entity, Example
from paddle_rope.tasks.ner.metrics import entity_scores
from tests.tasks.ner.conftest import labeled

# ---- thresholds
TYPES = ["a", "b", "c"]


def f1(gold, candidates, thresholds, allow_overlap=True):
    return entity_scores(labeled(gold), above_thresholds(candidates, thresholds, TYPES, allow_overlap), TYPES)["f1"]


def found(*entities):
    """What is found in one text."""
    return [[Entity(*entity) for entity in entities]]


# of a candidate: text, type, score, whether it is right
SCORES = st.sampled_from([-4.5, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0])
CANDIDATES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TYPES), SCORES, st.booleans()), max_size=15)


@pytest.mark.equation("6.24")
@settings(max_examples=40)
@given(CANDIDATES, st.sets(st.sampled_from(TYPES)))
def test_no_other_thresholds_have_a_higher_f1(drawn, never_found):
    gold, candidates = [set() for _ in range(4)], [[] for _ in range(4)]
    for place, (text, kind, score, is_right) in enumerate(drawn):
        candidates[text].append(Entity(place, place + 1, kind, score))
        gold[text] |= {(place, place + 1, kind)} if is_right else set()
    gold[0] |= {(99, 100, kind) for kind in never_found}
    tuned = tune_thresholds(labeled(gold), candidates, TYPES)
    every = [-5.0, -4.0, -1.5, -0.5, -0.1, 0.1, 0.75, 2.0, 9.0]
    best = max(f1(gold, candidates, bounds) for bounds in itertools.product(every, repeat=3))
    assert f1(gold, candidates, tuned) == pytest.approx(best)
    assert f1(gold, candidates, tuned) >= f1(gold, candidates, 0.0)


A, A_AND_LATER = {(0, 1, "a")}, {(0, 1, "a"), (5, 6, "a")}


@pytest.mark.equation("6.25")
@pytest.mark.parametrize("gold, candidates, expected", [  # the thresholds of "a" and "b"
    # in the middle of the scores that it separates; above all scores of b, none of which is right
    ({(0, 1, "a"), (1, 2, "a")}, [(0, 1, "a", 3.0), (1, 2, "a", -1.0), (2, 3, "a", -2.0)], (-1.5, 0.0)),
    (A, [(0, 1, "a", 3.0), (3, 4, "b", 1.5), (4, 5, "b", 0.5)], (0.0, 2.0)),
    # zero stays where nothing is better
    (A, [(0, 1, "a", 2.0), (1, 2, "a", -2.0)], (0.0, 0.0)),
    (set(), [], (0.0, 0.0)),
    # a score of exactly zero is not above the threshold zero
    (A, [(0, 1, "a", 0.0), (1, 2, "a", -3.0)], (-1.5, 0.0)),
    # equal scores are in or out together
    (A_AND_LATER, [(0, 1, "a", -1.0), (1, 2, "a", -1.0), (5, 6, "a", 2.0)], ((-1 + LOWEST_THRESHOLD) / 2, 0.0)),
    ({(5, 6, "a")}, [(0, 1, "a", 1.0), (5, 6, "a", 1.0), (6, 7, "a", 1.0)], (0.0, 0.0)),
    # F1 2/3 above 3 and above 0: the nearest to zero
    (A_AND_LATER, [(0, 1, "a", 4.0), (2, 3, "a", 3.0), (3, 4, "a", 3.0), (5, 6, "a", 2.0)], (0.0, 0.0)),
    # F1 2/3 above 1 and above -1, 1/2 at 0: of two as near the higher
    (A_AND_LATER, [(0, 1, "a", 3.0), (2, 3, "a", 1.0), (3, 4, "a", 1.0), (5, 6, "a", -1.0)], (2.0, 0.0)),
])  # fmt: skip
def test_which_of_the_best_thresholds_is_taken(gold, candidates, expected):
    assert tune_thresholds(labeled([gold]), found(*candidates), TYPES) == [*expected, 0.0]


@pytest.mark.parametrize("low", [np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2))])  # halves go to even
def test_neighboring_numbers_are_separated_also_in_float32(low):
    high = np.nextafter(low, np.float32(2))
    candidates = found((0, 1, "a", float(high)), (1, 2, "a", float(low)))
    bound = np.float32(tune_thresholds(labeled([A]), candidates, TYPES)[0])
    assert high > bound and not low > bound


@pytest.mark.parametrize("gold, candidates, flat, nested", [
    # a lower threshold lets in the second entity; if entities may overlap, two wrong ones come with it
    ([(0, 2, "a"), (3, 5, "a")],
     [(0, 2, "a", 2.0), (0, 3, "a", 1.0), (1, 2, "a", -0.5), (3, 5, "a", -1.0), (5, 6, "b", -3.0)],
     [-3.0, 0.0, 0.0], [1.5, 0.0, 0.0]),
    # without "b", which is wrong, two wrong "a" that it overlaps would come in its place
    ([(2, 3, "a")], [(0, 2, "b", 4.0), (0, 1, "a", 3.5), (1, 2, "a", 3.4), (2, 3, "a", 3.0)], [0.0] * 3, None),
    # without "b" one wrong "a" comes in its place: as good
    ([(2, 3, "a")], [(0, 2, "b", 4.0), (0, 1, "a", 3.5), (2, 3, "a", 3.0)], [0.0, 4.5, 0.0], None),
])  # fmt: skip
def test_thresholds_count_what_is_left_of_overlaps(gold, candidates, flat, nested):
    examples = labeled([gold])
    candidates = found(*candidates)
    for allow_overlap, expected in ((False, flat), (True, nested)):
        tuned = thresholds_for(examples, candidates, TYPES, allow_overlap)
        assert expected is None or tuned == expected
        scores = [f1([gold], candidates, bounds, allow_overlap) for bounds in (tuned, 0.0)]
        assert scores[0] >= scores[1]


def test_a_model_that_does_not_tell_spans_apart_is_left_after_a_few_texts():
    calls = []

    def find(texts):
        calls.append(len(texts))
        return [[Entity(0, 1, "a", 0.0)] * 100 for _ in texts]

    assert find_candidates(find, ["甲"] * 500, [1] * 500) is None
    assert calls == [FIRST_TEXTS]
    assert find_candidates(find, ["甲" * 9] * 500, [9] * 500) == find([None] * 500)
    assert sum(calls[1:-1]) == 500 and max(calls[1:-1]) < 300
    assert find_candidates(find, ["甲"] * 10, [1] * 10) == find([None] * 10)  # 1,000 are never too many


@pytest.mark.equation("6.26")
def test_half_of_the_f1_is_best_where_probabilities_are_right():
    logits = np.sort(np.random.default_rng(0).normal(-1.5, 2, size=500))[::-1]
    probabilities = 1 / (1 + np.exp(-logits))
    correct, predicted = np.cumsum(probabilities), np.arange(1, 501)
    f1 = 2 * correct / (predicted + probabilities.sum())  # expected, with so many predicted
    best = int(f1.argmax())
    assert logits[best] > threshold_for_f1(f1[best]) >= logits[best + 1]
    assert threshold_for_f1(1) == 0 > threshold_for_f1(0.5) > -3
    assert threshold_for_f1(0) == threshold_for_f1(1e-9) == -3


# ---- temperatures
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
    scored = {"many": drawn(20_000, 2.0), "some": drawn(PRIOR_CANDIDATES, 0.5, 1)}
    scored |= {"few": drawn(2, 0.4), "none": NOTHING}
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


@pytest.mark.slow
def test_a_run_chooses_its_thresholds_on_dev(train_few, few_texts, evaluate, tmp_path):
    lowered, tuned = (
        train_few(tmp_path / name, num_train_epochs=8, **{name: True})
        for name in ("threshold_for_f1", "tune_thresholds")
    )
    assert lowered.weights == tuned.weights
    plain, types = shutil.copytree(lowered.model, tmp_path / "plain"), lowered.model_config["types"]
    (plain / "config.json").write_text(json.dumps({**lowered.model_config, "thresholds": 0.0}), encoding="utf-8")
    before = evaluate(few_texts.dev, plain)
    assert lowered.model_config["thresholds"] == [threshold_for_f1(before["f1"])] * len(types)
    assert lowered.metrics["dev"]["predicted"] > before["predicted"]
    assert len(tuned.model_config["thresholds"]) == len(types) and any(tuned.model_config["thresholds"])
    assert tuned.metrics["dev"]["f1"] > before["f1"]


def test_temperatures_are_1_of_a_model_that_has_not_learned(train_few, tmp_path):  # without dev: ../test_epochs.py
    assert train_few(tmp_path / "run", num_train_epochs=1, learning_rate=1e-9).model_config["temperatures"] == 1.0


def test_temperatures_change_probabilities_alone(trained, copy_with, corpus, evaluate):
    fitted = trained.model_config["temperatures"]
    assert len(fitted) == len(trained.model_config["types"]) and min(fitted) > 0 and set(fitted) != {1.0}
    old, new = evaluate(corpus.dev, copy_with(temperatures=1.0)), evaluate(corpus.dev, trained.model)
    was, reliable = old.pop("reliability"), new.pop("reliability")
    assert old == new
    assert was["calibrated"] == was["uncalibrated"] == reliable["uncalibrated"] != reliable["calibrated"]
    assert reliable["temperatures"] == dict(zip(trained.model_config["types"], fitted))
    assert sum(row["entities"] for row in reliable["calibrated"]["bins"]) == new["predicted"]
    of_type = dict(zip(trained.model_config["types"], fitted))
    for entity in (entity for record in trained.predictions for entity in record["entities"]):
        assert entity["probability"] == pytest.approx(probability(entity["score"], of_type[entity["type"]]), abs=2e-4)


def test_the_verb_writes_what_is_wanted_and_the_f1_is_true(copy_with, corpus, trained, evaluate, capsys, monkeypatch):
    model = copy_with(temperatures=1.0)
    words, before = ["tune", str(model), str(corpus.dev), "--device", "cpu"], config_of(model)
    assert main([*words, "--only", "temperatures"]) == 0
    cooled = config_of(model)
    assert cooled == {**before, "temperatures": cooled["temperatures"]}
    # other batches, the same dev
    assert cooled["temperatures"] == pytest.approx(trained.model_config["temperatures"], rel=0.05)
    capsys.readouterr()
    assert main([*words, "--only", "thresholds"]) == 0
    tuned, printed = config_of(model), capsys.readouterr().out
    thresholds = tuned["thresholds"]
    assert tuned == {**cooled, "thresholds": thresholds}
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
