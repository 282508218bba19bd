"""The model card: the README of an exported folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX, ONNX_FILE, format_of
from tasks.common.files import write_files
from tasks.common.runs.run_folder import CONFIG_FILE, METRICS_FILE

CARD_FILE = "README.md"
_DATA_KEYS = ("train_file", "dev_file", "test_file")
_CALLS = {
    "ner": 'predictor(["..."])  # [{"text": ..., "entities": [{"start": 0, "end": 2, "type": ..., ...}]}]',
    "classification": 'predictor(["..."])  # [{"text": ..., "label": ..., "probability": ...}]',
    "matching": 'predictor.score([("...", "...")])  # an array of scores',
}


def write_card(
    folder: Path,
    name: str,
    recipe: Any,
    model_dirs: list[str | os.PathLike],
    what: dict[str, str],
    quantize: str | None,
    check: str | None,
    scores: dict[str, dict[str, Any]],
    license: str | None,
) -> None:
    """Write the card of an exported folder.

    Args:
        folder: with the graph in it.
        name: of the model.
        recipe: of the model.
        model_dirs, quantize, check, license: as of :func:`tasks.common.export.exporter.export`.
        what: lines on what the model finds: their titles and contents.
        scores: on ``check``, as of :class:`~tasks.common.export.exporter.Exported`.
    """
    is_onnx = format_of(folder) == ONNX
    lines = [f"# {name}", "", *(f"- {title}: {content}" for title, content in what.items())]
    lines.append(f"- format: {'ONNX' if is_onnx else 'Paddle Inference'}, weights of {quantize or 'float32'}")
    lines.append(f"- license: {license or 'not stated'}")
    for number, model_dir in enumerate(model_dirs, 1):
        title = "training" if len(model_dirs) == 1 else f"training of model {number} of {len(model_dirs)}"
        lines.append(f"- {title}: {_training(Path(model_dir), recipe)}")
    if scores:
        lines += ["", f"Scores on `{Path(check or '').name}`:", "", "| score | trained | exported |", "|---|---|---|"]
        for score in scores["trained"]:
            lines.append(f"| {score} | {scores['trained'][score]:.4f} | {scores['exported'][score]:.4f} |")
    lines += ["", "## Use", "", "```bash", f"paddle-rope predict {recipe.name} FOLDER --input texts.txt"]
    lines += ["paddle-rope serve FOLDER", "```", "", "```python", "from tasks.recipes import open_predictor", ""]
    lines += ['predictor = open_predictor("FOLDER")', _CALLS[recipe.name], "```", ""]
    if is_onnx:
        lines += ["`pip install 'paddle_rope[onnx]'` is enough; Paddle is not needed.", ""]
        lines += ["## The graph", "", *_graph(folder), ""]
    lines.append("`sha256sum -c SHA256SUMS` finds damaged files.")
    write_files(folder, {CARD_FILE: "\n".join(lines) + "\n"})


def _training(model_dir, recipe):
    """Date, data and scores of a training run, from the files of its folder."""
    parts = [time.strftime("%Y-%m-%d", time.gmtime((model_dir / "model.safetensors").stat().st_mtime))]
    with contextlib.suppress(InputError, OSError):
        config = read_run_config(model_dir.parent / CONFIG_FILE)
        parts += [f"{key} `{Path(str(config[key])).name}`" for key in _DATA_KEYS if config.get(key)]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        metrics = json.loads((model_dir.parent / METRICS_FILE).read_text(encoding="utf-8"))
        for split in ("dev", "test"):
            of_split = metrics.get(split, {})
            shown = [f"{name} {of_split[name]:.4f}" for name in recipe.scores if name in of_split]
            parts += [f"{split} {' '.join(shown)}"] if shown else []
    return ", ".join(parts)


def _graph(folder):
    """Inputs and outputs as a table."""
    import onnx

    graph = onnx.load(folder / ONNX_FILE).graph
    lines = ["| | name | dtype | shape |", "|---|---|---|---|"]
    for title, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            tensor = value.type.tensor_type
            sizes = [str(size.dim_value) if size.HasField("dim_value") else "?" for size in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
            lines.append(f"| {title} | `{value.name}` | {dtype} | [{', '.join(sizes)}] |")
    return lines
