"""Whether this library is right and fast on a device: tables, and a JSON file to send in. ``benchmark device``."""

from __future__ import annotations

import platform
from functools import partial
from statistics import median
from typing import Any

import paddle

from paddle_rope import RotaryPositionEmbedding, linear_attention
from paddle_rope.machine import machine_in_words
from tasks.common.files import write_json
from tasks.common.process import choose_device
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.device_layers import autocast, check_layers
from tasks.experiments.benchmarks.measuring import Job, forget_peak, peak_megabytes, seconds_of
from tasks.experiments.benchmarks.models import Classifier

LONGEST, SHORTEST = 2**20, 2**12  # tokens of linear attention
HEAD_DIM = 64
SECONDS = 3.0  # of measuring one job
SIZES = ((4, 256, 64, 64), (12, 768, 16, 256), (12, 768, 4, 1024))  # layers, width, texts, length
SMALL_SIZES = ((1, 64, 2, 16),)


def run(options: Any) -> int:
    """Check and measure; print tables. Returns the exit status: 1 if a layer exceeds its bound."""
    on_gpu = choose_device(options.device).startswith("gpu")
    dtypes = ["float32", "bfloat16", "float16"] if on_gpu else ["float32"]  # of its matrix products
    enough, longest, sizes = (0.05, 4 * SHORTEST, SMALL_SIZES) if options.quick else (SECONDS, LONGEST, SIZES)
    found: dict[str, Any] = {"machine": f"{machine_in_words()}; {platform.platform()}", "device": paddle.get_device()}
    if on_gpu:
        gpu = paddle.device.cuda.get_device_properties()
        found["gpu"] = f"{gpu.name}, compute capability {gpu.major}.{gpu.minor}, {gpu.total_memory / 2**30:.1f} GB"
        found |= {"cuda": paddle.version.cuda(), "cudnn": paddle.version.cudnn()}
    print("\n".join(f"{name}: {value}" for name, value in found.items()), end="\n\n", flush=True)
    found["layers"] = _printed(check_layers(dtypes))
    found["encoders"] = _printed(
        [row for size in sizes for dtype in dtypes for row in measure_encoder(*size, dtype, enough)]
    )
    lengths = [SHORTEST * 4**step for step in range(20) if SHORTEST * 4**step <= longest]
    found["linear_attention"] = _printed(measure_linear_attention(lengths, dtypes[-1], enough))
    if options.output is not None:
        write_json(options.output, found)
        print(f"written to {options.output}")
    failed = [f"{row['layer']} in {row['dtype']}" for row in found["layers"] if not row["passes"]]
    print(f"beyond their bounds: {', '.join(failed)}" if failed else "every layer is within its bound")
    return int(bool(failed))


def _printed(rows):
    shown = [{key: f"{value:.3g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows]
    print(as_markdown(shown, list(dict.fromkeys(name for row in rows for name in row))), flush=True)
    return rows


def timed_row(run_job: Job, tokens: int, enough_seconds: float) -> dict[str, Any]:
    """The median time of a call, of at most 20, after two that do not count; tokens a second, and the peak memory."""
    forget_peak()
    seconds_of(run_job, least_runs=2, most_runs=2, enough_seconds=0)
    seconds = median(seconds_of(run_job, least_runs=1, most_runs=20, enough_seconds=enough_seconds))
    return {"seconds": seconds, "tokens_a_second": tokens / seconds, "peak_mb": peak_megabytes()}


def measure_encoder(
    layers: int, width: int, texts: int, length: int, dtype: str, enough: float
) -> list[dict[str, Any]]:
    """Rows of one training step and one inference of a classifier under autocast to a dtype; float32 is none."""
    paddle.seed(0)
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    model = Classifier(**sizes, num_attention_heads=max(width // HEAD_DIM, 1))
    scaler = paddle.amp.GradScaler() if dtype == "float16" else None
    jobs = model.jobs(length, texts, precision=lambda: autocast(dtype), scaler=scaler)
    row = {"model": f"{layers} x {width}, {texts} x {length}", "dtype": dtype}
    return [{**row, "job": job, **timed_row(run, texts * length, enough)} for job, run in jobs.items()]


def measure_linear_attention(lengths: list[int], dtype: str, enough_seconds: float) -> list[dict[str, Any]]:
    """Rows of forward and backward of linear attention, 4 heads of 64; the first length that memory does not suffice
    for gets a row with an ``error``, and longer ones get none."""
    rotary, rows = RotaryPositionEmbedding(HEAD_DIM), []

    def attend(qkv):
        paddle.grad(linear_attention(*qkv, rotary.cos_sin(qkv[0].shape[1])).sum(), qkv)

    for length in lengths:
        row = {"tokens": length, "dtype": dtype}
        try:
            qkv = [paddle.randn([1, length, 4, HEAD_DIM]).astype(dtype).detach() for _ in range(3)]
            for x in qkv:
                x.stop_gradient = False
            rows.append({**row, **timed_row(partial(attend, qkv), length, enough_seconds)})
        except (MemoryError, RuntimeError, OSError) as error:  # Paddle's ResourceExhausted is one of these
            return [*rows, {**row, "error": " ".join(str(error).split())[:200]}]
    return rows
