"""The table of native operators: the function whose form each is, and arguments; and what several tests need."""

import contextlib
import hashlib
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import paddle

from paddle_rope import EfficientGlobalPointer, RotaryPositionEmbedding, linear_attention, softmax_attention
from paddle_rope.layers import Dropout, depthwise_convolution, dropout, linear, residual_norm
from tests.helpers.comparison import random_tensor

MASK = np.array([[False, True, True, True, True], [True, True, False, True, True]])
SEGMENTS = np.array([[0, 0, 1, 1, 1], [4, 4, 4, 4, 2]])
SPANS = np.array([[[0, 1, 2], [0, 1, 2], [-1, 0, 0]], [[1, 3, 4], [1, 3, 3], [0, 0, 0]]])  # (type, first, last)
QKV = [(2, 5, 2, 4)] * 3
ROPE = RotaryPositionEmbedding(4).cos_sin(5)


def norm_of_sum(residual, x, weight=None, bias=None, p=0.0):
    paddle.seed(3)
    norm = SimpleNamespace(weight=weight, bias=bias, epsilon=1e-6)
    return residual_norm(norm, residual, x, Dropout(p))


class OfProjections(EfficientGlobalPointer):
    """A head whose hidden states are its projections: q and k, and the scores of starts and ends."""

    def _project(self, hidden):
        return hidden[..., : 2 * self.head_size], hidden[..., 2 * self.head_size :]


class Operator(NamedTuple):
    """A function with a native form, the shapes of its tensors ("mask" and "segments" are no shapes), and options."""

    function: Any
    shapes: list
    options: dict = {}
    keeps_inputs: bool = True

    def __call__(self, *arguments):
        paddle.seed(3)  # of dropout
        return self.function(*arguments, **self.options)

    def arguments(self, batch=2):
        """New arguments; of other sizes than 2 the batch repeats."""
        known, made = {"mask": MASK, "segments": SEGMENTS}, []
        for shape in self.shapes:
            if isinstance(shape, str):
                made.append(paddle.to_tensor(np.tile(known[shape], (batch // 2, 1))))
            else:
                made.append(random_tensor(*(batch if size == 2 and not i else size for i, size in enumerate(shape)),
                                          dtype="float32"))  # fmt: skip
        return made


def span_loss(seq=5, shape=(8, 4), spans=SPANS, scale=1.0, **options):
    """The loss of an efficient GlobalPointer from its projections, of as many types as the scores have."""
    qk, scores = shape
    head = OfProjections(1, scores // 2, qk // 2, **options)

    def loss(hidden, mask=None):
        return head.loss(scale * hidden, paddle.to_tensor(spans), mask)

    return Operator(loss, [(2, seq, qk + scores)], keeps_inputs=False)


def convolution(size, causal=False):
    return Operator(depthwise_convolution, [(2, 5, 6), (size, 6), "mask", "segments"], {"causal": causal})


def attention(function, *masks, **options):
    return Operator(lambda q, k, v, *given: function(q, k, v, ROPE, *given[:1], segment_ids=(*given, None, None)[1],
                                                     **options), [*QKV, *masks])  # fmt: skip


X, WEIGHTS = (2, 5, 6), [(6,), (6,)]
OPERATORS = {
    "linear": Operator(linear, [X, (6, 4), (4,)]),
    "linear without bias": Operator(lambda x, w: linear(x, w, None, "gelu"), [X, (6, 4)]),
    **{f"linear with {name}": Operator(linear, [X, (6, 19), (19,)], {"activation": name})
       for name in ("relu", "gelu", "gelu_tanh", "tanh")},
    "layer norm": Operator(norm_of_sum, [X, X, *WEIGHTS], {}, False),
    "layer norm with dropout": Operator(norm_of_sum, [X, X, *WEIGHTS], {"p": 0.4}, False),
    "RMS norm": Operator(norm_of_sum, [X, X], {}, False),
    "RMS norm of one row": Operator(norm_of_sum, [(7,), (7,)], {}, False),
    "dropout": Operator(dropout, [X], {"p": 0.5}, False),
    "convolution": convolution(3),
    "convolution of one token": convolution(1),
    "wide convolution": convolution(15),
    "causal convolution": convolution(4, causal=True),
    "convolution without masks": Operator(depthwise_convolution, [X, (5, 6)]),
    "softmax attention": attention(softmax_attention, "mask", "segments"),
    "causal softmax attention": attention(softmax_attention, "mask", "segments", causal=True),
    "linear attention": attention(linear_attention, "mask"),
    "causal linear attention": attention(linear_attention, "mask", causal=True, decay=[0.9, 0.5], normalizer="none"),
    "span loss": span_loss(),
    "span loss with padding": span_loss(spans=SPANS[:, :1], max_span_length=3)._replace(shapes=[(2, 5, 12), "mask"]),
    "span loss without RoPE and spans": span_loss(70, spans=np.full([2, 1, 3], -1), use_rope=False),
    "span loss of a long text": span_loss(150, max_span_length=90),  # of several blocks
    "span loss of pairs in any order": span_loss(
        150, spans=[[[0, 140, 3], [1, 3, 140], [1, 70, 70]], [[0, 0, 149], [-1, 0, 0], [-1, 0, 0]]],
        use_rope=False, ordered=False,
    ),
    "span loss of large scores": span_loss(150, (8, 6), scale=20.0, max_span_length=4),
}  # fmt: skip


def gradients_of(operator, arguments):
    """[output, gradient of each argument that has one] of the output in a fixed direction, as arrays."""
    inputs = [one for one in arguments if not one.stop_gradient]
    output = operator(*arguments)
    towards = paddle.arange(output.size, dtype="float32").reshape(output.shape) % 7 - 3
    return [x.numpy() for x in (output, *paddle.grad((output * towards).sum(), inputs))]


def bits_of(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


@contextlib.contextmanager
def views():
    """In this context transposed tensors and slices are views, as by Paddle's default."""
    before = paddle.get_flags("FLAGS_use_stride_kernel")
    paddle.set_flags({"FLAGS_use_stride_kernel": True})
    try:
        yield
    finally:
        paddle.set_flags(before)
