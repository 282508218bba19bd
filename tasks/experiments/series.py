"""Several runs of one configuration in one folder, one for each seed or fold: how a series begins, and goes on after an
interruption."""

import contextlib
import json
from pathlib import Path

import yaml

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, check_output_dir, claim_output_dir
from tasks.common.runs.life import METRICS_FILE
from tasks.common.tool.device import is_first_process
from tasks.common.tool.run_config import read_run_config
from tasks.common.training.trainer import COMPLETE_FILE

SERIES_FILE = "series.yaml"  # the configuration of a series; written first


def read_series(folder):
    """The configuration of the series in ``folder``, with its ``output_dir``; None if it holds no series."""
    path = Path(folder) / SERIES_FILE
    return {**read_run_config(path), "output_dir": str(folder)} if path.is_file() else None


@contextlib.contextmanager
def begun(folder, config):
    """Makes the folder of a new series with its configuration in it. Takes them away again where an InputError ends it
    before its first run has made a folder.

    Raises:
        InputError: the folder is taken or cannot be made.
    """
    folder = Path(folder)
    if not is_first_process():
        yield
        return
    check_output_dir(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    claim_output_dir(folder)
    with atomic_writer(folder / SERIES_FILE) as file:
        yaml.safe_dump(config, file, allow_unicode=True, sort_keys=False)
    try:
        yield
    except InputError:
        if [path.name for path in folder.iterdir()] == [SERIES_FILE]:
            (folder / SERIES_FILE).unlink()
            for path in made:
                path.rmdir()
        raise


def run_each(configs, train, resume=None):
    """The metrics of each run of a series.

    Args:
        configs: dicts of configuration keys, one for each run, whose ``output_dir`` is in the folder of the series.
        train: function of a configuration; returns the run's metrics.
        resume: function of the folder of a run that was begun, for a series that was interrupted: runs that are done
            stay, one that was begun goes on. None for a new series.

    Raises:
        InputError: a run has no checkpoint from which it could go on.
    """
    # All looked at before the first goes on: processes that train together would else see what the first one makes.
    ways = [train if resume is None else _way_on(config, train, resume) for config in configs]
    metrics = []
    for number, (way, config) in enumerate(zip(ways, configs), 1):
        name = Path(config["output_dir"]).name.replace("_", " ")
        print(f"---- {name} ({number} of {len(configs)})", flush=True)
        metrics.append(way(config))
    return metrics


def _way_on(config, train, resume):
    """The function of ``config`` that gives the metrics of a run of an interrupted series."""
    run_dir = Path(config["output_dir"])
    if (run_dir / METRICS_FILE).is_file():
        return lambda _: json.loads((run_dir / METRICS_FILE).read_text(encoding="utf-8"))
    if not run_dir.exists():
        return train
    if not (run_dir / SERIES_FILE).is_file() and not any(run_dir.glob(f"checkpoints/*/{COMPLETE_FILE}")):
        raise InputError(f"{run_dir}: ended before its first checkpoint; remove this folder and resume again")
    return lambda _: resume(str(run_dir))
