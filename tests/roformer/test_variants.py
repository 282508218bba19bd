"""Forms of RoFormer: versions, sizes, attention by layer, position embeddings, heads, recomputation, static graphs."""

from functools import partial

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from paddle.static import InputSpec

from paddle_rope import (
    RoFormerConfig,
    RoFormerForCausalLM,
    RoFormerForMaskedLM,
    RoFormerForSequenceClassification,
    RoFormerModel,
    alibi_slopes,
    reference,
    sinusoidal_embedding,
)
from paddle_rope.roformer.heads import pool

SIZES = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 10,
    "initializer_range": 0.5,
}
# What a stranger may combine; each is compared with a plain reference.
FORMS = {
    "version 1": {},
    "version 2": {"version": 2, "hidden_act": "relu"},
    "window": {"attention": "window", "attention_window": 2, "score_scaling_length": 4},
    "window mixed": {"attention": ["linear", "window"], "attention_window": 1},
    "causal window": {"attention": ["window", "softmax"], "attention_window": 2, "causal": True},
    "scaled scores": {"score_scaling_length": 12, "position_embedding": "alibi"},
    "embedding size": {"embedding_size": 8, "type_vocab_size": 2},
    "version 2, embedding size": {"embedding_size": 8, "version": 2},
    "linear": {"attention": "linear"},
    "mixed": {"attention": ["linear", "softmax"], "hidden_act": "gelu_tanh"},
    "causal mixed": {"attention": ["softmax", "linear"], "causal": True},
    "decay": {"attention": "linear", "causal": True, "decay": [0.9, 0.7, 1.0]},
    "two-sided decay": {"attention": "linear", "decay": [0.9, 0.7, 1.0]},
    "decay by the token": {"attention": ["linear", "softmax"], "decay": "token", "version": 2},
    "causal decay by the token": {"attention": "linear", "causal": True, "decay": "token", "normalizer": "none"},
    "rotary value": {"position_embedding": "qkv"},
    "vo": {"position_embedding": "vo", "attention": "linear"},
    "shared": {"position_embedding": "qkvo", "share_kv": True, "attention": ["softmax", "linear"]},
    "exp, no denominator": {"attention": "linear", "feature_map": "exp", "normalizer": "none"},
    "cosine": {"attention": "linear", "feature_map": "one_plus_cosine", "normalizer": "rotated"},
    "softmax exp": {"attention": "linear", "feature_map": "softmax_exp"},
    "favor": {"attention": "linear", "feature_map": "favor"},
    "favor, more features": {"attention": "linear", "feature_map": "favor", "num_random_features": 6},
    "convolutions": {"convolutions": ["input", "value", "output"], "output_gate": True},
    "convolutions, shared": {"convolutions": ["value", "output"], "share_kv": True, "position_embedding": "qkv"},
    "convolution of the input": {"convolutions": ["input"], "convolution_size": 5, "version": 2, "attention": "linear"},
    "convolutions, linear": {"convolutions": ["output", "value"], "attention": "linear", "convolution_size": 7},
    "gate": {"output_gate": True, "attention": "linear", "normalizer": "none"},
    "causal gate": {"output_gate": True, "attention": ["softmax", "linear"], "causal": True, "version": 2},
    "hedgehog": {"attention": "linear", "feature_map": "hedgehog"},
    "causal hedgehog": {"attention": ["linear", "softmax"], "feature_map": "hedgehog", "causal": True},
    "subtracted mean": {"attention": "linear", "normalizer": "subtracted_mean", "feature_map": "identity"},
    "subtracted mean, vo": {"attention": "linear", "normalizer": "subtracted_mean", "position_embedding": "qkvo"},
    "sinusoidal": {"position_embedding": "sinusoidal"},
    "learned": {"position_embedding": "learned", "max_position_embeddings": 7, "attention": "linear"},
    "alibi": {"position_embedding": "alibi"},
    "none": {"position_embedding": "none"},
}
each_form = pytest.mark.parametrize("form", sorted(FORMS))


def make(model_class, **options):
    model = model_class(RoFormerConfig(**{**SIZES, **options}))
    for name, parameter in model.named_parameters():  # biases, norms, convolutions and feature maps too
        if parameter.ndim != 2 or "convolution" in name:
            parameter.set_value(parameter + paddle.to_tensor(np.random.standard_normal(parameter.shape) / 3, "float32"))
    model.eval()
    return model


def random_ids(*shape):
    return paddle.to_tensor(np.random.randint(1, 23, shape))


def plain_model(model, weights, ids, types, mask):
    """A RoFormer spelled out in float64 from its weights."""
    config = model.config
    seq = ids.shape[1]
    heads, size = config.num_attention_heads, config.head_dim

    def linear(x, name):
        x = paddle.matmul(x, weights[f"{name}.weight"])
        return x + weights[f"{name}.bias"] if f"{name}.bias" in weights else x

    def norm(x, name):
        if config.version == 2:
            return x / paddle.sqrt((x**2).mean(axis=-1, keepdim=True) + 1e-12)
        centred = x - x.mean(axis=-1, keepdim=True)
        scaled = centred / paddle.sqrt((centred**2).mean(axis=-1, keepdim=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def activation(x):
        if config.hidden_act == "relu":
            return (x > 0).astype("float64") * x
        if config.hidden_act == "gelu_tanh":
            return 0.5 * x * (1 + paddle.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + paddle.erf(x / np.sqrt(2)))

    def convolved(x, name):
        return reference.depthwise_convolution(x, weights[f"{name}.weight"], mask)

    hidden = weights["token_embedding.weight"][ids]
    if types is not None:
        hidden = hidden + weights["token_type_embedding.weight"][types]
    if config.position_embedding == "sinusoidal":
        hidden = hidden + sinusoidal_embedding(paddle.arange(seq), config.embedding_size).astype("float64")
    if config.position_embedding == "learned":
        hidden = hidden + weights["position_embedding.weight"][:seq]
    hidden = norm(hidden, "embedding_norm")
    if config.embedding_size != config.hidden_size:
        hidden = linear(hidden, "embedding_projection")
    positions = range(seq) if config.has_rotary else None
    placement = config.position_embedding if config.has_rotary else "qk"
    for layer in range(config.num_hidden_layers):
        name = f"blocks.{layer}.attention"
        if "input" in config.convolutions:
            hidden = hidden + convolved(hidden, f"blocks.{layer}.input_convolution")
        places = ("query", "key", "key" if config.share_kv else "value")
        projected = [linear(hidden, f"{name}.{place}") for place in places]
        if "value" in config.convolutions:
            convolved_value = convolved(projected[2], f"{name}.value_convolution")
            projected[2] = convolved_value / (1 + paddle.exp(-convolved_value))
        q, k, v = (x.reshape([0, 0, heads, size]).transpose([0, 2, 1, 3]) for x in projected)
        options = {"causal": config.causal}
        if config.layer_attention[layer] != "linear":
            slopes = alibi_slopes(heads) if config.position_embedding == "alibi" else None
            options |= {"placement": placement, "slopes": slopes, "score_scaling_length": config.score_scaling_length}
            if config.layer_attention[layer] == "window":
                options["window"] = config.attention_window
            attended = reference.softmax_attention(q, k, v, positions, mask, **options)
        elif config.feature_map == "one_plus_cosine":
            attended = reference.cosine_attention(q, k, v, positions, mask, **options)
        else:
            maps = {}
            if config.feature_map == "exp":
                maps = dict.fromkeys(["phi_q", "phi_k"], paddle.exp)
            elif config.feature_map == "softmax_exp":
                is_key = paddle.to_tensor(mask, dtype="float64").unsqueeze([1, 3])

                def share(x, is_key=is_key):
                    return paddle.exp(x) * is_key / (paddle.exp(x) * is_key).sum(axis=2, keepdim=True)

                maps = {"phi_q": lambda x: F.softmax(x, axis=-1), "phi_k": share}
            elif config.feature_map == "identity":
                maps = {"phi_q": paddle.assign, "phi_k": paddle.assign}
            elif config.feature_map == "hedgehog":

                def soft(x, weight):
                    y = paddle.stack([paddle.matmul(x[:, head], weight[head]) for head in range(heads)], axis=1)
                    y = paddle.exp(paddle.concat([y, -y], axis=-1))
                    return y / y.sum(axis=-1, keepdim=True)

                learned = {place: weights[f"{name}.feature_map.{place}_weight"] for place in ("query", "key")}
                maps = {"phi_q": partial(soft, weight=learned["query"]), "phi_k": partial(soft, weight=learned["key"])}
            elif config.feature_map == "favor":
                directions = weights[f"{name}.feature_map.projection"]

                def phi(x, directions=directions):
                    x = x / size**0.25
                    return paddle.exp(paddle.matmul(x, directions, transpose_y=True) - (x**2).sum(-1, keepdim=True) / 2)

                maps = dict.fromkeys(["phi_q", "phi_k"], phi)
            options["placement"] = placement
            if config.normalizer == "subtracted_mean":
                del options["causal"]
                attended = reference.subtracted_mean_attention(q, k, v, positions, mask, **maps, **options)
            else:
                decay = config.decay
                if decay == "token":
                    decay = F.sigmoid(linear(hidden, f"{name}.token_decay")).transpose([0, 2, 1])
                options |= {"normalizer": config.normalizer, "decay": decay}
                attended = reference.linear_attention(q, k, v, positions, mask, **maps, **options)
        attended = attended.transpose([0, 2, 1, 3]).reshape([0, 0, heads * size])
        if "output" in config.convolutions:
            attended = attended + convolved(projected[2], f"{name}.output_convolution")
        if config.output_gate:
            gate = linear(hidden, f"{name}.gate")
            attended = attended * gate / (1 + paddle.exp(-gate))
        attended = linear(attended, f"{name}.output")
        hidden = norm(hidden + attended, f"blocks.{layer}.attention_norm")
        inner = activation(linear(hidden, f"blocks.{layer}.feed_forward_in"))
        hidden = norm(hidden + linear(inner, f"blocks.{layer}.feed_forward_out"), f"blocks.{layer}.feed_forward_norm")
    return hidden


@each_form
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


@pytest.mark.parametrize("options", [{}, {"version": 2}, {"version": 2, "embedding_size": 8}, {"embedding_size": 8}])
def test_logits_of_the_vocabulary_equal_their_equation(options):
    model = make(RoFormerForMaskedLM, **options)
    ids = random_ids(2, 6)
    hidden = model.roformer(ids)
    head, table = model.lm_head, model.roformer.token_embedding.weight
    if options.get("version") == 2:
        has_dense = "embedding_size" in options
        assert [name for name, _ in head.named_parameters()] == ["dense.weight"] * has_dense
        x = paddle.matmul(hidden, head.dense.weight) if has_dense else hidden
        expected = paddle.matmul(x, table.t())
    else:
        x = F.gelu(paddle.matmul(hidden, head.dense.weight) + head.dense.bias)
        expected = paddle.matmul(head.norm(x), table.t()) + head.bias
    np.testing.assert_allclose(model(ids).numpy(), expected.numpy(), rtol=0, atol=1e-4)
    assert model(ids).shape == [2, 6, 23]


@pytest.mark.parametrize("model_class", [RoFormerForMaskedLM, RoFormerForCausalLM])
def test_the_loss_of_a_language_model_is_the_mean_over_labeled_tokens(model_class):
    model = make(model_class)
    ids, labels = random_ids(2, 6), np.full((2, 6), -100)
    labels[0, 1], labels[1, 4], labels[1, 0] = 3, 0, 22
    logits = model(ids).numpy()
    loss, chosen = model(ids, labels=paddle.to_tensor(labels))
    places = [(0, 1), (1, 0), (1, 4)]
    np.testing.assert_allclose(chosen.numpy(), [logits[place] for place in places], rtol=0, atol=1e-5)
    exact = [np.log(np.exp(logits[place]).sum()) - logits[place][labels[place]] for place in places]
    np.testing.assert_allclose(float(loss), np.mean(exact), rtol=1e-5)
    loss.backward()
    assert float(model.roformer.token_embedding.weight.grad.abs().max()) > 0
    with pytest.raises(ValueError, match="no token is labeled"):
        model(ids, labels=paddle.full([2, 6], -100))


def test_a_causal_language_model_sees_no_later_token():
    model = make(RoFormerForCausalLM, attention=["softmax", "linear"])
    assert model.config.causal
    ids = random_ids(1, 8)
    changed = ids.clone()
    changed[:, 5:] = 1 + (changed[:, 5:] % 22)
    np.testing.assert_array_equal(model(ids)[:, :5].numpy(), model(changed)[:, :5].numpy())
    assert float((model(ids)[:, 5:] - model(changed)[:, 5:]).abs().max()) > 1e-2


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_classification_pools_and_is_blind_to_padding(pooling, activation):
    model = make(RoFormerForSequenceClassification, pooling=pooling, num_labels=4, classifier_activation=activation)
    ids, labels = random_ids(2, 6), paddle.to_tensor([3, 0])
    mask = paddle.to_tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    loss, logits = model(ids, mask, labels=labels)
    assert logits.shape == [2, 4]
    np.testing.assert_allclose(logits[0].numpy(), model(ids[:1, :4])[0].numpy(), rtol=0, atol=1e-5)
    hidden = model.roformer(ids[:1, :4])[0]
    pooled = hidden[0] if pooling == "first" else hidden.mean(axis=0)
    inner = model.classifier.dense(pooled.unsqueeze(0))
    expected = model.classifier.output(paddle.tanh(inner) if activation == "tanh" else F.gelu(inner))
    np.testing.assert_allclose(logits[0].numpy(), expected[0].numpy(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(float(loss), float(F.cross_entropy(logits, labels)), rtol=1e-6)


def test_the_classifier_drops_before_its_dense_layer_and_after_the_activation():
    head = make(RoFormerForSequenceClassification, num_labels=4).classifier
    before, after = [], []
    head.dropout.register_forward_pre_hook(lambda _, inputs: before.append(inputs[0].numpy()))
    head.dropout.register_forward_post_hook(lambda _, inputs, output: after.append(output))
    pooled = paddle.randn([2, 12])
    logits = head(pooled)
    assert len(before) == 2
    np.testing.assert_array_equal(before[0], pooled.numpy())
    np.testing.assert_array_equal(before[1], head.activation(head.dense(after[0])).numpy())
    np.testing.assert_array_equal(head.output(after[1]).numpy(), logits.numpy())


def test_pooling_finds_the_first_token_under_left_padding():
    hidden = paddle.arange(12, dtype="float32").reshape([2, 3, 2])
    mask = paddle.to_tensor([[False, True, True], [True, True, False]])
    np.testing.assert_array_equal(pool(hidden, mask, "first").numpy(), [[2, 3], [6, 7]])
    np.testing.assert_array_equal(pool(hidden, mask, "mean").numpy(), [[3, 4], [7, 8]])
    np.testing.assert_array_equal(pool(hidden, None, "first").numpy(), [[0, 1], [6, 7]])


@pytest.mark.parametrize(
    "form",
    [
        *("version 1", "version 2", "linear", "alibi", "shared", "window", "two-sided decay", "decay by the token"),
        *("convolutions", "gate", "hedgehog", "subtracted mean"),
    ],
)
def test_recompute_gives_the_same_gradients_with_dropout(form):
    model = make(RoFormerModel, **FORMS[form], hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    model.train()
    ids, gradients, following = random_ids(2, 7), [], []
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [4]]))
    for enabled in (False, True):
        model.enable_recompute = enabled
        np.random.seed(5)
        paddle.seed(5)
        (model(ids, mask)[:, :4] ** 3).sum().backward()
        gradients.append({name: parameter.grad.numpy() for name, parameter in model.named_parameters()})
        following.append(np.random.random())
        model.clear_gradients()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)
    assert following[0] == following[1], "recomputation leaves the random numbers after it alone"


@pytest.mark.parametrize("frozen", ["embeddings", "all but the last block"])
def test_recompute_trains_blocks_above_frozen_ones(frozen):
    model = make(RoFormerModel, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.train()
    trained = model.blocks if frozen == "embeddings" else model.blocks[-1]
    names = {id(parameter) for parameter in trained.parameters()}
    for parameter in model.parameters():
        parameter.stop_gradient = id(parameter) not in names
    ids, gradients = random_ids(2, 7), []
    for model.enable_recompute in (False, True):
        (model(ids) ** 3).sum().backward()
        gradients.append({name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None})
        model.clear_gradients()
    assert len(gradients[0]) == len(names)
    assert gradients[1].keys() == gradients[0].keys()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)


def test_recompute_trains_learned_frequencies():
    gradients = []
    model = make(RoFormerModel, rotary_learned=True, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.train()
    ids = random_ids(2, 7)
    for enabled in (False, True):
        model.enable_recompute = enabled
        (model(ids, positions=paddle.arange(7).unsqueeze(0)) ** 3).sum().backward()
        gradients.append(model.rotary.theta.grad.numpy())
        model.clear_gradients()
    assert np.abs(gradients[0]).max() > 1e-3
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)


@each_form
def test_static_graphs_take_any_batch_and_length(form, tmp_path):
    options = FORMS[form]
    model = make(RoFormerModel, **options)
    if options.get("causal") and "linear" in model.config.layer_attention:
        with pytest.raises(ValueError, match="known length"):
            export(model, tmp_path)
        return
    batches, outputs = [], []
    for batch, seq in ((1, 1), (3, 5), (2, 7)):
        mask = np.arange(seq) < np.random.randint(1, seq + 1, (batch, 1))
        batches.append((random_ids(batch, seq), paddle.to_tensor(mask).astype("int64")))
        outputs.append(model(*batches[-1]).numpy())
    export(model, tmp_path)
    loaded = paddle.jit.load(str(tmp_path / "model"))
    for (ids, mask), expected in zip(batches, outputs):
        is_real = mask.numpy()[:, :, np.newaxis]
        np.testing.assert_allclose(loaded(ids, mask).numpy() * is_real, expected * is_real, rtol=0, atol=1e-4)


def export(model, folder):
    spec = [InputSpec([None, None], "int64"), InputSpec([None, None], "int64")]
    paddle.jit.save(paddle.jit.to_static(model, input_spec=spec, full_graph=True), str(folder / "model"))


@pytest.mark.parametrize(
    "form",
    [
        *("version 1", "linear", "causal mixed", "convolutions", "convolutions, linear", "gate"),
        *("hedgehog", "causal hedgehog", "subtracted mean", "subtracted mean, vo"),
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
        {"rotary_base": 100.0},
        {"rotary_layout": "half"},
        {"rotary_dim": 2},
        {"rotary_scaling": {"type": "linear", "factor": 4}},
        {"rotary_scaling": {"type": "yarn", "factor": 4, "original_length": 8}},
    ):
        model = make(RoFormerModel, **options)
        model.set_state_dict(plain.state_dict())
        assert float((model(ids) - plain(ids)).abs().max()) > 1e-3, options


@pytest.mark.parametrize(
    "form", ["favor, more features", "shared", "decay", "version 2", "learned", "window mixed", "scaled scores"]
)
def test_forms_are_saved_and_loaded_bit_equal(form, tmp_path):
    model = make(RoFormerModel, **FORMS[form])
    ids = random_ids(2, 6)
    model.save_pretrained(str(tmp_path), safe_serialization=True)
    loaded = RoFormerModel.from_pretrained(str(tmp_path))
    loaded.eval()
    np.testing.assert_array_equal(loaded(ids).numpy(), model(ids).numpy())


def test_version_2_starts_with_its_own_deviation():
    model = RoFormerModel(RoFormerConfig(**{**SIZES, "hidden_size": 96, "vocab_size": 400}, version=2))
    for name, parameter in model.named_parameters():
        size = parameter.shape[1] if "embedding" in name else parameter.shape[0]
        assert abs(float(parameter.std()) * np.sqrt(2 * size) - 1) < 0.1, name
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias") or "norm" in name]
