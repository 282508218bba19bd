"""RoFormer through paddle.jit.to_static: with positions and packed texts, and by the tracing that is its default."""

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import EfficientGlobalPointer, GlobalPointer, RoFormerConfig, RoFormerModel
from tests.roformer.small_models import OURS, randomise


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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attention": "linear"},
        {"attention": "linear", "decay": [0.9, 0.7, 1.0, 0.5]},
        {"attention": "window", "attention_window": 2},
        {"attention": "window", "attention_window": 90, "score_scaling_length": 8},
        {"attention": "linear", "decay": "token"},
        {"position_embedding": "vo"},
        {"rotary_learned": True},
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
@pytest.mark.parametrize("attention", ["softmax", "linear", "window"])
def test_to_static_by_its_defaults_changes_nothing(attention):
    model = encoder(attention=attention)
    ids = token_ids(2, 7)
    expected = model(ids).numpy()
    np.testing.assert_allclose(paddle.jit.to_static(model)(ids).numpy(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_no_token_is_an_error_that_says_so(attention):
    with pytest.raises(ValueError, match=r"input_ids \[2, 0\] has no token"):
        encoder(attention=attention)(paddle.zeros([2, 0], dtype="int64"))
