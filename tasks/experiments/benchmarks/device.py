"""Check whether this library is right on a device: a table, and a JSON file to send in. ``benchmark device``."""

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import paddle
from paddle import Tensor

import paddle_rope
from paddle_rope import reference
from paddle_rope.global_pointer.losses import multilabel_categorical_crossentropy, span_crossentropy
from paddle_rope.layers import RMSNorm
from paddle_rope.roformer import RoFormerConfig, RoFormerModel
from paddle_rope.tasks.common.process import choose_device
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.benchmarks.worker import report


def run(options: Any) -> int:
    """Check all layers and print a table. Returns the exit status: 1 if a layer exceeds its bound."""
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


# ---- every layer against its plain form in float64

BATCH, HEADS, SEQ, FEATURES = 2, 2, 12, 16
# Largest error that passes, relative to the largest value of the plain form: a few roundings of each dtype.
BOUNDS = {"float32": 2e-4, "bfloat16": 6e-2, "float16": 1e-2}
SPANS = [[[0, 1, 3], [2, 5, 5]], [[1, 0, 0], [1, 7, 9]]]

Form = Callable[..., Tensor]


def attention_cases() -> dict[str, tuple[Form, Form]]:
    """Our form and the plain form of each layer, by name: functions of q, k and v ``[batch, seq, heads, head_dim]``."""
    rotary, turn = paddle_rope.RotaryPositionEmbedding(FEATURES), partial(reference.rotate, positions=range(SEQ))
    key_mask = paddle.arange(SEQ) < paddle.to_tensor([[SEQ], [SEQ - 5]])

    def pair(kind, **options):
        def rotated(q, k, v):
            rope = rotary.cos_sin(SEQ, dtype="float64" if q.dtype == paddle.float64 else "float32")
            return getattr(paddle_rope, f"{kind}_attention")(q, k, v, rope=rope, **options)

        plain = getattr(reference, f"{'linear' if kind == 'linear' else 'softmax'}_attention")
        masks = {"key_mask": key_mask.numpy()} if "key_mask" in options else {}
        return rotated, lambda *qkv: plain(*qkv, turn, **{**options, **masks})

    return {
        "RoPE": (lambda q, k, v: rotary(q), lambda q, k, v: turn(q)),
        "RMS norm": (
            lambda q, k, v: RMSNorm()(q),
            lambda q, k, v: q / (q.square().mean(axis=-1, keepdim=True) + 1e-12).sqrt(),
        ),
        **{
            f"{kind} attention{name}": pair(kind, **options)
            for kind in ("softmax", "linear")
            for name, options in (("", {"key_mask": key_mask}), (", no padding", {}), (", causal", {"causal": True}))
        },
        "window attention": pair("window", window=4, key_mask=key_mask),
        "linear attention, output norm, decay": pair("linear", normalizer="none", decay=[0.5, 0.95]),
    }


def _dense_span_loss(logits: Tensor, spans: Tensor) -> Tensor:
    labels = paddle.zeros_like(logits)
    for text, of_text in enumerate(spans.tolist()):
        for kind, first, last in of_text:
            labels[text, kind, first, last] = 1.0
    return multilabel_categorical_crossentropy(*(x.reshape([*x.shape[:2], -1]) for x in (logits, labels)))


def compare(ours: Form, plain: Form, inputs: list[Tensor], dtype: str) -> dict[str, float]:
    """``output`` and ``gradient``: the largest difference between ``ours`` in a dtype and ``plain`` in float64,
    relative to the largest value of ``plain``. Both get the ``inputs``, float32, rounded to ``dtype``."""
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
    return {"output": _error(output, exact), "gradient": max(map(_error, gradients, exact_gradients))}


def _error(found: Tensor, exact: Tensor) -> float:
    largest = float(exact.abs().max())
    error = float((found.astype("float64") - exact).abs().max())
    return error / largest if error == error and largest else error  # a NaN stays one


def check_layers(dtypes: list[str]) -> list[dict[str, Any]]:
    """A row for each layer and dtype: ``layer``, ``dtype``, ``output``, ``gradient``, ``bound``, ``passes``."""
    paddle.seed(0)
    qkv = [paddle.randn([BATCH, SEQ, HEADS, FEATURES]) for _ in range(3)]
    logits, spans = [paddle.randn([BATCH, 3, SEQ, SEQ])], paddle.to_tensor(SPANS)
    cases = {name: (*forms, qkv) for name, forms in attention_cases().items()}
    cases["loss of spans"] = (lambda x: span_crossentropy(x, spans), lambda x: _dense_span_loss(x, spans), logits)
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
