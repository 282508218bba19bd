"""What all operators share as functions with gradients."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import paddle
from paddle import Tensor
from paddle.autograd import PyLayer

from paddle_rope.native.library import dense


def with_gradients(compute: Callable[..., tuple], *inputs: Tensor | None) -> Tensor:
    """The output of a native operator, with gradients.

    Args:
        compute: ``compute(needs, *inputs)``, with contiguous inputs and whether each needs a gradient, returns the
            output, a new tensor; ``differentiate(gradient of the output)``, which returns the gradient of each input,
            anything where it needs none; and the tensors and others that ``differentiate`` reads, an output among them
            detached: it would hold the graph that holds it.
        inputs: tensors or None.

    Raises:
        RuntimeError: in backward, if the graph has gone backward before (a second backward of a ``PyLayer`` crashes),
            or if a tensor that is needed was changed in place since. Paddle makes an OSError of it.
    """
    needs = [x is not None and paddle.is_grad_enabled() and not x.stop_gradient for x in inputs]
    if not any(needs):
        return compute(needs, *map(dense, inputs))[0]
    graph = _Graph()
    output = _Operator.apply(graph, compute, needs, *inputs)
    output.register_hook(partial(_refuse_second_backward, weakref.ref(graph)))
    return output


class _Graph:
    """Lives as long as the graph behind an output can go backward."""


class _Operator(PyLayer):
    @staticmethod
    def forward(ctx: Any, graph: _Graph, compute: Callable, needs: Sequence[bool], *inputs: Tensor | None) -> Tensor:
        output, ctx.differentiate, saved = compute(needs, *map(dense, inputs))
        ctx.graph, ctx.needs, ctx.is_tensor = graph, needs, [x is not None for x in inputs]
        ctx.saved = [x for x in saved if isinstance(x, Tensor)]
        ctx.versions = [tensor.inplace_version for tensor in ctx.saved]
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        if [tensor.inplace_version for tensor in ctx.saved] != ctx.versions:
            raise RuntimeError(
                "a tensor needed for the gradient of a native operator was changed in place after the forward pass; "
                "change a copy of it instead"
            )
        of_inputs = zip(ctx.differentiate(dense(gradient)), ctx.needs, ctx.is_tensor)
        return tuple(found if need else None for found, need, is_tensor in of_inputs if is_tensor)


def _refuse_second_backward(graph, _):
    if graph() is None:
        raise RuntimeError(
            "a native operator goes backward only once; add the losses and call backward() on the sum, or compute the "
            "forward pass within paddle_rope.native.dispatch.plain_forms()"
        )
