"""RoFormerModel: its equations, padding and packing, length, dropout, recomputation, saving, static graphs."""

import copy

import numpy as np
import paddle
import pytest
from paddle import nn
from paddle.static import InputSpec

from paddle_rope import RoFormerConfig, RoFormerForMaskedLM, RoFormerModel
from paddle_rope.layers import Dropout
from tests.helpers.comparison import assert_close, random_tensor
from tests.paddle_rope.roformer.small_models import FORMS, SIZES, make, plain_model, random_ids


@pytest.mark.equation("2.6", "4.11", "4.12", "5.1", "5.6")
@pytest.mark.parametrize("form", FORMS)
def test_a_model_equals_its_plain_reference(form):
    model = make(RoFormerModel, **FORMS[form])
    ids = random_ids(2, 5)
    types = paddle.to_tensor([[0, 1, 1, 0, 1], [1, 0, 0, 1, 0]]) if model.config.type_vocab_size else None
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
    weights = {name: value.astype("float64") for name, value in model.state_dict().items()}
    for value in weights.values():
        value.stop_gradient = False
    is_real, added = mask[:, :, np.newaxis], random_tensor(2, 5, model.config.embedding_size)
    hidden = model(ids, paddle.to_tensor(mask), types, added_embeddings=added.astype("float32"))
    expected = plain_model(model, weights, ids, types, mask, added)
    np.testing.assert_allclose(hidden.numpy() * is_real, expected.numpy() * is_real, rtol=0, atol=2e-4)

    towards = np.random.standard_normal(hidden.shape) * is_real
    (hidden * paddle.to_tensor(towards, dtype="float32")).sum().backward()
    parameters = dict(model.named_parameters())
    gradients = paddle.grad((expected * paddle.to_tensor(towards)).sum(), [weights[name] for name in parameters])
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        assert_close(parameter.grad, gradient, 2e-3, 2e-3, name)


@pytest.mark.equation("5.6")
@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"softmax exp"}))
def test_a_text_has_the_same_hidden_states_alone_padded_and_packed(form):
    model = make(RoFormerModel, **FORMS[form])
    is_relative = form not in ("sinusoidal", "learned", "qkv", "convolutions, shared")
    positions = None if is_relative else paddle.to_tensor([[0, 1, 2, 3, 0, 1, 0, 1, 2]])
    ids, segments = random_ids(1, 9), paddle.to_tensor([[0, 0, 0, 0, 1, 1, 2, 2, 2]])
    packed = model(ids, positions=positions, segment_ids=segments).numpy()[0]
    for start, end in ((0, 4), (4, 6), (6, 9)):
        text, padding = ids[:, start:end], random_ids(1, 9 - end + start)
        alone = model(text).numpy()[0]
        np.testing.assert_allclose(packed[start:end], alone, rtol=0, atol=5e-5)
        mask = np.arange(9) < end - start
        right = paddle.concat([text, padding], axis=1), paddle.to_tensor(mask[np.newaxis].astype("int64"))
        np.testing.assert_allclose(model(*right).numpy()[0, mask], alone, rtol=0, atol=5e-5)
        positions = paddle.clip(paddle.arange(9) - (9 - end + start), min=0).unsqueeze(0)
        left = paddle.concat([padding, text], axis=1), paddle.to_tensor(mask[np.newaxis, ::-1].copy())
        left = model(*left, positions=positions).numpy()[0, mask[::-1]]
        np.testing.assert_allclose(left, alone, rtol=0, atol=5e-5)


# ---- dropout and recomputation
def test_each_dropout_has_its_rate_acts_in_training_alone_and_repeats_with_its_seed():
    rates = {"hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.125, "embedding_dropout_prob": 0.5}
    model, ids = make(RoFormerModel, **rates), paddle.to_tensor([[1, 2, 3]])
    places = {name: layer for name, layer in model.named_sublayers() if isinstance(layer, Dropout)}
    of_blocks = {f"blocks.{index}.dropout": 0.25 for index in (0, 1)}
    of_blocks |= {f"blocks.{index}.attention.dropout": 0.125 for index in (0, 1)}
    assert {name: layer.p for name, layer in places.items()} == {"dropout": 0.5, **of_blocks}
    quiet = model(ids).numpy()
    np.testing.assert_array_equal(model(ids).numpy(), quiet)
    model.train()
    drawn = [(paddle.seed(seed), model(ids).numpy())[1] for seed in (3, 4, 3)]
    np.testing.assert_array_equal(drawn[0], drawn[2])
    assert np.abs(drawn[0] - drawn[1]).max() > 1e-2
    for acting in places.values():
        for layer in places.values():
            layer.p = 0.5 * (layer is acting)
        assert any(np.abs(model(ids).numpy() - quiet).max() > 1e-3 for _ in range(20))
    assert make(RoFormerModel, hidden_dropout_prob=0.25).dropout.p == 0.25


@pytest.mark.equation("5.4")
@pytest.mark.parametrize("options, trained", [
    *((FORMS[form], "all") for form in ("alibi", "shared", "window", "convolutions, linear", "gate")),
    *(({"rotary": {"learned": True}}, "all"), ({}, "blocks"), ({}, "last block")),
], ids=str)  # fmt: skip
def test_recompute_gives_the_same_gradients_with_dropout(options, trained):
    model = make(RoFormerModel, **options, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    model.train()
    layers = {"all": model, "blocks": model.blocks, "last block": model.blocks[-1]}[trained]
    names = {id(parameter) for parameter in layers.parameters()}
    for parameter in model.parameters():
        parameter.stop_gradient = id(parameter) not in names
    ids, mask = random_ids(2, 7), paddle.to_tensor(np.arange(7) < np.array([[7], [4]]))
    added, results, calls = random_tensor(2, 7, 12, dtype="float32"), [], []
    added.stop_gradient = trained != "all"
    model.blocks[-1].register_forward_pre_hook(lambda *_: calls.append(model.enable_recompute))
    for model.enable_recompute in (False, True):
        paddle.seed(5)
        positions = paddle.arange(7).unsqueeze(0)
        (model(ids, mask, positions=positions, added_embeddings=added)[:, :4] ** 3).sum().backward()
        found = {"added": added, **dict(model.named_parameters())}
        results.append({name: x.grad.numpy() for name, x in found.items() if x.grad is not None})
        results[-1]["the next random number"] = paddle.rand([1]).numpy()
        added.clear_gradient(False)
        model.clear_gradients()
    assert calls == [False, True, True] and len(results[0]) == len(names) + 1 + (trained == "all")
    assert results[0].keys() == results[1].keys()
    for name, expected in results[0].items():
        np.testing.assert_allclose(results[1][name], expected, rtol=1e-4, atol=2e-4, err_msg=name)
    model.eval()
    model(ids).sum().backward()
    assert len(calls) == 4, "outside of training nothing is computed twice"


# ---- first weights, files
@pytest.mark.parametrize("version, size", [(1, 48), (1, 192), (2, 96)])
def test_first_weights_have_the_deviation_of_their_version(version, size):
    sizes = {**SIZES, "vocab_size": 400, "hidden_size": size, "intermediate_size": 400}
    model = RoFormerForMaskedLM(RoFormerConfig(**sizes, version=version))
    weights = [layer for layer in model.sublayers() if isinstance(layer, (nn.Linear, nn.Embedding))]
    assert len(weights) > 12
    for layer in weights:
        is_linear = isinstance(layer, nn.Linear)
        inputs = layer.weight.shape[0 if is_linear else 1]
        expected = 0.5 * inputs**-0.5 if is_linear else 0.02
        expected = expected if version == 1 else (2 * inputs) ** -0.5
        assert abs(layer.weight.numpy().std() / expected - 1) < 0.15, layer
    others = [(name, one) for name, one in model.named_parameters() if name.endswith("bias") or "norm" in name]
    assert bool(others) == (version == 1)
    for name, parameter in others:
        assert (parameter.numpy() == (1 if name.endswith("norm.weight") else 0)).all(), name


def test_each_layer_draws_its_random_features_which_are_always_the_same():
    config = RoFormerConfig(**SIZES, **FORMS["favor"])
    (first, second), again = (
        [block.attention.feature_map.projection.numpy() for block in RoFormerModel(config).blocks] for _ in range(2)
    )
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(again, [first, second])


# ---- static graphs
# What the other forms have more than these is exported with one of these.
EXPORTED = "two-sided decay", "exp", "cosine", "favor", "causal, all", "alibi"
ONE, THREE = {"num_hidden_layers": 1}, {"attention": ["softmax", "linear", "window"], "num_hidden_layers": 3}
SHARED = {"convolutions": True, "output_gate": True, "share_kv": True, "attention": ["softmax", "linear"]}


class Given(paddle.nn.Layer):
    """An encoder with a mask and, by name, more arguments."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, input_ids, attention_mask, first=None, second=None):
        return self.model(input_ids, attention_mask, **dict(zip(self.names, (first, second))))


@pytest.mark.equation("2.7")
@pytest.mark.parametrize("names, options", [  # arguments beside the mask, and options
    *(((), {**FORMS[form], **ONE}) for form in EXPORTED),
    ((), FORMS["causal window"]),
    ((), {**THREE, "attention_window": 1, "position_embedding": "learned"}),
    ((), {**ONE, "version": 2, "embedding_size": 8, "position_embedding": "sinusoidal"}),
    ((), {**ONE, "position_embedding": "none", "attention": "linear", "feature_map": "softmax_exp"}),
    ((), {**SHARED, "position_embedding": "qkvo"}),
    (("positions",), THREE),
    (("positions",), {**ONE, "attention": "window", "rotary": {"learned": True}}),
    (("positions", "added_embeddings"), {**ONE, "position_embedding": "alibi"}),
    (("segment_ids",), {"attention": ["window", "linear"], "attention_window": 2}),
    (("segment_ids",), {"attention": ["softmax", "linear"], "causal": True}),
], ids=str)  # fmt: skip
def test_a_saved_model_takes_any_batch_and_length_and_what_is_given_with_the_tokens(names, options, tmp_path):
    layer, batches, outputs = Given(make(RoFormerModel, **options), names), [], []
    shapes = [(1, 1), (3, 70)]
    if options.get("attention") == "linear":
        shapes.append((1, 1100))  # more chunks than a group
    for batch, seq in shapes:
        numbers = np.sort(np.random.randint(0, 500 if "positions" in names else 3, (batch, seq)))
        more = {name: paddle.to_tensor(numbers) for name in names}
        if "added_embeddings" in names:
            more["added_embeddings"] = paddle.randn([batch, seq, 12])
        mask = np.arange(seq) < np.random.randint(1, seq + 1, (batch, 1))
        batches.append((random_ids(batch, seq), paddle.to_tensor(mask.astype("int64")), *more.values()))
        outputs.append(layer(*batches[-1]).numpy())
    specs = [InputSpec([None, None, *one.shape[2:]], one.dtype) for one in batches[0]]
    layer.eval()
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(tmp_path / "layer"))
    loaded = paddle.jit.load(str(tmp_path / "layer"))
    for given, expected in zip(batches, outputs):
        is_real = given[1].numpy().astype(bool)
        assert_close(loaded(*given).numpy()[is_real], expected[is_real], 2e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_to_static_by_its_defaults_changes_nothing():
    model, ids = make(RoFormerModel, **THREE), random_ids(2, 7)
    results = []
    for form in (model, paddle.jit.to_static(copy.deepcopy(model))):
        hidden = form(ids)
        hidden.sum().backward()
        results.append([hidden, *(weight.grad for weight in form.parameters())])
    for plain, traced in zip(*results):
        assert_close(traced, plain, 1e-4)
