"""Original TensorFlow checkpoints: the same weights, under the names of bert4keras."""

import json

import numpy as np
import pytest

from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
from paddle_rope.roformer.checkpoints.names import TENSORFLOW, encoder_weights, lm_head_weights
from paddle_rope.roformer.checkpoints.reading import read_tensorflow
from tests.paddle_rope.roformer.small_models import OURS, SIZES, randomise


class FakeReader:
    """What tensorflow.train.load_checkpoint gives."""

    def __init__(self, tensors):
        self.tensors = tensors

    def get_variable_to_shape_map(self):
        return {name: list(array.shape) for name, array in self.tensors.items()}

    def get_tensor(self, name):
        return self.tensors[name]


def as_tensorflow(model, folder):
    """The folder of an original checkpoint, and its tensors, of a model of ours."""
    weights = encoder_weights(model.config, TENSORFLOW) + lm_head_weights(model.config, TENSORFLOW)
    tensors = {weight.source: model.state_dict()[weight.name].numpy() for weight in weights}
    tensors["bert/pooler/dense/kernel"] = tensors["bert/pooler/dense/kernel/adam_m"] = np.zeros((32, 32), np.float32)
    tensors["global_step"] = np.int64(7)
    settings = {**SIZES, "type_vocab_size": 2, "hidden_act": model.config.hidden_act}
    if model.config.embedding_size != 32:
        settings["embedding_size"] = model.config.embedding_size
    (folder / "bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "bert_model.ckpt.index").write_bytes(b"")
    return tensors


@pytest.mark.parametrize("options", [{"embedding_size": 24}, {"version": 2, "hidden_act": "relu"}], ids=str)
def test_an_original_checkpoint_gives_the_same_weights(options, tmp_path):
    model = randomise(RoFormerForMaskedLM(RoFormerConfig(**OURS, **options, type_vocab_size=2)))
    tensors = as_tensorflow(model, tmp_path)
    opened = []
    checkpoint = read_tensorflow(tmp_path, lambda path: opened.append(path) or FakeReader(tensors))
    assert opened == [str(tmp_path / "bert_model.ckpt")]
    config = RoFormerConfig(**checkpoint.config)
    assert {key: getattr(config, key) for key in options} == options
    assert checkpoint.head == "lm"
    assert checkpoint.unused == ["bert/pooler/dense/kernel"]
    state = model.state_dict()
    assert set(checkpoint.tensors) == set(state)
    for name in state:
        np.testing.assert_array_equal(checkpoint.tensors[name], state[name].numpy())


def test_the_names_of_an_original_checkpoint_are_those_of_bert4keras(tmp_path):
    names = set(
        as_tensorflow(RoFormerForMaskedLM(RoFormerConfig(**OURS, embedding_size=24, type_vocab_size=2)), tmp_path)
    )
    assert names >= {
        "bert/embeddings/word_embeddings",
        "bert/embeddings/token_type_embeddings",
        "bert/embeddings/LayerNorm/beta",
        "bert/embeddings/LayerNorm/gamma",
        "bert/encoder/embedding_hidden_mapping_in/kernel",
        "bert/encoder/layer_1/attention/self/query/kernel",
        "bert/encoder/layer_1/attention/self/key/bias",
        "bert/encoder/layer_1/attention/self/value/kernel",
        "bert/encoder/layer_1/attention/output/dense/kernel",
        "bert/encoder/layer_1/attention/output/LayerNorm/gamma",
        "bert/encoder/layer_1/intermediate/dense/kernel",
        "bert/encoder/layer_1/output/dense/bias",
        "bert/encoder/layer_1/output/LayerNorm/beta",
        "cls/predictions/transform/dense/kernel",
        "cls/predictions/transform/LayerNorm/gamma",
        "cls/predictions/output_bias",
    }
