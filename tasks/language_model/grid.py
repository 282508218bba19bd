"""A grid of rows x seeds, one cell after the other, by any number of processes that work on one folder.

OUTPUT_DIR/config.yaml          what all cells share
OUTPUT_DIR/cells/ROW_seed_N/    one cell: result.json when it is finished, until then its checkpoint; its VisualDL log
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, check_makeable, write_json
from tasks.common.runs.locks import locked
from tasks.common.tool.device import choose_device
from tasks.common.tool.run_config import read_run_config
from tasks.language_model.arguments import OWN_KEYS, parse_run
from tasks.language_model.corpus import load_corpus
from tasks.language_model.training import CHECKPOINT_FILE, train_language_model

CONFIG_FILE, CELLS, RESULT_FILE = "config.yaml", "cells", "result.json"


class Row(NamedTuple):
    """One variant of the model.

    Attributes:
        name: in files and on the command line.
        title: in tables and figures.
        options: of the model's configuration, where they differ from those of the other rows.
        theta_rate, scale_embeddings: as :func:`~tasks.language_model.training.train_language_model`.
    """

    name: str
    title: str
    options: dict
    theta_rate: float = 1.0
    scale_embeddings: bool = False


class Experiment(NamedTuple):
    """What a tool compares.

    Attributes:
        rows: tuple of :class:`Row`.
        arguments_class: :class:`~tasks.language_model.arguments.LanguageModelArguments` or a subclass.
        measure: function of (model, corpus, run, row), called with each trained model; returns a dict of plain values.
        report: function of (folder, run, results of the finished cells); writes tables and figures and prints what
            counts.
    """

    rows: tuple
    arguments_class: type
    measure: Callable[..., dict[str, Any]]
    report: Callable[..., None]


def run_grid(experiment, config):
    """Compute the cells that no process has computed or is computing, then report on all that are finished.

    Seeds go in the outer loop: an interrupted grid has every row with the first seed before any with the second.

    Args:
        experiment: :class:`Experiment`.
        config: dict of configuration keys.

    Raises:
        InputError: the configuration or a file is wrong, or ``output_dir`` holds cells of another configuration.
    """
    run = parse_run(config, experiment.arguments_class)
    rows = _chosen_rows(experiment.rows, run.row_names())
    cells = [(row, seed) for seed in run.seed_numbers() for row in rows]
    choose_device(run.device)
    corpus = load_corpus(run)
    # all checked before anything is written
    configs = {row.name: run.model_config(len(corpus.tokenizer), row.options) for row in rows}
    folder = Path(run.output_dir)
    open_folder(folder, run)
    for number, (row, seed) in enumerate(cells, 1):
        cell = folder / CELLS / f"{row.name}_seed_{seed}"
        cell.mkdir(parents=True, exist_ok=True)
        with locked(cell) as is_mine:
            if not is_mine:
                print(f"{cell.name}: another process computes it", flush=True)
            if not is_mine or (cell / RESULT_FILE).is_file():
                continue
            title = f"{row.name} seed {seed} ({number} of {len(cells)})"
            result = _compute(experiment, configs[row.name], corpus, run, row, seed, cell, title)
            print(f"{title}: held-out loss {result['held_out'][-1][1]:.4f}, {result['seconds']:.0f} s", flush=True)
    report(experiment, folder, run)


def report(experiment, folder, run=None):
    """Write tables and figures of the cells of ``folder`` that are finished.

    Args:
        experiment: :class:`Experiment`.
        folder: ``output_dir`` of a grid.
        run: the grid's configuration; None reads it from the folder.

    Raises:
        InputError: there is no grid, or no cell is finished.
    """
    folder = Path(folder)
    if run is None:
        if not (folder / CONFIG_FILE).is_file():
            raise InputError(f"{folder}: no {CONFIG_FILE} here; give the output_dir of a grid")
        run = parse_run(read_run_config(folder / CONFIG_FILE), experiment.arguments_class)
    order = [row.name for row in experiment.rows]
    results = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / CELLS).glob(f"*/{RESULT_FILE}")]
    if not results:
        raise InputError(f"{folder}: no cell is finished yet; let the grid run on")
    for result in results:
        if result["row"] not in order:
            raise InputError(f"{folder}: holds a row {result['row']!r}: it is the grid of another tool")
    results.sort(key=lambda result: (order.index(result["row"]), result["seed"]))
    experiment.report(folder, run, results)


def _compute(experiment, config, corpus, run, row, seed, cell, title):
    model, history = train_language_model(config, corpus, run, seed, cell, row.theta_rate, row.scale_embeddings, title)
    result = {
        "row": row.name,
        "seed": seed,
        "parameters": sum(int(weight.size) for weight in model.parameters()),
        "seconds": round(history.seconds, 1),
        "machine": machine_in_words(),
        "text": corpus.facts()._asdict(),
        "training": history.training,
        "held_out": history.held_out,
        **experiment.measure(model, corpus, run, row),
    }
    write_json(cell / RESULT_FILE, result)
    (cell / CHECKPOINT_FILE).unlink()
    return result


def _chosen_rows(rows, names):
    known = {row.name: row for row in rows}
    for name in names or ():
        if name not in known:
            raise InputError(f"rows: no row {name!r}; the rows are {', '.join(known)}")
    return [row for row in rows if names is None or row.name in names]


def open_folder(folder, run):
    """Make the folder of a grid, or see that the cells in it are of the same configuration.

    Raises:
        InputError: they are not, or the folder holds something else or cannot be made.
    """
    wanted = dataclasses.asdict(run)
    path = folder / CONFIG_FILE
    if not path.exists():
        check_makeable(folder, "--output_dir")
        if folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise InputError(f"{folder}: holds something else; give another --output_dir")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made ({error.strerror}); give another --output_dir") from None
        with atomic_writer(path) as file:
            yaml.safe_dump(wanted, file, allow_unicode=True, sort_keys=False)
    there = dataclasses.asdict(parse_run(read_run_config(path), type(run)))
    for key in wanted.keys() - set(OWN_KEYS):
        if there[key] != wanted[key]:
            raise InputError(
                f"{folder}: holds cells with {key} {there[key]}, not {wanted[key]}; give another --output_dir"
            )
