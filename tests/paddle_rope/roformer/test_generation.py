"""Causal language models token by token: caches, padding, drawing."""

from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerConfig, RoFormerForCausalLM, RoFormerModel
from paddle_rope.roformer.generation import generate
from tests.paddle_rope.roformer.small_models import randomise

SIZES = {
    "vocab_size": 31,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 10,
}
FORMS = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "window": {"attention": "window", "attention_window": 3},
    "window mixed": {"attention": ["linear", "window"], "attention_window": 2},
    "mixed": {"attention": ["linear", "softmax"]},
    "decay": {"attention": "linear", "causal": True, "decay": [0.9, 0.7, 1.0]},
    "favor": {"attention": "linear", "feature_map": "favor"},
    "cosine": {"attention": "linear", "feature_map": "one_plus_cosine", "normalizer": "rotated"},
    "no denominator": {"attention": "linear", "normalizer": "none"},
    "shared qkvo": {"position_embedding": "qkvo", "share_kv": True},
    "vo": {"position_embedding": "vo", "attention": ["softmax", "linear"]},
    "qkv": {"position_embedding": "qkv"},
    "sinusoidal": {"position_embedding": "sinusoidal", "attention": "linear"},
    "learned": {"position_embedding": "learned", "max_position_embeddings": 40},
    "alibi": {"position_embedding": "alibi"},
    "best": {
        "attention": "linear",
        "normalizer": "none",
        "decay": [0.9, 0.5, 1.0],
        "convolutions": True,
        "output_gate": True,
    },
    "convolutions": {"attention": ["softmax", "window"], "attention_window": 3, "convolutions": True},
    "shared convolutions": {"share_kv": True, "convolutions": True},
    "version 2": {"version": 2, "type_vocab_size": 2},
}
each_form = pytest.mark.parametrize("form", sorted(FORMS))


def make(**options):
    return randomise(RoFormerForCausalLM(RoFormerConfig(**{**SIZES, **options})), 0.5)


def random_ids(*shape):
    return paddle.to_tensor(np.random.randint(1, 31, shape))


@pytest.mark.equation("4.9")
@each_form
def test_a_cache_gives_the_hidden_states_of_the_whole(form):
    model = make(**FORMS[form]).roformer
    ids = random_ids(2, 11)
    outputs, cache, start = [], None, 0
    for length in (1, 5, 1, 1, 3):
        hidden, cache = model.forward_with_cache(ids[:, start : start + length], cache)
        outputs.append(hidden)
        start += length
    np.testing.assert_allclose(paddle.concat(outputs, axis=1).numpy(), model(ids).numpy(), rtol=0, atol=5e-5)
    assert cache.positions.tolist() == [list(range(11))] * 2


@pytest.mark.equation("4.9")
@each_form
def test_generated_tokens_are_those_without_a_cache(form):
    model = make(**FORMS[form])
    ids = random_ids(2, 6)
    generated = model.generate(ids, max_new_tokens=12)
    assert generated.shape == [2, 12]
    for _ in range(12):
        ids = paddle.concat([ids, model(ids)[:, -1].argmax(axis=-1, keepdim=True)], axis=1)
    assert generated.tolist() == ids[:, 6:].tolist()


@each_form
def test_a_text_padded_on_the_left_goes_on_as_it_does_alone(form):
    model = make(**FORMS[form])
    ids = random_ids(2, 9)
    mask = paddle.to_tensor(np.arange(9) >= np.array([[4], [0]]))
    together = model.generate(ids, mask, max_new_tokens=10)
    alone = [model.generate(ids[:1, 4:], max_new_tokens=10), model.generate(ids[1:], max_new_tokens=10)]
    assert together.tolist() == [alone[0][0].tolist(), alone[1][0].tolist()]


def test_the_state_of_linear_attention_does_not_grow():
    model = make(attention="linear", convolutions=True).roformer
    _, cache = model.forward_with_cache(random_ids(1, 5))
    sizes = [one.shape for one in paddle.utils.flatten(cache.layers) if isinstance(one, paddle.Tensor)]
    for _ in range(20):
        _, cache = model.forward_with_cache(random_ids(1, 1), cache)
    assert [one.shape for one in paddle.utils.flatten(cache.layers) if isinstance(one, paddle.Tensor)] == sizes


def test_drawing_repeats_with_its_seed_and_follows_temperature_and_top_p():
    model = make()
    ids = random_ids(1, 4).expand([400, 4])
    drawn = model.generate(ids, max_new_tokens=1, temperature=1.0, seed=3)
    assert drawn.tolist() == model.generate(ids, max_new_tokens=1, temperature=1.0, seed=3).tolist()
    assert drawn.tolist() != model.generate(ids, max_new_tokens=1, temperature=1.0, seed=4).tolist()
    logits = model(ids[:1])[0, -1].numpy().astype("float64")
    exact = np.exp(logits) / np.exp(logits).sum()
    share = np.bincount(drawn.numpy()[:, 0], minlength=31) / 400
    assert np.abs(share - exact).max() < 0.1
    order = np.argsort(-exact)
    kept = order[: int((np.cumsum(exact[order]) - exact[order] < 0.5).sum())]
    assert len(kept) < 31
    within = model.generate(ids, max_new_tokens=1, temperature=1.0, top_p=0.5, seed=5).numpy()[:, 0]
    assert set(within) <= set(kept.tolist()) and (len(kept) == 1 or len(set(within)) > 1)
    cold = model.generate(ids, max_new_tokens=1, temperature=1e-4, seed=6).numpy()
    assert (cold == order[0]).all()


def test_a_text_ends_with_its_end_token_and_is_filled_with_padding():
    model = make()
    ids = random_ids(3, 5)
    free = model.generate(ids, max_new_tokens=8).numpy()
    end = int(free[0, 2])
    cut = model.generate(ids, max_new_tokens=8, eos_token_id=end).numpy()
    for row, whole in zip(cut, free):
        stop = whole.tolist().index(end) + 1 if end in whole else len(whole)
        assert row[:stop].tolist() == whole[: min(stop, cut.shape[1])].tolist()
        assert (row[stop:] == 0).all()


class Scripted:
    """A model whose scores are given: ``[steps, batch, vocab]``, one step after the other."""

    config = SimpleNamespace(pad_token_id=9)

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype="float32")

    def forward_with_cache(self, input_ids, cache, attention_mask=None):
        step = cache or 0
        return paddle.to_tensor(self.scores[step]), step + 1


def best(*tokens):
    """Scores of which the best are these, ``[batch]`` in each step."""
    return np.eye(10)[np.array(tokens)]


def test_the_others_go_on_when_a_text_ends_and_it_ends_in_padding():
    model = Scripted(best([1, 2], [3, 4], [5, 6], [7, 3], [8, 8]))
    assert generate(model, random_ids(2, 2), max_new_tokens=5, eos_token_id=3).tolist() == [[1, 3, 9, 9], [2, 4, 6, 3]]
    assert generate(model, random_ids(2, 2), max_new_tokens=3, eos_token_id=3).tolist() == [[1, 3, 9], [2, 4, 6]]


def test_top_p_takes_no_token_beyond_those_that_hold_it_exactly():
    # of four equal tokens two hold one half
    model = Scripted(np.zeros((1, 200, 4)))
    drawn = generate(model, random_ids(200, 1), max_new_tokens=1, temperature=1.0, top_p=0.5, seed=1)
    assert set(drawn.flatten().tolist()) == {0, 1}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"attention_mask": paddle.to_tensor([[1, 1, 0]])}, "pad on the left"),
    ],
    ids=str,
)
def test_impossible_arguments_are_an_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        make().generate(random_ids(1, 3), **arguments)


def test_only_causal_models_go_on():
    with pytest.raises(ValueError, match="causal=True"):
        RoFormerModel(RoFormerConfig(**SIZES)).forward_with_cache(random_ids(1, 3))
    with pytest.raises(ValueError, match="learned positions go from 0 to 39"):
        make(**FORMS["learned"]).generate(random_ids(1, 38), max_new_tokens=4)
