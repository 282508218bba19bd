"""Settings of the working process: preparation before Paddle is imported, device, rank."""

from __future__ import annotations

import os

from paddle_rope.machine import import_paddle, prepare_process
from tasks.common.errors import InputError


def prepare() -> None:
    """Prepare this process for work and import paddle; call it before anything else imports paddle."""
    prepare_process()
    import_paddle()


def quiet_paddlenlp() -> None:
    """Keep PaddleNLP's warnings and errors, without colors; drop its notes on every file that it reads or writes."""
    from paddlenlp.utils.log import logger

    logger.set_level("WARNING")
    logger.format.no_color = True  # escapes are shown as such


def choose_device(name: str | None = None) -> str:
    """Set paddle's device and return its name.

    Args:
        name: as for ``paddle.set_device`` (``"cpu"``, ``"gpu"``, ``"gpu:1"`` ...); None takes a GPU if there is one.

    Raises:
        InputError: paddle cannot use the device here.
    """
    import paddle

    if name is None:
        name = "gpu" if paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0 else "cpu"
    if name.startswith("gpu") and not paddle.is_compiled_with_cuda():
        raise InputError(f"--device {name}: this paddle is built for CPU; use --device cpu or install paddlepaddle-gpu")
    try:
        paddle.set_device(name)
    except (ValueError, RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(f"--device {name}: not usable here ({reason}); use --device cpu") from None
    return name


def is_first_process() -> bool:
    """Whether this process is the only one, or the one among several that prints and writes."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")) == 0  # the variable that paddle.distributed.get_rank reads
