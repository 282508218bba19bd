"""The files of a checkpoint: safetensors and JSON. Reading them runs nothing, whoever wrote them.

PaddleNLP's Trainer would write pickles, and a pickle is a program.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle.framework import core
from paddlenlp.trainer import TrainerState
from safetensors.numpy import save

from paddle_rope.roformer.checkpoints.tensor_files import read_tensors
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, write_json

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
AVERAGE_FILE = "average.safetensors"
NUMBERS_FILE = "optimizer.json"  # what an optimizer, its schedule and the loss scaling know beside tensors
RANDOM_FILE = "random_state_{rank}.json"
PROGRESS_FILE = "progress_{rank}.json"  # what a process has counted since the last log
TRAINER_STATE_FILE = "trainer_state.json"  # PaddleNLP's
_MASTER_WEIGHTS = "master_weights"  # of an optimizer that trains weights of half precision
_NOT_RESUMED = "training cannot go on from this checkpoint; train anew, in another folder"
_JOINT = "/"  # between the name of a group of tensors and the name of one


def write_tensors(path: Path, tensors: Mapping[str, paddle.Tensor]) -> None:
    """Write named tensors; bfloat16 as float32, which is exact."""
    arrays = {name: np.ascontiguousarray(_float32(tensor).numpy()) for name, tensor in tensors.items()}
    with atomic_writer(path, binary=True) as file:
        file.write(save(arrays))


def read_checkpoint_tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file; raises InputError if it is missing or damaged."""
    try:
        return read_tensors(path)
    except ValueError as error:
        raise InputError(str(error)) from None


def write_optimizer(folder: Path, optimizer: Any, schedule: Any, scaler: Any = None) -> None:
    """Write the state of an optimizer, of its learning-rate schedule and of the loss scaling, if there is one."""
    state = dict(optimizer.state_dict())
    state.pop("LR_Scheduler", None)  # the schedule, once more
    master_weights = state.pop(_MASTER_WEIGHTS, {})
    tensors = {**state, **{f"{_MASTER_WEIGHTS}{_JOINT}{name}": value for name, value in master_weights.items()}}
    write_tensors(folder / OPTIMIZER_FILE, tensors)
    numbers = {"schedule": schedule.state_dict(), "scaler": {} if scaler is None else scaler.state_dict()}
    write_json(folder / NUMBERS_FILE, {name: _plain(values) for name, values in numbers.items()})


def read_optimizer(folder: Path, optimizer: Any, schedule: Any, scaler: Any = None) -> None:
    """Give an optimizer, a schedule and a loss scaling the state that :func:`write_optimizer` wrote."""
    state: dict[str, Any] = {}
    for name, array in read_checkpoint_tensors(folder / OPTIMIZER_FILE).items():
        group, joint, of_group = name.partition(_JOINT)
        owner = state.setdefault(group, {}) if joint and group == _MASTER_WEIGHTS else state
        owner[of_group if owner is not state else name] = paddle.to_tensor(array)

    def set_numbers(numbers):
        optimizer.set_state_dict({**state, "LR_Scheduler": numbers["schedule"]})
        schedule.set_state_dict(numbers["schedule"])
        if scaler is not None and numbers["scaler"]:
            scale = np.array(numbers["scaler"]["scale"], dtype="float32")
            scaler.load_state_dict({**numbers["scaler"], "scale": scale})

    _read_json(folder / NUMBERS_FILE, set_numbers)


def write_random_state(folder: Path, rank: int) -> None:
    """Write the state of Python's, numpy's and Paddle's random numbers in the process ``rank``."""
    python, numbers, normal = random.getstate()
    name, keys, position, has_normal, second = np.random.get_state()
    state = {
        "python": [python, list(numbers), normal],
        "numpy": [name, keys.tolist(), position, has_normal, second],
        "paddle": [list(generator.__getstate__()) for generator in _generator_states()],
    }
    write_json(folder / RANDOM_FILE.format(rank=rank), state)


def read_random_state(folder: Path, rank: int) -> None:
    """Set the random numbers of this process to what :func:`write_random_state` wrote."""

    def set_state(state):
        python, numbers, normal = state["python"]
        random.setstate((python, tuple(numbers), normal))
        name, keys, *rest = state["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        generators = [_generator_state(values) for values in state["paddle"]]
        core.default_cpu_generator().set_state(generators[0])
        if len(generators) > 1:
            paddle.set_rng_state(generators[1:])

    _read_json(folder / RANDOM_FILE.format(rank=rank), set_state)


def write_progress(folder: Path, rank: int, progress: Mapping[str, Any]) -> None:
    """Write what the process ``rank`` has counted since the last log."""
    write_json(folder / PROGRESS_FILE.format(rank=rank), progress)


def read_progress(folder: Path, rank: int, use: Callable[[Any], None]) -> None:
    """Call ``use`` with what :func:`write_progress` wrote."""
    _read_json(folder / PROGRESS_FILE.format(rank=rank), use)


def read_trainer_state(folder: Path) -> TrainerState:
    """PaddleNLP's state of a checkpoint; raises InputError if it is missing or damaged."""
    found = []

    def read(values):
        state = TrainerState(**values)
        for name, kind in _STATE_KINDS.items():
            value = getattr(state, name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{name} is {value!r}")
        for entry in state.log_history:
            if not all(isinstance(value, (int, float)) for value in {"step": None, **entry}.values()):
                raise TypeError(f"an entry of log_history is {entry!r}")
        found.append(state)

    _read_json(folder / TRAINER_STATE_FILE, read)
    return found[0]


_STATE_KINDS = {
    "epoch": (int, float, type(None)),
    "global_step": int,
    "max_steps": int,
    "log_history": list,
    "best_metric": (int, float, type(None)),
    "best_model_checkpoint": (str, type(None)),
}


def _generator_states():
    """Those of the processor and, behind it, of the device, if it is another."""
    of_device = [] if paddle.device.get_device() == "cpu" else paddle.get_rng_state()
    return [core.default_cpu_generator().get_state(), *of_device]


def _generator_state(values):
    state = core.GeneratorState.__new__(core.GeneratorState)
    state.__setstate__(tuple(values))
    return state


def _float32(tensor):
    return tensor.astype("float32") if tensor.dtype in (paddle.bfloat16, paddle.float16) else tensor


def _plain(values):
    """Numbers of a state as JSON knows them."""
    return {name: np.asarray(value).tolist() for name, value in values.items()}


def _read_json(path: Path, use: Callable[[Any], None]) -> None:
    """Call ``use`` with what a JSON file of a checkpoint holds; whatever is wrong with it becomes an InputError."""
    try:
        use(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(f"{path}: is missing; {_NOT_RESUMED}") from None
    except (
        OSError, ValueError, TypeError, LookupError, RuntimeError, AttributeError, OverflowError,
        AssertionError,  # of paddle, for states that are not those of this optimizer
    ) as error:  # fmt: skip
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"{path}: is damaged ({reason}); the checkpoint cannot be resumed from, so train anew"
        ) from None
