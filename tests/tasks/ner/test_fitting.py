"""A run that chooses its keys by the size of its data."""

import json
import math
from dataclasses import replace

import pytest

from paddle_rope.roformer import RoFormerConfig
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.ner.data.reading import read_examples, write_examples
from paddle_rope.tasks.ner.examples import Entity, Example
from paddle_rope.tasks.ner.features import FEATURE_KINDS
from paddle_rope.tasks.ner.fitting import CHARACTERS, FEWEST_ENTITIES, FEWEST_STEPS, MOST_EPOCHS, NEAR, TABLE, fit_keys
from paddle_rope.tasks.recipes import train_config
from tests.conftest import REPOSITORY
from tests.tasks.ner.conftest import error_of

CHOSEN = {
    "learning_rate", "hidden_dropout_prob", "embedding_dropout_prob", "character_dropout", "feature_dropout",
    "num_hidden_layers", "intermediate_size", "hidden_act", "per_device_train_batch_size", "num_train_epochs",
    "ema_decay", "masked_lm_epochs", "features", *NEAR,
}  # fmt: skip
# Keys of a run that is over soon; the rest it chooses.
SOON = {
    **{"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1, "head_size": 8},
    **{"num_train_epochs": 2, "masked_lm_epochs": 1, "max_characters": 64, "device": "cpu"},
}


def texts(number, length=40):
    return [Example("字" * length, (), f"file:{line}") for line in range(number)]


def fit(given=(), number=300, length=40, dev=0, **options):
    """The choice for so many texts, with so many entities in a dev text."""
    labeled = Example("字" * dev, tuple(Entity(at, at + 1, "A") for at in range(dev)), "x:1")
    return fit_keys(dict(given), texts(number, length), dev=[labeled] if dev else [], **options)


def test_every_size_has_keys_that_train():
    for row in TABLE[1:]:
        assert row.steps_from_folder <= row.steps
    for number in (1, 3, 150, 151, 600, 2_000, 6_000, 15_000, 40_000):
        fitted = fit(number=number)
        assert set(fitted.keys) == CHOSEN
        assert fitted.keys["num_train_epochs"] == MOST_EPOCHS or fitted.steps >= 500
        assert 1 <= fitted.keys["per_device_train_batch_size"] <= 32
        assert (fitted.steps < FEWEST_STEPS) == any(line.startswith("note:") for line in fitted.lines)


@pytest.mark.parametrize("page", ["docs/guides/training.md", "docs/guides/training.zh.md"])
def test_documents_have_the_table(page):
    lines = (REPOSITORY / page).read_text(encoding="utf-8").splitlines()
    for row in TABLE:
        cells = " | ".join([*(f"{number:,}" for number in row[1:6]), *map(str, row[6:])])
        size = f"| {row.texts * CHARACTERS:,} | {row.texts:,} |" if row is not TABLE[-1] else ""
        assert any(line.startswith(size) and line.endswith(f"| {cells} |") for line in lines)


def test_the_number_of_steps_depends_little_on_the_number_of_texts_and_processes():
    fitted = [fit(number=number) for number in (300, 1000, 3000, 10000, 20864)]
    epochs = [one.keys["num_train_epochs"] for one in fitted]
    assert epochs == sorted(epochs, reverse=True) and epochs[0] >= 50 and epochs[-2:] == [6, 4]
    assert all(700 <= one.steps <= 3500 for one in fitted)
    for times, options in ((2, {"processes": 2}), (4, {"accumulated": 4})):
        one = fit(number=1000, **options)
        assert one.keys["num_train_epochs"] == pytest.approx(times * epochs[1], rel=0.1)
        assert one.steps == pytest.approx(fitted[1].steps, rel=0.05)
    assert fit(number=60_000).keys["num_train_epochs"] == 3  # the fewest
    assert fit({"max_steps": 80}).keys["ema_decay"] == 0.95  # reaches back a quarter of the steps


def test_long_texts_make_batches_of_few_texts_and_windows_count_as_texts():
    sizes = [fit(number=100, length=length).keys["per_device_train_batch_size"] for length in (40, 400, 5000)]
    assert sizes == [8, 2, 1]
    cut, short = fit(number=10, length=5120, window=512), fit(number=100, length=512)
    assert (cut.keys, cut.steps) == (short.keys, short.steps)


def test_a_given_key_is_kept_and_more_texts_mean_bounded_masked_lm():
    for key, value in (("num_hidden_layers", 4), ("num_train_epochs", 2), ("ema_decay", 0)):
        fitted = fit({key: value})
        assert set(fitted.keys) == CHOSEN - {key}
        assert any("kept as given" in line and f"{key} {value}" in line for line in fitted.lines)
    assert "Leave out num_train_epochs" in fit({"num_train_epochs": 2}).lines[-1]
    epochs = [fit(unlabeled=texts(more)).keys["masked_lm_epochs"] for more in (0, 1000, 10000, 60000)]
    assert epochs[0] == 0 and epochs[1] > epochs[2] > epochs[3] == 1


FEW, ENOUGH = FEWEST_ENTITIES - 1, FEWEST_ENTITIES


@pytest.mark.parametrize("given, entities, chosen", [
    ({}, FEW, {"keep_best": False}),
    ({}, ENOUGH, {"early_stopping_patience": 41}),
    ({"early_stopping_patience": 3}, FEW, {}),
    ({"early_stopping_patience": None}, FEW, {"keep_best": False}),
    ({"num_train_epochs": 4}, ENOUGH, {"early_stopping_patience": 3}),
    ({"max_steps": 570}, ENOUGH, {"early_stopping_patience": 10}),  # 30 epochs
    ({"keep_best": False}, ENOUGH, {}),
    ({"early_stopping_patience": None}, ENOUGH, {}),
], ids=str)  # fmt: skip
def test_dev_chooses_the_epoch_if_it_has_enough_entities(given, entities, chosen):
    keys = fit(given, dev=entities).keys
    assert {key: keys[key] for key in keys.keys() - CHOSEN} == {"threshold_for_f1": True, **chosen}


def test_the_threshold_is_lowered_for_few_texts_alone():
    assert [fit(number=number, dev=ENOUGH).keys.get("threshold_for_f1") for number in (2_000, 2_001)] == [True, None]
    distilled = fit(dev=ENOUGH, distilled=texts(6_000)).keys
    assert distilled["threshold_for_f1"] and distilled["num_train_epochs"] == fit(number=6_300).keys["num_train_epochs"]


def test_the_size_of_a_pretrained_encoder_decides_the_keys(tmp_path):
    sizes = {(16, 4): 5e-4, (256, 12): 3e-4, (312, 4): 1e-4, (512, 8): 3e-5, (768, 3): 3e-5, (1024, 24): 2e-5}
    fitted = {}
    for width, depth in sizes:
        options = {"num_hidden_layers": depth, "num_attention_heads": 2, "position_embedding": "learned"}
        RoFormerConfig(9, width, **options).save_pretrained(tmp_path / f"{width}x{depth}")
        fitted[width, depth] = fit({"pretrained": str(tmp_path / f"{width}x{depth}")}, number=100)
    assert {size: one.keys["learning_rate"] for size, one in fitted.items()} == sizes
    small, larger = fitted[16, 4].keys, fitted[768, 3].keys
    assert not {"num_hidden_layers", "intermediate_size", "hidden_act"} & (small.keys() | larger.keys())
    measured = {"embedding_dropout_prob": 0.3, "character_dropout": 0.1, "feature_dropout": 0.3}
    assert {key: small[key] for key in small.keys() - larger.keys()} == measured
    assert small["hidden_dropout_prob"] == larger["hidden_dropout_prob"] == 0.1
    assert (small["features"], larger["features"]) == (list(FEATURE_KINDS), None)
    assert (small["num_train_epochs"], larger["num_train_epochs"]) == (math.ceil(1200 / math.ceil(100 / 8)), 50)
    assert "features segmentation+bigrams+" in fitted[16, 4].lines[1] and "features none" in fitted[768, 3].lines[1]
    assert fit({"pretrained": ""}).keys == fit().keys
    assert "no such folder" in error_of(fit, {"pretrained": "nowhere"})


@pytest.mark.slow
def test_the_saved_configuration_has_plain_keys_and_more_labels_are_not_read(few_texts, write, tmp_path):
    given = {"train_file": str(few_texts.train), "dev_file": str(few_texts.dev), **SOON, "pretrained": None}
    given |= {"unlabeled_files": str(few_texts.dev), "features": "bigrams,gazetteer"}
    config = {**read_run_config("configs/ner/own_data.yaml"), **given}
    train_config({**config, "output_dir": str(tmp_path / "fitted")})
    config = read_run_config(tmp_path / "fitted/config.yaml")
    chosen = {"fit_to_data": False, "hidden_act": "relu", "per_device_train_batch_size": 8, "num_train_epochs": 2}
    assert {key: config[key] for key in chosen} == chosen
    records = map(json.loads, few_texts.dev.read_text(encoding="utf-8").splitlines())
    bare = write("".join(record["text"] + "\n" for record in records), "bare.txt")
    train_config({**config, "unlabeled_files": str(bare), "output_dir": str(tmp_path / "plain")})
    for name in ("model.safetensors", "features.json", "vocab.txt"):
        fitted, plain = ((tmp_path / run / "model" / name).read_bytes() for run in ("fitted", "plain"))
        assert fitted == plain


@pytest.mark.slow
def test_own_data_start_from_the_small_encoder_and_a_note_tells_what_it_lacks(few_texts, tmp_path, capsys):
    strange = [replace(one, text="\U00010000" * len(one.text)) for one in read_examples(few_texts.train)]  # Linear B
    write_examples(strange, tmp_path / "strange.jsonl", "jsonl")
    given = {"train_file": str(tmp_path / "strange.jsonl"), "dev_file": str(few_texts.dev), "device": "cpu"}
    config = {**read_run_config("configs/ner/own_data.yaml"), **given, "max_steps": 1}
    train_config({**config, "output_dir": str(tmp_path / "run")})
    assert RoFormerConfig.from_pretrained(tmp_path / "run/model").hidden_size == 256
    assert "small does not know 100.0% of the characters in train" in capsys.readouterr().out
