"""The table of native operators: the function whose form each is, and arguments; and what several tests need."""

import contextlib
import hashlib
import os
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import paddle

from paddle_rope import RotaryPositionEmbedding, linear_attention, softmax_attention
from paddle_rope.convolution import depthwise_convolution
from paddle_rope.global_pointer.heads import mask_non_spans
from paddle_rope.global_pointer.losses import span_crossentropy
from paddle_rope.layers import Dropout, dropout, linear, residual_norm
from paddle_rope.native.dispatch import is_enabled
from paddle_rope.native.span_loss import native_span_loss
from tests.helpers.comparison import random_tensor

MASK = np.array([[False, True, True, True, True], [True, True, False, True, True]])
SEGMENTS = np.array([[0, 0, 1, 1, 1], [4, 4, 4, 4, 2]])
SPANS = np.array([[[0, 1, 2], [0, 1, 2], [-1, 0, 0]], [[1, 3, 4], [1, 3, 3], [0, 0, 0]]])  # (type, first, last)
QKV = [(2, 5, 2, 4)] * 3
ROPE = RotaryPositionEmbedding(4).cos_sin(5)


def norm_of_sum(residual, x, weight=None, bias=None, p=0.0):
    np.random.seed(3)
    norm = SimpleNamespace(weight=weight, bias=bias, epsilon=1e-6)
    return residual_norm(norm, residual, x, Dropout(p))


def span_loss(qk, type_scores, mask=None, rope=ROPE, spans=SPANS, longest=None):
    """Both forms of the loss of an efficient GlobalPointer from its projections."""
    if is_enabled(qk, type_scores):
        real = np.unique([(text * (type_scores.shape[2] // 2) + kind, first, last)
                          for text, of_text in enumerate(spans) for kind, first, last in of_text if kind >= 0] or
                         np.zeros([0, 3], "int64"), axis=0)  # fmt: skip
        return native_span_loss(qk, type_scores, real[:, 0], real[:, 1:], rope, mask, longest)
    rotary, size = RotaryPositionEmbedding(qk.shape[2] // 2), qk.shape[2] // 2
    q, k = (x if rope is None else rotary(x) for x in (qk[..., :size], qk[..., size:]))
    starts, ends = (type_scores.transpose([0, 2, 1]) / 2).chunk(2, axis=1)
    products = paddle.matmul(q, k, transpose_y=True).unsqueeze(1) / size**0.5
    logits = mask_non_spans(products + starts.unsqueeze(3) + ends.unsqueeze(2), mask)
    if longest is not None:
        index = paddle.arange(qk.shape[1])
        is_short = (index - index.unsqueeze(1) < longest).expand(logits.shape)
        logits = paddle.where(is_short, logits, paddle.full_like(logits, -1e4))
    return span_crossentropy(logits, paddle.to_tensor(spans))


class Operator(NamedTuple):
    """A function with a native form, the shapes of its tensors ("mask" and "segments" are no shapes), and options."""

    function: Any
    shapes: list
    options: dict = {}
    keeps_inputs: bool = True

    def __call__(self, *arguments):
        np.random.seed(3)  # of dropout
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
    "causal softmax attention": attention(softmax_attention, causal=True),
    "linear attention": attention(linear_attention, "mask"),
    "causal linear attention": attention(linear_attention, "mask", causal=True, decay=[0.9, 0.5], normalizer="none"),
    "span loss": Operator(span_loss, [(2, 5, 8), (2, 5, 4)]),
    "span loss with padding": Operator(span_loss, [(2, 5, 8), (2, 5, 4), "mask"],
                                       {"spans": np.array([[[0, 1, 2]], [[1, 3, 4]]]), "longest": 3}),
}  # fmt: skip


def gradients_of(operator, arguments):
    """[output, gradient of each argument that has one] of the output in a fixed direction, as arrays."""
    inputs = [one for one in arguments if not one.stop_gradient]
    output = operator(*arguments)
    towards = paddle.arange(output.size, dtype="float32").reshape(output.shape) % 7 - 3
    return [x.numpy() for x in (output, *paddle.grad((output * towards).sum(), inputs))]


def bits_of(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def kept_without_backward(function, count=8):
    """MB that stay with the process for each call whose output nobody takes."""

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    for _ in range(4):
        function()
    before = resident()
    for _ in range(count):
        function()
    return (resident() - before) / count


@contextlib.contextmanager
def views():
    """In this context transposed tensors and slices are views, as by Paddle's default."""
    before = paddle.get_flags("FLAGS_use_stride_kernel")
    paddle.set_flags({"FLAGS_use_stride_kernel": True})
    try:
        yield
    finally:
        paddle.set_flags(before)
