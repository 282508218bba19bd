"""RoFormer through paddle.jit.to_static: every form, positions, packed texts, and the tracing that is its default."""

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import EfficientGlobalPointer, GlobalPointer, RoFormerConfig, RoFormerModel
from tests.paddle_rope.roformer.plain_model import make, random_ids
from tests.paddle_rope.roformer.small_models import OURS, randomise

# Every option of the forms that tests.paddle_rope.roformer.plain_model compares is in one of these.
FORMS = {
    "version 2": {
        **{"version": 2, "hidden_act": "relu", "embedding_size": 8, "type_vocab_size": 2},
        **{"attention": ["window", "softmax"], "attention_window": 2},
    },
    "alibi": {"position_embedding": "alibi", "hidden_act": "gelu_tanh"},
    "causal": {
        **{"attention": ["window", "softmax"], "attention_window": 2, "causal": True, "embedding_size": 8},
        **{"position_embedding": "qkv"},
    },
    "window mixed": {"attention": ["linear", "window"], "attention_window": 1, "position_embedding": "vo"},
    "two-sided decay": {"attention": "linear", "decay": [0.9, 0.7, 1.0]},
    "shared": {"position_embedding": "qkvo", "share_kv": True, "attention": ["softmax", "linear"]},
    "exp": {
        **{"attention": "linear", "feature_map": "exp", "normalizer": "none"},
        **{"output_gate": True, "position_embedding": "sinusoidal"},
    },
    "cosine": {"attention": "linear", "feature_map": "one_plus_cosine", "normalizer": "rotated"},
    "softmax exp": {"attention": "linear", "feature_map": "softmax_exp", "position_embedding": "none"},
    "favor": {"attention": "linear", "feature_map": "favor"},
    "convolutions": {"convolutions": True, "output_gate": True},
    "convolutions, shared": {"convolutions": True, "share_kv": True, "position_embedding": "qkv"},
    "convolutions, linear": {
        **{"convolutions": True, "attention": "linear", "version": 2},
        **{"position_embedding": "learned", "max_position_embeddings": 7},
    },
}


class Given(paddle.nn.Layer):
    """An encoder with one more argument, by name."""

    def __init__(self, model, name):
        super().__init__()
        self.model = model
        self.name = name

    def forward(self, input_ids, more):
        if self.name == "positions":
            return self.model(input_ids, positions=more)
        return self.model(input_ids, segment_ids=more)


def encoder(**options):
    return randomise(RoFormerModel(RoFormerConfig(**{**OURS, **options})))


def token_ids(batch, seq):
    return paddle.to_tensor(np.random.randint(0, OURS["vocab_size"], (batch, seq)))


def saved_and_loaded(layer, folder):
    layer.eval()
    specs = [InputSpec([None, None], "int64") for _ in range(2)]
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(folder / "layer"))
    return paddle.jit.load(str(folder / "layer"))


@pytest.mark.equation("2.7")
@pytest.mark.parametrize(
    "options",
    [
        {"attention": ["softmax", "linear", "window"], "num_hidden_layers": 3, "attention_window": 2},
        {"attention": "linear", "decay": [0.9, 0.7, 1.0, 0.5]},
        {"attention": "window", "attention_window": 90, "rotary": {"learned": True}},
        {"position_embedding": "vo"},
        {"position_embedding": "alibi"},
    ],
    ids=str,
)
def test_saved_models_take_positions(options, tmp_path):
    model = encoder(**options)
    loaded = saved_and_loaded(Given(model, "positions"), tmp_path)
    for batch, seq in ((1, 1), (3, 9), (2, 70)):
        ids = token_ids(batch, seq)
        positions = paddle.to_tensor(np.sort(np.random.randint(0, 500, (batch, seq))))
        expected = model(ids, positions=positions).numpy()
        np.testing.assert_allclose(loaded(ids, positions).numpy(), expected, rtol=0, atol=1e-4)


@pytest.mark.equation("2.7")
@pytest.mark.parametrize("options", [{}, {"attention": "window", "attention_window": 2}], ids=str)
def test_saved_softmax_models_take_packed_texts(options, tmp_path):
    model = encoder(**options)
    loaded = saved_and_loaded(Given(model, "segment_ids"), tmp_path)
    for segments in ([[0, 0, 0, 1]], [[4, 4, 4, 4, 4, 2], [0, 1, 1, 3, 3, 3]]):
        segments = paddle.to_tensor(segments)
        ids = token_ids(*segments.shape)
        expected = model(ids, segment_ids=segments).numpy()
        np.testing.assert_allclose(loaded(ids, segments).numpy(), expected, rtol=0, atol=1e-4)


def test_what_needs_a_known_length_says_so(tmp_path):
    with pytest.raises(ValueError, match="segment_ids needs a known length"):
        saved_and_loaded(Given(encoder(attention="linear"), "segment_ids"), tmp_path)


@pytest.mark.parametrize("max_span_length", [None, 1, 5, 40])
@pytest.mark.parametrize("kind", [GlobalPointer, EfficientGlobalPointer])
def test_saved_heads_score_any_length(kind, max_span_length, tmp_path):
    head = randomise(kind(8, 2, head_size=4, max_span_length=max_span_length))
    sizes = [(1, 1), (2, 3), (3, 31), (2, 32), (1, 33), (2, 97)]
    hidden = [paddle.randn([*size, 8]) for size in sizes]
    masks = [paddle.rand(size) > 0.3 for size in sizes]
    expected = [head(x, mask).numpy() for x, mask in zip(hidden, masks)]
    head.eval()
    specs = [InputSpec([None, None, 8], "float32"), InputSpec([None, None], "bool")]
    paddle.jit.save(paddle.jit.to_static(head, input_spec=specs, full_graph=True), str(tmp_path / "head"))
    loaded = paddle.jit.load(str(tmp_path / "head"))
    for x, mask, scores in zip(hidden, masks, expected):
        np.testing.assert_allclose(loaded(x, mask).numpy(), scores, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_to_static_by_its_defaults_changes_nothing():
    model = encoder(attention=["softmax", "linear", "window"], num_hidden_layers=3)
    ids = token_ids(2, 7)
    expected = model(ids).numpy()
    np.testing.assert_allclose(paddle.jit.to_static(model)(ids).numpy(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_no_token_is_an_error_that_says_so(attention):
    with pytest.raises(ValueError, match=r"input_ids \[2, 0\] has no token"):
        encoder(attention=attention)(paddle.zeros([2, 0], dtype="int64"))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_takes_any_batch_and_length(form, tmp_path):
    options = FORMS[form]
    model = make(RoFormerModel, num_hidden_layers=2 if isinstance(options.get("attention"), list) else 1, **options)
    batches, outputs = [], []
    for batch, seq in ((1, 1), (3, 5), (2, 7)):
        mask = np.arange(seq) < np.random.randint(1, seq + 1, (batch, 1))
        batches.append((random_ids(batch, seq), paddle.to_tensor(mask).astype("int64")))
        outputs.append(model(*batches[-1]).numpy())
    loaded = saved_and_loaded(model, tmp_path)
    for (ids, mask), expected in zip(batches, outputs):
        is_real = mask.numpy()[:, :, np.newaxis]
        np.testing.assert_allclose(loaded(ids, mask).numpy() * is_real, expected * is_real, rtol=0, atol=1e-4)


@pytest.mark.parametrize("decay", [None, [0.9, 0.7, 1.0]], ids=str)
def test_causal_linear_attention_needs_a_known_length_and_says_so(decay, tmp_path):
    attention = ["softmax", "linear"] if decay is None else "linear"
    with pytest.raises(ValueError, match="known length"):
        saved_and_loaded(make(RoFormerModel, attention=attention, causal=True, decay=decay), tmp_path)
