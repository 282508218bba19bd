"""What all operators share as functions with gradients."""

import weakref
from functools import partial
from typing import Any

from paddle import Tensor
from paddle.autograd import PyLayer


class _Graph:
    """Lives as long as the graph behind an output can go backward."""


class Operator(PyLayer):
    """A ``PyLayer`` of ``compute(ctx, *arguments)`` and ``differentiate(ctx, *gradients)``.

    Raises:
        RuntimeError: in backward, if the graph has gone backward before (``PyLayer`` keeps nothing with
            ``retain_graph``, and a second backward crashes), or if a tensor that is needed was changed in place since
            the forward pass. Paddle turns this error into an OSError with the same message.
    """

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """The output, or the outputs as a tuple."""
        graph = _Graph()
        outputs = super().apply(graph, *arguments)
        first = outputs[0] if isinstance(outputs, tuple) else outputs
        if not first.stop_gradient:
            first._register_grad_hook(partial(_refuse_second_backward, cls.__name__, weakref.ref(graph)))
        return outputs

    @classmethod
    def forward(cls, ctx: Any, graph: _Graph, *arguments: Any) -> Any:
        """For ``PyLayer``."""
        ctx.graph, ctx.versions, ctx.watched = graph, [], []
        return cls.compute(ctx, *arguments)

    @classmethod
    def backward(cls, ctx: Any, *gradients: Tensor) -> Any:
        """For ``PyLayer``."""
        tensors = *(ctx.saved_tensor() or ()), *ctx.watched
        if [tensor.inplace_version for tensor in tensors] != ctx.versions:
            raise RuntimeError(
                f"{cls.__name__}: a tensor needed for the gradient was changed in place after the forward pass; "
                "change a copy of it instead"
            )
        return cls.differentiate(ctx, *gradients)


def keep(ctx: Any, *tensors: Tensor, watched: tuple = ()) -> None:
    """Save ``tensors`` for ``differentiate``, which also reads all of ``watched`` but None."""
    ctx.save_for_backward(*tensors)
    ctx.watched = [tensor for tensor in watched if tensor is not None]
    ctx.versions = [tensor.inplace_version for tensor in (*tensors, *ctx.watched)]


def _refuse_second_backward(name, graph, _):
    if graph() is None:
        raise RuntimeError(
            f"{name}: a native operator goes backward only once; add the losses and call backward() on the sum, or "
            "compute the forward pass within paddle_rope.native.library.plain_forms()"
        )
