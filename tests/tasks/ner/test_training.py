"""Options of training: what each changes, and what it leaves as it was."""

import json
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
import train_ner
from safetensors.numpy import load, load_file
from visualdl import LogReader

from tasks.ner.model import NerModel
from tasks.ner.recipe import NerRecipe
from tasks.ner.reports.monitoring import NerMonitor
from tests.helpers.power_cut import power_cut

TWO_STEPS = {"per_device_train_batch_size": 23}  # an epoch
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


@pytest.fixture
def pretend(monkeypatch):
    """``pretend(values)``: the dev F1 of each epoch."""

    def pretend(values):
        original = NerRecipe.dev_scores

        def dev_scores(self, run):
            return {**original(self, run), "f1": values[round(run.trainer.state.epoch) - 1]}

        monkeypatch.setattr(NerRecipe, "dev_scores", dev_scores)

    return pretend


def checkpoint_steps(run):
    return sorted(int(path.name.split("-")[1]) for path in (run.folder / "checkpoints").glob("checkpoint-*"))


def assert_saved(run, step, name="average.safetensors"):
    """The run's model has the weights of a checkpoint."""
    kept, saved = load_file(run.folder / f"checkpoints/checkpoint-{step}" / name), load(run.weights)
    assert saved.keys() == kept.keys() and all((saved[key] == value).all() for key, value in kept.items())


# ---- which epoch is kept, and where training stops


@pytest.mark.parametrize(
    "patience, values, stopped, best",
    [
        (1, [0.1, 0.3, 0.2, 0.9], 3, 2),
        (2, [0.3, 0.2, 0.4, 0.3, 0.3, 0.9], 5, 3),
        (1, [0.2, 0.2, 0.9], 2, 1),  # as good is not better
        (3, [0.1, 0.2, 0.1, 0.1], 4, 2),  # the epochs end first
        (1, [0.0, 0.0, 0.2, 0.1, 0.9], 4, 3),  # nothing counts before anything is found
    ],
)
def test_training_stops_after_epochs_without_a_better_one_and_keeps_the_best(
    train_few, tmp_path, pretend, capsys, patience, values, stopped, best
):
    pretend(values)
    run = train_few(tmp_path / "run", num_train_epochs=len(values), early_stopping_patience=patience, **TWO_STEPS)
    assert checkpoint_steps(run) == sorted({2 * stopped, 2 * best})
    assert_saved(run, 2 * best, "model.safetensors")
    assert ("training stops: " in capsys.readouterr().out) == (stopped < len(values))


@pytest.mark.parametrize("is_terminal, shown", [(False, [1, 2, 5]), (True, [1, 2, 3, 4, 5, 6])])
def test_a_log_has_a_line_of_each_epoch_that_is_better_and_a_terminal_of_all(
    train_few, tmp_path, pretend, capsys, monkeypatch, is_terminal, shown
):
    pretend([0.1, 0.3, 0.2, 0.3, 0.4, 0.2])
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    train_few(tmp_path / "run", num_train_epochs=6, **TWO_STEPS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("epoch ")]
    assert [float(words[1]) for words in lines] == shown


@pytest.mark.slow
@pytest.mark.parametrize("event, step", [("on_epoch_end", 6), ("on_train_end", None)])
def test_a_resumed_run_ends_at_the_epoch_where_it_would_have(train_few, tmp_path, pretend, event, step):
    """Cut at the end of the third epoch, before its evaluation, or when it has just been stopped."""
    pretend([0.1, 0.3, 0.2, 0.25, 0.9, 0.9])
    options = {"num_train_epochs": 6, "early_stopping_patience": 2, "ema_decay": 0.5, **TWO_STEPS}
    whole = train_few(tmp_path / "whole", **options)
    with power_cut(event, step):
        train_few(tmp_path / "cut", **options)
    assert train_ner.main(["--resume", str(tmp_path / "cut")]) == 0
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert checkpoint_steps(SimpleNamespace(folder=tmp_path / "cut")) == checkpoint_steps(whole) == [4, 8]


def test_the_saved_model_is_the_average_at_the_best_epoch_and_has_the_reported_scores(
    train_few, tmp_path, evaluate, few_texts
):
    run = train_few(tmp_path / "run", num_train_epochs=8, ema_decay=0.8, learning_rate=3e-2)
    states = [json.loads(path.read_text("utf-8")) for path in run.folder.glob("checkpoints/*/trainer_state.json")]
    state = max(states, key=lambda state: state["global_step"])
    best = int(state["best_model_checkpoint"].rpartition("-")[2])
    assert_saved(run, best)
    plain = load_file(run.folder / f"checkpoints/checkpoint-{best}/model.safetensors")
    assert any((load(run.weights)[name] != value).any() for name, value in plain.items())
    assert run.metrics["dev"]["f1"] == state["best_metric"] == evaluate(few_texts.dev, run.model)["f1"] > 0


def test_the_last_epoch_is_kept_with_keep_best_false(train_few, tmp_path, pretend):
    pretend([0.1, 0.3, 0.2])
    options = {"num_train_epochs": 3, "ema_decay": 0.5, **TWO_STEPS}
    run = train_few(tmp_path / "run", keep_best=False, **options)
    assert_saved(run, 6)
    assert train_few(tmp_path / "best", **options).weights != run.weights


def test_without_dev_data_all_texts_are_learned_from_and_the_last_epoch_is_kept(train_few, few_texts, tmp_path, capsys):
    options = {"dev_file": "", "dev_fraction": 0, "test_file": few_texts.dev, "early_stopping_patience": 1}
    run = train_few(tmp_path / "run", num_train_epochs=3, ema_decay=0.8, **TWO_STEPS, **options)
    assert "train: 45 texts" in capsys.readouterr().out
    assert_saved(run, 6)
    assert "dev" not in run.metrics and 0 <= run.metrics["test"]["f1"] <= 1
    assert not (run.folder / "predictions_dev.jsonl").exists()
    (log,) = (run.folder / "vdl").iterdir()
    assert not [tag for tag in LogReader(file_path=str(log)).get_tags()["scalar"] if tag.startswith("dev")]


# ---- several seeds


@pytest.mark.slow
def test_runs_of_several_seeds_are_the_runs_of_each_seed_alone(train_few, train, few_texts, evaluate, tmp_path):
    words = ["--train_file", few_texts.train, "--dev_file", few_texts.dev, "--num_train_epochs", "6"]
    words += ["--output_dir", tmp_path / "seeds", "--seeds", "3,5", "--learning_rate", "3e-2"]
    alone = train_few(tmp_path / "alone", num_train_epochs=6, learning_rate=3e-2, seed=5)
    assert train_ner.main(list(map(str, [alone.folder / "config.yaml", *words]))) == 0
    models = [tmp_path / "seeds" / seed / "model" for seed in ("seed_3", "seed_5")]
    first, second = ((model / "model.safetensors").read_bytes() for model in models)
    assert first != second == alone.weights
    (summary,) = json.loads((tmp_path / "seeds/summary.json").read_text("utf-8"))["variants"]
    for name in ("precision", "recall", "f1"):
        assert summary["scores"][f"dev.{name}"]["values"][1] == alone.metrics["dev"][name]
    assert summary["scores"]["dev.f1"]["ensemble"] == evaluate(few_texts.dev, *models)["f1"] > 0


# ---- batches and gradients


@pytest.fixture
def texts_of(few_texts, tmp_path):
    """``texts_of(n)``: a file of the first n training texts."""

    def texts_of(count):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:count]))
        return path

    return texts_of


def test_accumulated_gradients_are_those_of_one_batch(train_few, texts_of, tmp_path):
    def weights(name, batch_size, **more):
        options = {**PLAIN, "train_file": texts_of(12), "per_device_train_batch_size": batch_size, **more}
        run = train_few(tmp_path / name, **options)
        assert checkpoint_steps(run) == [1]
        return load(run.weights)

    one, two = weights("one", 12), weights("two", 6, gradient_accumulation_steps=2)
    start = weights("start", 12, learning_rate=1e-12)
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
    options = {"num_train_epochs": 2, "num_hidden_layers": 2, "attention_probs_dropout_prob": 0.2}
    plain = train_few(tmp_path / "plain", **options)
    again = train_few(tmp_path / "again", **options, recompute=True)
    assert again.config["recompute"] is True and again.weights == plain.weights


# ---- options of the model


@pytest.mark.parametrize("span_rope", [True, False])
def test_the_span_head_rotates_unless_span_rope_is_false(train_few, tmp_path, span_rope):
    run = train_few(tmp_path / "run", num_train_epochs=1, span_rope=span_rope)
    head = NerModel.from_pretrained(str(run.model)).head
    hidden = paddle.randn([1, 1, 32]).expand([1, 6, 32])  # tokens that differ in their place alone
    scores = head(hidden, paddle.ones([1, 6], dtype="bool"))
    spans = scores.numpy()[0][(slice(None), *np.triu_indices(6))]
    assert (np.ptp(spans, axis=1) > 1e-4).all() == span_rope


@pytest.mark.parametrize(
    "words, message",
    [
        (["--fp16"], "fp16 needs a GPU"),
        (["--bf16", "--fp16_opt_level", "O2"], "fp16_opt_level O2 needs a GPU"),
        (["--bf16"], "PADDLE_ROPE_NATIVE=0"),  # tests compute without native operators
        (["--ema_decay", "1"], "ema_decay must be at least 0 and less than 1, got 1.0"),
        (["--early_stopping_patience", "0"], "early_stopping_patience must be greater than 0, got 0"),
        (["--early_stopping_patience", "1.5"], "early_stopping_patience must be a whole number"),
        (["--masked_lm_epochs=-1"], "masked_lm_epochs must be at least 0, got -1"),
        (["--masked_lm_files", "more.txt"], "'masked_lm_files' is called 'texts' now"),
        (["--texts", "more.txt"], "texts without masked_lm_epochs"),
        (["--texts", "more.txt", "--masked_lm_epochs", "1"], "more.txt: no such file"),
        (["--dev_fraction", "nan"], "dev_fraction must be at least 0 and less than 1"),
        (["--dev_fraction", "0", "--dev_file=", "--tune_thresholds", "true"], "tune_thresholds needs dev data"),
        (["--tune_thresholds", "true", "--threshold_for_f1", "true"], "tune_thresholds and threshold_for_f1"),
        (["--character_dropout", "1"], "character_dropout must be at least 0 and less than 1"),
        (["--feature_dropout=-1"], "feature_dropout must be at least 0"),
        (["--hidden_act", "tan"], "hidden_act must be one of"),
        (["--features", "words,lexicon"], "words, dictionary, gazetteer, got ['words', 'lexicon']"),
        (["--position_embedding", "kq"], "position_embedding"),
        (["--position_embedding", "learned"], "max_position_embeddings"),
        (["--span_rope", "perhaps"], "span_rope must be true or false"),
        (["--span_head", "hard"], "span_head must be one of efficient, dense, got 'hard'"),
        (["--head_size", "15"], "positive even number"),
        (["--max_characters", "0"], "max_characters must be greater than 0, got 0"),
        (["--max_span_length", "0"], "max_span_length must be an integer of 1 to"),
        (["--num_attention_heads", "3"], "does not split into 3 heads of even size"),
        (["--train_file="], "no 'train_file'"),
        (["--output_dir="], "no 'output_dir'"),
        (["--sede", "1"], "unknown key 'sede'; did you mean 'seed'?"),
        (["--batch_size", "1"], "did you mean 'per_device_eval_batch_size' or 'per_device_train_batch_size'?"),
        (["--logging_dir", "log"], "key 'logging_dir' cannot be set"),
        (["--eval_steps", "50"], "key 'eval_steps' cannot be set"),
        (["--num_train_epochs", "many"], "num_train_epochs must be a number, got 'many'"),
        (["--lr_scheduler_type", "zigzag"], "lr_scheduler_type must be one of linear, "),
        (["--dataloader_num_workers", "100000"], "dataloader_num_workers must be from 0 to 64, got 100000"),
        (["--learning_rate", "nan"], "learning_rate must be greater than 0, got nan"),
        (["--per_device_train_batch_size", "0"], "per_device_train_batch_size must be greater than 0"),
        (["--seed", "4294967296"], "seed must be from 0 to 4294967295"),
        (["--device", "abacus"], "--device abacus: not usable here"),
        (["--seeds", "3,x"], "--seeds 3,x: give numbers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_value_out_of_range_is_one_line_and_makes_nothing(fails_in_one_line, words, message):
    assert message in fails_in_one_line(*words)
