"""What ends a run from outside, told in one line: a signal, a full disk, a folder that is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tasks.common.cli.own_command import own_command, quoted
from tasks.common.errors import InputError, Interrupted, is_out_of_memory
from tasks.common.files import NO_ROOM
from tasks.common.runs.run_folder import CHECKPOINTS_FOLDER, CONFIG_FILE
from tasks.common.training.checkpoints import has_checkpoint

_LIGHTER = "shorter texts, a smaller --per_device_train_batch_size or --recompute true, or end other programs"


@contextlib.contextmanager
def explained(output_dir: Path) -> Iterator[None]:
    """Within this block a run works in its folder.

    Raises:
        Interrupted: a signal has come; the message says how the run goes on.
        InputError: there is no room, with the same message; the memory does not suffice; or the folder was removed.
    """
    try:
        yield
    except Interrupted as error:
        raise Interrupted(error.number, f"{output_dir}: ended by a signal; {_remedy(output_dir)}") from None
    except Exception as error:
        if _is_no_room(error):
            remedy = f"make room, then {_remedy(output_dir)}"
            raise InputError(f"{output_dir}: no room left to write ({error}); {remedy}") from None
        if is_out_of_memory(error):
            raise InputError(f"{output_dir}: out of memory; train anew with {_LIGHTER}") from None
        is_missing = isinstance(error, FileNotFoundError) and output_dir in Path(str(error.filename)).parents
        if is_missing and not output_dir.is_dir():
            raise InputError(f"{output_dir}: was removed while the run worked in it; train anew") from None
        raise


def _remedy(output_dir):
    how = f"{own_command()} train --resume {quoted(output_dir)}"
    if has_checkpoint(output_dir / CHECKPOINTS_FOLDER):
        return f"go on with: {how}"
    if (output_dir / CONFIG_FILE).is_file():
        return f"begin anew with: {how}; no checkpoint had been written"
    return "train anew: no checkpoint had been written"


def _is_no_room(error):
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    is_of_safetensors = type(error).__name__ == "SafetensorError"  # which tells numbers in words
    return is_of_safetensors and any(f"os error {number})" in str(error) for number in NO_ROOM)
