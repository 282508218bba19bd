"""One configuration trained with several seeds: mean and spread of the scores."""

import statistics
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, write_json
from tasks.common.training.arguments import LARGEST_SEED
from tasks.experiments import series

SUMMARY = "seeds"  # .json and .md
SPLITS = ("dev", "test")


def parse_seeds(value):
    """``"42,43,44"``, or a list as YAML has it -> [42, 43, 44]; raises InputError for anything else, also for a seed
    given twice."""
    words = [str(word).strip() for word in (value if isinstance(value, list) else str(value).split(","))]
    given = f"--seeds {','.join(words)}"
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"{given}: give numbers separated by commas, such as --seeds 42,43,44")
    seeds = [int(word) for word in words]
    if max(seeds) > LARGEST_SEED:
        raise InputError(f"{given}: a seed must be from 0 to {LARGEST_SEED}")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"{given}: a seed is given twice")
    return seeds


def train_with_seeds(train, config, seeds, figures, score_together=None):
    """Train once for each seed, into ``OUTPUT_DIR/seed_N``, and write ``seeds.json`` and ``seeds.md`` beside them.

    Args:
        train: function of a configuration; returns what it writes as metrics, with dicts of scores under ``dev`` and,
            if there is test data, ``test``; None in processes other than the first.
        config: dict of configuration keys, with ``output_dir``.
        seeds: list of integers.
        figures: names of the scores to sum up, as far as there are such.
        score_together: function of the configuration and the folders of the runs; returns the scores of each split by
            all models as one. None if there is no such thing.

    Returns:
        The dict written to ``seeds.json``: ``seeds``, and for each split and figure ``values`` in their order,
        ``mean`` and ``standard_deviation`` (of the sample, n - 1; None for one seed), and with several seeds and
        ``score_together`` the score ``together``. None in other processes.

    Raises:
        InputError: as of ``train``, or no ``output_dir`` is given or it is taken.
    """
    if not config.get("output_dir"):
        raise InputError("no 'output_dir': name it in the configuration file or with --output_dir PATH")
    with series.begun(config["output_dir"], {**config, "seeds": seeds}):
        metrics = series.run_each(_configs(config, seeds), train)
    return _summarise(metrics, config, seeds, figures, score_together)


def resume_with_seeds(folder, train, resume, figures, score_together=None):
    """Go on with a series that :func:`train_with_seeds` began and that was interrupted: runs that are done stay.

    Args:
        folder: of the series.
        resume: function of the folder of a run that was begun; returns its metrics.
        train, figures, score_together: as of :func:`train_with_seeds`, which also says what is returned.

    Raises:
        InputError: the series is complete, or a run has no checkpoint from which it could go on.
    """
    config = series.read_series(folder)
    seeds = parse_seeds(config.pop("seeds"))
    summary = Path(folder) / f"{SUMMARY}.json"
    if summary.is_file():
        raise InputError(f"{folder}: all seeds are complete; their scores are in {summary}")
    metrics = series.run_each(_configs(config, seeds), train, resume)
    return _summarise(metrics, config, seeds, figures, score_together)


def _configs(config, seeds):
    """The configuration of each seed's run."""
    folder = Path(config["output_dir"])
    return [{**config, "seed": seed, "output_dir": str(folder / f"seed_{seed}")} for seed in seeds]


def _summarise(metrics, config, seeds, figures, score_together):
    if metrics[0] is None:
        return None
    folder = Path(config["output_dir"])
    summary = {"seeds": seeds, **sum_up(metrics, figures)}
    if score_together is not None and len(seeds) > 1:
        run_dirs = [of_seed["output_dir"] for of_seed in _configs(config, seeds)]
        for split, scores in (score_together(config, run_dirs) or {}).items():
            for name, row in summary[split].items():
                row["together"] = scores[name]
    write_summary(folder / SUMMARY, summary, [f"seed {seed}" for seed in seeds])
    return summary


def sum_up(metrics, figures):
    """Mean and spread of the scores of several runs: see :func:`train_with_seeds`, also for the arguments."""
    return {
        split: {
            name: _spread([of_run[split][name] for of_run in metrics]) for name in figures if name in metrics[0][split]
        }
        for split in SPLITS
        if split in metrics[0]
    }


def _spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {"values": values, "mean": statistics.fmean(values), "standard_deviation": deviation}


def write_summary(path, summary, runs):
    """Write what :func:`sum_up` gives as ``path.json`` and, as a table, as ``path.md``, and print the table.

    Args:
        path: without the suffix.
        summary: dict with what :func:`sum_up` gives.
        runs: names of the runs.
    """
    table = as_table(summary, runs)
    write_json(path.with_suffix(".json"), summary)
    with atomic_writer(path.with_suffix(".md")) as file:
        file.write(table)
    print(table, end="")


def as_table(summary, runs):
    """The Markdown table of a summary: one row for each figure, one column for each run."""
    rows = {f"{split} {name}": row for split in SPLITS for name, row in summary.get(split, {}).items()}
    heads = [*runs, "mean", "standard deviation"]
    if any("together" in row for row in rows.values()):
        heads.append("together")
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, row in rows.items():
        numbers = [*row["values"], *(row[key] for key in ("mean", "standard_deviation", "together") if key in row)]
        lines.append(f"| {name} | {' | '.join('' if number is None else f'{number:.4f}' for number in numbers)} |")
    return "\n".join(lines) + "\n"
