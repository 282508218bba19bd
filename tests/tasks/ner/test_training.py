"""Options of training: what each changes, and what it leaves as it was."""

import json
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
import train_ner
from safetensors.numpy import load, load_file

from tasks.ner.model import NerModel
from tasks.ner.recipe import NerRecipe
from tasks.ner.reports.monitoring import NerMonitor

PLAIN = {
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "lr_scheduler_type": "constant",
    "warmup_ratio": 0,
    "learning_rate": 1e-3,
    "max_grad_norm": 0,
    "num_train_epochs": 1,
}


@pytest.fixture(scope="module")
def train_few(train, few_texts, without_pictures):
    """Train on few texts."""
    files = {"train_file": few_texts.train, "dev_file": few_texts.dev}
    return lambda folder, **options: train(folder, **{**files, **options})


@pytest.fixture
def fails_in_one_line(fails, config_file):
    """Training with these words ends with status 2 and one line; the line."""
    return lambda *words: fails(train_ner, config_file, "--output_dir", "run", *words)


# ---- early stopping


@pytest.fixture
def pretend(monkeypatch):
    """``pretend(values)``: the dev F1 of each epoch, by its number; 1 for the scores of the end."""

    def pretend(values):
        original = NerRecipe.dev_scores

        def dev_scores(self, run):
            return {**original(self, run), "f1": values[round(run.trainer.state.epoch) - 1]}

        monkeypatch.setattr(NerRecipe, "dev_scores", dev_scores)

    return pretend


def checkpoint_steps(run):
    return sorted(int(path.name.split("-")[1]) for path in (run.folder / "checkpoints").glob("checkpoint-*"))


@pytest.mark.parametrize(
    "patience, values, stopped, best",
    [
        (1, [0.1, 0.3, 0.2, 0.9], 3, 2),
        (2, [0.1, 0.3, 0.2, 0.25, 0.9], 4, 2),
        (2, [0.3, 0.2, 0.4, 0.3, 0.3, 0.9], 5, 3),
        (1, [0.2, 0.2, 0.9], 2, 1),  # as good is not better
        (3, [0.1, 0.2, 0.1, 0.1], 4, 2),  # the epochs end first
        (1, [0.0, 0.0, 0.2, 0.1, 0.9], 4, 3),  # before anything is found nothing is counted
    ],
)
def test_training_ends_after_epochs_without_a_better_one(
    train_few, tmp_path, pretend, capsys, patience, values, stopped, best
):
    pretend(values)
    limits = {"num_train_epochs": len(values), "per_device_train_batch_size": 23, "early_stopping_patience": patience}
    run = train_few(tmp_path / "run", **limits)
    assert checkpoint_steps(run) == sorted({2 * stopped, 2 * best})  # two steps an epoch
    weights = load_file(run.folder / f"checkpoints/checkpoint-{2 * best}/model.safetensors")
    saved = load(run.weights)
    assert all((saved[name] == value).all() for name, value in weights.items())
    assert ("training stops: " in capsys.readouterr().out) == (stopped < len(values))


@pytest.mark.parametrize("is_terminal, shown", [(False, [1, 2, 5]), (True, [1, 2, 3, 4, 5, 6])])
def test_a_log_has_a_line_of_each_epoch_that_is_better_and_a_terminal_of_all(
    train_few, tmp_path, pretend, capsys, monkeypatch, is_terminal, shown
):
    pretend([0.1, 0.3, 0.2, 0.3, 0.4, 0.2])
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    train_few(tmp_path / "run", num_train_epochs=6, per_device_train_batch_size=23)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("epoch ")]
    assert [float(words[1]) for words in lines] == shown


class PowerCut(Exception):
    """Ends a run at once."""


@pytest.mark.parametrize("at", ["on_epoch_end", "on_train_end"])
def test_resumed_run_ends_at_the_epoch_where_it_would_have(train_few, tmp_path, pretend, monkeypatch, at):
    """Cut at the end of the third epoch, before its evaluation, or when it has just been stopped."""
    pretend([0.1, 0.3, 0.2, 0.25, 0.9, 0.9])
    limits = {"num_train_epochs": 6, "per_device_train_batch_size": 23, "early_stopping_patience": 2, "ema_decay": 0.5}
    whole = train_few(tmp_path / "whole", **limits)

    def cut(self, args, state, control, **kwargs):
        if state.global_step == 6 or at == "on_train_end":
            raise PowerCut

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(NerMonitor, at, cut, raising=False)
        train_few(tmp_path / "cut", **limits)
    assert train_ner.main(["--resume", str(tmp_path / "cut")]) == 0
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert checkpoint_steps(SimpleNamespace(folder=tmp_path / "cut")) == checkpoint_steps(whole) == [4, 8]


# ---- averaged weights


def test_saved_model_is_the_average_at_the_best_epoch_and_scores_what_is_reported(
    train_few, tmp_path, evaluate, few_texts
):
    run = train_few(tmp_path / "run", num_train_epochs=8, ema_decay=0.8, learning_rate=3e-2)
    checkpoints = [json.loads(path.read_text("utf-8")) for path in run.folder.glob("checkpoints/*/trainer_state.json")]
    state = max(checkpoints, key=lambda state: state["global_step"])
    best = load_file(f"{state['best_model_checkpoint']}/average.safetensors")
    plain = load_file(f"{state['best_model_checkpoint']}/model.safetensors")
    saved = load(run.weights)
    assert saved.keys() == best.keys()
    assert all((saved[name] == value).all() for name, value in best.items())
    assert any((saved[name] != value).any() for name, value in plain.items())
    assert run.metrics["dev"]["f1"] == state["best_metric"] > 0
    assert evaluate(few_texts.dev, run.model)["f1"] == run.metrics["dev"]["f1"]


def test_last_epoch_is_kept_where_dev_does_not_choose(train_few, tmp_path, pretend, capsys):
    pretend([0.1, 0.3, 0.2])
    limits = {"num_train_epochs": 3, "per_device_train_batch_size": 23, "ema_decay": 0.5}
    run = train_few(tmp_path / "run", keep_best=False, **limits)
    assert "keep_best is false: the last epoch is kept" in capsys.readouterr().out
    last = load_file(run.folder / "checkpoints/checkpoint-6/average.safetensors")  # two steps an epoch
    saved = load(run.weights)
    assert saved.keys() == last.keys() and all((saved[name] == value).all() for name, value in last.items())
    best = train_few(tmp_path / "best", **limits)
    assert best.weights != run.weights


# ---- several seeds


def test_runs_of_several_seeds_are_those_of_each_seed_alone(
    train_few, config_file, few_texts, evaluate, tmp_path, capsys
):
    words = ["--train_file", few_texts.train, "--dev_file", few_texts.dev, "--num_train_epochs", "6"]
    words += ["--output_dir", tmp_path / "seeds", "--seeds", "3,5", "--learning_rate", "3e-2"]
    assert train_ner.main([str(word) for word in (config_file, *words)]) == 0
    alone = train_few(tmp_path / "alone", num_train_epochs=6, learning_rate=3e-2, seed=5)
    left = {"seed_3", "seed_5", "series.yaml", "runs.csv", "summary.json", "summary.md"}
    assert {path.name for path in (tmp_path / "seeds").iterdir()} == left
    assert (tmp_path / "seeds/seed_5/model/model.safetensors").read_bytes() == alone.weights
    assert (tmp_path / "seeds/seed_3/model/model.safetensors").read_bytes() != alone.weights
    (summary,) = json.loads((tmp_path / "seeds/summary.json").read_text("utf-8"))["variants"]
    for name in ("precision", "recall", "f1"):
        assert summary["scores"][f"dev.{name}"]["values"][1] == alone.metrics["dev"][name]
    assert capsys.readouterr().out.count("---- seed") == 2
    scores = evaluate(few_texts.dev, *(tmp_path / "seeds" / seed / "model" for seed in ("seed_3", "seed_5")))
    assert summary["scores"]["dev.f1"]["ensemble"] == scores["f1"] > 0


def test_wrong_seeds_or_a_taken_folder_train_nothing(fails_in_one_line, tmp_path):
    assert "--seeds 3,x: give numbers" in fails_in_one_line("--seeds", "3,x")
    assert "a seed must be from 0 to 4294967295" in fails_in_one_line("--seeds", "3,4294967296")
    (tmp_path / "run/seed_5").mkdir(parents=True)
    assert "run: already holds another run" in fails_in_one_line("--seeds", "3,5")


# ---- batches and gradients


def weights_of(run):
    return load(run.weights)


@pytest.fixture
def texts_of(few_texts, tmp_path):
    """``texts_of(n)``: a file of the first n training texts."""

    def texts_of(count):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:count]))
        return path

    return texts_of


def test_accumulated_gradients_are_those_of_one_batch(train_few, texts_of, tmp_path):
    one = train_few(tmp_path / "one", train_file=texts_of(12), **PLAIN, per_device_train_batch_size=12)
    two = train_few(
        tmp_path / "two", train_file=texts_of(12), **PLAIN, per_device_train_batch_size=6, gradient_accumulation_steps=2
    )
    start = train_few(
        tmp_path / "start", train_file=texts_of(12), **{**PLAIN, "learning_rate": 1e-12}, per_device_train_batch_size=12
    )
    assert checkpoint_steps(one) == checkpoint_steps(two) == [1]
    one, two, start = map(weights_of, (one, two, start))
    changed = 0
    for name in one:
        # Adam's first step has the size of the learning rate wherever there is a gradient to speak of
        np.testing.assert_allclose(one[name], two[name], atol=1e-4)
        changed += (np.abs(one[name] - start[name]) > 5e-4).mean() > 0.3
    assert changed > len(one) / 2


def test_gradients_of_batches_left_over_do_not_reach_the_next_epoch(train_few, texts_of, tmp_path, monkeypatch):
    at_start = []

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        at_start.append(sum(float(p.grad.abs().sum()) for p in model.parameters() if p.grad is not None))

    monkeypatch.setattr(NerMonitor, "on_step_begin", on_step_begin, raising=False)
    options = {**PLAIN, "num_train_epochs": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    run = train_few(tmp_path / "run", train_file=texts_of(10), **options)  # five batches: two steps and one left over
    assert checkpoint_steps(run)[-1] == 6
    assert at_start == [0] * 8  # two steps of each epoch, and its batch left over but for the last epoch's


def test_recomputation_gives_the_same_weights(train_few, tmp_path):
    options = {"num_train_epochs": 2, "num_hidden_layers": 2, "hidden_dropout_prob": 0.2}
    plain = train_few(tmp_path / "plain", **options, attention_probs_dropout_prob=0.2)
    again = train_few(tmp_path / "again", **options, attention_probs_dropout_prob=0.2, recompute=True)
    assert again.config["recompute"] is True
    assert again.weights == plain.weights


def test_half_precision_that_a_cpu_does_not_have_is_refused(fails_in_one_line, monkeypatch):
    assert fails_in_one_line("--fp16") == "configuration: fp16 needs a GPU; leave it out"
    assert "fp16_opt_level O2 needs a GPU" in fails_in_one_line("--bf16", "--fp16_opt_level", "O2")
    # tests compute by plain forms
    expected = "configuration: bf16 cannot be on this CPU: native operators: off, PADDLE_ROPE_NATIVE=0; leave it out"
    assert fails_in_one_line("--bf16") == expected


# ---- options of the model


def test_span_head_without_rope_has_no_rotation(train_few, tmp_path, predict):
    plain = train_few(tmp_path / "plain", num_train_epochs=1, span_rope=False)
    rotated = train_few(tmp_path / "rotated", num_train_epochs=1)
    assert plain.model_config["span_rope"] is plain.config["span_rope"] is False
    assert rotated.model_config["span_rope"] is True
    texts = (plain.folder / "predictions_dev.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in texts]
    assert predict("\n".join(record["text"] for record in records), plain.model) == records
    for run, turns in ((plain, False), (rotated, True)):
        head = NerModel.from_pretrained(str(run.model)).head
        hidden = paddle.randn([1, 1, 32]).expand([1, 6, 32])  # tokens that differ in their place alone
        scores = head(hidden, paddle.ones([1, 6], dtype="bool"))
        spans = scores.numpy()[0][(slice(None), *np.triu_indices(6))]
        assert (np.ptp(spans, axis=1) > 1e-4).all() == turns


@pytest.mark.parametrize("position_embedding", ["none", "qkvo", "vo"])
def test_places_of_rope_in_the_encoder_are_chosen_by_their_key(train_few, tmp_path, position_embedding):
    run = train_few(tmp_path / "run", num_train_epochs=1, position_embedding=position_embedding)
    assert run.model_config["position_embedding"] == run.config["position_embedding"] == position_embedding


@pytest.mark.parametrize(
    "words, message",
    [
        (["--ema_decay", "1"], "ema_decay must be at least 0 and less than 1, got 1.0"),
        (["--ema_decay=-0.1"], "ema_decay must be at least 0"),
        (["--ema_decay", "nan"], "ema_decay must be at least 0"),
        (["--early_stopping_patience", "0"], "early_stopping_patience must be greater than 0, got 0"),
        (["--early_stopping_patience", "1.5"], "early_stopping_patience must be a whole number"),
        (["--masked_lm_epochs=-1"], "masked_lm_epochs must be at least 0, got -1"),
        (["--dev_fraction=-0.1"], "dev_fraction must be at least 0 and less than 1, got -0.1"),
        (["--dev_fraction", "nan"], "dev_fraction must be at least 0 and less than 1"),
        (
            ["--dev_fraction", "0", "--dev_file=", "--tune_thresholds", "true"],
            "tune_thresholds needs dev data; give a dev_file or a dev_fraction above 0",
        ),
        (
            ["--tune_thresholds", "true", "--threshold_for_f1", "true"],
            "tune_thresholds and threshold_for_f1; give one of them",
        ),
        (["--character_dropout", "1"], "character_dropout must be a number of at least 0 and less than 1"),
        (["--feature_dropout=-1"], "feature_dropout must be a number of at least 0"),
        (["--embedding_dropout_prob", "1"], "embedding_dropout_prob must be a number of at least 0"),
        (["--hidden_act", "tan"], "hidden_act must be one of"),
        (["--features", "words,nonsense"], "nonsense"),
        (["--position_embedding", "kq"], "position_embedding"),
        (["--position_embedding", "learned"], "max_position_embeddings"),
        (["--span_rope", "perhaps"], "span_rope must be true or false"),
        (["--allow_overlap", "perhaps"], "allow_overlap must be true or false"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_value_out_of_range_is_one_line_and_makes_nothing(fails_in_one_line, words, message):
    assert message in fails_in_one_line(*words)
