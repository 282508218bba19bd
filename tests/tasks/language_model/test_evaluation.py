"""Held-out losses at several lengths, and scaled frequencies."""

import numpy as np
import paddle
import pytest

from tasks.language_model import evaluation
from tasks.language_model.evaluation import held_out_losses, measure, with_scaling


@pytest.fixture
def model(make_model):
    model = make_model()
    for weight in model.parameters():
        weight.set_value(paddle.randn(weight.shape) * 0.5)  # so that positions make a difference
    return model


def test_losses_are_those_of_the_model_on_each_text(model, corpus, monkeypatch):
    monkeypatch.setattr(evaluation, "TOKENS_A_BATCH", 80)
    losses = held_out_losses(model, corpus.held_out, 32)
    for text, of_text in zip(corpus.held_out, losses):
        loss, _ = model(paddle.to_tensor(text[None, :-1]), labels=paddle.to_tensor(text[None, 1:]))
        assert of_text.mean() == pytest.approx(loss.item(), rel=1e-5)


def test_a_longer_text_begins_as_the_shorter_one_does(model, corpus):
    short, long = (held_out_losses(model, corpus.held_out, length) for length in (8, 32))
    assert short.size == long.size
    np.testing.assert_allclose(long[:, :8], short[::4], rtol=1e-4, atol=1e-5)
    assert np.abs(long[:, 8:16] - short[1::4]).max() > 1e-3  # these have something before them


def test_scaling_keeps_the_weights_and_turns_more_slowly(model, corpus):
    assert with_scaling(model, None) is model
    plain = held_out_losses(model, corpus.held_out, 32)
    unscaled = with_scaling(model, {"type": "ntk", "factor": 1})
    np.testing.assert_allclose(held_out_losses(unscaled, corpus.held_out, 32), plain, rtol=1e-5, atol=1e-6)
    scaled = with_scaling(model, {"type": "yarn", "factor": 4, "original_length": 8})
    for name, weight in model.state_dict().items():
        assert (scaled.state_dict()[name].numpy() == weight.numpy()).all()
    assert (scaled.roformer.rotary.theta <= model.roformer.rotary.theta).all()
    assert np.abs(held_out_losses(scaled, corpus.held_out, 32) - plain).max() > 1e-3
    assert model.config.rotary is None


def test_losses_are_measured_at_the_lengths_and_scalings_that_the_keys_name(model, corpus, resolve):
    assert measure(model, corpus.held_out, resolve().keys) == {}
    keys = resolve(evaluation_times=[1, 4], scaling_factors="2,1.5").keys
    entries = measure(model, corpus.held_out, keys)["lengths"]
    scalings = ("none", "NTK x2", "YaRN x2", "NTK x1.5", "YaRN x1.5")
    assert [(entry["scaling"], entry["length"]) for entry in entries] == [
        (name, n) for name in scalings for n in (8, 32)
    ]
    for entry in entries[:2]:
        losses = held_out_losses(model, corpus.held_out, entry["length"])
        assert entry["loss"] == pytest.approx(losses.mean()) == pytest.approx(np.mean(entry["by_position"]))
    assert [len(entry["by_position"]) for entry in entries[:2]] == [4, 16]
    assert len({entry["loss"] for entry in entries[1::2]}) == 5
