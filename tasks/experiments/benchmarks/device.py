"""Whether this library is right and fast on a device: tables, and a JSON file to send in. ``benchmark device``."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import paddle

from paddle_rope import RotaryPositionEmbedding, linear_attention
from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
from tasks.common.files import write_json
from tasks.common.process import choose_device
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks import device_layers
from tasks.experiments.benchmarks.measuring import forget_peak, peak_megabytes, seconds_of, training_step

LONGEST, SHORTEST = 2**20, 2**12  # tokens of linear attention
PACKAGES = ("paddlepaddle-gpu", "paddlepaddle", "paddlenlp", "numpy")
VOCABULARY = 4000
HEAD_DIM = 64
SECONDS = 3.0  # of measuring one job
FORMATS = {
    **dict.fromkeys(("output", "gradient"), "{:.1e}"),
    **{"bound": "{:.0e}", "seconds": "{:.4f}", "share_of_peak": "{:.0%}"},
    **dict.fromkeys(("tokens_a_second", "tokens"), "{:,.0f}"),
}


class Size(NamedTuple):
    """Of an encoder and a batch."""

    layers: int
    width: int
    texts: int
    length: int

    def __str__(self) -> str:
        return f"{self.layers} x {self.width}, {self.texts} x {self.length}"

    def flops(self) -> int:
        """Of a forward pass: two for each weight of the matrices and token, and the products of attention."""
        matrices = self.layers * 12 * self.width**2
        return self.texts * self.length * (2 * matrices + self.layers * 4 * self.length * self.width)


SIZES = (Size(4, 256, 64, 64), Size(12, 768, 16, 256), Size(12, 768, 4, 1024))
SMALL_SIZES = (Size(1, 64, 2, 16), Size(2, 64, 2, 32), Size(2, 128, 2, 32))  # for CPUs and tests


def check_device(device: str | None, quick: bool, output: Path | None) -> bool:
    """Check and measure; print tables.

    Args:
        device: of paddle; None takes a GPU where there is one.
        quick: small sizes, seconds instead of minutes.
        output: of the JSON file; None writes none.

    Returns:
        Whether every layer is within its bound.
    """
    on_gpu = choose_device(device).startswith("gpu")
    dtypes = ["float32", "bfloat16", "float16"] if on_gpu else ["float32"]  # what its products take
    found: dict[str, Any] = {"machine": machine()}
    print("\n".join(f"{name}: {value}" for name, value in found["machine"].items()), end="\n\n", flush=True)
    found["layers"] = device_layers.check_layers(dtypes)
    _print(found["layers"])
    enough_seconds, width = (0.05, 256) if quick else (SECONDS, 4096 if on_gpu else 1024)
    found["product_flops"] = {dtype: product_flops(dtype, width, enough_seconds) for dtype in dtypes}
    found["encoders"] = [
        row
        for size in (SMALL_SIZES if quick else SIZES)
        for dtype in dtypes
        for row in measure_encoder(size, dtype, found["product_flops"][dtype], enough_seconds)
    ]
    _print(found["encoders"])
    lengths = [SHORTEST * 4**step for step in range(2 if quick else 5)]
    found["linear_attention"] = measure_linear_attention(lengths, dtypes[-1], enough_seconds)
    _print(found["linear_attention"])
    if output is not None:
        write_json(output, found)
        print(f"written to {output}")
    failed = [f"{row['layer']} in {row['dtype']}" for row in found["layers"] if not row["passes"]]
    print(f"beyond their bounds: {', '.join(failed)}" if failed else "every layer is within its bound")
    return not failed


def machine() -> dict[str, Any]:
    """What runs here, as JSON."""
    facts: dict[str, Any] = {"python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    facts["device"] = paddle.get_device()
    if facts["device"].startswith("gpu"):
        gpu = paddle.device.cuda.get_device_properties()
        facts |= {"gpu": gpu.name, "compute capability": f"{gpu.major}.{gpu.minor}"}
        facts |= {"memory": f"{gpu.total_memory / 2**30:.1f} GB"}
        facts |= {"cuda": paddle.version.cuda(), "cudnn": paddle.version.cudnn()}
    return facts


def _print(rows):
    def shown(name, value):
        return FORMATS[name].format(value) if name in FORMATS and value is not None else value

    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [{name.replace("_", " "): shown(name, row.get(name)) for name in columns} for row in rows]
    print(as_markdown(cells, list(cells[0])), flush=True)


def median_seconds(run: Any, enough_seconds: float) -> float:
    """The median time of a call of ``run()``, of at most 20, after two that do not count."""
    seconds_of(run, least_runs=2, most_runs=2, enough_seconds=0)
    seconds = sorted(seconds_of(run, least_runs=1, most_runs=20, enough_seconds=enough_seconds))
    return seconds[len(seconds) // 2]


def product_flops(dtype: str, width: int, enough_seconds: float) -> float:
    """FLOP/s of a product of two square matrices: the peak that the shares are of."""
    a, b = (paddle.randn([width, width]).astype(dtype) for _ in range(2))
    return 2 * width**3 / median_seconds(lambda: paddle.matmul(a, b), enough_seconds)


def measure_encoder(size: Size, dtype: str, peak: float, enough_seconds: float) -> list[dict[str, Any]]:
    """Rows of one training step (forward, backward, AdamW; masked language model) and one inference.

    Args:
        size: of encoder and batch.
        dtype: of autocast; float32 for none.
        peak: FLOP/s, as of :func:`product_flops`.
        enough_seconds: of measuring each.
    """
    paddle.seed(0)
    sizes = {"hidden_size": size.width, "num_hidden_layers": size.layers, "intermediate_size": 4 * size.width}
    heads = max(size.width // HEAD_DIM, 1)
    model = RoFormerForMaskedLM(RoFormerConfig(vocab_size=VOCABULARY, num_attention_heads=heads, **sizes))
    optimizer = AdamW(learning_rate=1e-4, parameters=model.parameters())
    scaler = paddle.amp.GradScaler() if dtype == "float16" else None
    ids = paddle.randint(1, VOCABULARY, [size.texts, size.length])
    labels = paddle.where(paddle.rand(ids.shape) < 0.15, ids, paddle.full_like(ids, -100))
    labels[:, 0] = ids[:, 0]  # at least one of each text

    def loss():
        with device_layers.autocast(dtype):
            return model(ids, labels=labels)[0]

    def predict():
        with paddle.no_grad(), device_layers.autocast(dtype):
            model.roformer(ids)

    rows = []
    jobs = ("training", lambda: training_step(optimizer, loss, scaler), 3), ("inference", predict, 1)
    for job, run, passes in jobs:
        model.train() if job == "training" else model.eval()
        forget_peak()
        seconds = median_seconds(run, enough_seconds)
        row = {"model": str(size), "dtype": dtype, "job": job, "seconds": seconds}
        row |= {"tokens_a_second": size.texts * size.length / seconds, "peak_mb": peak_megabytes()}
        rows.append({**row, "share_of_peak": passes * size.flops() / seconds / peak})
    return rows


def measure_linear_attention(lengths: list[int], dtype: str, enough_seconds: float) -> list[dict[str, Any]]:
    """Rows of forward and backward of linear attention, 4 heads of 64, up to the length for which memory does not
    suffice, which has a row that says so."""
    rotary = RotaryPositionEmbedding(HEAD_DIM)
    rows = []
    for length in lengths:
        forget_peak()
        row = {"tokens": length, "dtype": dtype}
        try:
            q, k, v = (paddle.randn([1, length, 4, HEAD_DIM]).astype(dtype) for _ in range(3))
            for x in (q, k, v):
                x.stop_gradient = False

            def run(q=q, k=k, v=v):
                paddle.grad(linear_attention(q, k, v, rotary.cos_sin(q.shape[1])).sum(), [q, k, v])

            seconds = median_seconds(run, enough_seconds)
        except (MemoryError, RuntimeError, OSError) as error:  # paddle's ResourceExhausted is one of these
            return [*rows, {**row, "error": " ".join(str(error).split())[:200]}]
        rows.append({**row, "seconds": seconds, "peak_mb": peak_megabytes()})
    return rows
