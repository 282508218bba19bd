"""Forms of RoFormer: versions, sizes, attention by layer, position embeddings."""

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerConfig, RoFormerModel
from tests.paddle_rope.roformer.plain_model import FORMS, SIZES, make, plain_model, random_ids


@pytest.mark.equation("5.1", "5.6")
@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_model_equals_its_plain_reference(form):
    model = make(RoFormerModel, **FORMS[form])
    ids = random_ids(2, 5)
    types = paddle.to_tensor([[0, 1, 1, 0, 1], [1, 0, 0, 1, 0]]) if model.config.type_vocab_size else None
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
    weights = {name: value.astype("float64") for name, value in model.state_dict().items()}
    for value in weights.values():
        value.stop_gradient = False
    is_real = mask[:, :, np.newaxis]
    hidden = model(ids, paddle.to_tensor(mask), types)
    expected = plain_model(model, weights, ids, types, mask)
    np.testing.assert_allclose(hidden.numpy() * is_real, expected.numpy() * is_real, rtol=0, atol=2e-4)

    towards = np.random.standard_normal(hidden.shape) * is_real
    (hidden * paddle.to_tensor(towards, dtype="float32")).sum().backward()
    names = [name for name, _ in model.named_parameters()]
    gradients = paddle.grad((expected * paddle.to_tensor(towards)).sum(), [weights[name] for name in names])
    for name, gradient in zip(names, gradients):
        found, exact = dict(model.named_parameters())[name].grad.numpy(), gradient.numpy()
        np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3 * max(1, np.abs(exact).max()), err_msg=name)


@pytest.mark.equation("5.6")
@pytest.mark.parametrize(
    "form",
    [
        *("version 1", "linear", "causal mixed", "convolutions", "convolutions, linear", "gate"),
    ],
)
def test_packed_texts_equal_each_text_alone(form):
    model = make(RoFormerModel, **FORMS[form])
    ids = random_ids(1, 9)
    segments = paddle.to_tensor([[0, 0, 0, 0, 1, 1, 2, 2, 2]])
    packed = model(ids, segment_ids=segments).numpy()
    for start, end in ((0, 4), (4, 6), (6, 9)):
        alone = model(ids[:, start:end]).numpy()
        np.testing.assert_allclose(packed[:, start:end], alone, rtol=0, atol=5e-5)


@pytest.mark.parametrize("place", ["qk", "qkvo", "vo", "sinusoidal", "alibi"])
def test_positions_by_hand_undo_left_padding(place):
    model = make(RoFormerModel, position_embedding=place)
    ids = random_ids(1, 8)
    mask = paddle.to_tensor([[0, 0, 0, 1, 1, 1, 1, 1]])
    positions = paddle.to_tensor([[0, 0, 0, 0, 1, 2, 3, 4]])
    padded = model(ids, mask, positions=positions)[:, 3:].numpy()
    np.testing.assert_allclose(padded, model(ids[:, 3:]).numpy(), rtol=0, atol=2e-5)


def test_rotary_options_reach_the_rotation():
    plain = make(RoFormerModel)
    ids = random_ids(1, 30)
    for options in (
        {"rotary": {"base": 100.0}},
        {"rotary": {"layout": "half"}},
        {"rotary": {"rotary_dim": 2}},
        {"rotary": {"scaling": {"type": "linear", "factor": 4}}},
        {"rotary": {"scaling": {"type": "yarn", "factor": 4, "original_length": 8}}},
    ):
        model = make(RoFormerModel, **options)
        model.set_state_dict(plain.state_dict())
        assert float((model(ids) - plain(ids)).abs().max()) > 1e-3, options


@pytest.mark.parametrize("form", ["favor", "shared", "decay", "version 2", "learned", "window mixed", "convolutions"])
def test_forms_are_saved_and_loaded_bit_equal(form, tmp_path):
    model = make(RoFormerModel, **FORMS[form])
    ids = random_ids(2, 6)
    model.save_pretrained(str(tmp_path))
    loaded = RoFormerModel.from_pretrained(str(tmp_path))
    loaded.eval()
    np.testing.assert_array_equal(loaded(ids).numpy(), model(ids).numpy())


def test_version_2_starts_with_its_own_deviation():
    model = RoFormerModel(RoFormerConfig(**{**SIZES, "hidden_size": 96, "vocab_size": 400}, version=2))
    for name, parameter in model.named_parameters():
        size = parameter.shape[1] if "embedding" in name else parameter.shape[0]
        assert abs(float(parameter.std()) * np.sqrt(2 * size) - 1) < 0.1, name
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias") or "norm" in name]
