"""Folders of ours and of Hugging Face: same outputs and weights, what is reported and refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import paddle
import pytest
import yaml
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from paddle_rope.roformer import (
    CharTokenizer,
    RoFormerConfig,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    RoFormerModel,
    load_tokenizer,
)
from paddle_rope.roformer.config import ENCODERS, folder_of
from tests.paddle_rope.roformer import encoders
from tests.paddle_rope.roformer.conftest import refused_in_a_line
from tests.paddle_rope.roformer.small_models import evaluated, make, states_equal

DATA = Path(__file__).parent / "data"
MASKED = ["hf_tiny", "hf_tiny_rotary_value"]
CLASSIFIER = "hf_tiny_classifier"


def settings_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


@pytest.fixture
def copied(tmp_path):
    """A fixture of Hugging Face, a case of encoders.py, or ``"ours"``, a small model of ours, with other settings
    (``text``: instead of them) or tensors."""

    def copy(source, without=(), tensors=None, text=None, **settings):
        folder = tmp_path / "copied"
        if source == "ours":
            make(RoFormerModel).save_pretrained(folder)
        elif source in encoders.CASES:
            encoders.write(source, folder)
        else:
            shutil.copytree(DATA / source, folder, ignore=shutil.ignore_patterns(*without, "expected.npz"))
        changed = json.dumps({**settings_of(folder), **settings})
        (folder / "config.json").write_text(text or changed, encoding="utf-8")
        if tensors is not None:
            save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return copy


# ---- Hugging Face's folders
@pytest.mark.parametrize(
    "source, without", [(MASKED[0], "pytorch_model.bin"), (MASKED[0], "model.safetensors"), (MASKED[1], "")]
)
def test_hidden_states_and_logits_are_those_of_hugging_face(source, without, copied, reported):
    folder = copied(source, [without])
    expected = np.load(DATA / source / "expected.npz")
    ids, types = (paddle.to_tensor(expected[name].astype("int64")) for name in ("input_ids", "token_type_ids"))
    mask = np.arange(512) < expected["lengths"][:, np.newaxis]
    model = RoFormerForMaskedLM.from_pretrained(folder)
    assert reported() == ""
    encoder = RoFormerModel.from_pretrained(str(folder))
    assert "not used: cls.predictions." in reported() and "new" not in reported()
    assert np.abs(expected["logits"]).max() > 1
    for one, name in ((encoder, "hidden"), (model, "logits")):
        found = evaluated(one, ids, paddle.to_tensor(mask), types)[mask]
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-4)


def test_the_classifier_is_that_of_hugging_face(reported):
    expected = np.load(DATA / CLASSIFIER / "expected.npz")
    model = RoFormerForSequenceClassification.from_pretrained(DATA / CLASSIFIER)
    assert (model.config.num_labels, reported()) == (3, "")
    inputs = (paddle.to_tensor(expected[name].astype("int64")) for name in ("input_ids", "attention_mask"))
    np.testing.assert_allclose(evaluated(model, *inputs), expected["logits"], rtol=0, atol=1e-4)


# ---- what is new and what is left over
@pytest.mark.parametrize("saved, read, options, new, unused, level", [  # a warning if some are of the encoder
    (RoFormerForMaskedLM, RoFormerForSequenceClassification, {"num_labels": 4}, "classifier.", "lm_head.", "INFO"),
    (RoFormerModel, RoFormerForMaskedLM, {}, "lm_head.", "", "INFO"),
    (RoFormerForMaskedLM, RoFormerModel, {"hidden_dropout_prob": 0.0}, "", "lm_head.", "INFO"),
    (RoFormerModel, RoFormerModel, {"convolutions": True}, "blocks.*.input_convolution.weight (2)", "", "WARNING"),
    (RoFormerModel, RoFormerForMaskedLM, {"attention": "linear", "feature_map": "favor"}, "tion (2)", "", "WARNING"),
    (RoFormerModel, RoFormerForMaskedLM, {"output_gate": False}, "lm_head.", "attention.gate.weight (2)", "WARNING"),
    (RoFormerForMaskedLM, RoFormerModel, {"output_gate": False}, "", "attention.gate.weight (2)", "WARNING"),
    (RoFormerForMaskedLM, RoFormerForMaskedLM, {"output_gate": False}, "", "attention.gate.weight (2)", "WARNING"),
])  # fmt: skip
def test_weights_that_are_new_or_not_used_are_reported(saved, read, options, new, unused, level, tmp_path, caplog):
    caplog.set_level("INFO", logger="paddle_rope")
    model = make(saved, output_gate="output_gate" in options)
    model.save_pretrained(tmp_path / "saved")
    again = read.from_pretrained(tmp_path / "saved", **options)
    assert {name: getattr(again.config, name) for name in options} == options
    lines = [record.getMessage() for record in caplog.records]
    assert level == max(record.levelname for record in caplog.records)
    for words, names in ((": new, ", new), ("not used: ", unused)):
        found = [line.split(words)[1] for line in lines if words in line]
        assert len(found) == bool(names) and all(names in line and "query" not in line for line in found)
    encoder, encoder_again = (getattr(one, "roformer", one).state_dict() for one in (model, again))
    kept = encoder.keys() & encoder_again.keys()
    assert len(kept) > 20 and all((encoder_again[name].numpy() == encoder[name].numpy()).all() for name in kept)
    again.save_pretrained(tmp_path / "again")
    caplog.clear()
    assert states_equal(read.from_pretrained(tmp_path / "again"), again) and not caplog.records


# ---- refused: one line that names the folder, before memory is taken

REFUSED = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))
EMBEDDING, LARGE = np.zeros((40, 12), np.float32), {"intermediate_size": 2**18, "num_hidden_layers": 100}
WRONG_OURS = [
    ({"tensors": {"token_embedding.weight": EMBEDDING + np.nan}}, "NaN or infinite: token_embedding.weight; copy"),
    ({"tensors": {"weight": EMBEDDING}}, "no weights of a RoFormer"),
    ({"tensors": {"token_embedding.weight": EMBEDDING}, **LARGE}, "lacks weights of [0-9,]+"),
    *(({"text": begin * 10**5}, "config.json: is nested too deep") for begin in ("[", '{"a":')),
]
ROWS = [(source, *row) for source in ("hf_tiny", "ours") for row in (*REFUSED["any folder"], *REFUSED[source])]
ROWS += [*(("ours", *row) for row in WRONG_OURS), *REFUSED["encoders"]]
OTHERS = ("albert", "nezha", "xlm-roberta", "deberta-v2", "ernie_m", "roberta", "distilbert")
ROWS += [("BertForMaskedLM", {"model_type": one}, f"'{one}'; the models that can be read are") for one in OTHERS]


@pytest.mark.parametrize("source, changes, message", ROWS, ids=lambda value: str(value)[:60])
def test_a_configuration_or_weights_that_do_not_fit_are_refused(source, changes, message, copied):
    folder = copied(source, **changes)
    with refused_in_a_line(message) as raised:
        RoFormerModel.from_pretrained(folder)
    assert str(raised.value).count(str(folder)) == 1


def test_a_tied_decoder_may_stand_for_the_embedding_and_an_untied_one_is_refused(copied):
    tensors, embedding = load_file(DATA / "hf_tiny/model.safetensors"), "roformer.embeddings.word_embeddings.weight"
    tensors["cls.predictions.decoder.weight"] = tensors.pop(embedding)
    folder = copied("hf_tiny", tensors=tensors)
    assert states_equal(*(RoFormerForMaskedLM.from_pretrained(one) for one in (folder, DATA / "hf_tiny")))
    tensors[embedding] = tensors["cls.predictions.decoder.weight"] + 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"cls\.predictions\.decoder\.weight is not equal to .*word_embeddings"):
        RoFormerModel.from_pretrained(folder)


@pytest.mark.parametrize("file, message", [
    (None, "no such folder.* nothing is downloaded"),
    ("other", "config.json is missing$"),
    ("bert_config.json", "convert it with paddle-rope convert-weights"),
    ("model/config.json", "; give .*model$"),
    ("config.json", "no weights here; one of model.safetensors, pytorch_model.bin, "),
])  # fmt: skip
def test_a_folder_without_a_model_is_refused_and_says_what_to_do(file, message, tmp_path):
    if file is not None:
        (tmp_path / "folder/model").mkdir(parents=True)
        (tmp_path / "folder" / file).write_text('{"model_type": "roformer"}', encoding="utf-8")
    with pytest.raises(ValueError, match=f"{tmp_path / 'folder'}: .*{message}"):
        RoFormerModel.from_pretrained(tmp_path / "folder")


@pytest.mark.parametrize("dtype, stored", [("float32", "F32"), ("bfloat16", "BF16"), ("float16", "F16")])
def test_a_model_is_stored_in_the_dtype_of_its_weights(dtype, stored, tmp_path):
    model = make(RoFormerModel)
    model.to(dtype=dtype)
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="np") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {stored}  # noqa: SIM118  not a dict
    model.to(dtype="float32")  # which is exact
    assert states_equal(RoFormerModel.from_pretrained(tmp_path), model)


# ---- the encoder that comes with the package
@pytest.mark.parametrize("text, hidden", [("他在北京大学学习历史。", 3), ("公司与员工签订劳动合同。", 9)])
def test_the_small_encoder_fills_in_a_hidden_character(text, hidden):
    tokenizer, model = load_tokenizer("small"), RoFormerForMaskedLM.from_pretrained("small")
    ids = tokenizer.encode(text).ids
    at = ids.index(tokenizer.vocab.index(text[hidden]))
    ids[at] = tokenizer.mask_token_id
    assert tokenizer.vocab[int(model(paddle.to_tensor([ids]))[0, at].argmax())] == text[hidden]


def test_a_folder_of_this_name_goes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_of("small") == ENCODERS / "small" and folder_of("runs/mine") == "runs/mine"
    assert CharTokenizer.from_pretrained("small").vocab == load_tokenizer("small").vocab
    assert RoFormerConfig.from_pretrained("small").hidden_size == 256
    make(RoFormerModel).save_pretrained("small")
    assert folder_of("small") == "small"
    assert RoFormerModel.from_pretrained("small").config.hidden_size < 256


def test_a_model_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    model = make(RoFormerModel)
    model.save_pretrained(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        model.save_pretrained(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
