"""paddle-rope convert-weights: every source to every target, whole folders or none, errors of the user in one line."""

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file

from paddle_rope.roformer import (
    CharTokenizer,
    RoFormerConfig,
    RoFormerForCausalLM,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    RoFormerModel,
    WordTokenizer,
    load_tokenizer,
)
from paddle_rope.roformer.checkpoints.names import TENSORFLOW, encoder_weights, lm_head_weights
from tests.helpers.verbs import verb

convert_weights = verb("convert-weights")

DATA = Path(__file__).parent / "data"
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(chr, range(0x4E00, 0x4E00 + 36))]


def convert(source, target, to):
    assert convert_weights.main([str(source), str(target), "--to", to]) == 0


@pytest.fixture
def fails(capsys):
    """The one line that a conversion ends with."""

    def fails(*words):
        assert convert_weights.main([str(word) for word in words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return fails


def states_equal(first, second):
    first, second = first.state_dict(), second.state_dict()
    assert set(first) == set(second)
    return all((first[name].numpy() == second[name].numpy()).all() for name in first)


@pytest.mark.parametrize("source", ["hf_tiny", "hf_tiny_rotary_value", "hf_tiny_classifier"])
def test_from_hugging_face_and_back_is_bit_equal(source, tmp_path, capsys):
    convert(DATA / source, tmp_path / "ours", "paddle_rope")
    convert(tmp_path / "ours", tmp_path / "back", "huggingface")
    kind = RoFormerForSequenceClassification if "classifier" in source else RoFormerForMaskedLM
    assert capsys.readouterr().out.splitlines()[0] == f"{tmp_path / 'ours'}: {kind.__name__} as paddle_rope"
    assert states_equal(kind.from_pretrained(tmp_path / "ours"), kind.from_pretrained(DATA / source))
    stored, back = load_file(DATA / source / "model.safetensors"), load_file(tmp_path / "back/model.safetensors")
    table = "roformer.encoder.embed_positions.weight"
    assert back.pop(table).shape[0] == 1536
    del stored[table]
    assert set(back) == set(stored)
    assert all((back[name] == stored[name]).all() for name in stored)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "ours"]


@pytest.mark.parametrize("kind", [RoFormerModel, RoFormerForCausalLM], ids=lambda kind: kind.__name__)
def test_from_ours_to_hugging_face_and_back_is_bit_equal(kind, tmp_path):
    model = kind(RoFormerConfig(**SIZES, type_vocab_size=2, embedding_size=20, causal=True))
    model.save_pretrained(str(tmp_path / "ours"))
    (tmp_path / "theirs").mkdir()  # empty: may be taken
    convert(tmp_path / "ours", tmp_path / "theirs", "huggingface")
    convert(tmp_path / "theirs", tmp_path / "again", "paddle_rope")
    again = kind.from_pretrained(tmp_path / "again")
    assert again.config.causal
    assert states_equal(again, model)


@pytest.fixture
def tensorflow_folder(tmp_path, monkeypatch):
    """The folder of an original checkpoint, and the model it is of; tensorflow is a stand-in."""
    model = RoFormerForMaskedLM(RoFormerConfig(**SIZES, type_vocab_size=2))
    weights = encoder_weights(model.config, TENSORFLOW) + lm_head_weights(model.config, TENSORFLOW)
    tensors = {weight.source: model.state_dict()[weight.name].numpy() for weight in weights}
    reader = SimpleNamespace(
        get_variable_to_shape_map=lambda: {name: array.shape for name, array in tensors.items()},
        get_tensor=tensors.__getitem__,
    )
    train = SimpleNamespace(load_checkpoint=lambda path: reader)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(train=train))
    folder = tmp_path / "chinese_roformer"
    folder.mkdir()
    settings = {**SIZES, "type_vocab_size": 2, "hidden_act": "gelu", "max_position_embeddings": 512}
    (folder / "bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "bert_model.ckpt.index").touch()
    return folder, model


@pytest.mark.parametrize("last, kind", [("龦", CharTokenizer), ("中国", WordTokenizer)])
def test_an_original_checkpoint_is_converted_with_its_vocabulary(last, kind, tensorflow_folder, tmp_path, caplog):
    folder, model = tensorflow_folder
    vocab = [*VOCAB[:-1], last]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    with caplog.at_level(logging.WARNING, logger="paddle_rope"):
        convert(folder, tmp_path / "ours", "paddle_rope")
        convert(folder, tmp_path / "theirs", "huggingface")
    assert not caplog.records
    assert states_equal(RoFormerForMaskedLM.from_pretrained(tmp_path / "ours"), model)
    assert states_equal(RoFormerForMaskedLM.from_pretrained(tmp_path / "theirs"), model)
    assert load_file(tmp_path / "theirs/model.safetensors")["roformer.encoder.embed_positions.weight"].shape[0] == 512
    for target in ("ours", "theirs"):
        tokenizer = load_tokenizer(tmp_path / target)
        assert type(tokenizer) is kind
        assert tokenizer.vocab == vocab
        assert tokenizer.do_lower_case


def test_without_tensorflow_an_original_checkpoint_is_one_line_that_says_how_to_get_it(
    tensorflow_folder, tmp_path, monkeypatch, fails
):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    message = fails(tensorflow_folder[0], tmp_path / "new", "--to", "paddle_rope")
    assert "tensorflow is not installed; pip install 'tensorflow-cpu" in message
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "kind, theirs", [(CharTokenizer, "BertTokenizer"), (WordTokenizer, "RoFormerTokenizer")], ids=lambda kind: str(kind)
)
def test_tokenizer_files_go_along(kind, theirs, tmp_path):
    RoFormerModel(RoFormerConfig(**SIZES)).save_pretrained(str(tmp_path / "ours"))
    kind(VOCAB, do_lower_case=False).save_pretrained(tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "theirs", "huggingface")
    settings = json.loads((tmp_path / "theirs/tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings == {"tokenizer_class": theirs, "do_lower_case": False}
    convert(tmp_path / "theirs", tmp_path / "again", "paddle_rope")
    tokenizer = load_tokenizer(tmp_path / "again")
    assert type(tokenizer) is kind
    assert tokenizer.vocab == VOCAB
    assert not tokenizer.do_lower_case


def test_what_a_user_can_mend_is_one_line(tmp_path, fails):
    source, new = DATA / "hf_tiny", tmp_path / "new"
    assert "no such folder" in fails(tmp_path / "missing", new, "--to", "paddle_rope")
    assert "invalid choice: 'onnx'" in fails(source, new, "--to", "onnx")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert "full: is not empty; give another folder" in fails(source, tmp_path / "full", "--to", "paddle_rope")
    assert "is a file; give another folder" in fails(source, tmp_path / "full/file", "--to", "paddle_rope")
    assert "is not a writable folder" in fails(source, tmp_path / "a/b", "--to", "paddle_rope")
    RoFormerModel(RoFormerConfig(**SIZES, attention="linear")).save_pretrained(str(tmp_path / "linear"))
    message = fails(tmp_path / "linear", new, "--to", "huggingface")
    assert "Hugging Face's RoFormer does not have attention 'linear'" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "linear"]


def test_a_conversion_that_fails_half_way_leaves_nothing(tmp_path, monkeypatch, fails):
    def broken(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(RoFormerForMaskedLM, "save_pretrained", broken)
    assert "no space left" in fails(DATA / "hf_tiny", tmp_path / "new", "--to", "paddle_rope")
    assert list(tmp_path.iterdir()) == []


def test_converted_models_compute_the_same(tmp_path):
    convert(DATA / "hf_tiny", tmp_path / "ours", "paddle_rope")
    ids = paddle.to_tensor(np.random.randint(0, 40, (2, 30)))
    models = [RoFormerForMaskedLM.from_pretrained(folder) for folder in (DATA / "hf_tiny", tmp_path / "ours")]
    for model in models:
        model.eval()
    first, second = (model(ids).numpy() for model in models)
    np.testing.assert_array_equal(first, second)
