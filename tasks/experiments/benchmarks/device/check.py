"""One call that says whether the library is right and fast on a device: a table, and a JSON file to send in."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import paddle

from tasks.common.files import write_json
from tasks.common.process import choose_device
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.device import accuracy, speed

LONGEST, SHORTEST = 2**20, 2**12  # tokens of linear attention
PACKAGES = ("paddlepaddle-gpu", "paddlepaddle", "paddlenlp", "numpy")


def check_device(device: str | None, quick: bool, output: Path | None) -> bool:
    """Check and measure; print tables.

    Args:
        device: of paddle; None takes a GPU where there is one.
        quick: small sizes, seconds instead of minutes.
        output: of the JSON file; None writes none.

    Returns:
        Whether every layer is within its bound.
    """
    choose_device(device)
    dtypes = ["float32", "bfloat16", "float16"] if speed.is_gpu() else ["float32"]  # what its products take
    found: dict[str, Any] = {"machine": machine()}
    print("\n".join(f"{name}: {value}" for name, value in found["machine"].items()), end="\n\n", flush=True)
    found["layers"] = accuracy.check_layers(dtypes)
    _print(found["layers"], {"output": "{:.1e}", "gradient": "{:.1e}", "bound": "{:.0e}"})
    most_seconds, width = (0.05, 256) if quick else (speed.MOST_SECONDS, 4096 if speed.is_gpu() else 1024)
    found["product_flops"] = {dtype: speed.product_flops(dtype, width, most_seconds) for dtype in dtypes}
    found["encoders"] = [
        row
        for size in (speed.SMALL_SIZES if quick else speed.SIZES)
        for dtype in dtypes
        for row in speed.measure_encoder(size, dtype, found["product_flops"][dtype], most_seconds)
    ]
    _print(found["encoders"], {"seconds": "{:.4f}", "tokens_a_second": "{:,.0f}", "share_of_peak": "{:.0%}"})
    lengths = [SHORTEST * 4**step for step in range(2 if quick else 5)]
    found["linear_attention"] = speed.measure_linear_attention(lengths, dtypes[-1], most_seconds)
    _print(found["linear_attention"], {"tokens": "{:,}", "seconds": "{:.4f}"})
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
    if speed.is_gpu():
        properties = paddle.device.cuda.get_device_properties()
        facts.update(
            {
                "gpu": properties.name,
                "compute capability": f"{properties.major}.{properties.minor}",
                "memory": f"{properties.total_memory / 2**30:.1f} GB",
                "cuda": paddle.version.cuda(),
                "cudnn": paddle.version.cudnn(),
            }
        )
    return facts


def _print(rows, formats):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = [
        {
            name: formats[name].format(row[name])
            if name in formats and row.get(name) is not None
            else row.get(name, "")
            for name in columns
        }
        for row in rows
    ]
    print(as_markdown(shown, {name: name.replace("_", " ") for name in columns}), flush=True)
