"""How a training run starts, goes on after an interruption, and what it leaves: the same for every recipe."""

from pathlib import Path

import paddle
import yaml
from paddlenlp.trainer import set_seed

from tasks.common.device import is_first_process
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, check_output_dir, claim_output_dir
from tasks.common.quiet import quiet_paddlenlp
from tasks.common.run_config import read_run_config
from tasks.common.trainer import last_checkpoint

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.json"  # written last


def start(config, resolve, run):
    """Train one run from its beginning.

    Args:
        config: dict of configuration keys, as from :func:`tasks.common.run_config.read_run_config`.
        resolve: function of it, returns what ``run`` takes; its first part is the configuration with its defaults.
        run: function of (checkpoint or None, *what ``resolve`` returned); it calls :func:`claim` before it writes.

    Returns:
        What ``run`` returns.

    Raises:
        InputError: the configuration or a data file is wrong; nothing has been written then.
    """
    quiet_paddlenlp()
    settings = resolve(config)
    if is_first_process():
        check_output_dir(settings[0]["output_dir"])
    return _run(run, None, settings)


def resume(run_dir, resolve, run):
    """Go on with a run that was interrupted, from its last whole checkpoint, to the result it would have had.

    Args:
        run_dir: folder of the run, with the configuration it was started with.
        resolve, run: as of :func:`start`.

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
    with paddle.utils.unique_name.guard():  # checkpoints know weights by names that count what the process has made
        return run(checkpoint, *settings)


def claim(config, checkpoint):
    """Make the folder of a new run with its configuration in it, or say where a run goes on from."""
    if checkpoint is not None:
        print(f"going on from {checkpoint}")
        return
    output_dir = Path(config["output_dir"])
    claim_output_dir(output_dir)
    with atomic_writer(output_dir / CONFIG_FILE) as file:
        yaml.safe_dump(config, file, allow_unicode=True, sort_keys=False)
