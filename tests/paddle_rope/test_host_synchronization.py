"""Forward passes and losses fetch no value of a tensor: on a GPU each fetch would wait for all that was queued."""

import itertools

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification, backend, layers
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import SIZES

FETCHES = {
    paddle.Tensor: ("numpy", "item", "tolist", "__float__", "__int__", "__bool__", "__index__", "__array__"),
    paddle: ("nonzero", "masked_select", "unique"),  # the sizes of which are fetched
}
IDS, MASK = paddle.randint(1, SIZES["vocab_size"], [3, 9]), paddle.to_tensor(np.arange(9) < np.array([[9], [4], [7]]))
SPANS = paddle.to_tensor([[[0, 1, 2], [-1, 0, 0]], [[1, 0, 0], [1, 2, 3]], [[0, 1, 2], [0, 1, 2]]])
OF_NER, TYPES = {"token_mask": MASK, "labels": SPANS}, {"types": ["a", "b"], "head_size": 4}
OF_TOKENS = {"labels": IDS, "labeled": paddle.arange(27)}  # else the host waits for the number of labeled tokens
MODELS = {  # the model, its options, what it is called with
    "entities": (NerModel, TYPES, OF_NER),
    "entities of a band": (NerModel, {**TYPES, "max_span_length": 3}, OF_NER),
    "masked": (RoFormerForMaskedLM, {}, OF_TOKENS),
    "learned positions": (RoFormerForMaskedLM, {"position_embedding": "learned"}, OF_TOKENS),
    "packed": (RoFormerForMaskedLM, {}, {**OF_TOKENS, "segment_ids": paddle.arange(27).reshape([3, 9]) // 4}),
    "causal": (RoFormerForCausalLM, {"causal": True}, OF_TOKENS),
    "classes": (RoFormerForSequenceClassification, {"num_labels": 3}, {"labels": paddle.to_tensor([0, 1, 2])}),
}
ATTENTION = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "all": {"attention": "linear", "normalizer": "none", "decay": [0.5, 0.9, 1.0], "output_gate": True},
    "window": {"attention": "window", "attention_window": 2},
}


def counted(name, original, found):
    """A function that also adds its name to ``found``."""
    return lambda *arguments, **options: found.append(name) or original(*arguments, **options)


@pytest.mark.parametrize("name, attention", [
    *((name, "softmax") for name in MODELS),
    *itertools.product(("masked", "packed", "causal"), ("linear", "all", "window")),
])  # fmt: skip
@plain_forms()  # as a GPU has them
def test_a_training_step_fetches_no_value(name, attention, monkeypatch):
    for module in (backend, layers):  # as on another device
        monkeypatch.setattr(module, "computes_on_cpu", lambda: False)
    kind, options, given = MODELS[name]
    config = NerConfig if kind is NerModel else kind.config_class
    model = kind(config(**SIZES, **options, **ATTENTION[attention]))
    model.train()
    model(IDS, MASK, **given)  # tables are made at the first use
    found = []
    for owner, names in FETCHES.items():
        for name in names:
            monkeypatch.setattr(owner, name, counted(name, getattr(owner, name), found))
    result = model(IDS, MASK, **given)
    loss = result[0] if isinstance(result, tuple) else result
    loss.mean().backward()
    assert found == []
    float(loss.mean())
    assert found
