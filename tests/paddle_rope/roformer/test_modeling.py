"""RoFormer and NerModel: padding, length, saving, dropout."""

import json

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from paddle import nn
from safetensors.numpy import load_file

from paddle_rope import RoFormerConfig, RoFormerModel, multilabel_categorical_crossentropy
from paddle_rope.global_pointer import MASKED_LOGIT
from paddle_rope.layers import Dropout
from paddle_rope.roformer import modeling
from paddle_rope.roformer.modeling import RoFormerBlock
from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.plain_model import SIZES

each_attention = pytest.mark.parametrize("attention", ["softmax", "linear", "window"])
each_head = pytest.mark.parametrize("span_head", ["efficient", "dense"])


def roformer(attention, **sizes):
    model = RoFormerModel(RoFormerConfig(attention=attention, **{**SIZES, **sizes}))
    model.eval()
    return model


def ner_model(attention="softmax", span_head="efficient"):
    model = NerModel(NerConfig(types=["a", "b", "c"], span_head=span_head, head_size=4, attention=attention, **SIZES))
    model.eval()
    return model


def random_texts(*lengths):
    texts = []
    for length in lengths:
        offsets = [(0, 0), *((index, index + 1) for index in range(length - 2)), (0, 0)]
        texts.append(TokenizedText(np.random.randint(1, 23, length).tolist(), offsets, spans=[(1, 1, length - 2)]))
    return texts


def as_tensors(batch):
    return {name: paddle.to_tensor(array) for name, array in batch.items()}


@each_attention
def test_a_padded_batch_gives_the_hidden_states_of_each_text_alone(attention):
    model = roformer(attention)
    lengths = [5, 17, 1, 9]
    ids = np.random.randint(0, 23, (4, 17))
    mask = np.arange(17) < np.array(lengths)[:, np.newaxis]
    for mask_dtype in ("bool", "int64"):
        hidden = model(paddle.to_tensor(ids), paddle.to_tensor(mask).astype(mask_dtype)).numpy()
        assert hidden.shape == (4, 17, 12)
        for row, length in enumerate(lengths):
            alone = model(paddle.to_tensor(ids[row : row + 1, :length])).numpy()[0]
            np.testing.assert_allclose(hidden[row, :length], alone, rtol=0, atol=1e-5)


@each_attention
def test_hidden_states_depend_on_the_order_of_tokens(attention):
    model = roformer(attention)
    ids = paddle.to_tensor([[3, 1, 4, 1, 5, 9, 2]])
    hidden, reversed_hidden = model(ids).numpy(), model(ids.flip(1)).numpy()[:, ::-1]
    assert np.abs(hidden - reversed_hidden).max() > 1e-2


def test_a_block_normalizes_after_each_residual_sum():
    config = RoFormerConfig(**SIZES)
    block = RoFormerBlock(config)
    block.eval()
    for parameter in block.parameters():
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape), dtype="float32"))
    hidden = paddle.to_tensor(np.random.standard_normal((2, 5, 12)), dtype="float32")

    def normalized(x, norm):
        centred = x - x.mean(axis=-1, keepdim=True)
        return centred / (centred * centred).mean(axis=-1, keepdim=True).sqrt() * norm.weight + norm.bias

    middle = normalized(hidden + block.attention(hidden), block.attention_norm)
    inner = F.gelu(paddle.matmul(middle, block.feed_forward_in.weight) + block.feed_forward_in.bias)
    inner = paddle.matmul(inner, block.feed_forward_out.weight) + block.feed_forward_out.bias
    expected = normalized(middle + inner, block.feed_forward_norm)
    np.testing.assert_allclose(block(hidden, None, None).numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


@each_attention
def test_no_length_is_too_long(attention):
    model = roformer(attention, hidden_size=4, num_attention_heads=1, num_hidden_layers=1)
    ids = paddle.to_tensor(np.random.randint(0, 23, (1, 3000)))
    hidden = model(ids)
    assert hidden.shape == [1, 3000, 4]
    assert bool(paddle.isfinite(hidden).all())
    # the last tokens are seen at their own positions: a text of its end alone, attended to alone, is the same
    mask = paddle.to_tensor(np.arange(3000) >= 2990).unsqueeze(0)
    np.testing.assert_allclose(model(ids, mask)[:, 2990:].numpy(), model(ids[:, 2990:]).numpy(), rtol=0, atol=1e-4)


@each_attention
def test_saving_and_loading_is_bit_equal_and_keeps_nothing_positional(attention, tmp_path):
    model = roformer(attention)
    ids = paddle.to_tensor(np.random.randint(0, 23, (2, 700)))
    hidden = model(ids).numpy()
    model.save_pretrained(str(tmp_path))
    loaded = RoFormerModel.from_pretrained(str(tmp_path))
    loaded.eval()
    assert loaded.config.attention == attention
    state, loaded_state = model.state_dict(), loaded.state_dict()
    assert list(state) == list(loaded_state)
    assert all((state[name].numpy() == loaded_state[name].numpy()).all() for name in state)
    np.testing.assert_array_equal(loaded(ids).numpy(), hidden)
    saved = load_file(str(tmp_path / "model.safetensors"))
    assert len(saved) == len(model.parameters()) == len(state)
    words = ("rotary", "position", "theta", "sin", "cos", "table", "freq")
    assert not [name for name in saved if any(word in name for word in words)]
    settings = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert settings.get("max_position_embeddings") is None


@each_head
def test_a_ner_model_is_saved_and_loaded_bit_equal(span_head, tmp_path):
    model = ner_model(span_head=span_head)
    batch = as_tensors(SpanCollator(0, with_labels=False)(random_texts(6, 9)))
    logits = model(**batch).numpy()
    model.save_pretrained(str(tmp_path))
    loaded = NerModel.from_pretrained(str(tmp_path))
    loaded.eval()
    assert loaded.config.types == ["a", "b", "c"]
    np.testing.assert_array_equal(loaded(**batch).numpy(), logits)


@pytest.mark.parametrize("size", [48, 192])
def test_linear_layers_start_by_their_inputs_and_biases_with_zero(size):
    sizes = {**SIZES, "vocab_size": 200, "hidden_size": size, "intermediate_size": 400}
    model = NerModel(NerConfig(types=list("abcdefgh"), features={"tables": {"words": 200}, "flags": 40}, **sizes))
    started = 0
    for path, layer in model.named_sublayers():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            expected = 0.02 if isinstance(layer, nn.Embedding) else 0.5 * layer.weight.shape[0] ** -0.5
            if path == "feature_embedding.projection":  # keeps the scale of what it sums up
                expected *= 2
            assert abs(layer.weight.numpy().std() / expected - 1) < 0.15, path
            started += 1
    assert started > 10
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            assert (parameter.numpy() == (1 if name.endswith("norm.weight") else 0)).all(), name


@each_attention
def test_eval_is_deterministic_and_training_has_dropout(attention):
    model = roformer(attention, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    ids = paddle.to_tensor(np.random.randint(0, 23, (2, 8)))
    np.testing.assert_array_equal(model(ids).numpy(), model(ids).numpy())
    model.train()
    assert np.abs(model(ids).numpy() - model(ids).numpy()).max() > 1e-2
    np.random.seed(3)
    first = model(ids).numpy()
    np.random.seed(3)
    np.testing.assert_array_equal(model(ids).numpy(), first)


def test_dropout_acts_after_embedding_attention_and_feed_forward_and_on_weights():
    model, ids = roformer("softmax"), paddle.to_tensor([[1, 2, 3]])
    quiet = model(ids).numpy()
    places = {name: layer for name, layer in model.named_sublayers() if isinstance(layer, Dropout)}
    assert set(places) == {
        "dropout",
        *(f"blocks.{i}.{name}" for i in (0, 1) for name in ("dropout", "attention.dropout")),
    }
    model.train()
    for acting in places.values():
        for layer in places.values():
            layer.p = 0.5 * (layer is acting)
        assert any(np.abs(model(ids).numpy() - quiet).max() > 1e-3 for _ in range(20))


@each_attention
def test_without_dropout_training_computes_what_eval_does(attention):
    model = roformer(attention, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    ids = paddle.to_tensor(np.random.randint(0, 23, (2, 8)))
    hidden = model(ids).numpy()
    model.train()
    np.testing.assert_array_equal(model(ids).numpy(), hidden)


@each_attention
@each_head
def test_a_padded_batch_gives_the_logits_of_each_text_alone(attention, span_head):
    model = ner_model(attention, span_head)
    texts = random_texts(4, 13, 3, 9)
    collate = SpanCollator(0, with_labels=False)
    logits = model(**as_tensors(collate(texts))).numpy()
    assert logits.shape == (4, 3, 13, 13)
    for row, text in enumerate(texts):
        length = len(text.ids)
        alone = model(**as_tensors(collate([text]))).numpy()[0]
        np.testing.assert_allclose(logits[row, :, :length, :length], alone, rtol=1e-5, atol=1e-5)
        assert (logits[row, :, length:] == MASKED_LOGIT).all()
        assert (logits[row, :, :, length:] == MASKED_LOGIT).all()
        assert (alone[:, [0, -1]] == MASKED_LOGIT).all(), "special tokens start no span"
        assert (alone[:, 1, 1 : length - 1] > MASKED_LOGIT / 2).all()


def test_the_loss_is_the_mean_over_texts_and_types():
    model = ner_model()
    batch = as_tensors(SpanCollator(0)(random_texts(4, 7)))
    loss = model(**batch)
    labels = batch.pop("labels")
    logits = model(**batch)
    dense = np.zeros([2, 3, 7, 7])
    for text, spans in enumerate(labels.tolist()):
        for kind, first, last in spans:
            dense[text, kind, first, last] = kind >= 0
    assert dense.sum() == 2
    rows = multilabel_categorical_crossentropy(
        logits.reshape([6, 49]), paddle.to_tensor(dense.reshape([6, 49]), dtype="float32")
    )
    assert loss.shape == []
    np.testing.assert_allclose(float(loss), rows.numpy().mean(), rtol=1e-6)


@each_attention
@each_head
def test_every_parameter_of_a_ner_model_gets_a_gradient(attention, span_head):
    model = ner_model(attention, span_head)
    model(**as_tensors(SpanCollator(0)(random_texts(5, 8)))).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(paddle.isfinite(parameter.grad).all()), name
        if not name.endswith("attention.key.bias") or attention == "linear":  # softmax does not see a shift of all keys
            assert float(parameter.grad.abs().max()) > 0, name


# ---- what layers of a model have of their own


def test_layers_have_random_features_of_their_own_that_are_always_the_same():
    model, again = (roformer("linear", feature_map="favor") for _ in range(2))
    first, second = (block.attention.feature_map.projection.numpy() for block in model.blocks)
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(again.blocks[1].attention.feature_map.projection.numpy(), second)


def test_nothing_is_recomputed_outside_of_training(monkeypatch):
    recomputed = []

    def recompute(block, *inputs):
        recomputed.append(block)
        return block(*inputs)

    monkeypatch.setattr(modeling, "recompute_layer", recompute)
    model = roformer("softmax")
    model.enable_recompute = True
    model(paddle.to_tensor([[1, 2, 3]]))
    assert recomputed == []
    model.train()
    model(paddle.to_tensor([[1, 2, 3]]))
    assert recomputed == list(model.blocks)


# ---- embeddings from elsewhere, dropout of embeddings


def test_added_embeddings_are_added_before_the_normalization():
    model = roformer("softmax", embedding_size=8)
    ids = paddle.to_tensor(np.random.randint(0, 23, (2, 5)))
    added = np.random.standard_normal((2, 5, 8)).astype("float32")
    given = {}
    model.embedding_norm.register_forward_pre_hook(lambda layer, inputs: given.update(sum=inputs[0].numpy()))
    plain = model(ids).numpy()
    hidden = model(ids, added_embeddings=paddle.to_tensor(added)).numpy()
    np.testing.assert_array_equal(given["sum"], model.token_embedding(ids).numpy() + added)
    assert np.abs(hidden - plain).max() > 0.1
    np.testing.assert_array_equal(model(ids, added_embeddings=paddle.zeros([2, 5, 8])).numpy(), plain)


def test_added_embeddings_get_their_gradient_also_with_recomputation():
    model = roformer("softmax", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.train()
    ids, gradients = paddle.to_tensor(np.random.randint(0, 23, (2, 5))), []
    for model.enable_recompute in (False, True):
        added = paddle.to_tensor(np.full((2, 5, 12), 0.3, "float32"), stop_gradient=False)
        (model(ids, added_embeddings=added) ** 3).sum().backward()
        gradients.append(added.grad.numpy())
    assert np.abs(gradients[0]).max() > 1e-3
    np.testing.assert_allclose(*gradients, rtol=0, atol=1e-4 * np.abs(gradients[0]).max())


def test_added_embeddings_work_in_an_exported_model(tmp_path):
    class WithAdded(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.roformer = roformer("softmax")

        def forward(self, input_ids, attention_mask, added):
            return self.roformer(input_ids, attention_mask, added_embeddings=added)

    model = WithAdded()
    model.eval()
    spec = [paddle.static.InputSpec([None, None], "int64") for _ in range(2)]
    spec = [*spec, paddle.static.InputSpec([None, None, 12], "float32")]
    paddle.jit.save(paddle.jit.to_static(model, input_spec=spec, full_graph=True), str(tmp_path / "model"))
    loaded = paddle.jit.load(str(tmp_path / "model"))
    for batch, seq in ((1, 1), (3, 7)):
        ids = paddle.to_tensor(np.random.randint(0, 23, (batch, seq)))
        added = paddle.to_tensor(np.random.standard_normal((batch, seq, 12)).astype("float32"))
        inputs = (ids, paddle.ones_like(ids), added)
        np.testing.assert_allclose(loaded(*inputs).numpy(), model(*inputs).numpy(), rtol=0, atol=1e-4)


def test_embeddings_can_have_a_dropout_of_their_own():
    rates = {"hidden_dropout_prob": 0.25, "embedding_dropout_prob": 0.5}
    model = roformer("softmax", **rates)
    assert model.dropout.p == 0.5 and {block.dropout.p for block in model.blocks} == {0.25}
    assert roformer("softmax", hidden_dropout_prob=0.25).dropout.p == 0.25
    assert roformer("softmax", hidden_dropout_prob=0.25, embedding_dropout_prob=0.0).dropout.p == 0.0
