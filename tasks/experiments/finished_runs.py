"""Finished training runs side by side."""

import json

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown


def compare_runs(folders):
    """A Markdown table of finished runs: the keys of their configurations that differ, parameters, minutes, scores.

    Args:
        folders: list of ``Path``, the OUTPUT_DIR of each.

    Raises:
        InputError: a folder is not that of a finished run.
    """
    configs, metrics = zip(*map(read_run, folders))
    keys = differing_keys(configs)
    rows = [as_row(*run, keys) for run in zip(folders, configs, metrics)]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return as_markdown([{head: row.get(head, "") for head in heads} for row in rows], heads)


def read_run(folder):
    """The configuration of a finished run and its metrics."""
    import yaml

    read = []
    for name, parse in (("config.yaml", yaml.safe_load), ("metrics.json", json.loads)):
        try:
            content = parse((folder / name).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"{folder / name}: cannot be read ({error.strerror}); give the OUTPUT_DIR of a finished training run"
            ) from None
        except (ValueError, RecursionError, yaml.YAMLError):
            content = None
        if not isinstance(content, dict):
            raise InputError(f"{folder / name}: is damaged; give the OUTPUT_DIR of a finished training run")
        read.append(content)
    return read


def differing_keys(configs):
    """Keys of the configurations that have not the same value in all, in the order of the first that has them."""
    keys = dict.fromkeys(key for config in configs for key in config if key != "output_dir")
    return [key for key in keys if any(config.get(key) != configs[0].get(key) for config in configs)]


def as_row(folder, config, metrics, keys):
    """The cells of a run, by the head of their column."""
    row = {"run": folder.as_posix(), **{key: _shown(config.get(key)) for key in keys}}
    row["parameters"] = f"{metrics['parameters']:,}" if "parameters" in metrics else ""
    row["minutes"] = f"{metrics['train_seconds'] / 60:.1f}" if "train_seconds" in metrics else ""
    for split in ("dev", "test"):
        scores = metrics.get(split) or {}
        row.update({f"{split} {name}": f"{value:.4f}" for name, value in scores.items() if isinstance(value, float)})
    return row


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
