"""Finished training runs side by side: ``paddle-rope compare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.common.runs.run_folder import CONFIG_FILE, METRICS_FILE


def compare_runs(folders: Sequence[Path]) -> str:
    """A Markdown table of finished runs: the keys of their configurations that differ, parameters, minutes, scores.

    Args:
        folders: the OUTPUT_DIR of each.

    Raises:
        InputError: a folder is not that of a finished run.
    """
    configs = [_read(folder / CONFIG_FILE, yaml.safe_load) for folder in folders]
    keys = dict.fromkeys(key for config in configs for key in config if key != "output_dir")
    keys = [key for key in keys if any(config.get(key) != configs[0].get(key) for config in configs)]
    rows = []
    for folder, config in zip(folders, configs):
        metrics = _read(folder / METRICS_FILE, json.loads)
        row = {"run": folder.as_posix(), **{key: _shown(config.get(key)) for key in keys}}
        row["parameters"] = f"{metrics['parameters']:,}" if "parameters" in metrics else ""
        row["minutes"] = f"{metrics['train_seconds'] / 60:.1f}" if "train_seconds" in metrics else ""
        for split in ("dev", "test"):
            scores = (metrics.get(split) or {}).items()
            row.update({f"{split} {name}": f"{value:.4f}" for name, value in scores if isinstance(value, float)})
        rows.append(row)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row)))


def _read(path, parse) -> dict[str, Any]:
    remedy = "give the OUTPUT_DIR of a finished training run"
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError, yaml.YAMLError):
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{path}: is damaged; {remedy}")
    return content


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
