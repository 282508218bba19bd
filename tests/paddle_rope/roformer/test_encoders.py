"""RoFormer, BERT, ELECTRA and ERNIE of Hugging Face: outputs, forms of their files, written again."""

import dataclasses

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file

from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM, RoFormerForSequenceClassification, RoFormerModel
from paddle_rope.roformer.checkpoints.huggingface import EXPRESSED, UNUSED, write_huggingface
from tests.paddle_rope.roformer import encoders
from tests.paddle_rope.roformer.conftest import refused_in_a_line
from tests.paddle_rope.roformer.small_models import evaluated, make, states_equal
from tests.paddle_rope.roformer.test_checkpoints import CLASSIFIER, DATA, MASKED, settings_of

OF_ENCODERS = np.load(DATA / "encoders.npz")


def class_of(source):
    """The class with the head of what is saved: a fixture of Hugging Face, or a case of encoders.py."""
    if source == CLASSIFIER or source.endswith("Classification"):
        return RoFormerForSequenceClassification
    return RoFormerForMaskedLM if source in MASKED or source.endswith("MaskedLM") else RoFormerModel


@pytest.mark.parametrize("name", encoders.CASES)
def test_hidden_states_and_outputs_of_encoders_are_those_of_hugging_face(name, tmp_path):
    encoders.write(name, tmp_path)
    ids, types, mask = (paddle.to_tensor(array) for array in encoders.inputs_of(name))
    tokens = encoders.chosen(mask.numpy())
    for model_class, key in ((RoFormerModel, f"{name}/hidden"), (class_of(name), f"{name}/logits")):
        if key in OF_ENCODERS:
            model = model_class.from_pretrained(tmp_path)
            model.to(dtype="float64")
            found = evaluated(model, ids, mask, types)
            found = found[tokens] if found.ndim == 3 else found
            assert np.abs(OF_ENCODERS[key]).max() > 1
            np.testing.assert_allclose(found, OF_ENCODERS[key], rtol=0, atol=1e-5)


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


# ---- written as a folder of Hugging Face
@pytest.mark.parametrize("source", [*MASKED, CLASSIFIER, *encoders.CASES])
def test_written_as_hugging_face_the_files_are_the_same(source, tmp_path):
    theirs, again, kind = DATA / source, tmp_path / "again", class_of(source)
    if source in encoders.CASES:
        theirs = tmp_path / "theirs"
        encoders.write(source, theirs)
    model = kind.from_pretrained(theirs)
    settings = settings_of(theirs)
    write_huggingface(model, again, settings["max_position_embeddings"])
    assert states_equal(kind.from_pretrained(again), model)
    written = settings_of(again)
    # ERNIE becomes BERT, its table of tasks a part of the token types, and so does ELECTRA without a projection
    if source == "ElectraForMaskedLM" or source.startswith("Ernie"):
        assert written["model_type"] == "bert"
        return
    same = written.keys() & settings.keys() - {"embedding_size"}  # which BERT does not use
    assert {key: written[key] for key in same} == {key: settings[key] for key in same}
    assert {*encoders.SIZES, "model_type", "architectures", *({"id2label", "label2id"} & {*settings})} <= same
    stored, written = (load_file(folder / "model.safetensors") for folder in (theirs, again))
    assert {one for one in stored if "pooler" not in one or "Classification" in source} == {*written}
    for name in written:
        np.testing.assert_array_equal(written[name], stored[name])


def test_every_option_is_expressed_or_unused_or_must_have_its_default(tmp_path):
    model = make(RoFormerModel)
    for option in dataclasses.fields(RoFormerConfig):
        if option.name not in (*EXPRESSED, *UNUSED):
            default = getattr(model.config, option.name)
            for another in ("another", not default, ["softmax", "linear"], {"base": 500.0}, {"rotary_dim": 2}):
                setattr(model.config, option.name, another)
                with pytest.raises(ValueError, match=f"have {option.name} .*; the model cannot be written"):
                    write_huggingface(model, tmp_path / "new")
            setattr(model.config, option.name, default)
    for options, problem in (
        ({"causal": True}, "BERT does not have causal True"),
        ({"embedding_size": 8, "hidden_act": "relu"}, "ELECTRA does not have hidden_act 'relu'"),
    ):
        with pytest.raises(ValueError, match=problem):
            write_huggingface(make(RoFormerModel, position_embedding="learned", **options), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    for harmless in ({"attention_window": 3}, {"feature_map": "one_plus_cosine"}, {"rotary": {"base": 10000.0}}):
        write_huggingface(make(RoFormerModel, **harmless), tmp_path, max_position_embeddings=20)
