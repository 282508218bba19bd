"""The precision in which a model predicts."""

import sys
from typing import Any

from tasks.common.errors import InputError
from tasks.common.export.model import ExportedModel

FLOAT32_NOTE = "note: float32 is faster than bfloat16 on this processor, so --bf16 computes in float32"


def predict_in_bfloat16(model: Any) -> None:
    """From now on :func:`~tasks.common.inference.evaluated` has the model multiply in bfloat16, see
    :func:`~paddle_rope.native.products.bfloat16_products`. Where float32 is faster it stays in float32, with a note.

    Raises:
        InputError: the model is exported, not on a CPU, or on one that has no such products.
    """
    if isinstance(model, ExportedModel):
        raise InputError("--bf16: an exported model computes as it was exported; give the model it was exported from")
    import paddle

    from paddle_rope.native.products import bfloat16_is_faster, bfloat16_products, why_no_bfloat16

    if paddle.get_device() != "cpu":
        raise InputError("--bf16 is for models on a CPU; leave it out")
    why = why_no_bfloat16()
    if why is not None:
        raise InputError(f"--bf16 cannot be on this CPU: {why}; leave it out")
    if bfloat16_is_faster():
        model.precision = bfloat16_products
    else:
        print(FLOAT32_NOTE, file=sys.stderr)
