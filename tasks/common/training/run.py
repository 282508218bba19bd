"""One training run of a recipe: its state, its folder, and the data that it began with. Does not import paddle."""

import contextlib
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import (
    atomic_writer,
    check_new_folder,
    digest_of,
    locked,
    read_json_object,
    write_json,
)
from paddle_rope.tasks.common.model_folder import write_checksums
from paddle_rope.tasks.common.process import own_command, quoted
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.texts.text_files import ADDITIONS, IN_MEMORY, STDIN, open_bytes, reading

CONFIG_FILE = "config.yaml"
INPUTS_FILE = "inputs.json"  # fingerprints of the data files at the start
METRICS_FILE = "metrics.json"  # written last
MODEL_FOLDER = "model"
CHECKPOINTS_FOLDER = "checkpoints"
LOG_FOLDER = "vdl"
BEFORE_FOLDER = "before"  # in the checkpoints folder: checkpoints of training that precedes the task itself
_NOT_FILES = (STDIN, IN_MEMORY)


@dataclass
class RunData:
    """What a recipe reads for a run."""

    examples: dict[str, Any]  # of train and, if given, dev and test
    chosen: dict[str, Any] = field(default_factory=dict)  # configuration keys that the data decide
    facts: dict[str, Any] = field(default_factory=dict)  # entries of ``metrics.json`` in addition to the scores
    saved: list = field(default_factory=list)  # objects for the model's folder, written by ``save_pretrained(folder)``


@dataclass
class Run:
    """One training run of a recipe. ``config``, ``keys``, ``training`` and ``given`` are as in
    :class:`~paddle_rope.tasks.common.training.settings.Settings`; the last fields are filled in as it goes on."""

    config: dict[str, Any]
    keys: Any
    training: Any
    given: dict[str, Any]
    data: Any  # RunData
    locks: contextlib.ExitStack  # within which the run's folder stays locked
    memory: Any  # MemoryData: data that were given in memory, not as files
    checkpoint: Path | None = None  # from which the run is resumed
    is_begun: bool = False  # whether the folder belongs to a run that has begun
    started: float = field(default_factory=time.perf_counter)  # before the data were read
    datasets: dict[str, Any] = field(default_factory=dict)  # the examples, tokenized
    is_saved: bool = True  # whether a folder can hold the model
    tokenizer: Any = None
    model: Any = None
    trainer: Any = None

    @property
    def examples(self) -> dict[str, Any]:
        return self.data.examples

    @property
    def facts(self) -> dict[str, Any]:
        return self.data.facts

    @property
    def output_dir(self) -> Path:
        return Path(self.config["output_dir"])

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints of training itself."""
        return self.output_dir / CHECKPOINTS_FOLDER

    @property
    def checkpoints_before(self) -> Path:
        """The folder of the checkpoints of what comes before training itself."""
        return self.checkpoints / BEFORE_FOLDER

    @property
    def resumes_training(self) -> bool:
        """Whether the run is resumed from a checkpoint of training itself, which is after all preparation."""
        return self.checkpoint is not None and self.checkpoint.parent == self.checkpoints

    @property
    def batch_size(self) -> int:
        """The batch size of evaluation."""
        return self.training.per_device_eval_batch_size

    @property
    def batches_per_step(self) -> int:
        """Batches per optimizer step: processes times gradient accumulation steps."""
        return self.training.gradient_accumulation_steps * self.training.dataset_world_size

    def claim(self) -> None:
        """Make the folder of a new run with its configuration, or print which checkpoint a begun run resumes from;
        without a checkpoint, its earlier output is removed. The folder stays locked within ``locks``. Raises
        InputError if another process works on the run, or its data have changed since it began."""
        folder = self.output_dir
        if not self.is_begun:
            folder.mkdir(parents=True, exist_ok=True)
        self.locks.enter_context(locked(folder))
        now = {**fingerprints(self.config), **self.memory.fingerprints}
        if not self.is_begun:
            check_new_folder(folder)
            with atomic_writer(folder / CONFIG_FILE) as file:
                yaml.safe_dump(self.config, file, allow_unicode=True, sort_keys=False)
        elif (folder / INPUTS_FILE).is_file():
            remedy = "it says which data the run began with; remove it if they are the same, or train anew"
            before = read_json_object(folder / INPUTS_FILE, remedy)
            for path in {**before, **now}:
                if now.get(path) != before.get(path):
                    found = "has changed since the run began, which cannot resume with other data"
                    raise InputError(f"{path}: {found}; put it back as it was, or train anew in another --output_dir")
        if self.checkpoint is not None:
            print(f"resuming from {self.checkpoint}")
            return
        write_json(folder / INPUTS_FILE, now)
        if self.is_begun:
            print(f"{folder}: no checkpoint was written before the run ended, so it begins anew")
            for name in (CHECKPOINTS_FOLDER, LOG_FOLDER, MODEL_FOLDER):
                shutil.rmtree(folder / name, ignore_errors=True)

    def save_model(self) -> None:
        """Put the model, the tokenizer and the objects of ``data.saved`` into the folder ``model``, in place of earlier
        weights, with checksums of all files but config.json, in which ``paddle-rope tune`` and people write
        thresholds."""
        if not self.is_saved:
            return
        folder, new, old = self.output_dir / MODEL_FOLDER, self.checkpoints / "new", self.checkpoints / "old"
        for left in (new, old):  # by a process that was killed here
            shutil.rmtree(left, ignore_errors=True)
        for one in filter(None, [self.model, self.tokenizer, *self.data.saved]):
            one.save_pretrained(new)
        write_checksums(new, "config.json")
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)

    def finish(self, metrics: dict[str, Any], started: float, what_next: str) -> None:
        """Write ``metrics.json``, the last file of a run that began when ``time.perf_counter()`` was ``started``; print
        what was done, and ``what_next`` with ``{model}`` for the model's folder, quoted for a shell, ``{path}`` for
        the folder as it is, and ``{command}`` for paddle-rope."""
        folder, seconds = self.output_dir, time.perf_counter() - started
        write_json(folder / METRICS_FILE, metrics)
        print(f"{folder}: trained in {metrics['train_seconds']:.0f} s, {seconds:.0f} s in all")
        model = str(folder / MODEL_FOLDER)
        print(what_next.format(model=quoted(model), path=model, command=own_command()))
        command = own_command("visualdl", "visualdl.server.app")
        print(f"watch:    {command} --disable-telemetry --logdir {quoted(folder / LOG_FOLDER)}")


def refuse_links(folder):
    """Raise InputError if there is a symbolic link in the folder of a run: a run writes, replaces and removes files
    only in its folder."""
    for where, folders, files in os.walk(folder):
        for path in (Path(where) / name for name in sorted([*folders, *files])):
            if path.is_symlink():
                raise InputError(f"{path}: a run follows no symbolic links; replace it by what it names")


def read_config(run_dir):
    """The configuration that the run in a folder was started with; raises InputError if there is none."""
    file = Path(run_dir) / CONFIG_FILE
    if not file.is_file():
        raise InputError(f"{run_dir}: no {CONFIG_FILE} here; give the OUTPUT_DIR of an interrupted run")
    return read_run_config(file)


def data_files(config):
    """The paths that a configuration names as data: under ``texts`` and keys that end with ``_file`` or ``_files``."""
    paths = []
    for key, value in config.items():
        if key.endswith("_file") and isinstance(value, str):
            paths.append(value)
        elif (key.endswith("_files") or key == "texts") and value != [ADDITIONS]:
            paths += value or []
    return [path for path in paths if path and path not in _NOT_FILES]


def check_readable(config):
    """Raise InputError unless the data that a configuration names exist and are readable. Reads no content."""
    for path in data_files(config):
        with reading(path):
            if os.path.isdir(path):
                os.listdir(path)
            elif os.path.isfile(path) or not os.path.exists(path):  # a pipe is opened once only
                open_bytes(path).close()


def fingerprints(config):
    """dict from each path that a configuration names as data, except pipes, to its
    :func:`~paddle_rope.tasks.common.files.digest_of`; raises InputError if one of them cannot be read."""
    digests = {}
    for path in data_files(config):
        with reading(path):
            if Path(path).is_file() or Path(path).is_dir():  # a pipe, which was read, would block
                digests[path] = digest_of(Path(path))
    return digests
