"""BERT, ELECTRA and ERNIE of Hugging Face: what transformers computes, forms of their files, written again."""

import json
from pathlib import Path

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file

from paddle_rope.roformer import RoFormerForMaskedLM, RoFormerForSequenceClassification, RoFormerModel
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from tests.paddle_rope.roformer import encoders
from tests.paddle_rope.roformer.conftest import refused_in_a_line
from tests.paddle_rope.roformer.small_models import evaluated, make, states_equal

EXPECTED = np.load(Path(__file__).parent / "data/encoders.npz")
WITH_HEAD = {"MaskedLM": RoFormerForMaskedLM, "SequenceClassification": RoFormerForSequenceClassification}


def class_of(name):
    return WITH_HEAD.get(name.partition("For")[2], RoFormerModel)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float64", 1e-5)])
@pytest.mark.parametrize("name", encoders.CASES)
def test_hidden_states_and_outputs_of_heads_are_those_of_hugging_face(name, dtype, tolerance, tmp_path):
    encoders.write(name, tmp_path)
    ids, types, mask = (paddle.to_tensor(array) for array in encoders.inputs_of(name))
    tokens = encoders.chosen(mask.numpy())
    for model_class, key in ((RoFormerModel, f"{name}/hidden"), (class_of(name), f"{name}/logits")):
        if key in EXPECTED:
            model = model_class.from_pretrained(tmp_path)
            found = evaluated(model.to(dtype=dtype) or model, ids, mask, types)
            found = found[tokens] if found.ndim == 3 else found
            assert found.dtype == dtype and np.abs(EXPECTED[key]).max() > 1
            np.testing.assert_allclose(found, EXPECTED[key], rtol=0, atol=tolerance)


def test_names_of_2018_copies_and_buffers_make_no_difference(tmp_path, reported):
    name, embedding = "BertForMaskedLM", "bert.embeddings.word_embeddings.weight"
    encoders.write(name, tmp_path / "new")
    weights = {
        one.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for one, array in encoders.weights_of(name).items()
    }
    weights |= {"cls.predictions.decoder.weight": weights[embedding], "cls.seq_relationship.bias": np.zeros(2)}
    weights |= {"bert.embeddings.position_ids": np.arange(512)[np.newaxis]}
    encoders.write(name, tmp_path / "old", weights)
    assert states_equal(*(RoFormerForMaskedLM.from_pretrained(tmp_path / one) for one in ("old", "new")))
    assert "cls.seq_relationship.bias" in reported() and "position_ids" not in reported()


def test_the_table_of_tasks_is_used_if_the_configuration_says_so(tmp_path):
    name, table = "ErnieForMaskedLM", "ernie.embeddings.task_type_embeddings.weight"
    weights = encoders.weights_of(name)
    encoders.write(name, tmp_path, weights, use_task_id=False)
    types = RoFormerModel.from_pretrained(tmp_path).token_type_embedding.weight.numpy()
    np.testing.assert_array_equal(types, weights["ernie.embeddings.token_type_embeddings.weight"])
    for wrong in ({}, {table: np.zeros([3, 1], np.float32)}, {table: np.zeros(52, np.float32)}):
        encoders.write(name, tmp_path, {one: weights[one] for one in weights if one != table} | wrong)
        with refused_in_a_line("use_task_id is true, but .*task_type_embeddings.weight is missing or does not fit"):
            RoFormerModel.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", encoders.CASES)
def test_written_as_hugging_face_the_weights_are_the_same(name, tmp_path):
    encoders.write(name, tmp_path / "theirs")
    model = class_of(name).from_pretrained(tmp_path / "theirs")
    write_huggingface(model, tmp_path / "again")
    assert states_equal(class_of(name).from_pretrained(tmp_path / "again"), model)
    settings = json.loads((tmp_path / "again/config.json").read_text(encoding="utf-8"))
    expected = encoders.settings_of(name)
    # ERNIE becomes BERT, its table of tasks a part of the token types, and so does ELECTRA without a projection
    if name != "ElectraForMaskedLM" and not name.startswith("Ernie"):
        stored, written = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "again"))
        assert {one for one in stored if "pooler" not in one or "Classification" in name} == {*written}
        assert all((stored[one] == written[one]).all() for one in written)
        own = expected.keys() - {"num_labels", "embedding_size"}
        assert {key: settings[key] for key in own} == {key: expected[key] for key in own}
    else:
        assert settings["model_type"] == "bert"


@pytest.mark.parametrize("options, problem", [
    ({"causal": True}, "BERT does not have causal True"),
    ({"embedding_size": 8, "hidden_act": "relu"}, "ELECTRA does not have hidden_act 'relu'"),
])  # fmt: skip
def test_what_hugging_faces_encoders_lack_is_not_written(options, problem, tmp_path):
    model = make(RoFormerModel, position_embedding="learned", **options)
    with pytest.raises(ValueError, match=problem):
        write_huggingface(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
