"""Which checkpoints are whole: they are on the disk before they are marked, and the mark has their checksums."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import file_sha256, write_json
from tasks.common.process import is_first_process
from tasks.common.training.checkpoints import TRAINER_STATE_FILE, read_trainer_state

COMPLETE_FILE = "complete"  # made last, JSON: dict from the names of the other files to their SHA-256
_PREFIX = "checkpoint-"


def checkpoint_path(folder: str | Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return Path(folder) / f"{_PREFIX}{step}"


def mark_complete(checkpoint: Path) -> None:
    """Wait until the files of a checkpoint are on the disk, then mark it."""
    digests = {}
    for path in sorted(checkpoint.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name != COMPLETE_FILE:
            _sync(path)
            digests[path.name] = file_sha256(path)
    _sync(checkpoint)
    write_json(checkpoint / COMPLETE_FILE, digests)
    for path in (checkpoint, checkpoint.parent):
        _sync(path)


def has_checkpoint(folder: str | Path, within: bool = True) -> bool:
    """Whether a checkpoint in ``folder``, or, with ``within``, in a folder of it, is marked. Looks at no content."""
    return any(Path(folder).glob(f"{'**/' if within else ''}{_PREFIX}*/{COMPLETE_FILE}"))


def last_checkpoint(folder: str | Path) -> Path:
    """The newest whole checkpoint in ``folder``, the trainer's ``output_dir``. Damaged ones are named and passed over.

    Raises:
        InputError: there is none.
    """
    damaged = None
    for step, path in sorted(_checkpoints(folder).items(), reverse=True):
        if not (path / COMPLETE_FILE).is_file():  # cut while it was written
            continue
        reason = _damage(path, step)
        if reason is None:
            if damaged is not None and is_first_process():
                print(f"{damaged}; {path} is the newest whole one")
            return path
        damaged = damaged or f"{path}: is damaged ({reason})"
    if damaged is not None:
        raise InputError(f"{damaged}, and there is no whole checkpoint before it; train anew, in another folder")
    raise InputError(f"{folder}: no checkpoint was written before the run ended; train anew, in another folder")


def remove_older(newest: Path, best: str | None, before: int) -> None:
    """Remove all checkpoints beside a complete one but the best and the newest ``before`` of the complete ones before
    it. Those of later steps are of a run that was cut, and of no use to this one."""
    newest_step = int(newest.name.removeprefix(_PREFIX))
    others = sorted(_checkpoints(newest.parent).items(), reverse=True)
    for step, path in others:
        if step == newest_step or (best is not None and path.name == Path(best).name):
            continue
        if before and step < newest_step and (path / COMPLETE_FILE).is_file():
            before -= 1
            continue
        shutil.rmtree(path, ignore_errors=True)


def _checkpoints(folder):
    """dict from steps to folders."""
    steps = ((path.name.removeprefix(_PREFIX), path) for path in Path(folder).glob(f"{_PREFIX}*"))
    return {int(step): path for step, path in steps if step.isdecimal()}


def _damage(checkpoint, step):
    """What is wrong with a checkpoint, or with the best one, which it names; None if both are whole."""
    reason = _differing_file(checkpoint)
    if reason is not None:
        return reason
    try:
        state = read_trainer_state(checkpoint)
    except InputError as error:
        return str(error)
    if state.global_step != step:
        return f"{TRAINER_STATE_FILE} is of step {state.global_step}"
    best = state.best_model_checkpoint
    if best is None or Path(best).name == checkpoint.name:
        return None
    reason = _differing_file(checkpoint.parent / Path(best).name)
    return None if reason is None else f"{Path(best).name}, the best so far, is damaged: {reason}"


def _differing_file(checkpoint):
    try:
        digests = json.loads((checkpoint / COMPLETE_FILE).read_text(encoding="utf-8"))
        names = {**digests}
    except FileNotFoundError:
        return f"{COMPLETE_FILE} is missing"
    except (OSError, ValueError, TypeError, RecursionError):
        return f"{COMPLETE_FILE} cannot be read"
    if TRAINER_STATE_FILE not in names:
        return f"{COMPLETE_FILE} names no {TRAINER_STATE_FILE}"
    for name, digest in names.items():
        path = checkpoint / Path(name).name
        if not path.is_file():
            return f"{path.name} is missing"
        if file_sha256(path) != digest:
            return f"{path.name} is not as it was written"
    return None


def _sync(path):
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
