"""One configuration trained once for each fold of its data: mean and spread of the scores."""

import json
from pathlib import Path

from tasks.common import runs
from tasks.common.device import is_first_process
from tasks.common.errors import InputError
from tasks.common.files import check_output_dir
from tasks.common.run_config import read_run_config
from tasks.common.seeds import sum_up, write_summary
from tasks.common.trainer import COMPLETE_FILE
from tasks.matching.arguments import resolve_config
from tasks.matching.metrics import FIGURES

SUMMARY = "folds"  # .json and .md


def is_series(run_dir):
    """Whether ``run_dir`` is the folder of several folds, of which at least one was begun."""
    return (Path(run_dir) / "fold_1" / runs.CONFIG_FILE).is_file()


def train(config, train_one):
    """Train once for each fold, into ``OUTPUT_DIR/fold_N``, and write ``folds.json`` and ``folds.md`` beside them.

    Args:
        config: dict of configuration keys, with ``folds``.
        train_one: function of a configuration, which has ``fold`` too; returns its metrics.

    Returns:
        dict with the means over the folds under ``dev`` and ``test``; None in processes other than the first.

    Raises:
        InputError: as of ``train_one``.
    """
    resolved, run, _ = resolve_config(config)
    folder = Path(resolved["output_dir"])
    if is_first_process():
        check_output_dir(folder)
    return _each(folder, run.folds, lambda fold, path: train_one({**config, "fold": fold, "output_dir": str(path)}))


def resume(run_dir, train_one, resume_one):
    """Go on with a series that was interrupted: folds that are done stay, one that was begun goes on.

    Args:
        run_dir: folder of the series.
        train_one: as of :func:`train`.
        resume_one: function of the folder of one fold's run; returns its metrics.

    Raises:
        InputError: the series is complete, or a fold has no checkpoint from which it could go on.
    """
    folder = Path(run_dir)
    summary = folder / f"{SUMMARY}.json"
    if summary.is_file():
        raise InputError(f"{folder}: all folds are complete; their scores are in {summary}")
    config = read_run_config(folder / "fold_1" / runs.CONFIG_FILE)

    def go_on(fold, path):
        if (path / runs.METRICS_FILE).is_file():
            return json.loads((path / runs.METRICS_FILE).read_text(encoding="utf-8"))
        if not path.exists():
            return train_one({**config, "fold": fold, "output_dir": str(path)})
        if not any(path.glob(f"checkpoints/*/{COMPLETE_FILE}")):
            raise InputError(f"{path}: ended before its first checkpoint; remove this folder and resume again")
        return resume_one(path)

    return _each(folder, config["folds"], go_on)


def _each(folder, folds, run_fold):
    metrics = []
    for fold in range(1, folds + 1):
        print(f"---- fold {fold} of {folds}", flush=True)
        metrics.append(run_fold(fold, folder / f"fold_{fold}"))
    if metrics[0] is None:
        return None
    sums = sum_up(metrics, FIGURES)
    write_summary(folder / SUMMARY, {"folds": folds, **sums}, [f"fold {fold}" for fold in range(1, folds + 1)])
    return {split: {name: row["mean"] for name, row in figures.items()} for split, figures in sums.items()}
