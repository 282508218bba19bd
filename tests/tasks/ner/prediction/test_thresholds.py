"""Thresholds: the best there are, and the tool that writes them."""

import itertools
import json
import os
import random
import shutil

import numpy as np
import pytest

from tasks.ner.examples import Entity, make_example
from tasks.ner.metrics import entity_scores
from tasks.ner.prediction import candidates as candidates_module
from tasks.ner.prediction.candidates import LOWEST_THRESHOLD, above_thresholds, find_candidates
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.prediction.thresholds import (
    LEAST_FOR_F1,
    threshold_for_f1,
    thresholds_for,
    tune_thresholds,
)
from tests.helpers.verbs import verb

tune_threshold = verb("tune")

TYPES = ["a", "b", "c"]


def f1(gold, candidates, bounds):
    bound = dict(zip(TYPES, bounds))
    found = [[entity for entity in entities if entity.score > bound[entity.type]] for entities in candidates]
    return entity_scores(gold, found, TYPES)["f1"]


def found(*entities):
    """What is found in one text."""
    return [[Entity(*entity) for entity in entities]]


def random_case(seed):
    random_ = random.Random(seed)
    gold, candidates = [set() for _ in range(4)], [[] for _ in range(4)]
    for kind in TYPES:
        for place in range(random_.randint(0, 5)):
            text = random_.randrange(4)
            score = float(np.float32(random_.choice([-4.5, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0])))
            candidates[text].append(Entity(place, place + 1, kind, score))
            if random_.random() < 0.5:
                gold[text].add((place, place + 1, kind))
        if random_.random() < 0.5:
            gold[0].add((9, 10, kind))  # no candidate
    return gold, candidates


@pytest.mark.equation("6.24")
@pytest.mark.parametrize("seed", range(40))
def test_no_other_thresholds_have_a_higher_f1(seed):
    gold, candidates = random_case(seed)
    tuned = tune_thresholds(gold, candidates, TYPES)
    every = [-5.0, -4.0, -1.5, -0.5, -0.1, 0.1, 0.75, 2.0, 9.0]
    best = max(f1(gold, candidates, bounds) for bounds in itertools.product(every, repeat=3))
    assert f1(gold, candidates, tuned) == pytest.approx(best)
    assert f1(gold, candidates, tuned) >= f1(gold, candidates, [0.0] * 3)


@pytest.mark.equation("6.25")
def test_a_threshold_stands_in_the_middle_of_the_scores_it_separates():
    gold = [{(0, 1, "a"), (1, 2, "a")}]
    candidates = found((0, 1, "a", 3.0), (1, 2, "a", -1.0), (2, 3, "a", -2.0), (3, 4, "b", 1.5), (4, 5, "b", 0.5))
    assert tune_thresholds(gold, candidates, TYPES) == [-1.5, 2.0, 0.0]  # 2.0: nothing of b


@pytest.mark.equation("6.25")
def test_zero_stays_where_nothing_is_better():
    gold = [{(0, 1, "a")}]
    assert tune_thresholds(gold, found((0, 1, "a", 2.0), (1, 2, "a", -2.0)), TYPES) == [0.0] * 3
    assert tune_thresholds([set()], [[]], TYPES) == [0.0] * 3


def test_a_score_of_exactly_zero_is_not_above_the_threshold_zero():
    candidates = found((0, 1, "a", 0.0), (1, 2, "a", -3.0))
    assert tune_thresholds([{(0, 1, "a")}], candidates, TYPES) == [-1.5, 0.0, 0.0]
    assert above_thresholds(candidates, [0.0, 0.0, 0.0], TYPES, allow_overlap=True) == [[]]


def test_equal_scores_are_in_or_out_together():
    # by itself the right one of the two would be worth it
    gold, candidates = [{(0, 1, "a"), (5, 6, "a")}], found((0, 1, "a", -1.0), (1, 2, "a", -1.0), (5, 6, "a", 2.0))
    assert tune_thresholds(gold, candidates, TYPES)[0] == pytest.approx((-1 + LOWEST_THRESHOLD) / 2)
    gold, candidates = [{(5, 6, "a")}], found((0, 1, "a", 1.0), (5, 6, "a", 1.0), (6, 7, "a", 1.0))
    assert tune_thresholds(gold, candidates, TYPES) == [0.0] * 3


def test_of_thresholds_that_are_as_good_the_nearest_to_zero_is_taken():
    gold = [{(0, 1, "a"), (1, 2, "a")}]
    candidates = found((0, 1, "a", 4.0), (2, 3, "a", 3.0), (3, 4, "a", 3.0), (1, 2, "a", 2.0))
    assert f1(gold, candidates, [3.5, 0, 0]) == f1(gold, candidates, [0.0] * 3) == pytest.approx(2 / 3)
    assert tune_thresholds(gold, candidates, TYPES) == [0.0] * 3


def test_of_thresholds_that_are_as_good_and_as_near_to_zero_the_higher_is_taken():
    # F1 2/3 above 1 and above -1, 1/2 at 0
    gold = [{(0, 1, "a"), (1, 2, "a")}]
    candidates = found((0, 1, "a", 3.0), (2, 3, "a", 1.0), (3, 4, "a", 1.0), (1, 2, "a", -1.0))
    assert f1(gold, candidates, [2.0, 0, 0]) == f1(gold, candidates, [-3.0, 0, 0]) > f1(gold, candidates, [0.0] * 3)
    assert tune_thresholds(gold, candidates, TYPES) == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("low", [np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2))])  # halves go to even
def test_neighboring_numbers_are_separated_also_in_float32(low):
    high = np.nextafter(low, np.float32(2))
    gold, candidates = [{(0, 1, "a")}], found((0, 1, "a", float(high)), (1, 2, "a", float(low)))
    bound = np.float32(tune_thresholds(gold, candidates, TYPES)[0])
    assert high > bound and not low > bound


@pytest.mark.equation("6.24")
def test_a_thousand_types():
    types = [f"type {number}" for number in range(1000)]
    gold = [{(0, 1, kind) for kind in types}]
    candidates = found(*((place, place + 1, kind, score) for place, score in ((0, -1.0), (1, -3.0)) for kind in types))
    assert tune_thresholds(gold, candidates, types) == [-2.0] * 1000


def examples_of(text, *entities):
    return [make_example(text, [Entity(*entity) for entity in entities], "here:1")]


def test_an_overlapping_candidate_does_not_keep_a_threshold_high_where_entities_do_not_overlap():
    examples = examples_of("一二三四五六", (0, 2, "a"), (3, 5, "a"))
    candidates = found((0, 2, "a", 2.0), (0, 3, "a", 1.0), (1, 2, "a", -0.5), (3, 5, "a", -1.0), (5, 6, "b", -3.0))
    (flat, *_), (nested, *_) = (thresholds_for(examples, candidates, TYPES, overlap) for overlap in (False, True))
    assert flat == -3.0  # lets in the second entity, and nothing else that is kept
    assert nested == 1.5  # else two wrong ones come with it
    kept = {allow: above_thresholds(candidates, [flat, 0.0, 0.0], TYPES, allow)[0] for allow in (False, True)}
    assert [entity[:3] for entity in sorted(kept[False])] == [(0, 2, "a"), (3, 5, "a")]
    assert len(kept[True]) == 4


def test_thresholds_that_would_lower_the_f1_after_overlaps_are_left_at_0():
    # without "b", which is wrong, two wrong "a" that it overlaps would come in its place
    examples = examples_of("一二三四", (2, 3, "a"))
    candidates = found((0, 2, "b", 4.0), (0, 1, "a", 3.5), (1, 2, "a", 3.4), (2, 3, "a", 3.0))
    assert tune_thresholds([{(2, 3, "a")}], [[candidates[0][0], candidates[0][3]]], TYPES) == [0.0, 4.5, 0.0]
    assert thresholds_for(examples, candidates, TYPES, allow_overlap=False) == [0.0] * 3


def test_tuned_thresholds_stay_where_overlaps_take_what_they_won():
    # without "b", which is wrong, one wrong "a" comes in its place
    examples = examples_of("一二三四", (2, 3, "a"))
    candidates = found((0, 2, "b", 4.0), (0, 1, "a", 3.5), (2, 3, "a", 3.0))
    tuned = thresholds_for(examples, candidates, TYPES, allow_overlap=False)
    assert tuned == [0.0, 4.5, 0.0]
    scores = [
        entity_scores([examples[0].spans], above_thresholds(candidates, t, TYPES, False), TYPES)["f1"]
        for t in (tuned, 0.0)
    ]
    assert scores[0] == scores[1] == pytest.approx(2 / 3)


# ---- by the F1


@pytest.mark.equation("6.26")
@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_f1_is_best_where_probabilities_are_right(seed):
    logits = np.sort(np.random.default_rng(seed).normal(-1.5, 2, size=500))[::-1]
    probabilities = 1 / (1 + np.exp(-logits))
    correct, predicted = np.cumsum(probabilities), np.arange(1, 501)
    f1 = 2 * correct / (predicted + probabilities.sum())  # expected, with so many predicted
    best = int(f1.argmax())
    assert logits[best] > threshold_for_f1(f1[best]) >= logits[best + 1]


def test_thresholds_for_an_f1_are_bounded():
    assert threshold_for_f1(1) == 0
    assert threshold_for_f1(0) == threshold_for_f1(1e-9) == LEAST_FOR_F1
    assert LEAST_FOR_F1 < threshold_for_f1(0.5) < 0


# ---- in training


def test_run_lowers_its_threshold_by_its_f1(train, few_texts, tmp_path, capsys):
    options = {"train_file": few_texts.train, "dev_file": few_texts.dev, "num_train_epochs": 3}
    plain = train(tmp_path / "plain", **options)
    capsys.readouterr()
    lowered = train(tmp_path / "lowered", threshold_for_f1=True, **options)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("dev F1 is "))
    assert all(f"{run.metrics['dev']['f1']:.4f}" in line for run in (plain, lowered))
    config = json.loads((lowered.model / "config.json").read_text(encoding="utf-8"))
    (threshold,) = set(config["thresholds"])
    assert len(config["thresholds"]) == len(config["types"])
    assert threshold == threshold_for_f1(plain.metrics["dev"]["f1"]) < 0
    assert lowered.metrics["dev"]["predicted"] > plain.metrics["dev"]["predicted"]
    assert (lowered.model / "model.safetensors").read_bytes() == (plain.model / "model.safetensors").read_bytes()


def test_run_keeps_thresholds_tuned_on_dev(train, few_texts, tmp_path):
    options = {"train_file": few_texts.train, "dev_file": few_texts.dev, "num_train_epochs": 3}
    plain = train(tmp_path / "plain", **options)
    tuned = train(tmp_path / "tuned", tune_thresholds=True, **options)
    kept = json.loads((tuned.model / "config.json").read_text(encoding="utf-8"))["thresholds"]
    assert len(kept) == len(json.loads((tuned.model / "config.json").read_text(encoding="utf-8"))["types"])
    assert any(kept)
    assert tuned.metrics["dev"]["f1"] > plain.metrics["dev"]["f1"]
    assert (tuned.model / "model.safetensors").read_bytes() == (plain.model / "model.safetensors").read_bytes()


# ---- the tool


@pytest.fixture
def model(trained, tmp_path):
    shutil.copytree(trained.model, tmp_path / "model")
    return tmp_path / "model"


def test_tool_writes_thresholds_with_which_the_f1_is_as_it_says_and_not_lower(model, corpus, trained, evaluate, capsys):
    before = json.loads((model / "config.json").read_text(encoding="utf-8"))
    assert tune_threshold.main([str(model), str(corpus.dev), "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    after = json.loads((model / "config.json").read_text(encoding="utf-8"))
    tuned = after.pop("thresholds")
    before.pop("thresholds")
    assert {**after, "temperatures": None} == {**before, "temperatures": None}  # nothing else has changed
    assert len(tuned) == len(before["types"]) and any(tuned) and min(tuned) >= LOWEST_THRESHOLD
    old, new = trained.metrics["dev"]["f1"], evaluate(corpus.dev, model)["f1"]
    assert new > old
    assert f"micro F1 {old:.4f} before, {new:.4f} after" in printed
    for kind, threshold in zip(before["types"], tuned):
        assert (f"{kind}: {threshold:.4f}\n" in printed) == (threshold != 0)
    assert {path.name for path in model.iterdir()} == {path.name for path in trained.model.iterdir()}

    assert tune_threshold.main([str(model), str(corpus.dev), "--device", "cpu"]) == 0  # again: the same
    assert json.loads((model / "config.json").read_text(encoding="utf-8"))["thresholds"] == tuned
    assert f"micro F1 {new:.4f} before, {new:.4f} after" in capsys.readouterr().out


def test_config_is_kept_whole_when_writing_fails(model, corpus, monkeypatch):
    before = (model / "config.json").read_bytes()

    def fail(*arguments):
        raise OSError("disk")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk"):
        tune_threshold.main([str(model), str(corpus.dev), "--device", "cpu"])
    assert (model / "config.json").read_bytes() == before
    assert [path.name for path in model.iterdir() if path.name.startswith(".")] == []


def test_what_a_user_gets_wrong_is_one_line(fails, model, corpus, tmp_path):
    (tmp_path / "plain.jsonl").write_text('{"text": "甲", "label": {}}\n', encoding="utf-8")
    (tmp_path / "other.jsonl").write_text('{"text": "甲", "label": {"animal": {"甲": [[0, 0]]}}}\n', encoding="utf-8")
    assert fails(tune_threshold, model, "missing") == "missing: no such file; check the path"
    assert "no such folder" in fails(tune_threshold, "nowhere", corpus.dev)
    assert "no entity is labeled" in fails(tune_threshold, model, "plain.jsonl")
    assert "other.jsonl:1: entity type 'animal' is unknown" in fails(tune_threshold, model, "other.jsonl")
    assert "must be 1 or more" in fails(tune_threshold, model, corpus.dev, "--batch_size", "0")
    assert "see" in fails(tune_threshold, model)


def test_a_model_that_has_not_learned_is_told_instead_of_filling_the_memory(fails, model, corpus, monkeypatch):
    monkeypatch.setattr(candidates_module, "TEXTS_AT_ONCE", 3)
    many = [(start, start + 1, "person", 0.0) for start in range(1001)]
    calls = []

    def find(self, texts, where=None, thresholds=None):
        calls.append(len(texts))
        return [many for _ in texts]

    monkeypatch.setattr(NerPredictor, "find", find)
    assert "does not tell spans apart yet; train it longer" in fails(tune_threshold, model, corpus.dev)
    assert calls == [3]


def test_candidates_are_those_of_all_texts_at_once(trained, corpus, monkeypatch):
    predictor = NerPredictor(trained.model, "cpu")
    texts = [record["text"] for record in corpus.dev_records]
    expected = predictor.find(texts, thresholds=LOWEST_THRESHOLD)
    monkeypatch.setattr(candidates_module, "TEXTS_AT_ONCE", 7)
    found = find_candidates(
        lambda some: predictor.find(some, thresholds=LOWEST_THRESHOLD), texts, list(map(len, texts))
    )
    assert [[e[:3] for e in row] for row in found] == [[e[:3] for e in row] for row in expected]
