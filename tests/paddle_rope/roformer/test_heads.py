"""Heads of RoFormer: language models, their generation of text token by token, classification."""

from types import SimpleNamespace

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_rope import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification, RoFormerModel
from paddle_rope.roformer.modeling import RoFormerCache
from tests.helpers.comparison import assert_close
from tests.paddle_rope.roformer.small_models import FORMS, make, random_ids

CAUSAL = {name: {**options, "causal": True} for name, options in FORMS.items() if name != "softmax exp"}


@pytest.mark.equation("5.3")
@pytest.mark.parametrize("options", [{}, {"version": 2}, {"version": 2, "embedding_size": 8}, {"embedding_size": 8}])
def test_logits_and_loss_of_a_language_model_equal_their_equations(options):
    model = make(RoFormerForMaskedLM, **options)
    ids, labels = random_ids(2, 6), np.full((2, 6), -100)
    x, table, head = model.roformer(ids), model.roformer.token_embedding.weight, dict(model.lm_head.named_parameters())
    if options.get("version") == 2:
        assert list(head) == ["dense.weight"] * ("embedding_size" in options)
        expected = paddle.matmul(paddle.matmul(x, head["dense.weight"]) if head else x, table.t())
    else:
        x = F.gelu(paddle.matmul(x, head["dense.weight"]) + head["dense.bias"])
        expected = paddle.matmul(model.lm_head.norm(x), table.t()) + head["bias"]
    logits = model(ids).numpy()
    assert_close(logits, expected, 1e-4)
    places = [(0, 1), (1, 0), (1, 4)]
    for place, label in zip(places, (3, 22, 0)):
        labels[place] = label
    loss, chosen = model(ids, labels=paddle.to_tensor(labels))
    assert_close(chosen, [logits[place] for place in places], 1e-5)
    exact = [np.log(np.exp(logits[place]).sum()) - logits[place][labels[place]] for place in places]
    np.testing.assert_allclose(float(loss), np.mean(exact), rtol=1e-5)
    loss.backward()
    assert float(table.grad.abs().max()) > 0
    with pytest.raises(ValueError, match="no token is labeled"):
        model(ids, labels=paddle.full([2, 6], -100))


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_a_classifier_pools_real_tokens_and_drops_before_each_of_its_layers(pooling, activation):
    model = make(RoFormerForSequenceClassification, pooling=pooling, num_labels=4, classifier_activation=activation)
    ids, labels = random_ids(2, 6), paddle.to_tensor([3, 0])
    mask = paddle.to_tensor([[0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
    model.classifier.dropout.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    loss, logits = model(ids, mask, labels=labels)
    assert_close(model(ids[1:]), logits[1:], 1e-5)  # without a mask
    hidden = model.roformer(ids[:1, 1:5])[0]
    pooled = 2 * (hidden[0] if pooling == "first" else hidden.mean(axis=0))
    weights = dict(model.classifier.named_parameters())
    inner = paddle.matmul(pooled.unsqueeze(0), weights["dense.weight"]) + weights["dense.bias"]
    inner = 2 * (paddle.tanh(inner) if activation == "tanh" else F.gelu(inner))
    assert_close(logits[:1], paddle.matmul(inner, weights["output.weight"]) + weights["output.bias"], 2e-5)
    np.testing.assert_allclose(float(loss), float(F.cross_entropy(logits, labels)), rtol=1e-6)


# ---- generation
@pytest.mark.equation("2.12", "2.13", "4.7", "4.9")
@pytest.mark.parametrize("form", CAUSAL)
def test_a_cache_gives_the_hidden_states_of_the_whole(form, monkeypatch):
    monkeypatch.setattr("paddle_rope.attention.steps._GROWTH", 3)
    model, ids = make(RoFormerModel, **CAUSAL[form]), random_ids(2, 11)
    whole = model(ids)
    for pieces, padding in (((1, 5, 1, 1, 3), 0), ((4, 7), 0), ((5, 1, 8), 3)):
        text, mask = paddle.concat([random_ids(2, padding), ids], axis=1), paddle.arange(11 + padding) >= padding
        outputs, cache, start = [], RoFormerCache(), 0
        for length in pieces:
            new = slice(start, start + length)
            given = mask[new].tile([2, 1]) if padding else None
            outputs.append(model(text[:, new], given, cache=cache))
            start += length
        assert_close(paddle.concat(outputs, axis=1)[:, padding:], whole, 1e-4)
    for index, block in enumerate(model.blocks):
        if block.attention.kind == "window":
            assert cache.layers[index]["state"].keys.shape[2] == min(model.config.attention_window, 14)


@pytest.mark.parametrize("form", ["mixed", "window mixed", "causal, all"])
def test_generation_takes_the_best_token_of_the_whole_text_each_time(form):
    model, ids = make(RoFormerForCausalLM, **CAUSAL[form]), random_ids(2, 6)
    generated = model.generate(ids, max_new_tokens=10)
    mask = paddle.to_tensor(np.arange(9) >= np.array([[3], [3]]))
    padded = model.generate(paddle.concat([random_ids(2, 3), ids], axis=1), mask, max_new_tokens=10)
    for _ in range(10):
        ids = paddle.concat([ids, model(ids)[:, -1].argmax(axis=-1, keepdim=True)], axis=1)
    assert generated.tolist() == padded.tolist() == ids[:, 6:].tolist()


class Scripted:
    """A model whose scores are given: ``[steps, batch, vocab]``, one step after the other."""

    config = SimpleNamespace(pad_token_id=9)

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype="float32")

    def __call__(self, input_ids, attention_mask, cache):
        cache.length += 1
        return paddle.to_tensor(self.scores[cache.length - 1]).unsqueeze(1)


def drawn(probabilities, count=2000, **options):
    model = Scripted(np.log([[probabilities]]) * np.ones((1, count, 1)))
    return RoFormerForCausalLM.generate(model, random_ids(count, 1), max_new_tokens=1, **options).numpy()[:, 0]


def test_drawing_repeats_with_its_seed_and_follows_temperature():
    exact = np.array([0.5, 0.3, 0.15, 0.05])
    one, same, other = (drawn(exact, temperature=1.0, seed=seed) for seed in (3, 3, 4))
    assert (one == same).all() and (one != other).any()
    for temperature in (1.0, 2.0):
        expected = exact ** (1 / temperature)
        share = np.bincount(drawn(exact, temperature=temperature, seed=5), minlength=4) / 2000
        np.testing.assert_allclose(share, expected / expected.sum(), atol=0.04)
    assert (drawn(exact, temperature=1e-4, seed=6) == 0).all() and (drawn(exact) == 0).all()


@pytest.mark.parametrize("probabilities, top_p, kept", [
    *(([0.25, 0.5, 0.125, 0.125], *case) for case in ((0.45, {1}), (0.7, {0, 1}), (1.0, {0, 1, 2, 3}))),
    *(([1, 1, 1, 1], *case) for case in ((0.5, {0, 1}), (0.51, {0, 1, 2}))),  # two of four hold exactly one half
])  # fmt: skip
def test_top_p_keeps_the_fewest_tokens_that_hold_it(probabilities, top_p, kept):
    assert set(drawn(probabilities, 500, temperature=1.0, top_p=top_p, seed=1)) == kept


def test_a_text_ends_with_its_end_token_in_padding_and_the_others_go_on():
    best = np.eye(10)[np.array([[1, 2], [3, 4], [5, 6], [7, 3], [8, 8]])]  # [steps, batch, vocab]
    for steps, expected in ((5, [[1, 3, 9, 9], [2, 4, 6, 3]]), (3, [[1, 3, 9], [2, 4, 6]])):
        tokens = RoFormerForCausalLM.generate(Scripted(best), random_ids(2, 2), max_new_tokens=steps, eos_token_id=3)
        assert tokens.tolist() == expected
