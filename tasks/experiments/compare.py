"""Finished training runs side by side: ``paddle-rope compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasks.common.files import read_json_object
from tasks.common.reports.tables import as_markdown
from tasks.common.run_config import read_run_config
from tasks.common.training.run import CONFIG_FILE, METRICS_FILE


def compare_runs(folders: Sequence[Path]) -> str:
    """A Markdown table of the runs of some folders: the keys of their configurations that differ, parameters, minutes,
    scores. Raises InputError if a folder has no finished run."""
    configs = [read_run_config(folder / CONFIG_FILE) for folder in folders]
    keys = dict.fromkeys(key for config in configs for key in config if key != "output_dir")
    keys = [key for key in keys if any(config.get(key) != configs[0].get(key) for config in configs)]
    rows = []
    for folder, config in zip(folders, configs):
        metrics = read_json_object(folder / METRICS_FILE, "give the OUTPUT_DIR of a finished training run")
        row = {"run": folder.as_posix(), **{key: _shown(config.get(key)) for key in keys}}
        row["parameters"] = f"{metrics['parameters']:,}" if "parameters" in metrics else ""
        row["minutes"] = f"{metrics['train_seconds'] / 60:.1f}" if "train_seconds" in metrics else ""
        for split in ("dev", "test"):
            scores = (metrics.get(split) or {}).items()
            row.update({f"{split} {name}": f"{value:.4f}" for name, value in scores if isinstance(value, float)})
        rows.append(row)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row)))


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
