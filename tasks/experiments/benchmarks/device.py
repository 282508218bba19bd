"""Whether this library is right and fast on a device: tables, and a JSON file to send in. ``benchmark device``."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import paddle

from paddle_rope import RotaryPositionEmbedding, linear_attention
from tasks.common.files import write_json
from tasks.common.process import choose_device
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks import device_layers
from tasks.experiments.benchmarks.measuring import forget_peak, peak_megabytes, seconds_of
from tasks.experiments.benchmarks.models import Classifier

LONGEST, SHORTEST = 2**20, 2**12  # tokens of linear attention
PACKAGES = ("paddlepaddle-gpu", "paddlepaddle", "paddlenlp", "numpy")
HEAD_DIM = 64
SECONDS = 3.0  # of measuring one job
FORMATS = {
    **dict.fromkeys(("output", "gradient"), "{:.1e}"),
    **{"bound": "{:.0e}", "seconds": "{:.4f}", "share_of_peak": "{:.0%}"},
    **dict.fromkeys(("tokens_a_second", "tokens"), "{:,.0f}"),
}


class Size(NamedTuple):
    """The size of an encoder and of a batch."""

    layers: int
    width: int
    texts: int
    length: int

    def flops(self) -> int:
        """The work of a forward pass: two FLOPs for each weight of the matrices and token, and attention's products."""
        matrices = self.layers * 12 * self.width**2
        return self.texts * self.length * (2 * matrices + self.layers * 4 * self.length * self.width)


SIZES = (Size(4, 256, 64, 64), Size(12, 768, 16, 256), Size(12, 768, 4, 1024))
SMALL_SIZES = (Size(1, 64, 2, 16),)


def check_device(device: str | None, quick: bool, output: Path | None) -> bool:
    """Check and measure; print tables. Returns whether every layer is within its bound.

    Args:
        device: of Paddle; None takes a GPU where there is one.
        quick: small sizes, seconds instead of minutes.
        output: JSON file to write; None for none.
    """
    on_gpu = choose_device(device).startswith("gpu")
    dtypes = ["float32", "bfloat16", "float16"] if on_gpu else ["float32"]  # of its matrix products
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
    longest = 4 * SHORTEST if quick else LONGEST
    lengths = [SHORTEST * 4**step for step in range(20) if SHORTEST * 4**step <= longest]
    found["linear_attention"] = measure_linear_attention(lengths, dtypes[-1], enough_seconds)
    _print(found["linear_attention"])
    if output is not None:
        write_json(output, found)
        print(f"written to {output}")
    failed = [f"{row['layer']} in {row['dtype']}" for row in found["layers"] if not row["passes"]]
    print(f"beyond their bounds: {', '.join(failed)}" if failed else "every layer is within its bound")
    return not failed


def machine() -> dict[str, Any]:
    """Versions and device, as JSON."""
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
    """FLOP/s of a product of two square matrices, the peak in ``share_of_peak``."""
    a, b = (paddle.randn([width, width]).astype(dtype) for _ in range(2))
    return 2 * width**3 / median_seconds(lambda: paddle.matmul(a, b), enough_seconds)


def measure_encoder(size: Size, dtype: str, peak: float, enough_seconds: float) -> list[dict[str, Any]]:
    """Rows of one training step (forward, backward, AdamW) and one inference of a classifier.

    Args:
        size: of encoder and batch.
        dtype: of autocast; float32 for none.
        peak: FLOP/s, from :func:`product_flops`.
        enough_seconds: of measuring each.
    """
    paddle.seed(0)
    sizes = {"hidden_size": size.width, "num_hidden_layers": size.layers, "intermediate_size": 4 * size.width}
    model = Classifier(**sizes, num_attention_heads=max(size.width // HEAD_DIM, 1))
    scaler = paddle.amp.GradScaler() if dtype == "float16" else None
    rows = []
    jobs = model.jobs(size.length, size.texts, precision=lambda: device_layers.autocast(dtype), scaler=scaler)
    for (job, run), passes in zip(jobs.items(), (3, 1)):
        forget_peak()
        seconds = median_seconds(run, enough_seconds)
        row = {"model": f"{size.layers} x {size.width}, {size.texts} x {size.length}", "dtype": dtype, "job": job}
        row |= {"seconds": seconds, "tokens_a_second": size.texts * size.length / seconds}
        rows.append({**row, "peak_mb": peak_megabytes(), "share_of_peak": passes * size.flops() / seconds / peak})
    return rows


def measure_linear_attention(lengths: list[int], dtype: str, enough_seconds: float) -> list[dict[str, Any]]:
    """Rows of forward and backward of linear attention, 4 heads of 64; the first length that memory does not suffice
    for gets a row with an ``error``, and longer ones get none."""
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
        except (MemoryError, RuntimeError, OSError) as error:  # Paddle's ResourceExhausted is one of these
            return [*rows, {**row, "error": " ".join(str(error).split())[:200]}]
        rows.append({**row, "seconds": seconds, "peak_mb": peak_megabytes()})
    return rows
