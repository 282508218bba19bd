"""Training one model: repeatable, and the same after an interruption."""

import numpy as np
import paddle
import pytest

from paddle_rope.roformer import RoFormerForCausalLM, load_tokenizer
from tasks.common.errors import InputError
from tasks.language_model.corpus import TrainingBatches, learning_rate_share, make_optimizer
from tasks.language_model.evaluation import held_out_losses
from tasks.language_model.recipe import LanguageModelRecipe
from tests.helpers import runs
from tests.tasks.language_model.conftest import TINY

TIMES = ("train_seconds", "seconds_per_step")


@pytest.fixture
def train(tmp_path):
    """``train(name, key=value ...)`` -> what ``metrics.json`` has."""

    def train(name, **options):
        return LanguageModelRecipe().train({**TINY, "seed": 1, "output_dir": str(tmp_path / name), **options})

    return train


@pytest.mark.parametrize(
    "options",
    [
        {"rotary_learned": True, "evaluation_times": "1,4"},
        {"attention": "linear", "feature_map": "favor"},
        {"eval_steps": 3, "logging_steps": 2, "gradient_accumulation_steps": 2},
    ],
    ids=str,
)
def test_interrupted_training_is_resumed_to_the_same_weights_and_losses(train, tmp_path, options):
    whole = train("whole", **options)
    with runs.power_cut(4):
        train("cut", **options)
    resumed = LanguageModelRecipe().resume(tmp_path / "cut")
    assert {**resumed, **dict.fromkeys(TIMES)} == {**whole, **dict.fromkeys(TIMES)}
    models = [(tmp_path / name / "model/model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert models[0] == models[1]
    losses = [(step, pytest.approx(loss)) for step, loss in whole["held_out"]]
    assert [runs.curve(tmp_path / name, "dev/loss") for name in ("cut", "whole")] == [losses, losses]


def test_run_leaves_its_losses_and_a_model_that_has_them(train, tmp_path, corpus):
    metrics = train("run", max_steps=5)
    left = runs.left_by(tmp_path / "run")
    assert left.metrics == metrics
    assert [step for step, _ in metrics["training"]] == [1, 2, 3, 4, 5]
    assert [step for step, _ in metrics["held_out"]] == [2, 4, 5]  # also after the last step
    assert metrics["training"][-1][1] < metrics["training"][0][1]
    assert runs.curve(left.folder, "1_train/loss") == [(n, pytest.approx(loss)) for n, loss in metrics["training"]]
    assert metrics["text"] == corpus.facts() and "paddlepaddle" in metrics["machine"]
    model = RoFormerForCausalLM.from_pretrained(left.model)
    assert model.config.causal and load_tokenizer(left.model).vocab == corpus.tokenizer.vocab
    assert held_out_losses(model, corpus.held_out, 8).mean() == pytest.approx(metrics["dev"]["loss"], rel=1e-6)


@pytest.mark.parametrize("placement", ["v", "none"])
def test_placements_start_from_the_same_weights(make_model, placement):
    weights = []
    for position_embedding in ("qk", placement):
        paddle.seed(1)
        weights.append(make_model(position_embedding=position_embedding).state_dict())
    for name, weight in weights[0].items():
        np.testing.assert_array_equal(weights[1][name].numpy(), weight.numpy(), err_msg=name)


def test_theta_rate_slows_the_frequencies_only(train):
    moves = []
    for rate in (1.0, 0.01):
        metrics = train(f"rate {rate}", theta_rate=rate, rotary_learned=True)
        moves.append(np.abs(np.subtract(metrics["theta_end"], metrics["theta_start"])).max())
    assert 0 < moves[1] < 0.02 * moves[0]


def test_scaled_embeddings_are_larger_where_they_go_in_and_not_where_they_score(train, tmp_path, corpus, monkeypatch):
    models = []
    monkeypatch.setattr("tasks.language_model.recipe.measure", lambda model, *_: models.append(model) or {})
    train("run", position_embedding="sinusoidal", scale_embeddings=True)
    (model,) = models
    model.eval()
    plain = RoFormerForCausalLM(model.config)
    plain.set_state_dict(model.state_dict())
    plain.eval()
    ids = paddle.to_tensor(corpus.held_out[:, :8])
    embedding = model.roformer.token_embedding
    np.testing.assert_allclose(embedding(ids).numpy(), 4 * embedding.weight.numpy()[ids.numpy()], rtol=1e-6)
    assert (model.lm_head(model.roformer(ids), embedding.weight).numpy() == model(ids).numpy()).all()
    assert np.abs(plain(ids).numpy() - model(ids).numpy()).max() > 1e-3
    assert not (tmp_path / "run/model").exists()  # its folder could not say that embeddings are scaled


def test_frequencies_do_not_decay_and_matrices_do(make_model, resolve):
    model = make_model(rotary_learned=True)
    optimizer, _ = make_optimizer(model, resolve(weight_decay=0.5).training)
    before = {name: weight.numpy().copy() for name, weight in model.state_dict().items()}
    for weight in model.parameters():
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    optimizer.step()
    kept = {name for name, weight in model.state_dict().items() if (before[name] == weight.numpy()).all()}
    assert kept == {"roformer.rotary.theta"}


def test_learning_rate_rises_then_falls_to_nothing(make_model, resolve):
    shares = [learning_rate_share(step, 3, 10) for step in range(1, 12)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0])
    assert learning_rate_share(1, 0, 10) == 1.0
    optimizer, schedule = make_optimizer(make_model(), resolve(learning_rate=2, warmup_steps=1, max_steps=3).training)
    rates = [optimizer.get_lr() for _ in range(3) if schedule.step() is None]
    np.testing.assert_allclose(rates, [2, 1, 0], atol=1e-6)  # the first step has gone by


def test_batches_are_windows_and_what_follows_them(corpus):
    batches = TrainingBatches(corpus, 2, 3, seed=1, batches_per_step=2)
    assert len(batches) == 6
    for index in (0, 5):
        windows, batch = corpus.training_windows(2, 1, index + 1), batches[index]
        assert (batch["input_ids"] == windows[:, :-1]).all() and (batch["labels"] == windows[:, 1:]).all()


@pytest.mark.parametrize(
    "given, said",
    [
        ({"max_steps": 0}, "max_steps must be greater than 0"),
        ({"eval_steps": 0}, "eval_steps must be greater than 0"),
        ({"length": 0}, "length must be greater than 0"),
        ({"text_files": None}, "'text_files'"),
        ({"hidden_size": 10, "num_attention_heads": 4}, "hidden_size 10"),
        ({"pretrained": "x"}, "key 'pretrained'"),
        ({"num_train_epochs": 3}, "'num_train_epochs' cannot be set"),
        ({"evaluation_times": "3"}, "evaluation_times must be some of 1, 2, 4"),
        ({"scaling_factors": "2,x"}, "scaling_factors must be a number"),
        ({"scaling_factors": "2", "hidden_size": 4}, "NTK scaling needs 4 or more"),
    ],
    ids=str,
)
def test_wrong_key_is_named(resolve, given, said):
    with pytest.raises(InputError, match=said):
        resolve(**given)


def test_missing_file_and_a_training_that_diverges_are_told(train, tmp_path):
    with pytest.raises(InputError, match="missing.txt: no such file"):
        train("run", text_files="missing.txt")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="lower learning_rate"):
        train("run", learning_rate=1e38, max_grad_norm=0, max_steps=60)
