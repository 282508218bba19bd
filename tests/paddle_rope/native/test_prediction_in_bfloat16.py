"""Prediction with products in bfloat16: the option of the commands, and what refuses it."""

import json
import threading

import numpy as np
import paddle
import pytest

from paddle_rope import CharTokenizer
from paddle_rope.native import products
from paddle_rope.native.products import bfloat16_products, why_no_bfloat16
from tasks.classification.model import ClassificationConfig, ClassificationModel
from tasks.common.errors import InputError
from tasks.matching.model import MatchingConfig, MatchingModel
from tasks.ner.demo import UNSEEN_SENTENCES
from tasks.ner.model import NerConfig, NerModel
from tasks.recipes import open_predictor
from tests.helpers.exports import FORMATS, export
from tests.helpers.verbs import verb
from tests.paddle_rope.roformer.small_models import randomise

SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
MODELS = {
    "ner": (NerModel, NerConfig, {"types": ["a"], "head_size": 8}),
    "classification": (ClassificationModel, ClassificationConfig, {"classes": ["x", "y"]}),
    "matching": (MatchingModel, MatchingConfig, {"architecture": "bi_encoder", "threshold": 0.5}),
}
WORK = {  # numbers of a predictor for the texts
    "ner": lambda predictor: [
        one.score for of_text in predictor.find(UNSEEN_SENTENCES, thresholds=-1e3) for one in of_text
    ],
    "classification": lambda predictor: predictor.probabilities(UNSEEN_SENTENCES)[:, 0],
    "matching": lambda predictor: predictor.encode(UNSEEN_SENTENCES).ravel(),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """dict from a recipe to the folder of a model with random weights."""
    tokenizer = CharTokenizer.from_corpus(UNSEEN_SENTENCES)
    folders = {}
    for recipe, (model, config, options) in MODELS.items():
        folders[recipe] = tmp_path_factory.mktemp("models") / recipe
        tokenizer.save_pretrained(folders[recipe])
        of_recipe = randomise(model(config(vocab_size=len(tokenizer), **SIZES, **options)))
        of_recipe.save_pretrained(folders[recipe])
    return folders


@pytest.mark.parametrize("recipe", MODELS)
def test_predictors_multiply_in_bfloat16_where_it_is_faster(has_bfloat16, folders, recipe, monkeypatch, capsys):
    work = WORK[recipe]
    plain = open_predictor(folders[recipe], device="cpu")
    rounded = open_predictor(folders[recipe], device="cpu", bf16=True)
    before, found, after = work(plain), work(rounded), work(plain)
    with bfloat16_products():
        expected = work(plain)
    assert len(found) > 2 and np.array_equal(before, after)
    np.testing.assert_array_equal(found, expected)
    difference = np.abs(np.subtract(found, before)).max()
    assert 1e-5 < difference < 0.1 * max(1, np.abs(before).max())
    monkeypatch.setenv(products.DECISION, "0")
    np.testing.assert_array_equal(work(open_predictor(folders[recipe], device="cpu", bf16=True)), before)
    captured = capsys.readouterr()
    assert captured.err.count("float32 is faster") == 1 and captured.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("then, now", [("1", "0"), ("0", "1")])
def test_a_run_over_many_documents_multiplies_as_it_began(has_bfloat16, folders, tmp_path, monkeypatch, then, now):
    texts, output = tmp_path / "texts.txt", tmp_path / "found"
    texts.write_text("\n".join(UNSEEN_SENTENCES[:4]), encoding="utf-8")
    words = [str(folders["classification"]), "--input", str(texts), "--output", str(output), "--bf16"]
    words += ["--processes", "1", "--part_records", "2"]
    monkeypatch.setenv(products.DECISION, then)
    assert verb("predict").main(words) == 0
    parts = sorted(output.glob("part-*.jsonl"))
    before = [part.read_bytes() for part in parts]
    parts[1].unlink()
    monkeypatch.setenv(products.DECISION, now)
    assert verb("predict").main(words) == 0
    assert [part.read_bytes() for part in parts] == before
    assert json.loads((output / "manifest.json").read_text(encoding="utf-8"))["options"]["bf16"] is (then == "1")


def test_a_thread_does_not_round_for_another(has_bfloat16):
    seen = []
    with bfloat16_products():
        thread = threading.Thread(target=lambda: seen.append(products.are_rounded()))
        thread.start()
        thread.join()
        assert products.are_rounded()
    assert seen == [False] and not products.are_rounded()


def test_what_cannot_multiply_in_bfloat16_refuses_it(monkeypatch, folders, tmp_path, refused):
    exported = export(tmp_path / "exported", FORMATS[0], folders["classification"])
    with pytest.raises(InputError, match="computes as it was exported"):
        open_predictor(exported, device="cpu", bf16=True)
    with monkeypatch.context() as patch, pytest.raises(InputError, match="--bf16 is for models on a CPU"):
        patch.setattr(paddle, "get_device", lambda: "gpu:0")
        open_predictor(folders["classification"], device="cpu", bf16=True)
    monkeypatch.setattr(products, "processors", lambda: [{"flags": "sse2 avx2"}])
    assert "none of avx512_bf16, amx_bf16" in why_no_bfloat16()
    with pytest.raises(RuntimeError, match="none of avx512_bf16"), bfloat16_products():
        pass
    (tmp_path / "texts.txt").write_text("你好", encoding="utf-8")
    words = [folders["ner"], "--input", tmp_path / "texts.txt", "--output", tmp_path / "out.jsonl", "--bf16"]
    assert "--bf16 cannot be used on this CPU: the processor" in refused("predict", *words)
    assert not (tmp_path / "out.jsonl").exists()
