"""The folder of a training run: how it is claimed, which data it was begun with, and what the run leaves in it."""

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path

import yaml

from tasks.common.cli.own_command import own_command, quoted, visualdl_command
from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.common.files import add_content, atomic_writer, check_output_dir, read_json_object, write_json
from tasks.common.runs.epochs import write_epochs
from tasks.common.texts.text_files import IN_MEMORY, STDIN, open_bytes, unreadable

try:
    import fcntl
except ImportError:  # Windows: two processes are not kept apart there
    fcntl = None

CONFIG_FILE = "config.yaml"
INPUTS_FILE = "inputs.json"  # what the data files were at the beginning
METRICS_FILE = "metrics.json"  # written last
MODEL_FOLDER = "model"
CHECKPOINTS_FOLDER = "checkpoints"
LOG_FOLDER = "vdl"
BEFORE_FOLDER = "before"  # in it: of what is trained before the task itself
_FILE, _FILES, _TEXTS = "_file", "_files", "texts"  # keys that end so, or are so, name a file or several
_NOT_FILES = (STDIN, IN_MEMORY, "demo")  # the last: generated text for the recipe language_model


@contextlib.contextmanager
def locked(path):
    """Whether this process has a folder or file for itself until the end of the block; if it dies, it lets go."""
    handle = os.open(path if fcntl else os.devnull, os.O_RDONLY)
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)


def refuse_links(folder):
    """Raise InputError if there is a symbolic link in the folder of a run: what a run writes, replaces and removes lies
    in its folder."""
    for where, folders, files in os.walk(folder):
        for path in (Path(where) / name for name in sorted([*folders, *files])):
            if path.is_symlink():
                raise InputError(f"{path}: a run follows no symbolic links; replace it by what it names")


def read_config(run_dir):
    """The configuration with which the run of a folder was started; raises InputError if there is none."""
    file = Path(run_dir) / CONFIG_FILE
    if not file.is_file():
        raise InputError(f"{run_dir}: no {CONFIG_FILE} here; give the OUTPUT_DIR of an interrupted run")
    return read_run_config(file)


def claim(run):
    """Make the folder of a new :class:`~tasks.common.run.Run` with its configuration in it, or say from where a run is
    resumed; without a checkpoint, what it has written is removed. The folder stays locked within ``run.claimed``.

    Raises:
        InputError: another process works on the run, or its data have changed since it began.
    """
    output_dir = run.output_dir
    if not run.is_begun:
        check_output_dir(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
    if not run.claimed.enter_context(locked(output_dir)):
        raise InputError(f"{output_dir}: another process works on this run; wait for its end")
    now = {**fingerprints(run.config), **run.memory.fingerprints}
    if not run.is_begun:
        with atomic_writer(output_dir / CONFIG_FILE) as file:
            yaml.safe_dump(run.config, file, allow_unicode=True, sort_keys=False)
    elif (output_dir / INPUTS_FILE).is_file():
        remedy = "it says which data the run began with; remove it if they are the same, or train anew"
        check_fingerprints(read_json_object(output_dir / INPUTS_FILE, remedy), now)
    if run.checkpoint is not None:
        print(f"resuming from {run.checkpoint}")
        return
    write_json(output_dir / INPUTS_FILE, now)
    if run.is_begun:
        print(f"{output_dir}: no checkpoint was written before the run ended, so it begins anew")
        for name in (CHECKPOINTS_FOLDER, LOG_FOLDER):
            shutil.rmtree(output_dir / name, ignore_errors=True)


def save_model(output_dir, model, *others):
    """Write the model of a run, and the tokenizer and others that have a ``save_pretrained``, into one folder."""
    for one in (model, *others):
        one.save_pretrained(Path(output_dir) / MODEL_FOLDER)


def finish(output_dir, metrics, started, what_next, history=(), scores=()):
    """Write the epochs of ``history`` with their ``scores``, if there are such, and ``metrics.json``, the last file of
    a run that began when ``time.perf_counter()`` was ``started``; say what was done, and what comes next: a message
    with ``{model}`` for the model's folder and ``{command}`` for ``paddle-rope``."""
    output_dir = Path(output_dir)
    if history:
        write_epochs(output_dir, history, scores)
    write_json(output_dir / METRICS_FILE, metrics)
    seconds = time.perf_counter() - started
    print(f"{output_dir}: trained in {metrics['train_seconds']:.0f} s, {seconds:.0f} s in all")
    print(what_next.format(model=quoted(output_dir / MODEL_FOLDER), command=own_command()))
    print(f"watch:    {visualdl_command()} --logdir {quoted(output_dir / LOG_FOLDER)}")


# ---- the data of a run: whether they are there, and still what they were when it began


def data_files(config):
    """The paths that a configuration names as data."""
    paths = []
    for key, value in config.items():
        if key.endswith(_FILE) and isinstance(value, str):
            paths.append(value)
        elif key.endswith(_FILES) or key == _TEXTS:  # a list, or with commas as in the configurations of earlier runs
            paths += value.split(",") if isinstance(value, str) else value or []
    return [path.strip() for path in paths if path and path not in _NOT_FILES]


def check_readable(config):
    """Raise InputError unless the data that a configuration names are there and may be read. Reads nothing."""
    for path in data_files(config):
        if os.path.isdir(path):
            try:
                os.listdir(path)
            except OSError as error:
                raise unreadable(path, error) from None
        elif os.path.isfile(path) or not os.path.exists(path):  # a pipe is opened once only
            open_bytes(path).close()


def fingerprints(config):
    """dict from each path that a configuration names as data to :func:`digest_of`; raises InputError if one of them
    cannot be read."""
    digests = {}
    for path in data_files(config):
        try:
            if Path(path).exists():
                digests[path] = digest_of(Path(path))
        except OSError as error:
            raise unreadable(path, error) from None
    return digests


def check_fingerprints(before, now):
    """Raise InputError if data of ``before``, as from :func:`fingerprints`, are others ``now``."""
    for path in {**before, **now}:
        if now.get(path) != before.get(path):
            remedy = "put it back as it was, or train anew in another --output_dir"
            raise InputError(f"{path}: has changed since the run began, which cannot resume with other data; {remedy}")


def digest_of(path):
    """The SHA-256 of a file, or of a folder's files with their names, in hexadecimal digits. Folders within it do not
    count: no reader looks into them."""
    digest = hashlib.sha256()
    for file in sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]:
        digest.update(file.name.encode("utf-8", "surrogateescape"))
        add_content(digest, file)
    return digest.hexdigest()
