"""What users write that cannot be is refused in words: ``refusals.yaml``."""

import itertools
from functools import partial
from math import inf, nan
from pathlib import Path

import numpy as np
import paddle
import pytest
import yaml

import paddle_rope
from paddle_rope.attention.feature_maps import OnePlusCosine, OrthogonalRandomFeatures, SoftmaxExp
from paddle_rope.roformer.modeling import RoFormerCache
from tests.paddle_rope.attention.kernels import KERNELS, random_qkv
from tests.paddle_rope.roformer.small_models import FORMS, make
from tests.paddle_rope.roformer.test_tokenizer import CLASSES, VOCAB

REFUSED = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))


def whole(*shape):
    return paddle.ones(shape, dtype="int64")


def ids(*rows):
    return paddle.to_tensor(rows, dtype="int64")


def ones(*shape):
    return paddle.ones(shape)


def model(form):
    return make(paddle_rope.RoFormerModel, **FORMS[form])


def generate(**given):
    model = make(paddle_rope.RoFormerForCausalLM, position_embedding="learned", causal=True)
    return model.generate(**{"input_ids": whole(1, 3), **given})


def attend(name, dtype, **options):
    return KERNELS[name](*random_qkv(1, 5, dtype=dtype), **options)


def attending(*names):
    return [{"attend": partial(attend, *case)} for case in itertools.product(names, ("float32", "float64"))]


NAMES = {name: getattr(paddle_rope, name) for name in paddle_rope.__all__}
MORE = whole, ids, ones, model, generate, RoFormerCache, OnePlusCosine, OrthogonalRandomFeatures, SoftmaxExp
NAMES |= {one.__name__: one for one in MORE}
NAMES |= {"SIX": paddle_rope.RotaryPositionEmbedding(6), "np": np, "inf": inf, "nan": nan, "VOCAB": VOCAB}
EACH = {  # chapter -> the names of each round
    "attend": attending("softmax", "window", "linear", "causal linear"),
    "attend linearly": attending("causal linear", "recurrent linear"),
    "texts": [{"Tokenizer": one} for one in CLASSES],
    "spans": [{"Head": one} for one in (paddle_rope.GlobalPointer, paddle_rope.EfficientGlobalPointer)],
}


@pytest.mark.equation("1.8", "1.10", "1.18")
@pytest.mark.parametrize("chapter", REFUSED)
def test_what_cannot_be_is_refused_in_words(chapter):
    for names, (expression, words) in itertools.product(EACH.get(chapter, [{}]), REFUSED[chapter].items()):
        print(names, expression)  # pytest shows the one that is not refused
        with pytest.raises(ValueError, match=words):
            eval(expression, {**NAMES, **names})
