"""Time and peak memory of an encoder against length, training and inference, with slopes and crossings."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, write_json
from tasks.common.reports.figures import time_and_memory_png
from tasks.common.reports.tables import as_csv, as_markdown
from tasks.common.tool.run_config import read_run_config
from tasks.experiments.figure import COLOURS
from tasks.experiments.length_benchmark import (
    crossing,
    fastest_seconds,
    measure_apart,
    peak_megabytes,
    reason_to_leave_out,
    slope,
)
from tasks.experiments.plan import check_types, check_unchanged

JOBS = ("train", "predict")
OPTIONS_FILE = "options.json"  # of the variants in the table
COLUMNS = ["job", "variant", "length", "seconds", "peak_mb", "idle_mb", "left_out"]
KEYS = ("output_dir", "model", "variants", "reference", "lengths", "memory_limit", "time_limit")
TYPES = {
    **dict.fromkeys(("output_dir", "reference"), (str,)),
    **dict.fromkeys(("model", "variants"), (dict,)),
    "lengths": (list,),
    **dict.fromkeys(("memory_limit", "time_limit"), (int, float)),
}
VOCABULARY = 4000
SHORT = 64  # a text before the measured one, so that what is done once is not timed
# Slopes are fitted where attention outweighs the rest: to the last lengths of a variant.
FITTED = 4


@dataclass(frozen=True)
class SpeedPlan:
    """What is measured: ``variants`` (name -> options of a RoFormerConfig) at ``lengths``."""

    output_dir: Path
    model: dict
    variants: dict
    reference: str
    lengths: list
    memory_limit: float
    time_limit: float

    def options(self):
        """dict from the name of each variant to the options of its RoFormerConfig."""
        return {name: {**self.model, **options} for name, options in self.variants.items()}


def read_speed_plan(path, output_dir=None):
    """Read the YAML file of a measurement.

    Args:
        path: of the file.
        output_dir: instead of the file's.

    Raises:
        InputError: the file or something in it is wrong.
    """
    plan = read_run_config(path)
    if output_dir is not None:
        plan["output_dir"] = str(output_dir)
    for key in plan:
        if key not in KEYS:
            raise InputError(f"{path}: unknown key {key!r}; the keys are {', '.join(KEYS)}")
    check_types(path, plan, TYPES)
    for key in KEYS:
        if not plan.get(key):
            raise InputError(f"{path}: no {key!r} in it")
    if plan["reference"] not in plan["variants"]:
        raise InputError(f"{path}: the reference {plan['reference']!r} is not one of the variants")
    lengths = plan["lengths"]
    if not all(type(length) is int for length in lengths) or lengths != sorted(set(lengths)) or lengths[0] < SHORT:
        raise InputError(f"{path}: lengths must be whole numbers that rise, from {SHORT} or more")
    plan = SpeedPlan(Path(plan.pop("output_dir")), **plan)
    for variant, options in plan.variants.items():
        if not isinstance(options, dict):
            raise InputError(f"{path}: variant {variant} is {options!r}, not a mapping from options to values")
    for variant, options in plan.options().items():
        _check_options(f"{path}: variant {variant}", options)
    return plan


def _check_options(where, options):
    """Raise InputError unless a RoFormerConfig takes the options."""
    from paddle_rope.roformer import RoFormerConfig

    try:
        RoFormerConfig(vocab_size=VOCABULARY, pooling="mean", **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}") from None


def measure(job, options, length, device="cpu"):
    """Time one job on one text of random tokens, and the peak memory of this process; random numbers have seed 0.

    Args:
        job: ``"train"`` (forward, backward, AdamW) or ``"predict"``.
        options: of the :class:`~paddle_rope.roformer.RoFormerConfig`.
        length: tokens.
        device: of paddle.

    Returns:
        dict with ``seconds``, ``peak_mb`` and ``idle_mb``, the peak before: libraries, weights, a short text. On a GPU
        the peak is that of its memory.
    """
    import paddle

    from paddle_rope.roformer import RoFormerConfig, RoFormerForSequenceClassification

    paddle.set_device(device)
    paddle.seed(0)
    np.random.seed(0)
    model = RoFormerForSequenceClassification(RoFormerConfig(vocab_size=VOCABULARY, pooling="mean", **options))
    optimizer = paddle.optimizer.AdamW(learning_rate=1e-4, parameters=model.parameters())
    label = paddle.zeros([1], dtype="int64")

    def run(ids):
        if job == "train":
            loss, _ = model(ids, labels=label)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            loss.item()
        else:
            with paddle.no_grad():
                model(ids).numpy()

    if job == "predict":
        model.eval()
    short, long = (paddle.randint(1, VOCABULARY, [1, size]) for size in (SHORT, length))
    run(short)
    idle = peak_megabytes(device)
    seconds = fastest_seconds(lambda: run(long))
    return {"seconds": round(seconds, 4), "peak_mb": peak_megabytes(device), "idle_mb": idle}


def measure_all(plan, rows, tool, device="cpu"):
    """Measure what ``rows`` lack, each cell in a process of its own.

    Args:
        plan: :class:`SpeedPlan`.
        rows: dicts with ``COLUMNS`` of cells that were measured before.
        tool: script that calls :func:`measure` for ``--measure JOB OPTIONS LENGTH DEVICE``, options as JSON.
        device: of paddle.

    Yields:
        All rows in the order of the plan, old and new.
    """
    done = {(row["job"], row["variant"], row["length"]): row for row in rows}
    for job in JOBS:
        for variant, options in plan.options().items():
            known, left_out = [], ""
            for length in plan.lengths:
                row = done.get((job, variant, length))
                if row is None or row["left_out"]:
                    row = {**dict.fromkeys(COLUMNS, ""), "job": job, "variant": variant, "length": length}
                    left_out = left_out and "a shorter text is left out"
                    left_out = left_out or reason_to_leave_out(known, length, plan.memory_limit, plan.time_limit)
                    if not left_out:
                        row |= measure_apart([tool, "--measure", job, json.dumps(options), length, device])
                        left_out = row.get("left_out", "")
                    row["left_out"] = left_out
                if not row["left_out"]:
                    known.append((length, row["seconds"], row["peak_mb"]))
                yield row


def claim_options(plan, rows, device="cpu"):
    """Write the options of the variants, and the device, beside the table.

    Args:
        plan: :class:`SpeedPlan`.
        rows: of the table as it is.
        device: of paddle.

    Raises:
        InputError: a variant of the table was measured with others.
    """
    path = plan.output_dir / OPTIONS_FILE
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    measured = {row["variant"] for row in rows}
    now = {variant: {"device": device, **options} for variant, options in plan.options().items()}
    for variant, options in now.items():
        if variant in before and variant in measured:
            check_unchanged(variant, plan.output_dir, {"device": "cpu", **before[variant]}, options)
    write_json(path, {**before, **now})


def read_rows(path):
    """The rows of an earlier measurement's CSV; none if there is no file."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        for row in rows:
            row["length"] = int(row["length"])
            if not row["left_out"]:
                row["seconds"] = float(row["seconds"])
                row["peak_mb"], row["idle_mb"] = int(row["peak_mb"]), int(row["idle_mb"])
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: not a table of this tool; give another --output_dir or remove it") from None
    return rows


def write_rows(path, rows):
    """Write the CSV of rows."""
    with atomic_writer(path) as file:
        file.write(as_csv(rows, COLUMNS))


def slope_rows(plan, rows):
    """One row a job and variant: the exponents of time and of memory beyond the idle process, fitted to the last
    ``FITTED`` lengths, and the lengths from which it takes less time and memory than the reference."""
    of = {}
    for row in rows:
        if not row["left_out"]:
            own = row["peak_mb"] - row["idle_mb"]
            of.setdefault((row["job"], row["variant"]), []).append((row["length"], row["seconds"], own))
    result = []
    for (job, variant), known in of.items():
        row = {"job": job, "variant": variant, "longest": known[-1][0]}
        row["time slope"] = _slope([(n, t) for n, t, _ in known])
        row["memory slope"] = _slope([(n, m) for n, _, m in known])
        if variant != plan.reference:
            reference = {n: (t, m) for n, t, m in of.get((job, plan.reference), [])}
            both = [(n, t, max(m, 1), *reference[n]) for n, t, m in known if n in reference and reference[n][1] > 0]
            for name, mine, theirs in (("faster from", 1, 3), ("smaller from", 2, 4)):
                row[name] = _crossing([(b[0], b[mine], b[theirs]) for b in both])
        result.append(row)
    return result


def _slope(pairs):
    pairs = [(n, value) for n, value in pairs if value > 0][-FITTED:]
    return f"{slope(*zip(*pairs)):.2f}" if len(pairs) > 1 else ""


def _crossing(triples):
    if not triples:
        return ""
    lengths, mine, theirs = zip(*triples)
    at = crossing(lengths, theirs, mine)
    if at is None:
        return f"beyond {lengths[-1]}"
    return f"{lengths[0]} or less" if at == lengths[0] else f"{at:.0f}"


def as_page(plan, rows, machine):
    """Markdown: the slopes, then every measurement."""
    columns = ["job", "variant", "longest", "time slope", "memory slope", "faster from", "smaller from"]
    table = as_markdown(slope_rows(plan, rows), columns)
    return f"{machine}\n\nAgainst {plan.reference}:\n\n{table}\n{as_markdown(rows, COLUMNS)}"


def draw(plan, rows):
    """PNG: time above, memory below; training on the left, inference on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (job, title) in enumerate(zip(JOBS, ("one training step on one text", "inference on one text"))):
        for variant, colour in zip(plan.variants, [*COLOURS, "#666666", "#000000"]):
            shown = [row for row in rows if (row["job"], row["variant"]) == (job, variant) and not row["left_out"]]
            lengths = [row["length"] for row in shown]
            style = {"color": colour, "marker": "o", "ms": 4, "label": variant}
            panels[0, column].plot(lengths, [row["seconds"] for row in shown], **style)
            panels[1, column].plot(lengths, [row["peak_mb"] / 1024 for row in shown], **style)
        panels[0, column].set_title(title)
        panels[1, column].set_xlabel("length in tokens")
    return time_and_memory_png(figure, panels, legend_columns=4)
