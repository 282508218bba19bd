"""How a training run starts, goes on after an interruption, and what it leaves: the same for every recipe."""

import contextlib
import json
import time
from pathlib import Path

import paddle
import yaml
from paddlenlp.trainer import set_seed

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, check_output_dir, claim_output_dir, write_json
from tasks.common.runs.epochs import write_epochs
from tasks.common.runs.fingerprints import check_fingerprints, fingerprints
from tasks.common.runs.locks import locked
from tasks.common.tool.device import is_first_process
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.common.tool.run_config import read_run_config
from tasks.common.training.trainer import last_checkpoint

CONFIG_FILE = "config.yaml"
INPUTS_FILE = "inputs.json"  # what the data files were at the beginning
METRICS_FILE = "metrics.json"  # written last
MODEL_FOLDER = "model"

_lock = contextlib.ExitStack()  # of the folder that this process works on, until its run ends, however it does


def start(resolve, run, config):
    """Train one run from its beginning. With ``resolve`` and ``run`` of a recipe this is its ``train``.

    Args:
        resolve: function of ``config``, returns what ``run`` takes; its first part is the configuration with its
            defaults.
        run: function of (checkpoint or None, *what ``resolve`` returned); it calls :func:`claim` before it writes.
        config: dict of configuration keys, as from :func:`tasks.common.tool.run_config.read_run_config`.

    Returns:
        What ``run`` returns: dict as written to ``metrics.json``; None in processes other than the first.

    Raises:
        InputError: the configuration or a data file is wrong; nothing has been written then.
    """
    quiet_paddlenlp()
    settings = resolve(config)
    if is_first_process():
        check_output_dir(settings[0]["output_dir"])
    return _run(run, None, settings)


def resume(resolve, run, run_dir):
    """Go on with a run that was interrupted, from its last whole checkpoint, to the result it would have had. With
    ``resolve`` and ``run`` of a recipe this is its ``resume``.

    Args:
        resolve, run: as of :func:`start`.
        run_dir: folder of the run, with the configuration it was started with.

    Raises:
        InputError: the folder is not that of an unfinished run, or no checkpoint was written before it ended.
    """
    quiet_paddlenlp()
    run_dir = Path(run_dir)
    if (run_dir / METRICS_FILE).is_file():
        raise InputError(f"{run_dir}: the run is complete; its scores are in {run_dir / METRICS_FILE}")
    if not (run_dir / CONFIG_FILE).is_file():
        raise InputError(f"{run_dir}: no {CONFIG_FILE} here; give the OUTPUT_DIR of a run that was interrupted")
    checkpoint = last_checkpoint(run_dir / "checkpoints")
    return _run(run, checkpoint, resolve({**read_run_config(run_dir / CONFIG_FILE), "output_dir": str(run_dir)}))


def _run(run, checkpoint, settings):
    set_seed(settings[-1].seed)
    # checkpoints know weights by names that count what the process has made
    with _lock, paddle.utils.unique_name.guard():
        return run(checkpoint, *settings)


def claim(config, checkpoint):
    """Make the folder of a new run with its configuration in it, or say where a run goes on from.

    Raises:
        InputError: another process works on the run, or a data file has changed since it began.
    """
    output_dir = Path(config["output_dir"])
    if checkpoint is None:
        claim_output_dir(output_dir)
    if not _lock.enter_context(locked(output_dir)):
        raise InputError(f"{output_dir}: another process works on this run; wait for its end")
    if checkpoint is None:
        with atomic_writer(output_dir / CONFIG_FILE) as file:
            yaml.safe_dump(config, file, allow_unicode=True, sort_keys=False)
        write_json(output_dir / INPUTS_FILE, fingerprints(config))
        return
    if (output_dir / INPUTS_FILE).is_file():
        check_fingerprints(json.loads((output_dir / INPUTS_FILE).read_text(encoding="utf-8")), config)
    print(f"going on from {checkpoint}")


def save_model(output_dir, model, *others):
    """Write the model of a run, and the tokenizer and others that have a ``save_pretrained``, into one folder."""
    folder = Path(output_dir) / MODEL_FOLDER
    model.save_pretrained(str(folder), safe_serialization=True)
    for other in others:
        other.save_pretrained(folder)


def finish(output_dir, metrics, started, what_next, history=(), figures=()):
    """Write table and picture of the epochs and ``metrics.json``, the last file of a run; say what was done and what
    comes next.

    Args:
        output_dir: folder of the run.
        metrics: dict, with ``train_seconds``.
        started: ``time.perf_counter()`` of the beginning.
        what_next: a line, with ``{model}`` in place of the model's folder.
        history: ``log_history`` of the trainer's state; nothing for a run that is not one of epochs.
        figures: names of the dev scores in the table.
    """
    output_dir = Path(output_dir)
    if history:
        write_epochs(output_dir, history, figures)
    write_json(output_dir / METRICS_FILE, metrics)
    seconds = time.perf_counter() - started
    print(f"{output_dir}: trained in {metrics['train_seconds']:.0f} s, {seconds:.0f} s in all")
    print(what_next.format(model=output_dir / MODEL_FOLDER))
    print(f"watch:    visualdl --logdir {output_dir / 'vdl'}")
