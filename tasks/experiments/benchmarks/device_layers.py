"""Every layer on a device against its plain form in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
from paddle import Tensor

import paddle_rope
from paddle_rope import reference
from paddle_rope.global_pointer import span_crossentropy
from paddle_rope.layers import RMSNorm
from paddle_rope.roformer import RoFormerConfig, RoFormerModel

BATCH, HEADS, SEQ, HEAD_DIM = 2, 2, 12, 16
# Largest error that passes, in shares of the largest value of the plain form: some roundings of each dtype.
BOUNDS = {"float32": 2e-4, "bfloat16": 6e-2, "float16": 1e-2}

Form = Callable[..., Tensor]


def _rms(x: Tensor) -> Tensor:
    return x / (x.square().mean(axis=-1, keepdim=True) + 1e-12).sqrt()


def _dense_span_loss(logits: Tensor, spans: Tensor) -> Tensor:
    labels = paddle.zeros_like(logits)
    for text, of_text in enumerate(spans.tolist()):
        for kind, first, last in of_text:
            labels[text, kind, first, last] = 1.0
    flat = [x.reshape([*x.shape[:2], -1]) for x in (logits, labels)]
    positive = (flat[1] * paddle.exp(-flat[0])).sum(axis=-1)
    negative = ((1 - flat[1]) * paddle.exp(flat[0])).sum(axis=-1)
    return paddle.log(1 + positive) + paddle.log(1 + negative)


def attention_cases() -> dict[str, tuple[Form, Form]]:
    """By name: ours and the plain form, functions of q, k and v ``[batch, seq, heads, head_dim]``."""
    softmax, plain_softmax = paddle_rope.softmax_attention, reference.softmax_attention
    linear, plain_linear = paddle_rope.linear_attention, reference.linear_attention
    window = paddle_rope.window_attention
    rotary, places = paddle_rope.RotaryPositionEmbedding(HEAD_DIM), range(SEQ)
    key_mask = paddle.arange(SEQ) < paddle.to_tensor([[SEQ], [SEQ - 5]])
    mask = key_mask.numpy()

    def rope(qkv):
        return rotary.cos_sin(SEQ, dtype="float64" if qkv[0].dtype == paddle.float64 else "float32")

    norm = {"normalizer": "none", "decay": [0.5, 0.95]}
    return {
        "RoPE": (lambda q, k, v: rotary(q), lambda q, k, v: reference.rotate(q, places)),
        "softmax attention": (
            lambda *qkv: softmax(*qkv, rope(qkv), key_mask),
            lambda *qkv: plain_softmax(*qkv, places, mask),
        ),
        "softmax attention, no padding": (
            lambda *qkv: softmax(*qkv, rope(qkv)),
            lambda *qkv: plain_softmax(*qkv, places),
        ),
        "softmax attention, causal": (
            lambda *qkv: softmax(*qkv, rope(qkv), causal=True),
            lambda *qkv: plain_softmax(*qkv, places, causal=True),
        ),
        "window attention": (
            lambda *qkv: window(*qkv, 4, rope(qkv), key_mask),
            lambda *qkv: plain_softmax(*qkv, places, mask, window=4),
        ),
        "linear attention": (
            lambda *qkv: linear(*qkv, rope(qkv), key_mask),
            lambda *qkv: plain_linear(*qkv, places, mask),
        ),
        "linear attention, output norm, decay": (
            lambda *qkv: linear(*qkv, rope(qkv), **norm),
            lambda *qkv: plain_linear(*qkv, places, **norm),
        ),
        "linear attention, causal": (
            lambda *qkv: linear(*qkv, rope(qkv), causal=True),
            lambda *qkv: plain_linear(*qkv, places, causal=True),
        ),
        "RMS norm": (lambda q, k, v: RMSNorm()(q), lambda q, k, v: _rms(q)),
    }


def compare(ours: Form, plain: Form, inputs: list[Tensor], dtype: str) -> dict[str, float]:
    """Outputs and gradients of ``ours`` in a dtype and of ``plain`` in float64, of the same numbers.

    Args:
        inputs: float32; they are rounded to ``dtype`` for both.

    Returns:
        ``output`` and ``gradient``: the largest difference over the largest value of the plain form.
    """
    rounded = [x.astype(dtype) for x in inputs]
    results = []
    for form, given in ((ours, rounded), (plain, [x.astype("float64") for x in rounded])):
        given = [x.detach() for x in given]
        for x in given:
            x.stop_gradient = False
        output = form(*given)
        weights = paddle.cos(paddle.arange(output.size, dtype="float32")).reshape(output.shape).astype(output.dtype)
        gradients = paddle.grad((output * weights).sum(), given, allow_unused=True)
        results.append((output, [x for x in gradients if x is not None]))
    (output, gradients), (exact, exact_gradients) = results
    pairs = list(zip(gradients, exact_gradients))
    return {"output": _error(output, exact), "gradient": max(_error(*pair) for pair in pairs)}


def _error(found: Tensor, exact: Tensor) -> float:
    largest = float(exact.abs().max())
    error = float((found.astype("float64") - exact).abs().max())
    return error / largest if error == error and largest else error  # a NaN stays one


def check_layers(dtypes: list[str]) -> list[dict[str, Any]]:
    """A row for each layer and dtype: ``layer``, ``dtype``, ``output``, ``gradient``, ``bound``, ``passes``."""
    paddle.seed(0)
    qkv = [paddle.randn([BATCH, SEQ, HEADS, HEAD_DIM]) for _ in range(3)]
    logits = [paddle.randn([BATCH, 3, SEQ, SEQ])]
    spans = paddle.to_tensor([[[0, 1, 3], [2, 5, 5]], [[1, 0, 0], [1, 7, 9]]])
    cases = {name: (*forms, qkv) for name, forms in attention_cases().items()}
    cases["loss of spans"] = (lambda x: span_crossentropy(x, spans), lambda x: _dense_span_loss(x, spans), logits)
    rows = []
    for name, (ours, plain, inputs) in cases.items():
        for dtype in dtypes:
            found = compare(ours, plain, inputs, dtype)
            bound = BOUNDS[dtype]
            passes = max(found.values()) <= bound  # False for a NaN
            rows.append({"layer": name, "dtype": dtype, **found, "bound": bound, "passes": passes})
    return [*rows, *(_encoder(dtype) for dtype in dtypes)]


def autocast(dtype: str) -> Any:
    """The context of a forward pass in a dtype; float32 is none."""
    return paddle.amp.auto_cast(enable=dtype != "float32", dtype="bfloat16" if dtype == "float32" else dtype)


def _encoder(dtype: str) -> dict[str, Any]:
    """A whole RoFormer under autocast against itself in float32, whose layers are compared above."""
    paddle.seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
    model = RoFormerModel(
        RoFormerConfig(**sizes, intermediate_size=128, attention=["softmax", "linear", "linear", "softmax"])
    )
    model.eval()
    ids = paddle.randint(1, 50, [2, 30])
    exact = model(ids).astype("float64")
    with autocast(dtype):
        error = _error(model(ids), exact)
    bound = BOUNDS[dtype]
    row = {"layer": "RoFormer of 4 layers, autocast", "dtype": dtype, "output": error, "gradient": None}
    return {**row, "bound": bound, "passes": error <= bound}
