"""Where lower precision must not reach."""

import contextlib

import numpy as np
import paddle
from paddle import Tensor, nn

# paddle 2.6.2 refuses the guard while it traces a static graph, where it casts nothing by itself.
_GUARDS_GRAPHS = not paddle.__version__.startswith("2.")


def without_amp() -> contextlib.AbstractContextManager:
    """A context in which AMP casts nothing."""
    if _GUARDS_GRAPHS or paddle.in_dynamic_mode():
        return paddle.amp.auto_cast(enable=False)
    return contextlib.nullcontext()


def at_least_float32(*tensors: Tensor) -> list[Tensor]:
    """float16 and bfloat16 become float32."""
    return [x.astype("float32") if x.dtype in (paddle.float16, paddle.bfloat16) else x for x in tensors]


def float64_tensor(array: np.ndarray) -> Tensor:
    """A constant float64 array as a tensor, in static graphs of paddle 2.6.2 too, which round constants to float32: the
    sum of two of them holds 48 bits.
    """
    if paddle.in_dynamic_mode():
        return paddle.to_tensor(array)
    near = array.astype(np.float32)
    rest = (array - near).astype(np.float32)
    return paddle.to_tensor(near).astype("float64") + paddle.to_tensor(rest).astype("float64")


class Float32Layer(nn.Layer):
    """A layer whose tensors stay float32 where ``model.to(dtype=...)`` or ``paddle.amp.decorate`` halves the others.

    (``model.astype`` casts the tensors of a whole model by itself and asks no layer.)
    """

    def __init__(self) -> None:
        super().__init__()
        # What paddle.amp.decorate asks before it casts a layer: 3.x reads the first name, 2.6 the second.
        self._cast_to_low_precision = self._cast_to_low_precison = False

    def _apply(self, func, device, dtype, blocking, include_sublayers=True):
        is_half = str(dtype).rpartition(".")[2] in ("float16", "bfloat16")  # a name or a dtype, "paddle.float16"
        super()._apply(func, device, None if is_half else dtype, blocking, include_sublayers)
