"""Checkpoints in safetensors and JSON, so that reading an untrusted one runs no code; PaddleNLP's Trainer would write
pickles, which are programs. A checkpoint is on the disk before it is marked complete, with its checksums."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddlenlp.trainer import TrainerState
from safetensors.numpy import save

from paddle_rope.roformer.checkpoints.tensor_files import read_tensors
from paddle_rope.tasks.common.errors import InputError, as_input_error, damage_reported
from paddle_rope.tasks.common.files import atomic_writer, changed_files, checksums, write_files, write_json
from paddle_rope.tasks.common.process import is_first_process

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
AVERAGE_FILE = "average.safetensors"
NUMBERS_FILE = "optimizer.json"  # state of the optimizer, its schedule and the loss scaling other than tensors
PROGRESS_FILE = "progress_{rank}.json"  # what a process has counted since the last log
TRAINER_STATE_FILE = "trainer_state.json"  # PaddleNLP's
COMPLETE_FILE = "complete"  # written last: the checksums of the other files
_PREFIX = "checkpoint-"


# ---- the files


def write_tensors(path: Path, tensors: Mapping[str, paddle.Tensor]) -> None:
    """Write named tensors; bfloat16 and float16 as float32, which is exact."""
    half = (paddle.bfloat16, paddle.float16)
    arrays = {
        name: np.ascontiguousarray((tensor.astype("float32") if tensor.dtype in half else tensor).numpy())
        for name, tensor in tensors.items()
    }
    with atomic_writer(path, binary=True) as file:
        file.write(save(arrays))


def read_checkpoint_tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file; raises InputError if it is missing or damaged."""
    with as_input_error():
        return read_tensors(path)


@contextlib.contextmanager
def json_of(path: Path) -> Iterator[Any]:
    """The content of a JSON file of a checkpoint; errors within the block become an InputError."""
    with damage_reported(path, "the checkpoint cannot be resumed from, so train anew, in another folder"):
        yield json.loads(path.read_text(encoding="utf-8"))


def write_optimizer(folder: Path, optimizer: Any, schedule: Any, scaler: Any = None) -> None:
    """Write the state of an optimizer, of its learning-rate schedule and of the loss scaling, if there is one."""
    tensors = dict(optimizer.state_dict())
    tensors.pop("LR_Scheduler", None)  # a second copy of the schedule
    write_tensors(folder / OPTIMIZER_FILE, tensors)
    states = {"schedule": schedule.state_dict(), "scaler": {} if scaler is None else scaler.state_dict()}
    plain = {key: {name: np.asarray(value).tolist() for name, value in state.items()} for key, state in states.items()}
    write_json(folder / NUMBERS_FILE, plain)


def read_optimizer(folder: Path, optimizer: Any, schedule: Any, scaler: Any = None) -> None:
    """Give an optimizer, a schedule and a loss scaling the state that :func:`write_optimizer` wrote."""
    arrays = read_checkpoint_tensors(folder / OPTIMIZER_FILE)
    state = {name: paddle.to_tensor(array) for name, array in arrays.items()}
    with json_of(folder / NUMBERS_FILE) as numbers:
        optimizer.set_state_dict({**state, "LR_Scheduler": numbers["schedule"]})
        schedule.set_state_dict(numbers["schedule"])
        if scaler is not None and numbers["scaler"]:
            scale = np.array(numbers["scaler"]["scale"], dtype="float32")
            scaler.load_state_dict({**numbers["scaler"], "scale": scale})


def read_trainer_state(folder: Path) -> TrainerState:
    """PaddleNLP's state of a checkpoint; raises InputError if it is missing or damaged."""
    with json_of(folder / TRAINER_STATE_FILE) as values:
        return TrainerState(**values)


# ---- which checkpoints there are, and which are complete


def checkpoint_path(folder: str | Path, step: int) -> Path:
    """The folder of the checkpoint of a step."""
    return Path(folder) / f"{_PREFIX}{step}"


def step_of(checkpoint: str | Path) -> int:
    """The step of a checkpoint."""
    return int(Path(checkpoint).name.removeprefix(_PREFIX))


def mark_complete(checkpoint: Path) -> None:
    """Mark a checkpoint as complete. Its files are already on the disk; their names in the folder are flushed first."""
    _sync(checkpoint)
    write_files(checkpoint, {COMPLETE_FILE: checksums(checkpoint, COMPLETE_FILE)})
    for folder in (checkpoint, checkpoint.parent):
        _sync(folder)


def last_checkpoint(folder: str | Path) -> Path | None:
    """The newest complete checkpoint in ``folder``, the trainer's ``output_dir``; None if none was written. Damaged
    ones are reported and skipped; raises InputError if there is no other."""
    damaged = None
    for step, path in _marked(folder):
        try:
            _check(path, step)
        except (InputError, OSError, ValueError, TypeError, RecursionError) as error:
            damaged = damaged or f"{path}: is damaged ({error})"
            continue
        if damaged is not None and is_first_process():
            print(f"{damaged}; {path} is the newest complete one")
        return path
    if damaged is not None:
        raise InputError(f"{damaged}, and there is no complete one before it; train anew, in another folder")
    return None


def remove_older(newest: Path, best: Iterable[str | None], before: int) -> None:
    """Remove all checkpoints except the complete one ``newest``, those in ``best``, and the last ``before`` complete
    ones that precede it. Later steps belong to a run that was cut off, and are of no use to this one."""
    newest_step = step_of(newest)
    kept = {newest.name, *(Path(one).name for one in best if one is not None)}
    earlier = (path.name for step, path in _marked(newest.parent) if step < newest_step and path.name not in kept)
    kept.update([*earlier][:before])
    for path in newest.parent.glob(f"{_PREFIX}*"):
        if path.name not in kept and path.name.removeprefix(_PREFIX).isdecimal():
            shutil.rmtree(path, ignore_errors=True)


def _marked(folder):
    """Pairs (step, checkpoint) of the complete ones, the newest first; others were interrupted while being written."""
    paths = [path.parent for path in Path(folder).glob(f"{_PREFIX}*/{COMPLETE_FILE}")]
    steps = [(path.name.removeprefix(_PREFIX), path) for path in paths]
    return sorted([(int(step), path) for step, path in steps if step.isdecimal()], reverse=True)


def _check(checkpoint, step):
    """Raise an error if a checkpoint, or the best one, which it names, has changed since it was written."""
    _check_files(checkpoint)
    state = read_trainer_state(checkpoint)
    if state.global_step != step:
        raise ValueError(f"{TRAINER_STATE_FILE} is of step {state.global_step}")
    if state.best_model_checkpoint is not None:
        _check_files(checkpoint.with_name(Path(state.best_model_checkpoint).name))


def _check_files(checkpoint):
    if changed := changed_files(checkpoint, COMPLETE_FILE):
        raise ValueError(f"{checkpoint / changed[0]} is not as it was written")


def _sync(path):
    """Flush a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
