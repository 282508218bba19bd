"""One configuration trained once for each fold of its data: mean and spread of the scores."""

from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import write_json
from tasks.common.runs.life import METRICS_FILE
from tasks.experiments import series
from tasks.experiments.seeds import sum_up, write_summary
from tasks.matching.arguments import resolve_config
from tasks.matching.metrics import SCORES

SUMMARY = "folds"  # .json and .md


def is_series(run_dir):
    """Whether ``run_dir`` is the folder of several folds."""
    return series.read_series(run_dir) is not None


def train(config, train_one):
    """Train once for each fold, into ``OUTPUT_DIR/fold_N``, and write ``folds.json`` and ``folds.md`` beside them.

    Args:
        config: dict of configuration keys, with ``folds``.
        train_one: function of a configuration, which has ``fold`` too; returns its metrics.

    Returns:
        dict with the means over the folds under ``dev`` and ``test``, also written to ``metrics.json``; None in
        processes other than the first.

    Raises:
        InputError: as of ``train_one``.
    """
    resolved, run, _ = resolve_config(config)
    folder = resolved["output_dir"]
    with series.begun(folder, config):
        metrics = series.run_each(_configs(config, folder, run.folds), train_one)
    return _summarise(folder, metrics)


def resume(run_dir, train_one, resume_one):
    """Go on with a series that was interrupted: folds that are done stay, one that was begun goes on.

    Args:
        run_dir: folder of the series.
        train_one: as of :func:`train`.
        resume_one: function of the folder of one fold's run; returns its metrics.

    Raises:
        InputError: the series is complete, or a fold has no checkpoint from which it could go on.
    """
    if (Path(run_dir) / METRICS_FILE).is_file():
        raise InputError(f"{run_dir}: all folds are complete; their scores are in {Path(run_dir) / SUMMARY}.json")
    config = series.read_series(run_dir)
    configs = _configs(config, run_dir, int(config["folds"]))
    return _summarise(run_dir, series.run_each(configs, train_one, resume_one))


def _configs(config, folder, folds):
    """The configuration of each fold's run."""
    return [{**config, "fold": fold, "output_dir": str(Path(folder) / f"fold_{fold}")} for fold in range(1, folds + 1)]


def _summarise(folder, metrics):
    if metrics[0] is None:
        return None
    folds, sums = len(metrics), sum_up(metrics, SCORES)
    write_summary(Path(folder) / SUMMARY, {"folds": folds, **sums}, [f"fold {fold}" for fold in range(1, folds + 1)])
    means = {split: {name: row["mean"] for name, row in scores.items()} for split, scores in sums.items()}
    write_json(Path(folder) / METRICS_FILE, means)  # last, as of a run
    return means
