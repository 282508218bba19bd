"""Training one model: repeatable, and the same after an interruption."""

import json
from pathlib import Path

import numpy as np
import paddle
import pytest
from visualdl import LogReader

from paddle_rope.roformer import RoFormerForCausalLM, load_tokenizer
from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.common.training.monitor import VisualDLMonitor
from tasks.language_model.evaluation import held_out_losses
from tasks.language_model.recipe import LanguageModelRecipe
from tasks.language_model.training import TrainingBatches, learning_rate_share, make_optimizer
from tests.tasks.language_model.conftest import TINY

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def train(tmp_path):
    def train(name, **options):
        folder = tmp_path / name
        metrics = LanguageModelRecipe().train({**TINY, "seed": 1, "output_dir": str(folder), **options})
        assert metrics == json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        return metrics

    return train


def weights(model):
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def points(folder, tag):
    """A curve of the VisualDL log: [(step, value)]."""
    (path,) = (folder / "vdl").glob("*vdlrecords*")
    reader = LogReader(file_path=str(path))
    return [(record.id, record.value) for record in reader.get_data("scalar", tag)]


class PowerCut(Exception):
    """Ends a run at once."""


@pytest.mark.parametrize(
    "options",
    [
        {"rotary_learned": True, "evaluation_times": "1,4"},
        {"attention": "linear", "feature_map": "favor"},
        {"eval_steps": 3, "logging_steps": 2, "gradient_accumulation_steps": 2},
    ],
)
def test_interrupted_training_is_resumed_to_the_same_weights_and_losses(train, monkeypatch, tmp_path, options):
    whole = train("whole", **options)

    def cut(self, args, state, control, **kwargs):
        if state.global_step == 4:
            raise PowerCut

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(VisualDLMonitor, "on_step_end", cut)
        train("cut", **options)
    resumed = LanguageModelRecipe().resume(tmp_path / "cut")
    times = ("train_seconds", "seconds_per_step")
    assert {**resumed, **dict.fromkeys(times)} == {**whole, **dict.fromkeys(times)}
    models = [(tmp_path / name / "model/model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert models[0] == models[1]
    assert [points(tmp_path / name, "dev/loss") for name in ("cut", "whole")] == [
        [(step, pytest.approx(loss)) for step, loss in whole["held_out"]]
    ] * 2


def test_metrics_and_log_hold_every_loss(train, tmp_path, corpus):
    metrics = train("run", max_steps=5)
    assert [step for step, _ in metrics["training"]] == [1, 2, 3, 4, 5]
    assert [step for step, _ in metrics["held_out"]] == [2, 4, 5]  # also after the last step
    assert metrics["dev"] == {"loss": metrics["held_out"][-1][1]}
    assert points(tmp_path / "run", "1_train/loss") == [(n, pytest.approx(loss)) for n, loss in metrics["training"]]
    assert metrics["text"] == corpus.facts() and "paddlepaddle" in metrics["machine"]
    assert metrics["seconds_per_step"] > 0 and metrics["seed"] == 1


def test_training_lowers_the_loss_seeds_differ_and_the_model_is_kept(train, tmp_path, corpus):
    metrics, other = train("a"), train("b", seed=2)
    assert metrics["training"][-1][1] < metrics["training"][0][1]
    assert other["held_out"] != metrics["held_out"]
    model = RoFormerForCausalLM.from_pretrained(str(tmp_path / "a/model"))
    assert model.config.causal and load_tokenizer(tmp_path / "a/model").vocab == corpus.tokenizer.vocab
    assert held_out_losses(model, corpus.held_out, 8).mean() == pytest.approx(metrics["dev"]["loss"], rel=1e-6)


def test_placements_start_from_the_same_weights_and_see_the_same_texts(train, monkeypatch):
    seen = {}

    def look(self, args, state, control, model=None, inputs=None, **kwargs):
        if inputs is not None:
            kept = weights(model), np.asarray(inputs["input_ids"])
            seen.setdefault(model.config.position_embedding, kept)

    monkeypatch.setattr(VisualDLMonitor, "on_load_data_end", look)
    monkeypatch.setattr(VisualDLMonitor, "on_substep_end", lambda *args, **kwargs: None)
    monkeypatch.setattr(VisualDLMonitor, "on_step_end", lambda *args, **kwargs: None)
    for placement in ("qk", "v", "none"):
        train(placement, position_embedding=placement, max_steps=1)
    for placement in ("v", "none"):
        for name, weight in seen["qk"][0].items():
            assert (seen[placement][0][name] == weight).all(), name
        assert (seen[placement][1] == seen["qk"][1]).all()


def test_theta_rate_slows_the_frequencies_only(train):
    moves = {}
    for rate in (1.0, 0.01):
        metrics = train(f"rate {rate}", theta_rate=rate, rotary_learned=True)
        moves[rate] = np.abs(np.subtract(metrics["theta_end"], metrics["theta_start"]))
    assert (moves[1.0] > 0).all() and (moves[0.01] > 0).any()
    assert moves[0.01].max() < 0.02 * moves[1.0].max()


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
    before = weights(model)
    for weight in model.parameters():
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    optimizer.step()
    after = weights(model)
    kept = {name for name in before if (before[name] == after[name]).all()}
    assert kept == {"roformer.rotary.theta"}


def test_learning_rate_rises_then_falls_to_nothing(make_model, resolve):
    shares = [learning_rate_share(step, 3, 10) for step in range(1, 12)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0])
    assert learning_rate_share(1, 0, 10) == 1.0
    optimizer, schedule = make_optimizer(make_model(), resolve(learning_rate=2, warmup_steps=1, max_steps=3).training)
    rates = [optimizer.get_lr() for _ in range(4) if schedule.step() is None]
    np.testing.assert_allclose(rates, [2, 1, 0, -1], atol=1e-6)  # the first step has gone by; no run makes a fourth


def test_batches_are_windows_and_what_follows_them(corpus):
    batches = TrainingBatches(corpus, 2, 3, seed=1, batches_per_step=2)
    assert len(batches) == 6
    for index in (0, 5):
        windows = corpus.training_windows(2, 1, index + 1)
        batch = batches[index]
        assert (batch["input_ids"] == windows[:, :-1]).all() and (batch["labels"] == windows[:, 1:]).all()


@pytest.mark.parametrize(
    "given, said",
    [
        ({"max_steps": 0}, "max_steps must be greater than 0"),
        ({"eval_steps": 0}, "eval_steps must be greater than 0"),
        ({"length": 0}, "length must be greater than 0"),
        ({"text_files": None}, "no 'text_files'"),
        ({"hidden_size": 10, "num_attention_heads": 4}, "hidden_size 10 does not split into 4 heads"),
        ({"lenght": 3}, "unknown key 'lenght'; did you mean 'length'"),
        ({"pretrained": "x"}, "key 'pretrained': this recipe trains from scratch"),
        ({"num_train_epochs": 3}, "'num_train_epochs' cannot be set: the recipe makes max_steps steps"),
        ({"evaluation_times": "3"}, "evaluation_times must be some of 1, 2, 4 between commas, got 3"),
        ({"scaling_factors": "2,x"}, "scaling_factors must be numbers of 1 or more between commas, got x"),
        ({"scaling_factors": "2", "hidden_size": 4}, "NTK scaling needs 4 or more"),
    ],
)
def test_wrong_key_is_named(resolve, given, said):
    with pytest.raises(InputError, match=said):
        resolve(**given)


def test_wrong_file_or_rate_is_named_and_only_a_diverged_run_leaves_a_folder(train, tmp_path):
    with pytest.raises(InputError, match="missing.txt: no such file"):
        train("run", text_files="missing.txt")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="training has diverged; lower learning_rate"):
        train("run", learning_rate=1e38, max_grad_norm=0, max_steps=60)


def test_configuration_of_the_project_is_understood(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    for path in (REPOSITORY / "configs/language_model").glob("*.yaml"):
        settings = LanguageModelRecipe().resolve(read_run_config(path))
        assert settings.config["output_dir"].startswith("runs/")
