"""Folders of PaddleNLP, and of JunnYu's RoFormerV2: same outputs."""

import json

import numpy as np
import paddle
import paddlenlp.transformers as paddlenlp
import pytest
from paddlenlp.transformers.roformer.configuration import RoFormerConfig as PaddlenlpConfig
from paddlenlp.transformers.roformerv2.configuration import RoFormerv2Config as PaddlenlpV2Config
from safetensors.numpy import load_file, save_file

from paddle_rope.roformer import RoFormerForMaskedLM, RoFormerForSequenceClassification, RoFormerModel
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from tests.paddle_rope.roformer.small_models import SIZES, evaluated, make, random_ids, randomise

THEIRS = {**SIZES, "max_position_embeddings": 512}
ROTARY_VALUE = {"embedding_size": 12, "rotary_value": True, "hidden_act": "relu"}
FORMS = {
    "v1": (PaddlenlpConfig, "RoFormer", {"embedding_size": 8}),
    "v1 rotary value": (PaddlenlpConfig, "RoFormer", ROTARY_VALUE),
    "v2": (PaddlenlpV2Config, "RoFormerv2", {"layer_norm_eps": 1e-3}),  # which it does not use
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


@pytest.mark.parametrize("which", FORMS)
@pytest.mark.parametrize("saved", ["Model", "ForMaskedLM"])
@pytest.mark.parametrize("safetensors", [True, False], ids=["safetensors", "pdparams"])
def test_hidden_states_and_logits_are_those_of_paddlenlp(which, saved, safetensors, tmp_path, reported):
    config_class, stem, options = FORMS[which]
    theirs = randomise(getattr(paddlenlp, stem + saved)(config_class(**THEIRS, **options)))
    theirs.save_pretrained(str(tmp_path), safe_serialization=safetensors)
    ours = {"Model": RoFormerModel, "ForMaskedLM": RoFormerForMaskedLM}[saved].from_pretrained(tmp_path)
    assert ours.config.version == (2 if which == "v2" else 1)
    assert "new" not in reported()
    for lengths in ([1], [7, 3], [512, 511, 1]):
        assert_same(ours, theirs, *lengths)
        assert_same(
            RoFormerModel.from_pretrained(tmp_path), getattr(theirs, theirs.base_model_prefix, theirs), *lengths
        )


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


def test_junnyus_version_2_is_read(tmp_path):
    model = make(RoFormerForMaskedLM, version=2, hidden_act="relu", type_vocab_size=2)
    as_version_1 = make(RoFormerForMaskedLM, type_vocab_size=2)
    as_version_1.set_state_dict(model.state_dict())
    write_huggingface(as_version_1, tmp_path)
    tensors = {
        name: array
        for name, array in load_file(tmp_path / "model.safetensors").items()
        if not name.endswith("bias") and "LayerNorm" not in name and "transform" not in name
    }
    tensors["cls.predictions.decoder.weight"] = tensors["roformer.embeddings.word_embeddings.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    settings = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    settings.update(norm_type="rms_norm", use_bias=False, hidden_act="relu")
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    ids = random_ids(2, 30)
    again = RoFormerForMaskedLM.from_pretrained(tmp_path)
    np.testing.assert_array_equal(evaluated(again, ids), evaluated(model, ids))
