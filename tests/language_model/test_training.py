"""Training one model: repeatable, and the same after an interruption."""

import dataclasses

import numpy as np
import paddle
import pytest
from visualdl import LogReader

from tasks.common.errors import InputError
from tasks.language_model import training
from tasks.language_model.training import learning_rate, train_language_model


def model_config(run, corpus, **options):
    return run.model_config(len(corpus.tokenizer), options)


@pytest.fixture
def train(run, corpus, tmp_path):
    def train(name, seed=1, theta_rate=1.0, scale_embeddings=False, **options):
        (tmp_path / name).mkdir(exist_ok=True)
        config = model_config(run, corpus, **options)
        return train_language_model(config, corpus, run, seed, tmp_path / name, theta_rate, scale_embeddings)

    return train


def weights(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def same(left, right):
    return left.keys() == right.keys() and all((left[name] == right[name]).all() for name in left)


@pytest.mark.parametrize("options", [{"rotary_learned": True}, {"attention": "linear", "feature_map": "favor"}])
def test_interrupted_training_goes_on_to_the_same_weights_and_losses(train, monkeypatch, tmp_path, options):
    whole, history = train("whole", **options)
    step = training._step
    calls = []

    def stop_at_the_fourth(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(training, "_step", stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        train("cut", **options)
    model, went_on = train("cut", **options)
    assert len(calls) == 4 + 4  # three steps were made, the checkpoint is of the second
    assert same(weights(model), weights(whole))
    assert went_on.training == history.training and went_on.held_out == history.held_out
    assert points(tmp_path / "cut") == points(tmp_path / "whole")


def points(folder):
    """The curves of the VisualDL log: {tag: [(step, value)]}."""
    (path,) = folder.glob("vdlrecords*")
    reader = LogReader(file_path=str(path))
    tags = reader.get_tags()["scalar"]
    return {tag: [(record.id, record.value) for record in reader.get_data("scalar", tag)] for tag in tags}


def test_history_and_log_hold_every_loss(train, tmp_path):
    _, history = train("run")
    assert [step for step, _ in history.training] == [1, 2, 3, 4, 5, 6]
    assert [step for step, _ in history.held_out] == [2, 4, 6]
    shown = points(tmp_path / "run")
    assert shown["train/loss"] == [(step, pytest.approx(loss)) for step, loss in history.training]
    assert set(shown) == {"train/loss", "train/learning_rate", "held_out/loss"}
    assert shown["held_out/loss"] == [(step, pytest.approx(loss)) for step, loss in history.held_out]


def test_finished_training_is_not_repeated(train, monkeypatch):
    model, _ = train("run")
    monkeypatch.setattr(training, "_step", None)
    again, _ = train("run")
    assert same(weights(again), weights(model))


def test_training_lowers_the_loss_and_seeds_differ(run, train):
    _, history = train("a")
    _, other = train("b", seed=2)
    assert history.training[-1][1] < history.training[0][1]
    assert other.held_out != history.held_out


def test_loss_that_is_not_a_number_ends_the_training_with_a_line(train, monkeypatch):
    monkeypatch.setattr(training, "_step", lambda *arguments: float("nan"))
    with pytest.raises(InputError, match="^run: the loss of step 1 is nan; lower learning_rate$"):
        train("run")


def test_placements_start_from_the_same_weights_and_see_the_same_texts(run, corpus, tmp_path, monkeypatch):
    seen = {}

    def look(model, optimizer, windows):
        seen.setdefault(model.config.position_embedding, (weights(model), windows))
        return 0.0

    monkeypatch.setattr(training, "_step", look)
    for placement in ("qk", "v", "none"):
        (tmp_path / placement).mkdir()
        config = model_config(run, corpus, position_embedding=placement)
        train_language_model(config, corpus, run, 1, tmp_path / placement)
    for placement in ("v", "none"):
        assert same(seen[placement][0], seen["qk"][0])
        assert (seen[placement][1] == seen["qk"][1]).all()


def test_theta_rate_slows_the_frequencies_only(run, corpus, train):
    start = training.RoFormerForCausalLM(model_config(run, corpus, rotary_learned=True)).roformer.rotary.theta.numpy()
    moves = {}
    for rate in (1.0, 0.01):
        model, _ = train(f"rate {rate}", theta_rate=rate, rotary_learned=True)
        moves[rate] = np.abs(model.roformer.rotary.theta.numpy() - start)
    assert (moves[1.0] > 0).all() and (moves[0.01] > 0).any()
    assert moves[0.01].max() < 0.02 * moves[1.0].max()


def test_scaled_embeddings_are_larger_where_they_go_in_and_not_where_they_score(train, corpus):
    model, _ = train("run", position_embedding="sinusoidal", scale_embeddings=True)
    plain = training.RoFormerForCausalLM(model.config)
    plain.set_state_dict(model.state_dict())
    plain.eval()
    ids = paddle.to_tensor(corpus.held_out[:, :8])
    embedding = model.roformer.token_embedding
    np.testing.assert_allclose(embedding(ids).numpy(), 4 * embedding.weight.numpy()[ids.numpy()], rtol=1e-6)
    hidden = model.roformer(ids)
    assert (model.lm_head(hidden, embedding.weight).numpy() == model(ids).numpy()).all()
    assert np.abs(plain(ids).numpy() - model(ids).numpy()).max() > 1e-3


def test_frequencies_do_not_decay_and_matrices_do(run, corpus):
    heavy = dataclasses.replace(run, weight_decay=0.5)
    model = training.RoFormerForCausalLM(model_config(run, corpus, rotary_learned=True))
    optimizer = training.make_optimizer(model, heavy, 1.0)
    before = weights(model)
    for weight in model.parameters():
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    optimizer.step()
    after = weights(model)
    kept = {name for name in before if (before[name] == after[name]).all()}
    assert kept == {"roformer.rotary.theta"}


def test_learning_rate_rises_then_falls_to_nothing(run):
    run = dataclasses.replace(run, steps=10, warmup_steps=3, learning_rate=1.0)
    rates = [learning_rate(run, step) for step in range(1, 12)]
    np.testing.assert_allclose(rates, [0.25, 0.5, 0.75, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0])
    constant_start = dataclasses.replace(run, warmup_steps=0)
    assert learning_rate(constant_start, 1) == 1.0


def test_windows_are_the_targets_shifted_by_one(run, corpus):
    model = training.RoFormerForCausalLM(model_config(run, corpus))
    windows = corpus.training_windows(2, 1, 1)
    logits = model(paddle.to_tensor(windows[:, :-1])).numpy().astype("float64")
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.take_along_axis(scores, windows[:, 1:, None], -1).mean()
    optimizer = training.make_optimizer(model, run, 1.0)
    assert training._step(model, optimizer, windows) == pytest.approx(expected, rel=1e-5)
