"""Which device to compute on."""

import os

from tasks.common.errors import InputError


def choose_device(name=None):
    """Set paddle's device and return its name.

    Args:
        name: as for ``paddle.set_device`` (``"cpu"``, ``"gpu"``, ``"gpu:1"`` ...); None takes a GPU where there is one.

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


def is_first_process():
    """Whether this process is the only one, or the one among several that prints and writes."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")) == 0  # what paddle.distributed.get_rank reads
