"""Time and peak memory of a model against length, training and prediction, with slopes and crossings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullLocator
from tqdm import tqdm

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError
from tasks.common.files import check_makeable, write_files, write_json
from tasks.common.process import choose_device
from tasks.common.reports.figures import GRAY, log_ticks, new_figure, png
from tasks.common.reports.tables import as_csv, as_markdown
from tasks.experiments.benchmarks.lengths import crossing, reason_to_leave_out, slope
from tasks.experiments.benchmarks.models import MODELS, SHORT, check_options, measure_apart
from tasks.experiments.figure import COLORS
from tasks.experiments.plan import check_unchanged, read_keys

JOBS = ("train", "predict")
STORE, TABLE_CSV, PAGE, PICTURE = "speed.json", "speed.csv", "speed.md", "speed.png"
COLUMNS = ["job", "variant", "length", "seconds", "peak_mb", "idle_mb", "left_out"]
KEYS = {  # of a plan -> types of their values
    **dict.fromkeys(("output_dir", "task", "reference"), (str,)),
    **dict.fromkeys(("model", "variants"), (dict,)),
    "lengths": (list,),
    **dict.fromkeys(("memory_limit", "time_limit"), (int, float)),
}
REQUIRED = [key for key in KEYS if key != "task"]
# Slopes are fitted where attention outweighs the rest: to the last lengths of a variant.
FITTED = 4


@dataclass(frozen=True)
class SpeedPlan:
    """What is measured.

    Attributes:
        output_dir: folder of the table.
        variants: name -> options of its model: of the configuration, and ``recompute``.
        reference: variant to compare with.
        lengths: tokens, rising.
        memory_limit, time_limit: of a cell, in GB and seconds.
        task: one of :data:`tasks.experiments.benchmarks.models.MODELS`.
    """

    output_dir: Path
    variants: dict[str, dict[str, Any]]
    reference: str
    lengths: list[int]
    memory_limit: float
    time_limit: float
    task: str


def read_speed_plan(path: str | Path, output_dir: str | Path | None = None) -> SpeedPlan:
    """Read the YAML file of a measurement; ``output_dir`` replaces that of the file.

    Raises:
        InputError: the file or something in it is wrong.
    """
    plan = read_keys(path, KEYS, REQUIRED, output_dir)
    if plan["reference"] not in plan["variants"]:
        raise InputError(f"{path}: the reference {plan['reference']!r} is not one of the variants")
    if plan.setdefault("task", "classification") not in MODELS:
        raise InputError(f"{path}: task is {plan['task']!r}; it has to be one of {', '.join(MODELS)}")
    lengths = plan["lengths"]
    if not all(type(length) is int for length in lengths) or lengths != sorted(set(lengths)) or lengths[0] < SHORT:
        raise InputError(f"{path}: lengths must be whole numbers that rise, from {SHORT} or more")
    model = plan.pop("model")
    for variant, options in plan["variants"].items():
        if not isinstance(options, dict):
            raise InputError(f"{path}: variant {variant} is {options!r}, not a mapping from options to values")
        plan["variants"][variant] = {**model, **options}
        check_options(plan["task"], f"{path}: variant {variant}", plan["variants"][variant])
    return SpeedPlan(Path(plan.pop("output_dir")), **plan)


def run_speed_plan(path: str | Path, output_dir: str | Path | None = None, device: str | None = None) -> str:
    """Measure what is not in the table of a plan yet; write the table after each cell, then ``speed.md`` and
    ``speed.png``. Returns the slopes and crossings, in Markdown.

    Args:
        path, output_dir: as of :func:`read_speed_plan`.
        device: of paddle; None takes a GPU where there is one.

    Raises:
        InputError: the plan is wrong, or there are measurements of other options than it now has.
    """
    plan = read_speed_plan(path, output_dir)
    check_makeable(plan.output_dir, "--output_dir")
    plan.output_dir.mkdir(parents=True, exist_ok=True)
    device = choose_device(device)
    given = {name: {"device": device, "task": plan.task, **options} for name, options in plan.variants.items()}
    rows, earlier = [], read_rows(plan, given)
    total = len(JOBS) * len(plan.variants) * len(plan.lengths)
    for row in tqdm(measure_all(plan, earlier, device), total=total, unit="cell", disable=not sys.stderr.isatty()):
        rows.append({**row, "options": given[row["variant"]]})
        result = row["left_out"] and f"left out: {row['left_out']}"
        result = result or f"{row['seconds']:9.3f} s {row['peak_mb']:7} MB"
        print(f"{row['job']:7} {row['variant']:24} {row['length']:7}  {result}", flush=True)
        done = set(map(_key, rows))
        kept = [*rows, *(one for one in earlier if _key(one) not in done)]
        write_json(plan.output_dir / STORE, kept)
        write_files(plan.output_dir, {TABLE_CSV: as_csv(kept, COLUMNS)})
    page = as_page(plan, rows, machine_in_words())
    write_files(plan.output_dir, {PAGE: page, PICTURE: draw(plan, rows)})
    return page.split("\n\n| job | variant | length", 1)[0]


def measure_all(plan: SpeedPlan, rows: list[dict], device: str = "cpu") -> Iterator[dict[str, Any]]:
    """Measure what ``rows``, dicts with ``COLUMNS`` of cells that were measured before, lack; yields all rows in the
    order of the plan, old and new."""
    done = {_key(row): row for row in rows}
    for job in JOBS:
        for variant, options in plan.variants.items():
            known, left_out = [], ""
            for length in plan.lengths:
                row = done.get((job, variant, length))
                if row is None or row["left_out"]:
                    row = {**dict.fromkeys(COLUMNS, ""), "job": job, "variant": variant, "length": length}
                    left_out = left_out and "a shorter text is left out"
                    left_out = left_out or reason_to_leave_out(known, length, plan.memory_limit, plan.time_limit)
                    if not left_out:
                        given = {"task": plan.task, "job": job, "options": options, "length": length, "device": device}
                        row |= measure_apart(given)
                        left_out = row.get("left_out", "")
                    row["left_out"] = left_out
                if not row["left_out"]:
                    known.append((length, row["seconds"], row["peak_mb"]))
                yield row


def _key(row):
    return row["job"], row["variant"], row["length"]


def read_rows(plan: SpeedPlan, given: dict[str, dict]) -> list[dict[str, Any]]:
    """The rows of earlier measurements, none if there are none; InputError if a variant was measured with other options
    than those ``given`` now."""
    path = plan.output_dir / STORE
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    for row in rows:
        name = row["variant"]
        check_unchanged(name, plan.output_dir, row["options"], given.get(name, row["options"]))
    return rows


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
    return f"beyond {lengths[-1]}" if at is None else f"{lengths[0]} or less" if at == lengths[0] else f"{at:.0f}"


def as_page(plan, rows, machine):
    """Markdown: the slopes, then every measurement."""
    columns = ["job", "variant", "longest", "time slope", "memory slope", "faster from", "smaller from"]
    table = as_markdown(slope_rows(plan, rows), columns)
    return f"{machine}\n\nAgainst {plan.reference}:\n\n{table}\n{as_markdown(rows, COLUMNS)}"


def draw(plan, rows):
    """PNG: time above, memory below; training on the left, prediction on the right."""
    figure, panels = new_figure(10, 7, 2, 2, sharex=True, sharey="row")
    for column, (job, title) in enumerate(zip(JOBS, ("one training step on one text", "prediction of one text"))):
        for variant, color in zip(plan.variants, [*COLORS, GRAY, "#000000"]):
            shown = [row for row in rows if (row["job"], row["variant"]) == (job, variant) and not row["left_out"]]
            lengths = [row["length"] for row in shown]
            style = {"color": color, "marker": "o", "ms": 4, "label": variant}
            panels[0, column].plot(lengths, [row["seconds"] for row in shown], **style)
            panels[1, column].plot(lengths, [row["peak_mb"] / 1024 for row in shown], **style)
        panels[0, column].set_title(title)
        panels[1, column].set_xlabel("length in tokens")
    panels[0, 0].set_ylabel("seconds")
    panels[1, 0].set_ylabel("peak memory of the process, GB")
    for axes in panels.flat:
        axes.set_xscale("log", base=2)
        axes.set_xticks(plan.lengths, map(str, plan.lengths), rotation=45)
        axes.set_yscale("log")
    for axes in panels[:, 0]:  # the rows share their scales
        ticks = log_ticks(*axes.get_ylim())
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return png(figure)
