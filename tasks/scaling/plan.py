"""The plan of a run, checked, and compared with the plan with which its folder was begun."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import check_makeable
from tasks.common.runs.run_folder import digest_of
from tasks.scaling.answers import keys_of
from tasks.scaling.formats import Part
from tasks.scaling.sources import find_files, parts_of
from tasks.scaling.worker import Job, part_file

MANIFEST_FILE = "manifest.json"
FREE_OPTIONS = {"device", "batch_size"}  # of predictors: a run may go on with others


def make_plan(job: Job, inputs: list[str], part_records: int) -> tuple[dict, list[Part]]:
    """The content of the manifest, and the parts.

    Raises:
        InputError: an input, a model's folder or the output is not there or does not fit. Nothing is written.
    """
    if part_records < 1:
        raise InputError(f"--part_records {part_records}: must be 1 or more")
    paths = find_files(inputs)
    output = os.path.realpath(job.output)
    for folder in [*inputs, *map(os.path.dirname, paths)]:
        if output == os.path.realpath(folder):
            raise InputError(f"{job.output}: holds the input; give another folder as --output")
    for model in job.models:
        if not os.path.isdir(model):
            raise InputError(f"{model}: no such folder; give the folder OUTPUT_DIR/model of a training run")
    check_makeable(job.output, "--output")
    parts = parts_of(paths, keys_of(job.task, job.text_column), part_records)
    plan = {
        "task": job.task,
        "models": {os.path.abspath(path): digest_of(Path(path)) for path in job.models},
        "inputs": {path: digest_of(Path(path)) for path in paths},
        "options": _given(
            {
                "text_column": job.text_column,
                "part_records": part_records,
                **{name: value for name, value in job.options.items() if name not in FREE_OPTIONS},
            }
        ),
        "parts": [{"file": part_file(job, part.number).name, **part._asdict()} for part in parts],
    }
    return plan, parts


def is_begun(output: str, plan: dict) -> bool:
    """Whether a folder holds a run, which then has this plan.

    Raises:
        InputError: it holds something else, or a run with another plan.
    """
    path = Path(output) / MANIFEST_FILE
    if not path.is_file():
        if Path(output).is_dir() and any(Path(output).iterdir()):
            raise InputError(f"{output}: is not empty; give another folder as --output or remove it")
        return False
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        before["options"] = _given(before["options"])
        changed = next((key for key in plan if before[key] != plan[key]), None)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise InputError(f"{path}: is damaged; give another folder as --output or remove this one") from None
    if changed:
        difference = _first_difference(before[changed], plan[changed])
        raise InputError(
            f"{output}: was begun with other {changed}{difference}, so it cannot go on; give the run what it began "
            "with, or another folder as --output"
        )
    return True


def begun_options(output: str) -> dict:
    """The options in a run's manifest; none where no run was begun, or the manifest is damaged."""
    try:
        return dict(json.loads((Path(output) / MANIFEST_FILE).read_text(encoding="utf-8"))["options"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _given(options):
    """The options that are not None, because versions differ in their options."""
    return {name: value for name, value in options.items() if value is not None}


def _first_difference(before, now):
    """The first option, model or input that differs, and its value in the manifest."""
    if not isinstance(now, dict):
        return ""
    name = next(name for name in [*before, *now] if before.get(name) != now.get(name))
    return f" ({name}: {before.get(name)}, not {now.get(name)})"
