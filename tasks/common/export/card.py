"""The model card: the README of an exported folder."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX_FILE
from tasks.common.files import write_files
from tasks.common.run_config import read_run_config
from tasks.common.training.run import CONFIG_FILE, METRICS_FILE

CARD = """\
# {name}

{facts}

## Use

```bash
paddle-rope predict FOLDER --input texts.txt
paddle-rope serve FOLDER
```

```python
from tasks.recipes import open_predictor

predictor = open_predictor("FOLDER")
{call}
```

{graph}`sha256sum -c SHA256SUMS` finds damaged files.
"""
_CALLS = {
    "ner": 'predictor(["..."])  # [{"text": ..., "entities": [{"start": 0, "end": 2, "type": ..., ...}]}]',
    "classification": 'predictor(["..."])  # [{"text": ..., "label": ..., "probability": ...}]',
    "matching": 'predictor.score([("...", "...")])  # an array of scores',
}


def write_card(folder: Path, name: str, recipe: str, facts: dict[str, str]) -> None:
    """Write the card of a model called ``name`` into its folder, in which the graph is; ``facts`` are lines about the
    model by their titles."""
    lines = [f"- {title}: {content}" for title, content in facts.items()]
    graph = _graph(folder) if (folder / ONNX_FILE).is_file() else ""
    content = CARD.format(name=name, facts="\n".join(lines), call=_CALLS[recipe], graph=graph)
    write_files(folder, {"README.md": content})


def training_facts(model_dir: Path, scores: tuple[str, ...]) -> str:
    """Date, data and ``scores`` of a training run, from the files of its folder as far as they are there."""
    parts = [time.strftime("%Y-%m-%d", time.gmtime((model_dir / "model.safetensors").stat().st_mtime))]
    with contextlib.suppress(InputError, OSError):
        config = read_run_config(model_dir.parent / CONFIG_FILE)
        files = {key: config.get(key) for key in ("train_file", "dev_file", "test_file")}
        parts += [f"{key} `{Path(str(file)).name}`" for key, file in files.items() if file]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        metrics = json.loads((model_dir.parent / METRICS_FILE).read_text(encoding="utf-8"))
        for split in ("dev", "test"):
            of_split = metrics.get(split, {})
            parts += [f"{split} {name} {of_split[name]:.4f}" for name in scores if name in of_split]
    return ", ".join(parts)


def _graph(folder):
    """What an ONNX graph needs, and its inputs and outputs."""
    import onnx

    graph = onnx.load(folder / ONNX_FILE).graph
    lines = ["`pip install 'paddle_rope[onnx]'` is enough; Paddle is not needed.", "", "## The graph", ""]
    for title, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            tensor = value.type.tensor_type
            sizes = [str(size.dim_value) if size.HasField("dim_value") else "?" for size in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
            lines.append(f"- {title} `{value.name}`: {dtype} [{', '.join(sizes)}]")
    return "\n".join([*lines, "", ""])
