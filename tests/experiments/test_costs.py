"""Costs on paper are those that a model has."""

import paddle
import pytest

from paddle_rope.native.library import plain_forms
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.costs import check, corpus, paper
from tasks.experiments.benchmarks.sizes import layers_and_hidden
from tasks.ner.model import NerModel

OPTIONS = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "window of a short text": {"attention": "window", "attention_window": 40},
    "window": {"attention": "window", "attention_window": 5},
    "two kinds": {"attention": ["linear", "softmax"]},
    "band": {"max_span_length": 7},
    "dense": {"span_head": "dense"},
    "dense band": {"span_head": "dense", "max_span_length": 50},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_products_are_those_that_a_model_computes(name):
    config = paper.made_config((2, 64), types=3, **OPTIONS[name])
    model = NerModel(config)
    model.eval()
    ids, seen = paddle.ones([2, 70], dtype="int64"), paddle.ones([2, 70], dtype="bool")
    with plain_forms(), check.counted_products() as found, paddle.no_grad():
        model(ids, seen, seen)
    expected = paper.products(config, 2, 70)
    assert sum(product.flops for product in found) == sum(product.flops for product in expected)
    if name != "dense":  # whose one product of all types is read once
        assert sum(product.numbers for product in found) == sum(product.numbers for product in expected)
    weights = sum(weight.size for weight in model.parameters())
    assert paper.parameters(config) == pytest.approx(weights, rel=0.02)


def test_operations_grow_with_the_square_of_the_length_only_where_every_pair_is_seen():
    def flops(tokens, **options):
        return paper.costs(paper.made_config((4, 256), **options), 1, tokens).flops

    for options in ({"attention": "linear"}, {"attention": "linear", "types": 3, "max_span_length": 32}):
        assert flops(2**16, **options) == 2 * flops(2**15, **options)
    assert flops(2**16) > 3.5 * flops(2**15)
    assert flops(2**16, attention="linear", types=3) > 2.1 * flops(2**15, attention="linear", types=3)


def test_each_measurement_stands_beside_its_own_estimate(monkeypatch):
    monkeypatch.setattr(check, "_measured", lambda case: (10**9, 4e9 if case["trains"] else 1e9))
    expected = paper.costs(paper.made_config((2, 64)), 1, 512)
    *_, row = check.check_table((2, 64), ["softmax"], [512], 1).strip().splitlines()
    predicting, training = (f"{size / 1e9:.2f}" for size in (expected.prediction_bytes, expected.training_bytes / 4))
    assert predicting != training
    assert row.endswith(f"| 1.00 | {predicting} | 4.00 | {training} |")


def test_an_estimate_goes_with_the_corpus_and_against_the_gpus():
    one = corpus.pretraining_estimate((12, 768), 100, 8, 312, 0.4, 32, 512)
    more = corpus.pretraining_estimate((12, 768), 200, 4, 312, 0.4, 32, 512)
    assert more.hours == pytest.approx(4 * one.hours) and more.tokens == 2 * one.tokens
    assert more.gpu_bytes == one.gpu_bytes > 16 * paper.parameters(paper.made_config((12, 768)))
    weights = 12 * 12 * 768**2  # six operations for each of them and token are the least
    assert 6 * weights < one.flops / one.tokens < 1.5 * 6 * weights


@pytest.mark.parametrize("size", ["12", "12x", "0x64", "2x100"])
def test_a_size_that_cannot_be_read_is_told(size):
    with pytest.raises(InputError, match=size):
        layers_and_hidden(size)
