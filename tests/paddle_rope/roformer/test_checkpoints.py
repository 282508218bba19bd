"""Checkpoints of Hugging Face and of ours: same outputs, bit-equal round trips, messages."""

import inspect
import json
import shutil
from pathlib import Path

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file, save_file

from paddle_rope.roformer import (
    RoFormerConfig,
    RoFormerForCausalLM,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    RoFormerModel,
)
from paddle_rope.roformer.checkpoints.huggingface import EXPRESSED, UNUSED, write_huggingface
from paddle_rope.roformer.checkpoints.reading import read_checkpoint
from tasks.ner.model import NerModel
from tests.paddle_rope.roformer.small_models import OURS, evaluated, randomise

DATA = Path(__file__).parent / "data"
HUGGINGFACE = ["hf_tiny", "hf_tiny_rotary_value"]


def folder_of(source, tmp_path, name="folder", without=(), settings=None, tensors=None):
    """A copy of a Hugging Face fixture with other settings or tensors."""
    folder = tmp_path / name
    shutil.copytree(DATA / source, folder, ignore=shutil.ignore_patterns(*without, "expected.npz"))
    if settings:
        stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**stored, **settings}), encoding="utf-8")
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("source", HUGGINGFACE)
@pytest.mark.parametrize("without", ["pytorch_model.bin", "model.safetensors"])
def test_hidden_states_and_logits_are_those_of_hugging_face(source, without, tmp_path, reported):
    folder = folder_of(source, tmp_path, without=[without])
    expected = np.load(DATA / source / "expected.npz")
    ids, types = (paddle.to_tensor(expected[name].astype("int64")) for name in ("input_ids", "token_type_ids"))
    mask = np.arange(512) < expected["lengths"][:, np.newaxis]
    model = RoFormerForMaskedLM.from_pretrained(folder)
    assert reported() == ""
    encoder = RoFormerModel.from_pretrained(str(folder))
    assert "not used: cls.predictions." in reported()
    assert "new" not in reported()
    hidden = evaluated(encoder, ids, paddle.to_tensor(mask), types)
    logits = evaluated(model, ids, paddle.to_tensor(mask), types)
    assert np.abs(expected["logits"]).max() > 1
    np.testing.assert_allclose(hidden[mask], expected["hidden"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(logits[mask], expected["logits"], rtol=0, atol=1e-4)
    for row, length in enumerate(expected["lengths"]):  # the same texts without padding
        alone = evaluated(model, ids[row : row + 1, :length], None, types[row : row + 1, :length])[0]
        start = int(expected["lengths"][:row].sum())
        np.testing.assert_allclose(alone, expected["logits"][start : start + length], rtol=0, atol=1e-4)


def test_a_checkpoint_in_parts_is_the_same(tmp_path, reported):
    folder = folder_of("hf_tiny", tmp_path, without=["model.safetensors", "pytorch_model.bin"])
    tensors = load_file(DATA / "hf_tiny/model.safetensors")
    parts = {f"model-0000{part}-of-00002.safetensors": sorted(tensors)[part - 1 :: 2] for part in (1, 2)}
    for name, names in parts.items():
        save_file({key: tensors[key] for key in names}, folder / name, metadata={"format": "pt"})
    index = {"weight_map": {key: name for name, names in parts.items() for key in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    whole, joined = (RoFormerForMaskedLM.from_pretrained(path).state_dict() for path in (DATA / "hf_tiny", folder))
    assert all((joined[name].numpy() == whole[name].numpy()).all() for name in whole)
    assert reported() == ""


def test_the_options_of_hugging_face_are_kept():
    config = RoFormerModel.from_pretrained(DATA / "hf_tiny_rotary_value").config
    assert config.position_embedding == "qkv"
    assert config.hidden_act == "gelu_tanh"
    assert config.layer_norm_eps == 1e-3
    assert (config.type_vocab_size, config.version, config.causal) == (2, 1, False)
    assert RoFormerModel.from_pretrained(DATA / "hf_tiny").config.embedding_size == 24


def test_the_classifier_is_that_of_hugging_face(reported):
    folder = DATA / "hf_tiny_classifier"
    expected = np.load(folder / "expected.npz")
    model = RoFormerForSequenceClassification.from_pretrained(folder)
    assert model.config.num_labels == 3
    assert reported() == ""
    inputs = (paddle.to_tensor(expected[name].astype("int64")) for name in ("input_ids", "attention_mask"))
    np.testing.assert_allclose(evaluated(model, *inputs), expected["logits"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("source", [*HUGGINGFACE, "hf_tiny_classifier"])
def test_written_as_hugging_face_the_tensors_are_bit_equal(source, tmp_path):
    kind = RoFormerForSequenceClassification if "classifier" in source else RoFormerForMaskedLM
    longest = json.loads((DATA / source / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"]
    write_huggingface(kind.from_pretrained(DATA / source), tmp_path, longest)
    stored, written = load_file(DATA / source / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    assert set(stored) == set(written)
    for name in stored:
        np.testing.assert_array_equal(written[name], stored[name])
    settings, stored = (
        json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in (tmp_path, DATA / source)
    )
    assert {key: stored.get(key) for key in settings} == settings


@pytest.mark.parametrize(
    "kind", [RoFormerModel, RoFormerForMaskedLM, RoFormerForCausalLM, RoFormerForSequenceClassification]
)
@pytest.mark.parametrize(
    "options", [{"type_vocab_size": 3, "embedding_size": 20}, {"position_embedding": "qkv"}], ids=str
)
def test_a_round_trip_through_hugging_face_is_bit_equal(kind, options, tmp_path, reported):
    if kind is RoFormerForSequenceClassification:
        options = {**options, "classifier_activation": "gelu", "num_labels": 5}
    model = randomise(kind(kind.config_class(**OURS, **options)))
    write_huggingface(model, tmp_path, max_position_embeddings=20)
    again = kind.from_pretrained(tmp_path)
    assert reported() == ""
    state, state_again = model.state_dict(), again.state_dict()
    added = set(state_again) - set(state)
    assert not set(state) - set(state_again)
    assert {name.split(".")[-2] for name in added} == (
        set() if "type_vocab_size" in options else {"token_type_embedding"}
    )
    for name in state:
        np.testing.assert_array_equal(state_again[name].numpy(), state[name].numpy())
    ids = paddle.to_tensor(np.random.randint(0, 40, (2, 30)))
    np.testing.assert_array_equal(evaluated(again, ids), evaluated(model, ids))
    again.save_pretrained(str(tmp_path / "ours"))
    loaded = kind.from_pretrained(tmp_path / "ours").state_dict()
    assert all((loaded[name].numpy() == state_again[name].numpy()).all() for name in state_again)


@pytest.mark.parametrize(
    "options, named",
    [
        ({"version": 2}, "version 2"),
        ({"attention": "linear"}, "attention .*linear"),
        ({"attention": ["softmax", "linear"]}, "attention .*linear"),
        ({"position_embedding": "vo"}, "position_embedding 'vo'"),
        ({"position_embedding": "none"}, "position_embedding 'none'"),
        ({"rotary": {"base": 500.0}}, "rotary"),
        ({"rotary": {"layout": "half"}}, "rotary"),
        ({"rotary": {"rotary_dim": 4}}, "rotary"),
        ({"rotary": {"scaling": {"type": "ntk", "factor": 4}}}, "rotary"),
        ({"rotary": {"learned": True}}, "rotary"),
        ({"share_kv": True}, "share_kv True"),
        ({"attention": "window"}, "attention .*window"),
        ({"convolutions": True}, "convolutions True"),
        ({"output_gate": True}, "output_gate True"),
    ],
    ids=str,
)
def test_what_hugging_face_cannot_express_is_an_error_that_names_it(options, named, tmp_path):
    model = RoFormerModel(RoFormerConfig(**{**OURS, **options}))
    with pytest.raises(ValueError, match=named):
        write_huggingface(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_every_option_that_is_not_allowed_must_have_its_default(tmp_path):
    names = {*inspect.signature(RoFormerConfig).parameters} - {"kwargs", *EXPRESSED, *UNUSED}
    assert {"version", "attention", "output_gate"} <= names
    model = RoFormerModel(RoFormerConfig(**OURS))
    for name in names - {"attention"}:
        default = getattr(model.config, name)
        setattr(model.config, name, "another")
        with pytest.raises(ValueError, match=f"{name} 'another'"):
            write_huggingface(model, tmp_path / "new")
        setattr(model.config, name, default)


@pytest.mark.parametrize(
    "options", [{"attention_window": 3}, {"feature_map": "relu"}, {"rotary": {"base": 10000.0}}], ids=str
)
def test_an_option_that_the_model_does_not_use_is_no_reason_to_refuse(options, tmp_path):
    write_huggingface(RoFormerModel(RoFormerConfig(**OURS, **options)), tmp_path, max_position_embeddings=20)
    assert (tmp_path / "model.safetensors").is_file()


def test_half_precision_is_written_as_its_numbers(tmp_path):
    model = randomise(RoFormerModel(RoFormerConfig(**OURS)))
    model.to(dtype="bfloat16")
    write_huggingface(model, tmp_path, max_position_embeddings=20)
    again = RoFormerModel.from_pretrained(tmp_path)
    name = "token_embedding.weight"
    written, expected = again.state_dict()[name], model.state_dict()[name]
    np.testing.assert_array_equal(written.numpy(), expected.astype("float32").numpy())


def test_junnyus_version_2_is_read(tmp_path):
    model = randomise(RoFormerForMaskedLM(RoFormerConfig(**OURS, version=2, hidden_act="relu", type_vocab_size=2)))
    as_version_1 = RoFormerForMaskedLM(RoFormerConfig(**OURS, type_vocab_size=2))
    for name, weight in model.state_dict().items():
        as_version_1.state_dict()[name].set_value(weight)
    write_huggingface(as_version_1, tmp_path / "v1")
    tensors = {
        name: array
        for name, array in load_file(tmp_path / "v1/model.safetensors").items()
        if not name.endswith("bias") and "LayerNorm" not in name and "transform" not in name
    }
    tensors["cls.predictions.decoder.weight"] = tensors["roformer.embeddings.word_embeddings.weight"]
    settings = json.loads((tmp_path / "v1/config.json").read_text(encoding="utf-8"))
    settings.update(norm_type="rms_norm", use_bias=False, hidden_act="relu")
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    save_file(tensors, tmp_path / "model.safetensors")
    again = RoFormerForMaskedLM.from_pretrained(tmp_path)
    ids = paddle.to_tensor(np.random.randint(0, 40, (2, 30)))
    np.testing.assert_array_equal(evaluated(again, ids), evaluated(model, ids))


def test_a_softmax_checkpoint_becomes_a_linear_model(reported):
    model = RoFormerForMaskedLM.from_pretrained(DATA / "hf_tiny", attention="linear", feature_map="favor")
    softmax = RoFormerForMaskedLM.from_pretrained(DATA / "hf_tiny")
    assert model.config.attention == "linear"
    assert reported() == (
        f"RoFormerForMaskedLM from {DATA / 'hf_tiny'}: new, as initialized: "
        "roformer.blocks.*.attention.feature_map.projection (2)"
    )
    state = model.state_dict()
    for name, weight in softmax.state_dict().items():
        np.testing.assert_array_equal(state[name].numpy(), weight.numpy())
    ids = paddle.to_tensor(np.random.randint(0, 40, (1, 9)))
    assert np.abs(evaluated(model, ids) - evaluated(softmax, ids)).max() > 1e-2


def test_convolutions_and_gate_are_kept_and_new_ones_are_named(tmp_path, reported):
    options = {"convolutions": True, "output_gate": True, "attention": ["linear", "softmax"]}
    plain = randomise(RoFormerModel(RoFormerConfig(**OURS)))
    plain.save_pretrained(str(tmp_path / "plain"))
    model = RoFormerModel.from_pretrained(tmp_path / "plain", **options)
    places = ["input_convolution.weight", "attention.output_convolution.weight", "attention.gate.weight"]
    for place in (*places, "attention.gate.bias"):
        assert place in reported()
    assert "query.weight" not in reported()
    randomise(model).save_pretrained(str(tmp_path / "model"))
    before = reported()
    again = RoFormerModel.from_pretrained(tmp_path / "model")
    assert reported() == before
    assert {name: getattr(again.config, name) for name in options} == options
    ids = paddle.to_tensor(np.random.randint(0, 40, (2, 9)))
    np.testing.assert_array_equal(evaluated(again, ids), evaluated(model, ids))


def test_folders_of_ours_report_what_is_new_and_what_is_not_used(tmp_path, reported):
    model = RoFormerForMaskedLM(RoFormerConfig(**OURS))
    model.save_pretrained(str(tmp_path))
    classifier = RoFormerForSequenceClassification.from_pretrained(tmp_path, num_labels=4, hidden_dropout_prob=0.0)
    assert (classifier.config.num_labels, classifier.config.hidden_dropout_prob) == (4, 0.0)
    assert reported().splitlines() == [
        f"RoFormerForSequenceClassification from {tmp_path}: new, as initialized: classifier.dense.weight, "
        "classifier.dense.bias, classifier.output.weight, classifier.output.bias",
        f"RoFormerForSequenceClassification from {tmp_path}: in the folder, but not used: lm_head.bias, "
        "lm_head.dense.bias, lm_head.dense.weight, lm_head.norm.bias, lm_head.norm.weight",
    ]
    state = model.state_dict()
    assert all(
        (weight.numpy() == state[name].numpy()).all()
        for name, weight in classifier.state_dict().items()
        if name.startswith("roformer.")
    )


def test_an_encoder_is_read_into_a_model_with_a_head_and_the_reverse(tmp_path, reported):
    encoder = RoFormerModel(RoFormerConfig(**OURS))
    encoder.save_pretrained(str(tmp_path / "encoder"))  # pickled
    headed = RoFormerForMaskedLM.from_pretrained(tmp_path / "encoder")
    assert "new, as initialized: lm_head.bias" in reported()
    headed.save_pretrained(str(tmp_path / "headed"))
    again = RoFormerModel.from_pretrained(tmp_path / "headed")
    for name, weight in encoder.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].numpy(), weight.numpy())


def test_a_ner_model_takes_its_encoder_from_hugging_face(tmp_path, reported):
    model = NerModel.from_pretrained(DATA / "hf_tiny", types=["人名", "place"], head_size=6)
    assert model.config.types == ["人名", "place"]
    assert "NerModel" in reported()
    new, unused = reported().splitlines()
    assert "new, as initialized: head." in new
    assert "roformer." not in new
    assert "cls.predictions.bias" in unused
    encoder = RoFormerModel.from_pretrained(DATA / "hf_tiny")
    for name, weight in encoder.state_dict().items():
        np.testing.assert_array_equal(model.roformer.state_dict()[name].numpy(), weight.numpy())
    model.save_pretrained(str(tmp_path))
    assert NerModel.from_pretrained(tmp_path).config.types == ["人名", "place"]


def test_other_heads_are_left_and_named(tmp_path, reported):
    tensors = load_file(DATA / "hf_tiny/model.safetensors")
    tensors["qa_outputs.weight"] = np.zeros((2, 32), np.float32)
    folder = folder_of("hf_tiny", tmp_path, tensors=tensors)
    RoFormerForMaskedLM.from_pretrained(folder)
    assert reported() == f"RoFormerForMaskedLM from {folder}: in the folder, but not used: qa_outputs.weight"


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"hidden_act": "swish"}, "hidden_act is 'swish'; known are gelu, "),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"model_type": "bert"}, "model_type is 'bert'; only RoFormer and RoFormerV2 can be read"),
        ({"vocab_size": "many"}, "vocab_size must be an integer .* got 'many'"),
        ({"norm_type": "rms_norm", "use_bias": True}, "use_bias is True in its configuration; only False"),
        ({"num_hidden_layers": 3}, r"missing: roformer\.encoder\.layer\.2\.attention\.self\.query\.weight, "),
        ({"num_hidden_layers": 1}, r"left over: roformer\.encoder\.layer\.1\.attention\.output\.LayerNorm\.bias, "),
        (
            {"vocab_size": 41},
            r"of another shape: roformer\.embeddings\.word_embeddings\.weight \[40, 24\] instead of \[41, 24\], "
            r"cls\.predictions\.bias",
        ),
        ({"intermediate_size": 7}, r"intermediate\.dense\.weight \[48, 32\] instead of \[7, 32\]"),
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit_is_an_error_that_names_it(settings, message, tmp_path):
    folder = folder_of("hf_tiny", tmp_path, settings=settings)
    with pytest.raises(ValueError, match=message) as raised:
        RoFormerModel.from_pretrained(folder)
    assert str(folder) in str(raised.value)


def test_an_untied_decoder_is_an_error(tmp_path):
    tensors = load_file(DATA / "hf_tiny/model.safetensors")
    tensors["cls.predictions.decoder.weight"] = tensors["roformer.embeddings.word_embeddings.weight"] + 1
    folder = folder_of("hf_tiny", tmp_path, tensors=tensors)
    with pytest.raises(ValueError, match=r"cls\.predictions\.decoder\.weight is not equal to .*word_embeddings"):
        read_checkpoint(folder)


@pytest.mark.parametrize("name", ["junnyu/roformer_chinese_base", "nowhere"])
def test_a_name_that_is_no_folder_is_an_error_that_says_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"{name}: no such folder.*nothing is downloaded: get the files first"):
        RoFormerModel.from_pretrained(name)
    assert not list(tmp_path.iterdir())


def test_folders_without_a_model_are_errors_that_say_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match="no model here, config.json is missing$"):
        RoFormerModel.from_pretrained(tmp_path)
    (tmp_path / "bert_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="convert it with paddle-rope convert-weights"):
        RoFormerModel.from_pretrained(tmp_path)
    folder = folder_of("hf_tiny", tmp_path, without=["model.safetensors", "pytorch_model.bin"])
    with pytest.raises(ValueError, match="no weights here; one of model.safetensors, pytorch_model.bin, "):
        RoFormerModel.from_pretrained(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="config.json: is not JSON"):
        RoFormerModel.from_pretrained(folder)


def test_options_that_do_not_exist_or_do_not_fit_are_errors():
    with pytest.raises(ValueError, match="RoFormerConfig has no option 'atention'; the nearest is 'attention'"):
        RoFormerModel.from_pretrained(DATA / "hf_tiny", atention="linear")
    with pytest.raises(TypeError, match="weights are read as float32"):
        RoFormerModel.from_pretrained(DATA / "hf_tiny", dtype="float16")
    with pytest.raises(TypeError, match="give config or attention, not both"):
        RoFormerModel.from_pretrained(DATA / "hf_tiny", RoFormerConfig(), attention="linear")
    with pytest.raises(ValueError, match=r"token_embedding.weight is \[40, 24\] there and \[50, 24\] in the model"):
        RoFormerModel.from_pretrained(DATA / "hf_tiny", vocab_size=50)
