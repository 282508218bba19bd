"""Weights of others: paddle-rope convert-weights, folders of PaddleNLP, and of JunnYu's RoFormerV2."""

import itertools
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import paddle
import paddlenlp.transformers as paddlenlp
import pytest
from paddlenlp.transformers.bert.configuration import BertConfig
from paddlenlp.transformers.electra.configuration import ElectraConfig
from paddlenlp.transformers.ernie.configuration import ErnieConfig
from paddlenlp.transformers.roformer.configuration import RoFormerConfig as PaddlenlpConfig
from paddlenlp.transformers.roformerv2.configuration import RoFormerv2Config as PaddlenlpV2Config
from safetensors.numpy import load_file, save_file

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
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from paddle_rope.roformer.checkpoints.names import TENSORFLOW, source_names
from paddle_rope.roformer.config import ENCODERS
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.word_vectors import VECTORS_FILE, WORDS_FILE
from tests.paddle_rope.roformer.small_models import SIZES, evaluated, make, random_ids, randomise, states_equal

DATA = Path(__file__).parent / "data"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(chr, range(0x4E00, 0x4E00 + 36))]
POSITIONS = "roformer.encoder.embed_positions.weight"


def convert(source, target, to):
    assert main(["convert-weights", str(source), str(target), "--to", to]) == 0


@pytest.mark.parametrize("kind, options, tokenizer, theirs", [
    (RoFormerModel, {"embedding_size": 20}, CharTokenizer, "BertTokenizer"),
    (RoFormerForCausalLM, {"type_vocab_size": 3}, WordTokenizer, "RoFormerTokenizer"),
    (RoFormerForMaskedLM, {"position_embedding": "qkv", "hidden_act": "gelu_tanh"}, None, None),
    (RoFormerForSequenceClassification, {"classifier_activation": "gelu", "num_labels": 5}, None, None),
])  # fmt: skip
def test_from_ours_to_hugging_face_and_back_is_bit_equal(kind, options, tokenizer, theirs, tmp_path, reported):
    model = make(kind, **options)
    model.save_pretrained(tmp_path / "ours")
    if tokenizer is not None:
        tokenizer(VOCAB, do_lower_case=False).save_pretrained(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()  # empty: may be taken
    convert(tmp_path / "ours", tmp_path / "theirs", "huggingface")
    convert(tmp_path / "theirs", tmp_path / "again", "paddle_rope")
    again = kind.from_pretrained(tmp_path / "again")
    types, state, placement = model.config.type_vocab_size, again.state_dict(), model.config.position_embedding
    assert reported() == "" and again.config.position_embedding == placement
    assert RoFormerModel.from_pretrained(tmp_path / "theirs").config.causal == model.config.causal
    added = {name: state.pop(name) for name in [*state] if not types and "token_type_embedding" in name}
    assert all((weight.numpy() == 0).all() and weight.shape[0] == 2 for weight in added.values())
    assert state.keys() == model.state_dict().keys() and len(added) == (not types)
    assert all((state[name].numpy() == weight.numpy()).all() for name, weight in model.state_dict().items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "ours", "theirs"]
    if tokenizer is not None:
        settings = json.loads((tmp_path / "theirs/tokenizer_config.json").read_text(encoding="utf-8"))
        assert settings == {"tokenizer_class": theirs, "do_lower_case": False}
        read = load_tokenizer(tmp_path / "again")
        assert (type(read), read.vocab, read.do_lower_case) == (tokenizer, VOCAB, False)


@pytest.fixture
def tensorflow_folder(tmp_path, monkeypatch):
    """The folder of an original checkpoint of a model; tensorflow is a stand-in, which is not installed for tests."""

    def write(model):
        settings = {**SIZES, "type_vocab_size": 2}
        settings.update(embedding_size=model.config.embedding_size, hidden_act=model.config.hidden_act)
        settings["max_position_embeddings"] = model.config.learned_positions
        state = model.state_dict()
        names = source_names(model.config, TENSORFLOW)
        tensors = {names[name]: weight.numpy() for name, weight in state.items()}
        kernel = np.zeros((12, 12), np.float32)
        tensors |= {"bert/pooler/dense/kernel": kernel, "bert/pooler/dense/kernel/adam_m": kernel}
        reader = SimpleNamespace(
            get_variable_to_shape_map=lambda: {**{name: one.shape for name, one in tensors.items()}, "global_step": ()},
            get_tensor=tensors.__getitem__,
        )
        opened = {str(tmp_path / "original/bert_model.ckpt"): reader}
        train = SimpleNamespace(load_checkpoint=opened.__getitem__)
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(train=train))
        folder = tmp_path / "original"
        folder.mkdir()
        (folder / "bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
        (folder / "bert_model.ckpt.index").touch()
        return folder

    return write


ORIGINAL = [({}, "龦", CharTokenizer), ({"embedding_size": 8}, "中国", WordTokenizer)]
ORIGINAL += [({"version": 2, "hidden_act": "relu"}, "中国", WordTokenizer)]
ORIGINAL += [({"position_embedding": "learned", "learned_positions": 64}, "龦", CharTokenizer)]  # BERT


@pytest.mark.parametrize("options, last, kind", ORIGINAL)
def test_an_original_checkpoint_comes_with_its_vocabulary(options, last, kind, tensorflow_folder, tmp_path, reported):
    model = make(RoFormerForMaskedLM, type_vocab_size=2, **options)
    folder, vocab = tensorflow_folder(model), [*VOCAB[:-1], last]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    for target in ("paddle_rope", "huggingface") if model.config.version == 1 else ("paddle_rope",):
        convert(folder, tmp_path / target, target)
        again = RoFormerForMaskedLM.from_pretrained(tmp_path / target)
        assert states_equal(again, model) and again.config.hidden_act == model.config.hidden_act
        tokenizer = load_tokenizer(tmp_path / target)
        assert (type(tokenizer), tokenizer.vocab, tokenizer.do_lower_case) == (kind, vocab, True)
        if target == "huggingface":
            tensors, is_bert = load_file(tmp_path / target / "model.safetensors"), "position_embedding" in options
            positions = "bert.embeddings.position_embeddings.weight" if is_bert else POSITIONS
            assert tensors[positions].shape[0] == again.config.learned_positions
    assert all(line.endswith("not used: bert/pooler/dense/kernel") for line in reported().splitlines())


def test_the_names_of_an_original_checkpoint_are_those_of_bert4keras():
    of_block = "attention/self/query/kernel attention/self/key/bias attention/output/LayerNorm/gamma output/dense/bias"
    expected = {f"bert/encoder/layer_1/{name}" for name in (*of_block.split(), "intermediate/dense/kernel")}
    expected |= {f"bert/embeddings/{name}" for name in ("word_embeddings", "token_type_embeddings", "LayerNorm/gamma")}
    expected |= {"bert/encoder/embedding_hidden_mapping_in/kernel", "cls/predictions/transform/dense/kernel"}
    config = RoFormerConfig(**SIZES, embedding_size=8, type_vocab_size=2)
    found = {*source_names(config, TENSORFLOW).values()}
    assert found >= {*expected, "cls/predictions/transform/LayerNorm/gamma", "cls/predictions/output_bias"}


def test_an_original_checkpoint_that_cannot_be_read_is_one_line(tensorflow_folder, tmp_path, monkeypatch, refused):
    folder = tensorflow_folder(make(RoFormerForMaskedLM, type_vocab_size=2))
    words = "convert-weights", folder, tmp_path / "new", "--to", "paddle_rope"
    (folder / "bert_model.ckpt.index").rename(folder / "other.index")
    assert "other.index: cannot be read" in refused(*words)
    (folder / "bert_model.ckpt.index").touch()
    assert "2 files *.index" in refused(*words)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert "tensorflow is not installed; pip install 'tensorflow-cpu" in refused(*words)


def test_a_mistake_of_the_user_is_one_line_and_leaves_nothing(tmp_path, refused):
    source, new = DATA / "hf_tiny", tmp_path / "new"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    make(RoFormerModel, attention="linear").save_pretrained(tmp_path / "linear")
    make(RoFormerModel).save_pretrained(tmp_path / "bad")
    (tmp_path / "bad/vocab.txt").write_text("a\na\n", encoding="utf-8")
    for folder, target, to, message in (
        (tmp_path / "missing", new, "paddle_rope", "no such folder"),
        (source, new, "onnx", "invalid choice: 'onnx'"),
        (source, tmp_path / "full", "paddle_rope", "full: is not empty"),
        (source, tmp_path / "full/file", "paddle_rope", "is a file"),
        (tmp_path / "linear", new, "huggingface", "does not have attention 'linear'"),
        (tmp_path / "bad", new, "paddle_rope", "vocab.txt: token 'a' occurs more than once"),  # after the model
    ):
        assert message in refused("convert-weights", folder, target, "--to", to)


@pytest.mark.parametrize("to", ["paddle_rope", "huggingface"])
def test_the_encoder_of_the_package_is_converted_by_its_name_with_its_words(to, tmp_path):
    convert("small", tmp_path / "new", to)
    assert load_tokenizer(tmp_path / "new").vocab == load_tokenizer("small").vocab
    for name in (WORDS_FILE, VECTORS_FILE):
        assert (tmp_path / "new" / name).read_bytes() == (ENCODERS / "small" / name).read_bytes()
    new, small = (RoFormerForMaskedLM.from_pretrained(one).state_dict() for one in (tmp_path / "new", "small"))
    assert all((new[name].numpy() == small[name].numpy()).all() for name in small)


# ---- folders of PaddleNLP, and of JunnYu's RoFormerV2
THEIRS = {**SIZES, "max_position_embeddings": 512}
ROTARY_VALUE = {"embedding_size": 12, "rotary_value": True, "hidden_act": "relu"}
FORMS = {
    "v1": (PaddlenlpConfig, "RoFormer", {"embedding_size": 8}),
    "v1 rotary value": (PaddlenlpConfig, "RoFormer", ROTARY_VALUE),
    "v2": (PaddlenlpV2Config, "RoFormerv2", {"layer_norm_eps": 1e-3}),  # which it does not use
    "bert": (BertConfig, "Bert", {"layer_norm_eps": 1e-3, "hidden_act": "relu"}),
    "electra": (ElectraConfig, "Electra", {"embedding_size": 8}),
    "ernie": (ErnieConfig, "Ernie", {"layer_norm_eps": 1e-3, "use_task_id": True}),  # the first is not used
}


def assert_same(ours, theirs, *lengths):
    """On right-padded ids, 0 at padding only, as PaddleNLP takes it."""
    mask = np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
    ids = np.where(mask, np.random.randint(1, SIZES["vocab_size"], mask.shape), 0)
    ids, types, is_token = (paddle.to_tensor(one) for one in (ids, np.where(mask, ids % 2, 0), mask.astype("int64")))
    with paddle.no_grad():
        expected = theirs(ids, token_type_ids=types, attention_mask=is_token)
    expected = (expected[0] if isinstance(expected, tuple) else expected).numpy()
    found = evaluated(ours, ids, is_token, types)
    real = mask if found.ndim == 3 else ...
    np.testing.assert_allclose(found[real], expected[real], rtol=0, atol=1e-4)


HEADS = {"Model": RoFormerModel, "ForMaskedLM": RoFormerForMaskedLM}
CLASSIFIER = {"ForSequenceClassification": RoFormerForSequenceClassification}


@pytest.mark.parametrize("which, saved", [
    *itertools.product(FORMS, HEADS), *itertools.product(("bert", "electra", "ernie"), CLASSIFIER),
])  # fmt: skip
def test_hidden_states_and_logits_are_those_of_paddlenlp(which, saved, tmp_path, reported):
    config_class, stem, options = FORMS[which]
    theirs = randomise(getattr(paddlenlp, stem + saved)(config_class(**THEIRS, **options, num_labels=3)))
    theirs.save_pretrained(str(tmp_path), safe_serialization=saved == "ForMaskedLM")
    ours = {**HEADS, **CLASSIFIER}[saved].from_pretrained(tmp_path)
    assert ours.config.version == (2 if which == "v2" else 1)
    assert "new" not in reported()
    assert_same(ours, theirs, 512, 511, 7, 1)
    assert_same(RoFormerModel.from_pretrained(tmp_path), getattr(theirs, theirs.base_model_prefix, theirs), 7, 3)


def test_the_classifier_and_an_older_configuration_are_those_of_paddlenlp(tmp_path, reported):
    config = PaddlenlpConfig(**THEIRS, embedding_size=12, num_labels=3)
    theirs = randomise(paddlenlp.RoFormerForSequenceClassification(config))
    theirs.save_pretrained(str(tmp_path))
    assert_same(RoFormerForSequenceClassification.from_pretrained(tmp_path), theirs, 9, 4, 1)
    assert reported() == ""
    (tmp_path / "config.json").unlink()
    inner = {**THEIRS, "embedding_size": 12, "pad_token_id": 0, "pool_act": "tanh", "init_class": "RoFormerModel"}
    older = {"init_args": [inner], "init_class": "RoFormerForSequenceClassification"}
    (tmp_path / "model_config.json").write_text(json.dumps(older), encoding="utf-8")
    assert_same(RoFormerForSequenceClassification.from_pretrained(tmp_path), theirs, 9, 4)
    inner["pool_act"] = inner["hidden_act"] = "gelu"  # the activation of a classifier of Hugging Face's
    (tmp_path / "model_config.json").write_text(json.dumps(older), encoding="utf-8")
    convert(tmp_path, tmp_path / "converted", "huggingface")
    positions = load_file(tmp_path / "converted" / "model.safetensors")[POSITIONS]
    assert len(positions) == THEIRS["max_position_embeddings"]


def test_junnyus_version_2_is_read(tmp_path):
    model = make(RoFormerForMaskedLM, version=2, hidden_act="relu", type_vocab_size=2)
    as_version_1 = make(RoFormerForMaskedLM, type_vocab_size=2)
    as_version_1.set_state_dict(model.state_dict())
    write_huggingface(as_version_1, tmp_path)
    lacks = re.compile("bias$|LayerNorm|transform").search
    tensors = {name: one for name, one in load_file(tmp_path / "model.safetensors").items() if not lacks(name)}
    tensors["cls.predictions.decoder.weight"] = tensors["roformer.embeddings.word_embeddings.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    settings = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    settings.update(norm_type="rms_norm", use_bias=False, hidden_act="relu")
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    ids = random_ids(2, 30)
    again = RoFormerForMaskedLM.from_pretrained(tmp_path)
    np.testing.assert_array_equal(evaluated(again, ids), evaluated(model, ids))
