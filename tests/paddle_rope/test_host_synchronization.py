"""Forward passes and losses fetch no value of a tensor: on a GPU each fetch would wait for all that was queued."""

import contextlib
from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import (
    RoFormerForCausalLM,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    layers,
    positions,
)
from paddle_rope.attention import arguments, linear
from paddle_rope.global_pointer import losses
from tasks.ner.batching import SpanCollator
from tasks.ner.examples import TokenizedText
from tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import SIZES

FETCHES = ("numpy", "item", "tolist", "__float__", "__int__", "__bool__", "__index__", "__array__")


@contextlib.contextmanager
def counted_fetches():
    """The fetches of values while the block runs, by name."""
    found = []

    def counted(name, original):
        def fetch(self, *arguments, **options):
            found.append(name)
            return original(self, *arguments, **options)

        return fetch

    with pytest.MonkeyPatch.context() as patch:
        for name in FETCHES:
            patch.setattr(paddle.Tensor, name, counted(name, getattr(paddle.Tensor, name)))
        for name in ("nonzero", "masked_select", "unique"):  # the sizes of which are fetched
            patch.setattr(paddle, name, counted(name, getattr(paddle, name)))
        yield found


@pytest.fixture(autouse=True)
def as_on_another_device(monkeypatch):
    """What the layers do on CPU alone, such as numpy's random numbers, they leave to Paddle."""
    for module in (layers, losses, arguments, linear, positions):
        monkeypatch.setattr(module, "computes_on_cpu", lambda: False)


def tokens(batch=3, seq=9):
    mask = np.arange(seq) < np.array([[9], [4], [7]])
    return paddle.randint(1, SIZES["vocab_size"], [batch, seq]), paddle.to_tensor(mask)


def entities(**options):
    texts = [TokenizedText([3] * size, [(i, i + 1) for i in range(size)], [(0, 1, 2)]) for size in (5, 9)]
    batch = {name: paddle.to_tensor(value) for name, value in SpanCollator(0)(texts).items()}
    model = NerModel(NerConfig(types=["a", "b"], head_size=4, **SIZES, **options))
    return model, lambda: model(**batch)


def of_tokens(kind, packed=False, **options):
    (ids, mask), model = tokens(), kind(kind.config_class(**SIZES, **options))
    given = {"attention_mask": mask, "labels": ids, "labeled": paddle.arange(27)}
    if packed:
        segments = np.arange(27).reshape(3, 9) // 4
        given["segment_ids"] = paddle.to_tensor(segments)
        given["cu_seqlens"] = paddle.to_tensor(arguments.cumulative_lengths(segments))
    return model, lambda: model(ids, **given)


def classes(**options):
    kind = RoFormerForSequenceClassification
    (ids, mask), model = tokens(), kind(kind.config_class(**SIZES, num_labels=3, **options))
    return model, lambda: model(ids, mask, labels=paddle.to_tensor([0, 1, 2]))


MODELS = {
    "entities": entities,
    "entities of a band": partial(entities, max_span_length=3),
    "masked": partial(of_tokens, RoFormerForMaskedLM),
    "packed": partial(of_tokens, RoFormerForMaskedLM, packed=True),
    "causal": partial(of_tokens, RoFormerForCausalLM, causal=True),
    "classes": classes,
}
ATTENTION = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "all": {"attention": "linear", "normalizer": "none", "decay": [0.5, 0.9, 1.0], "output_gate": True},
    "window": {"attention": "window", "attention_window": 2},
}


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_fetches_no_value(name, attention):
    model, call = MODELS[name](**ATTENTION[attention])
    model.train()
    call()  # tables are made at the first use
    with counted_fetches() as found:
        result = call()
        loss = result[0] if isinstance(result, tuple) else result
        loss.mean().backward()
    assert found == []
    with counted_fetches() as found:
        float(loss.mean())
    assert found
