"""Causal language models token by token: caches, padding, drawing."""

from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerForCausalLM, RoFormerModel
from paddle_rope.roformer.generation import generate
from tests.paddle_rope.roformer.small_models import FORMS, make, random_ids

CAUSAL = {name: {**options, "causal": True} for name, options in FORMS.items() if name != "softmax exp"}
each_form = pytest.mark.parametrize("form", CAUSAL)


@pytest.mark.equation("4.9")
@each_form
def test_a_cache_gives_the_hidden_states_of_the_whole(form):
    model = make(RoFormerModel, **CAUSAL[form])
    ids = random_ids(2, 11)
    outputs, cache, start = [], None, 0
    for length in (1, 5, 1, 1, 3):
        hidden, cache = model.forward_with_cache(ids[:, start : start + length], cache)
        outputs.append(hidden)
        start += length
    np.testing.assert_allclose(paddle.concat(outputs, axis=1).numpy(), model(ids).numpy(), rtol=0, atol=1e-4)


@pytest.mark.equation("4.9")
@each_form
def test_generated_tokens_are_those_without_a_cache_also_under_left_padding(form):
    model = make(RoFormerForCausalLM, **CAUSAL[form])
    ids = random_ids(2, 6)
    generated = model.generate(ids, max_new_tokens=10)
    mask = paddle.to_tensor(np.arange(9) >= np.array([[3], [3]]))
    padded = model.generate(paddle.concat([random_ids(2, 3), ids], axis=1), mask, max_new_tokens=10)
    for _ in range(10):
        ids = paddle.concat([ids, model(ids)[:, -1].argmax(axis=-1, keepdim=True)], axis=1)
    assert generated.tolist() == padded.tolist() == ids[:, 6:].tolist()


def test_the_state_of_linear_attention_does_not_grow():
    def sizes(cache):
        return [one.shape for one in paddle.utils.flatten(cache.layers) if isinstance(one, paddle.Tensor)]

    model = make(RoFormerModel, attention="linear", convolutions=True, causal=True)
    _, first = model.forward_with_cache(random_ids(1, 5))
    cache = first
    for _ in range(20):
        _, cache = model.forward_with_cache(random_ids(1, 1), cache)
    assert sizes(cache) == sizes(first)


class Scripted:
    """A model whose scores are given: ``[steps, batch, vocab]``, one step after the other."""

    config = SimpleNamespace(pad_token_id=9)

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype="float32")

    def forward_with_cache(self, input_ids, cache, attention_mask=None):
        step = cache or 0
        return paddle.to_tensor(self.scores[step]), step + 1


def test_drawing_repeats_with_its_seed_and_follows_temperature():
    exact = np.array([0.5, 0.3, 0.15, 0.05])
    model, ids = Scripted(np.log(exact) * np.ones((1, 2000, 1))), random_ids(2000, 1)

    def drawn(**options):
        return generate(model, ids, max_new_tokens=1, **options).numpy()[:, 0]

    first = drawn(temperature=1.0, seed=3)
    assert (drawn(temperature=1.0, seed=3) == first).all() and (drawn(temperature=1.0, seed=4) != first).any()
    for temperature in (1.0, 2.0):
        expected = exact ** (1 / temperature)
        share = np.bincount(drawn(temperature=temperature, seed=5), minlength=4) / 2000
        np.testing.assert_allclose(share, expected / expected.sum(), atol=0.04)
    assert (drawn(temperature=1e-4, seed=6) == 0).all() and (drawn() == 0).all()


@pytest.mark.parametrize(
    "probabilities, top_p, kept",
    [
        ([0.25, 0.5, 0.125, 0.125], 0.45, {1}),
        ([0.25, 0.5, 0.125, 0.125], 0.7, {0, 1}),
        ([0.25, 0.5, 0.125, 0.125], 1.0, {0, 1, 2, 3}),
        ([1, 1, 1, 1], 0.5, {0, 1}),  # two of four hold exactly one half
        ([1, 1, 1, 1], 0.51, {0, 1, 2}),
    ],
)
def test_top_p_keeps_the_fewest_tokens_that_hold_it(probabilities, top_p, kept):
    model = Scripted(np.log([[probabilities]]) * np.ones((1, 500, 1)))
    drawn = generate(model, random_ids(500, 1), max_new_tokens=1, temperature=1.0, top_p=top_p, seed=1).numpy()
    assert set(drawn[:, 0]) == kept


def test_a_text_ends_with_its_end_token_in_padding_and_the_others_go_on():
    best = np.eye(10)[np.array([[1, 2], [3, 4], [5, 6], [7, 3], [8, 8]])]  # [steps, batch, vocab]
    for steps, expected in ((5, [[1, 3, 9, 9], [2, 4, 6, 3]]), (3, [[1, 3, 9], [2, 4, 6]])):
        tokens = generate(Scripted(best), random_ids(2, 2), max_new_tokens=steps, eos_token_id=3)
        assert tokens.tolist() == expected


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"attention_mask": paddle.to_tensor([[1, 1, 0]])}, "pad on the left"),
        ({"input_ids": paddle.zeros([1, 0], "int64")}, "at least one token"),
        ({"max_new_tokens": 39}, "positions go from 0 to 39"),
    ],
    ids=str,
)
def test_impossible_arguments_are_an_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        make(RoFormerForCausalLM, **CAUSAL["learned"]).generate(**{"input_ids": random_ids(1, 3), **arguments})


def test_only_causal_models_continue_from_a_cache():
    with pytest.raises(ValueError, match="causal=True"):
        make(RoFormerModel).forward_with_cache(random_ids(1, 3))
