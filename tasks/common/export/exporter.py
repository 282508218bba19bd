"""Export of trained models into one folder that holds all that prediction needs, and a model card, its README."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from paddle.static import InputSpec

from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX, ONNX_FILE, is_exported, write_checksums
from tasks.common.export.graphs import check_onnx_packages, write_onnx_graph, write_paddle_graph
from tasks.common.files import atomic_folder, check_new_folder, write_files
from tasks.common.run_config import read_run_config
from tasks.common.training.run import CONFIG_FILE, METRICS_FILE

TOLERANCE = 1e-3  # of a score; rounding in another order makes some 1e-5
Folder = str | os.PathLike
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


class Exported(NamedTuple):
    """The result of an export."""

    difference: float  # the largest between the scores of the exported and of the trained model, on some texts
    scores: dict[str, dict[str, Any]]  # of ``trained`` and ``exported`` on the labeled file, if one was given
    limits: list[str]  # lines that say what the exported folder cannot do


class Exporter:
    """How models of a recipe are exported; a subclass says what differs from recipe to recipe."""

    recipe: ClassVar[type]
    output: ClassVar[str]  # name of the graph's first output
    several: ClassVar[bool] = False  # whether several models can become one

    def save(self, predictor: Any, folder: Path) -> None:
        """Write further files that prediction needs, after configuration and tokenizer."""

    def inputs(self, config: Any) -> list[InputSpec | None]:
        """The inputs of the graph: the arguments of the model's ``forward`` in their order, None for those left out. By
        default token ids and their mask."""
        return [InputSpec([None, None], "int64", "input_ids"), InputSpec([None, None], "bool", "attention_mask")]

    def finish(self, model: Any, config: Any) -> None:
        """Add nodes to an ``onnx.ModelProto``."""

    def exact(self, model: Any) -> list[str]:
        """Names of the weights that stay float32 in an int8 graph."""
        return []

    def scores(self, predictor: Any) -> np.ndarray:
        """Scores of some texts, which the exported model must reproduce."""
        raise NotImplementedError

    def limits(self, config: Any) -> list[str]:
        """Lines that say what the exported folder cannot do."""
        return []

    def describe(self, config: Any) -> dict[str, str]:
        """Lines of the model card about what the model finds: dict from title to content."""
        raise NotImplementedError

    def write_graph(self, model: Any, folder: Path, format: str, quantize: bool = False) -> None:
        """Write the graph of a model, which can be neither trained nor called afterwards."""
        graph = model, self.inputs(model.config), folder
        if format == ONNX:
            finish = functools.partial(self.finish, config=model.config)
            write_onnx_graph(*graph, self.output, finish, quantize, self.exact(model))
        else:
            write_paddle_graph(*graph)


def export(
    exporter: Exporter,
    model_dirs: list[Folder],
    output_dir: Folder,
    format: str = ONNX,
    quantize: str | None = None,
    check: str | None = None,
    license: str | None = None,
) -> Exported:
    """Write a trained model, or an ensemble of several, as a folder that predictors open.

    Args:
        exporter, model_dirs: of the models' recipe; folders OUTPUT_DIR/model of training runs.
        output_dir: folder to make.
        format: ``"onnx"``, or ``"paddle"`` for Paddle Inference.
        quantize: ``"int8"`` for weights of 8 bits, only in ONNX; None for 32 bits.
        check: labeled file on which the trained and the exported model are scored.
        license: of the model, for its card.

    Raises:
        InputError: a folder does not hold a trained model, several do not fit together, ``output_dir`` cannot be made,
            or the scores of the exported model differ.
    """
    recipe = exporter.recipe()
    check_new_folder(output_dir)
    for folder in model_dirs:
        if is_exported(folder):
            raise InputError(f"{folder}: is already exported; give the folder OUTPUT_DIR/model of the training run")
    if len(model_dirs) > 1 and not exporter.several:
        raise InputError(f"{len(model_dirs)} models are given; {recipe.name} exports one at a time")
    if quantize and format != ONNX:
        raise InputError(f"--quantize {quantize} is for --format onnx; leave one of them out")
    examples = recipe.read_labeled(check) if check else None
    trained = recipe.predictor(list(model_dirs) if exporter.several else model_dirs[0], device="cpu")
    if format == ONNX:
        check_onnx_packages()
    expected, scores = exporter.scores(trained), {}
    if examples:
        scores["trained"] = _scores(recipe, trained, examples)
    config = trained.model.config
    with atomic_folder(output_dir) as folder:
        config.save_pretrained(str(folder))
        trained.tokenizer.save_pretrained(folder)
        exporter.save(trained, folder)
        exporter.write_graph(trained.model, folder, format, bool(quantize))
        write_checksums(folder)
        exported = recipe.predictor(folder, device="cpu")
        difference = float(np.abs(exporter.scores(exported) - expected).max())
        if not difference <= (np.inf if quantize else TOLERANCE):
            raise InputError(
                f"{output_dir}: not written, as the exported model's scores differ from the trained one's by "
                f"{difference:.2g}; please report this, with config.json of the model"
            )
        facts, limits = exporter.describe(config), exporter.limits(config)
        if limits:
            facts["limits"] = "; ".join(limits)
        facts["format"] = f"{'ONNX' if format == ONNX else 'Paddle Inference'}, weights of {quantize or 'float32'}"
        facts["license"] = license or "not stated"
        facts["training"] = "; ".join(_training_facts(Path(model_dir), recipe.scores) for model_dir in model_dirs)
        if examples:
            scores["exported"] = _scores(recipe, exported, examples)
            for name, score in scores["trained"].items():
                changed = f"{score:.4f} trained, {scores['exported'][name]:.4f} exported"
                facts[f"{name} on `{Path(str(check)).name}`"] = changed
        _write_card(folder, Path(output_dir).name, recipe.name, facts)
        write_checksums(folder)
    return Exported(difference, scores, limits)


def _scores(recipe, predictor, examples):
    """The recipe's scores of a predictor, computed without printing them."""
    with contextlib.redirect_stdout(io.StringIO()):
        scores = recipe.evaluate_predictor(predictor, examples, "")
    return {name: scores[name] for name in recipe.scores if name in scores}


# ---- the model card


def _write_card(folder, name, recipe, facts):
    """Write the card of a model into its folder, in which the graph is; ``facts`` are lines by their titles."""
    lines = [f"- {title}: {content}" for title, content in facts.items()]
    graph = _graph(folder) if (folder / ONNX_FILE).is_file() else ""
    content = CARD.format(name=name, facts="\n".join(lines), call=_CALLS[recipe], graph=graph)
    write_files(folder, {"README.md": content})


def _training_facts(model_dir, scores):
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
