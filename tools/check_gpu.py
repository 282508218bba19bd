"""Check this library on a GPU or CPU: every layer in float32, and on a GPU in bfloat16 and float16, against the same
layer on the CPU in float64.

    .venv/bin/python tools/check_gpu.py --output check.json

The exit status is 1 if a layer exceeds its bound.
"""

import argparse
import contextlib
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bootstrap  # noqa: F401  finds the package

from paddle_rope.machine import import_paddle, prepare_process

prepare_process()
import_paddle()
import numpy as np
import paddle
from paddle import Tensor

import paddle_rope
from paddle_rope.global_pointer.losses import span_crossentropy
from paddle_rope.layers import RMSNorm
from paddle_rope.roformer import RoFormerConfig, RoFormerModel
from paddle_rope.tasks.common.errors import OneLineArgumentParser
from paddle_rope.tasks.common.files import check_output_file
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.process import choose_device
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.worker import report


@on_terminal
def main(argv: list[str] | None = None) -> int:
    """Check all layers and print a table. Returns the exit status: 1 if a layer exceeds its bound."""
    form = argparse.RawDescriptionHelpFormatter
    parser = OneLineArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--device", help="cpu, gpu, gpu:1 ... (default: a GPU if there is one)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write, with all numbers")
    options = parser.parse_args(argv)
    if options.output is not None:
        check_output_file(options.output, [])
    on_gpu = choose_device(options.device).startswith("gpu")
    found: dict[str, Any] = {"platform": platform.platform(), "device": paddle.get_device()}
    if on_gpu:
        gpu = paddle.device.cuda.get_device_properties()
        found["gpu"] = f"{gpu.name}, compute capability {gpu.major}.{gpu.minor}, {gpu.total_memory / 2**30:.1f} GB"
        found |= {"cuda": paddle.version.cuda(), "cudnn": paddle.version.cudnn()}
    rows = check_layers(["float32", "bfloat16", "float16"] if on_gpu else ["float32"])  # of the matrix products
    shown = [{key: f"{value:.3g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows]
    failed = [f"{row['layer']} in {row['dtype']}" for row in rows if not row["passes"]]
    last = f"beyond their bounds: {', '.join(failed)}" if failed else "every layer is within its bound"
    places = "\n".join(f"{name}: {value}" for name, value in found.items())
    report({**found, "layers": rows}, f"{places}\n\n{as_markdown(shown)}\n{last}", options.output)
    return int(bool(failed))


# ---- every layer against itself in float64 on the CPU, which the tests compare with the equations

BATCH, HEADS, SEQ, FEATURES = 2, 2, 12, 16
# Largest error that passes, relative to the largest value of float64: a few roundings of each dtype.
BOUNDS = {"float32": 2e-4, "bfloat16": 6e-2, "float16": 1e-2}
SPANS = [[[0, 1, 3], [2, 5, 5]], [[1, 0, 0], [1, 7, 9]]]


def attention_cases() -> dict[str, Callable[..., Tensor]]:
    """The layers by name, as functions of q, k and v ``[batch, seq, heads, head_dim]``."""

    def attend(kind, is_padded=False, **options):
        def attended(q, k, v):
            key_mask = paddle.arange(SEQ) < paddle.to_tensor([[SEQ], [SEQ - 5]]) if is_padded else None
            dtype = "float64" if q.dtype == paddle.float64 else "float32"
            rope = paddle_rope.RotaryPositionEmbedding(FEATURES).cos_sin(SEQ, dtype=dtype)
            return getattr(paddle_rope, f"{kind}_attention")(q, k, v, rope=rope, key_mask=key_mask, **options)

        return attended

    return {
        "RoPE": lambda q, k, v: paddle_rope.RotaryPositionEmbedding(FEATURES)(q),
        "RMS norm": lambda q, k, v: RMSNorm()(q),
        **{
            f"{kind} attention{name}": attend(kind, **options)
            for kind in ("softmax", "linear")
            for name, options in (("", {"is_padded": True}), (", no padding", {}), (", causal", {"causal": True}))
        },
        "window attention": attend("window", is_padded=True, window=4),
        "linear attention, output norm, decay": attend("linear", normalizer="none", decay=[0.5, 0.95]),
    }


def compare(layer: Callable[..., Tensor], inputs: list[Tensor], dtype: str) -> dict[str, float]:
    """``output`` and ``gradient``: the largest difference between a layer in a dtype on the device in use and in
    float64 on the CPU, relative to the largest value there. Both get the ``inputs``, float32, rounded to ``dtype``."""
    rounded = [x.astype(dtype) for x in inputs]
    output, gradients = _computed(layer, rounded)
    with _on_cpu():
        exact, exact_gradients = _computed(layer, [x.cpu().astype("float64") for x in rounded])
    return {"output": _error(output, exact), "gradient": max(map(_error, gradients, exact_gradients))}


def _computed(layer, inputs):
    """The output of a layer, and its gradients by the inputs on which it depends."""
    inputs = [x.detach() for x in inputs]
    for x in inputs:
        x.stop_gradient = False
    output = layer(*inputs)
    weights = paddle.to_tensor(np.cos(np.arange(output.size)).reshape(output.shape)).astype(output.dtype)
    gradients = paddle.grad((output * weights).sum(), inputs, allow_unused=True)
    return output, [x for x in gradients if x is not None]


@contextlib.contextmanager
def _on_cpu():
    device = paddle.get_device()
    paddle.set_device("cpu")
    try:
        yield
    finally:
        paddle.set_device(device)


def _error(found: Tensor, exact: Tensor) -> float:
    found, exact = (x.astype("float64").numpy() for x in (found, exact))
    largest, error = float(np.abs(exact).max()), float(np.abs(found - exact).max())
    return error / largest if error == error and largest else error  # a NaN stays one


def check_layers(dtypes: list[str]) -> list[dict[str, Any]]:
    """A row for each layer and dtype: ``layer``, ``dtype``, ``output``, ``gradient``, ``bound``, ``passes``."""
    paddle.seed(0)
    qkv = [paddle.randn([BATCH, SEQ, HEADS, FEATURES]) for _ in range(3)]
    cases = {name: (layer, qkv) for name, layer in attention_cases().items()}
    logits = [paddle.randn([BATCH, 3, SEQ, SEQ])]
    cases["loss of spans"] = (lambda x: span_crossentropy(x, paddle.to_tensor(SPANS)), logits)
    errors = {(name, dtype): compare(*case, dtype) for name, case in cases.items() for dtype in dtypes}
    errors |= {("RoFormer of 4 layers, autocast", dtype): {"output": _encoder_error(dtype)} for dtype in dtypes}
    return [
        {"layer": name, "dtype": dtype, **found, "bound": BOUNDS[dtype], "passes": max(found.values()) <= BOUNDS[dtype]}
        for (name, dtype), found in errors.items()  # a NaN does not pass
    ]


def _encoder_error(dtype: str) -> float:
    """The error of a whole RoFormer under autocast against itself in float32, whose layers are compared above."""
    paddle.seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
    attention = ["softmax", "linear", "linear", "softmax"]
    model = RoFormerModel(RoFormerConfig(**sizes, intermediate_size=128, attention=attention))
    model.eval()
    ids = paddle.randint(1, 50, [2, 30])
    exact = model(ids).astype("float64")
    with paddle.amp.auto_cast(enable=dtype != "float32", dtype="bfloat16" if dtype == "float32" else dtype):
        return _error(model(ids), exact)


if __name__ == "__main__":
    sys.exit(main())
