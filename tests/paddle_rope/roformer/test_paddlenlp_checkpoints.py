"""Checkpoints of PaddleNLP: same outputs, and its older configuration."""

import json

import numpy as np
import paddle
import paddlenlp.transformers as paddlenlp
import pytest
from paddlenlp.transformers.roformer.configuration import RoFormerConfig as PaddlenlpConfig
from paddlenlp.transformers.roformerv2.configuration import RoFormerv2Config as PaddlenlpV2Config

from paddle_rope.roformer import RoFormerForMaskedLM, RoFormerForSequenceClassification, RoFormerModel
from tests.paddle_rope.roformer.small_models import SIZES, evaluated, randomise

BATCHES = [[1], [2, 1], [7, 3], [64, 33], [512, 511, 1]]
PADDLENLP = {
    "v1": (PaddlenlpConfig, "RoFormer", {"embedding_size": 24}),
    "v1 rotary value": (
        PaddlenlpConfig,
        "RoFormer",
        {"embedding_size": 32, "rotary_value": True, "hidden_act": "relu"},
    ),
    "v2": (PaddlenlpV2Config, "RoFormerv2", {}),
}


def padded_batch(lengths, vocab_size=40):
    """Right-padded ids, mask and token types; 0 at padding only, as PaddleNLP takes it."""
    mask = np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
    ids = np.where(mask, np.random.randint(1, vocab_size, mask.shape), 0)
    return ids, mask.astype("int64"), np.where(mask, np.random.randint(0, 2, mask.shape), 0)


@pytest.mark.parametrize("which", PADDLENLP)
@pytest.mark.parametrize("saved", ["Model", "ForMaskedLM"])
@pytest.mark.parametrize("safetensors", [True, False], ids=["safetensors", "pdparams"])
def test_hidden_states_and_logits_are_those_of_paddlenlp(which, saved, safetensors, tmp_path, reported):
    config_class, stem, options = PADDLENLP[which]
    theirs = randomise(getattr(paddlenlp, stem + saved)(config_class(**SIZES, **options)))
    theirs.save_pretrained(str(tmp_path), safe_serialization=safetensors)
    kind = {"Model": RoFormerModel, "ForMaskedLM": RoFormerForMaskedLM}[saved]
    ours = kind.from_pretrained(tmp_path)
    assert ours.config.version == (2 if which == "v2" else 1)
    assert "new" not in reported()
    encoder = getattr(theirs, theirs.base_model_prefix, theirs)
    our_encoder = RoFormerModel.from_pretrained(tmp_path)
    for lengths in BATCHES:
        ids, mask, types = map(paddle.to_tensor, padded_batch(lengths))
        with paddle.no_grad():
            hidden = encoder(ids, token_type_ids=types, attention_mask=mask)
            hidden = (hidden[0] if isinstance(hidden, tuple) else hidden).numpy()
        real = mask.numpy().astype(bool)
        np.testing.assert_allclose(evaluated(our_encoder, ids, mask, types)[real], hidden[real], rtol=0, atol=1e-4)
        if saved == "ForMaskedLM":
            with paddle.no_grad():
                logits = theirs(ids, token_type_ids=types, attention_mask=mask).numpy()
            np.testing.assert_allclose(evaluated(ours, ids, mask, types)[real], logits[real], rtol=0, atol=1e-4)


def test_the_classifier_is_that_of_paddlenlp(tmp_path, reported):
    theirs = randomise(
        paddlenlp.RoFormerForSequenceClassification(PaddlenlpConfig(**SIZES, embedding_size=32, num_labels=3))
    )
    theirs.save_pretrained(str(tmp_path))
    ours = RoFormerForSequenceClassification.from_pretrained(tmp_path)
    assert reported() == ""
    ids, mask, types = map(paddle.to_tensor, padded_batch([9, 4, 1]))
    with paddle.no_grad():
        logits = theirs(ids, token_type_ids=types, attention_mask=mask).numpy()
    np.testing.assert_allclose(evaluated(ours, ids, mask, types), logits, rtol=0, atol=1e-4)


def test_paddlenlps_older_configuration_is_read(tmp_path):
    theirs = randomise(paddlenlp.RoFormerForMaskedLM(PaddlenlpConfig(**SIZES, embedding_size=24)))
    theirs.save_pretrained(str(tmp_path))
    (tmp_path / "config.json").unlink()
    inner = {**SIZES, "embedding_size": 24, "pad_token_id": 0, "pool_act": "tanh", "init_class": "RoFormerModel"}
    older = {"init_args": [inner], "init_class": "RoFormerForMaskedLM"}
    (tmp_path / "model_config.json").write_text(json.dumps(older), encoding="utf-8")
    ids, mask, types = map(paddle.to_tensor, padded_batch([9, 4]))
    with paddle.no_grad():
        logits = theirs(ids, token_type_ids=types, attention_mask=mask).numpy()
    ours = evaluated(RoFormerForMaskedLM.from_pretrained(tmp_path), ids, mask, types)
    np.testing.assert_allclose(ours[mask.numpy() == 1], logits[mask.numpy() == 1], rtol=0, atol=1e-4)
