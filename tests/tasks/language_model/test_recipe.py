"""Language models: the corpus, training, held-out losses at several lengths; the report of several."""

import numpy as np
import paddle
import pytest
import yaml
from PIL import Image

from paddle_rope.roformer import RoFormerConfig, RoFormerForCausalLM, load_tokenizer
from paddle_rope.tasks.commands.experiment import experiment
from paddle_rope.tasks.common.errors import exit_status
from paddle_rope.tasks.common.training.settings import resolve as resolve_config
from paddle_rope.tasks.language_model import recipe as recipe_module
from paddle_rope.tasks.language_model.arguments import LanguageModelArguments
from paddle_rope.tasks.language_model.recipe import (
    Corpus,
    additions,
    held_out_losses,
    learning_rate_share,
    load_corpus,
    make_optimizer,
)
from paddle_rope.tasks.language_model.report import PUBLISHED, rank_correlation
from paddle_rope.tasks.recipes import train_config
from tests.conftest import REPOSITORY
from tests.helpers import runs
from tests.tasks.ner.conftest import error_of
from tests.tasks.tiny_recipes import ENCODER, KEYS

TINY = {
    **ENCODER, "recipe": "language_model", "text_files": str(REPOSITORY / "configs/classification/demo.jsonl"),
    "vocab_min_count": 2, "length": 8, "held_out_windows": 4, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "per_device_train_batch_size": 4, "max_steps": 6, "warmup_steps": 2,
    "logging_steps": 1, "eval_steps": 2,
}  # fmt: skip
# Every character occurs once: an id tells where it is.
DISTINCT = "".join(chr(0x4E00 + number) for number in range(600))


@pytest.fixture(scope="module")
def resolve():
    """The parsed configuration with some other keys."""
    return lambda **keys: resolve_config({**TINY, "output_dir": "unused", **keys}, LanguageModelArguments)


@pytest.fixture(scope="module")
def corpus(resolve):
    return load_corpus(resolve().keys)


@pytest.fixture
def make_model(corpus, resolve):
    return lambda **options: RoFormerForCausalLM(
        RoFormerConfig(**resolve(**options).keys.model_options(), vocab_size=len(corpus.tokenizer))
    )


def distinct_corpus(documents=(DISTINCT,), length=5):
    return Corpus(list(documents), 1, length, held_out_windows=6, held_out_length=20)


def test_windows_are_stretches_of_the_text_and_none_reaches_into_held_out_text():
    corpus = distinct_corpus()
    windows = corpus.training_windows(4000, seed=0, step=1)
    places = {corpus.tokenizer.token_to_id[character]: place for place, character in enumerate(DISTINCT)}
    places[corpus.tokenizer.sep_token_id] = len(DISTINCT)
    windows, held_out = (np.vectorize(places.get)(texts) for texts in (windows, corpus.held_out))
    assert windows.shape == (4000, 6) and held_out.shape == (6, 21)
    assert all((np.diff(texts, axis=1) == 1).all() for texts in (windows, held_out))
    assert not set(windows.ravel()) & set(held_out.ravel())
    assert set(windows.ravel()) | set(held_out.ravel()) == set(range(601))
    drawn = {
        (seed, step, again): distinct_corpus().training_windows(3, seed, step).tobytes()
        for seed, step, again in ((1, 2, 0), (1, 2, 1), (1, 3, 0), (2, 2, 0))
    }
    assert drawn[1, 2, 0] == drawn[1, 2, 1] and len(set(drawn.values())) == 3


def test_facts_count_tokens_ends_of_documents_and_unknown_characters():
    facts = distinct_corpus([DISTINCT[:300], DISTINCT[300:]]).facts()
    sizes = {"tokens": 602, "held_out_tokens": 126, "training_tokens": 476, "vocabulary": 606}
    assert facts == {**sizes, "unknown_share": 0}
    assert Corpus(["一二" * 100 + "三"], 2, 5, 2, 20).facts()["unknown_share"] == 1 / 202


@pytest.mark.parametrize("documents, length, said", [
    ([], 5, "0 characters"), ([DISTINCT[:200]], 5, "201 characters"), ([DISTINCT], 300, "no 301 characters are left"),
])  # fmt: skip
def test_text_that_is_too_short_is_refused(documents, length, said):
    assert said in error_of(distinct_corpus, documents, length)


def test_additions_are_right_and_of_one_length():
    for text in additions(50):
        (first, second), total = text.split("=")[0].split("+"), text.split("=")[1]
        assert int(first) + int(second) == int(total) and len(text) == 21


BEST_LINEAR = {"attention": "linear", "normalizer": "none", "decay": "0.5,1", "convolutions": True, "output_gate": True}
GROUPED = {"num_key_value_heads": 1}


@pytest.mark.parametrize("options", [{}, BEST_LINEAR, GROUPED], ids=["plain", "best linear", "grouped"])
def test_run_leaves_its_losses_and_a_model_that_has_them(tmp_path, corpus, options):
    left = runs.train(TINY, tmp_path / "run", seed=1, max_steps=5, **options)
    metrics = left.metrics
    assert [step for step, _ in metrics["training"]] == [1, 2, 3, 4, 5]
    assert [step for step, _ in metrics["held_out"]] == [2, 4, 5]  # also after the last step
    assert metrics["held_out"][-1][1] < metrics["held_out"][0][1]
    curves, rates = runs.curves(left.folder / "vdl"), [0.01 * learning_rate_share(step, 2, 5) for step in range(2, 7)]
    assert curves["1_train/loss"] == [(n, pytest.approx(loss)) for n, loss in metrics["training"]]
    assert [rate for _, rate in curves["1_train/learning_rate"]] == pytest.approx(rates, 1e-3)
    assert metrics["text"] == corpus.facts() and "paddlepaddle" in metrics["machine"]
    model = RoFormerForCausalLM.from_pretrained(left.model)
    assert model.config.causal and load_tokenizer(left.model).vocab == corpus.tokenizer.vocab
    assert held_out_losses(model, corpus.held_out, 8).mean() == pytest.approx(metrics["dev"]["loss"], rel=1e-6)


def test_scaled_embeddings_are_larger_where_they_go_in_and_not_where_they_score(tmp_path, corpus, monkeypatch):
    models = []
    monkeypatch.setattr("paddle_rope.tasks.language_model.recipe.measure", lambda model, *_: models.append(model) or {})
    keys = {"position_embedding": "sinusoidal", "scale_embeddings": True, "output_dir": str(tmp_path / "run")}
    train_config({**TINY, **keys})
    (model,) = models
    model.eval()
    ids, embedding = paddle.to_tensor(corpus.held_out[:, :8]), model.roformer.token_embedding
    np.testing.assert_allclose(embedding(ids).numpy(), 4 * embedding.weight.numpy()[ids.numpy()], rtol=1e-6)
    assert (model.lm_head(model.roformer(ids), embedding.weight).numpy() == model(ids).numpy()).all()
    assert not (tmp_path / "run/model").exists()  # its folder could not say that embeddings are scaled


def test_frequencies_do_not_decay_and_matrices_do(make_model, resolve):
    model = make_model(rotary={"learned": True})
    optimizer, _ = make_optimizer(model, resolve(weight_decay=0.5).training)
    before = {name: weight.numpy().copy() for name, weight in model.state_dict().items()}
    for weight in model.parameters():
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    optimizer.step()
    kept = {name for name, weight in model.state_dict().items() if (before[name] == weight.numpy()).all()}
    assert kept == {"roformer.rotary.theta"}


def test_learning_rate_rises_then_falls_to_nothing():
    shares = [learning_rate_share(step, 3, 10) for step in range(1, 12)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0])
    assert learning_rate_share(1, 0, 10) == 1.0


@pytest.fixture
def model(make_model):
    model = make_model()
    for weight in model.parameters():
        weight.set_value(paddle.randn(weight.shape) * 0.5)  # so that positions make a difference
    return model


def test_losses_are_those_of_the_model_on_each_text_and_on_its_parts(model, corpus, monkeypatch):
    monkeypatch.setattr(recipe_module, "TOKENS_A_BATCH", 80)
    short, long = (held_out_losses(model, corpus.held_out, length) for length in (8, 32))
    for text, of_text in zip(corpus.held_out, long):
        loss, _ = model(paddle.to_tensor(text[None, :-1]), labels=paddle.to_tensor(text[None, 1:]))
        assert of_text.mean() == pytest.approx(loss.item(), rel=1e-5)
    assert short.size == long.size
    np.testing.assert_allclose(long[:, :8], short[::4], rtol=1e-4, atol=1e-5)
    assert np.abs(long[:, 8:16] - short[1::4]).max() > 1e-3  # these have something before them


def test_losses_are_measured_at_the_lengths_and_scalings_that_the_keys_name(model, corpus, resolve):
    assert recipe_module.measure(model, corpus.held_out, resolve().keys) == {}
    keys = resolve(evaluation_times=[1, 4], scaling_factors="2,1").keys
    entries = recipe_module.measure(model, corpus.held_out, keys)["lengths"]
    found = {(entry["scaling"], entry["length"]): entry["loss"] for entry in entries}
    assert list(found) == [(name, n) for name in ("none", "NTK x2", "YaRN x2", "NTK x1", "YaRN x1") for n in (8, 32)]
    for length in (8, 32):
        assert found["none", length] == pytest.approx(held_out_losses(model, corpus.held_out, length).mean())
    assert found["NTK x1", 32] == pytest.approx(found["none", 32], rel=1e-5)  # the weights are the same
    assert len({round(found[name, 32], 4) for name in ("none", "NTK x2", "YaRN x2")}) == 3
    assert model.config.rotary is None


# ---- the report of several
FOLDER = REPOSITORY / "configs" / "experiments"


def rows_of(text, title):
    """The cells of the table of a section, by its first column."""
    lines = text.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[2:]}


def test_rank_correlation_looks_at_order_alone():
    def correlation(losses):
        return rank_correlation({name: [{"dev": {"loss": loss}}] for name, loss in losses.items()})

    assert ": 1.000 (p = " in correlation({name: 10 * loss**3 for name, loss in PUBLISHED.items()})
    assert ": -1.000 " in correlation({name: -loss for name, loss in PUBLISHED.items()})
    swapped = {**PUBLISHED, "qk": PUBLISHED["qkvo"], "qkvo": PUBLISHED["qk"], "alibi": 1.0}
    assert f": {1 - 6 * 2 / (9 * 80):.3f} " in correlation(swapped)
    assert correlation({"qk": 1.0, "none": 2.0, "alibi": 3.0}) == ""
    assert set(PUBLISHED) < set(yaml.safe_load((FOLDER / "positions_variants.yaml").read_text(encoding="utf-8")))


@pytest.mark.slow
def test_a_plan_of_language_models_leaves_the_report(write, tmp_path):
    plan = yaml.safe_load((FOLDER / "positions_demo.yaml").read_text(encoding="utf-8"))
    plan["settings"] = {**plan["settings"], **KEYS["language_model"], "max_steps": 2, "evaluation_times": "1,2,4"}
    del plan["settings"]["rotary"]
    variants = str(FOLDER / "positions_variants.yaml")
    plan.update(seeds=[1], output_dir=str(tmp_path / "out"), variants_file=variants)
    words = [str(write(plan, "plan.yaml")), "--only", "qk", "learned", "theta"]
    assert exit_status(experiment, words) == 0
    longer = rows_of((tmp_path / "out/results.md").read_text(encoding="utf-8"), "Texts longer than in training")
    assert {"qk", "learned", "qk, NTK x2", "qk, YaRN x4"} < set(longer) and longer["qk"]["32"]
    assert longer["learned"]["8"] and longer["learned"]["16"] == ""
    assert np.asarray(Image.open(tmp_path / "out/curves.png").convert("L")).std() > 1
