"""The contract of all predictors: Python, the verbs, and the run that trained the model agree."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.recipes import get_predictor, load
from tests.helpers.models import FORMATS, export, like
from tests.helpers.runs import read_json_lines

MODELS = {  # name -> recipe, and more keys of its smallest run
    "ner": ("ner", {}),
    "relations": ("relations", {}),
    "classification": ("classification", {}),
    "bi-encoder": ("matching", {"architecture": "bi_encoder"}),
    "cross-encoder": ("matching", {"architecture": "cross_encoder", "token_type_ids": True}),
    "triples": ("matching", {"architecture": "bi_encoder", "max_tokens": 96}),
}


@pytest.fixture
def trained(whole, data_of):
    """``trained(name)``: the folder of a model's run, its labeled dev file, and the examples in it."""

    def trained(name):
        recipe, keys = MODELS[name]
        file = data_of.get(name, data_of[recipe])["dev_file"]
        more = data_of[name] if name == "triples" else {}
        return whole(recipe, **keys, **more), file, get_predictor(recipe).labeled.read_file(file)

    return trained


def items_of(examples):
    return [getattr(one, "texts", one.text) for one in examples]


def as_predicted(record, example):
    """A record of a predictor in the form of ``predictions_dev.jsonl``."""
    if "scores" in record:
        closer, farther = record["scores"] if example.label == 1 else record["scores"][::-1]
        return {"where": example.where, "closer": closer, "farther": farther}
    if "score" in record:
        return {"where": example.where, "label": example.label, "score": record["score"]}
    return {**record, "gold": example.label} if "label" in record else record


@pytest.mark.parametrize("name", MODELS)
def test_python_and_the_verbs_in_any_batches_give_what_training_has_scored(trained, name, tmp_path):
    run, file, examples = trained(name)
    items, words = items_of(examples), ["--output", str(tmp_path / "out"), "--device", "cpu"]
    records = load(run / "model", device="cpu")(items)
    assert read_json_lines(run / "predictions_dev.jsonl") == like(list(map(as_predicted, records, examples)))
    for size in (1, 3):
        assert load(run / "model", device="cpu", batch_size=size)(items) == like(records)
    assert main(["predict", str(run / "model"), "--input", file, *words, "--batch_size", "1"]) == 0
    assert read_json_lines(tmp_path / "out") == like(records)
    assert main(["evaluate", str(run / "model"), file, *words]) == 0
    scores = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    assert len(scores.pop("worst_examples", range(5))) == 5
    assert scores == like(json.loads((run / "metrics.json").read_text(encoding="utf-8"))["dev"])
    assert load(run / "model", device="cpu")([]) == []


THREADS, ROUNDS = 8, 4


@pytest.mark.parametrize("name", [*MODELS, *FORMATS, "ensemble"])
def test_threads_that_share_a_predictor_get_what_one_caller_gets(trained, name, tmp_path):
    run, _, examples = trained(name if name in MODELS else "ner")
    model = export(tmp_path / "exported", name, run / "model") if name in FORMATS else run / "model"
    predictor = get_predictor("ner")([model] * 2, "cpu") if name == "ensemble" else load(model, device="cpu")
    items = items_of(examples)
    parts = [items[place % len(items) :][:2] for place in range(THREADS)] * ROUNDS
    alone = list(map(predictor, parts))
    assert len({str(one) for one in alone}) > 4, "results could be exchanged"
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(predictor, parts)) == like(alone)
    layers = [predictor.model, *getattr(predictor.model, "sublayers", list)()]
    assert not any(getattr(layer, "training", False) for layer in layers)
