"""The choice between the plain form of a function and its native form, where that accepts the arguments; native
operators as functions with gradients.

Native operators read memory by its address, so every shape, dtype and range on which an address depends is checked
before a call: the device and dtypes here for all operators, the shapes by :func:`sizes_of` in each of them.
"""

import contextlib
import functools
import inspect
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import paddle
from paddle import Tensor
from paddle.autograd import PyLayer
from paddle.base import core

from paddle_rope.backend import is_amp_on, without_amp
from paddle_rope.native.library import contiguous, library

Function = TypeVar("Function", bound=Callable[..., Any])

# paddle.grad drops the arguments of a PyLayer that lead to none of its inputs, and then refuses their gradients, but a
# list is one argument. Paddle 2.6 returns a gradient for the last tensor of a list only.
_LISTS_ARE_WHOLE = not paddle.__version__.startswith("2.")
# Whether tensors may be on another device than the CPU: to read the place of each takes as long as all other checks.
_HAS_DEVICES = (
    paddle.is_compiled_with_cuda() or paddle.is_compiled_with_xpu() or bool(paddle.device.get_all_custom_device_type())
)
FLOAT32 = (paddle.float32,)  # "in" compares by identity first, which takes a fifth of the time of "=="
_TAKEN = (paddle.float32, paddle.bool, paddle.int64, paddle.int32)
_REMEDY = "compute the forward pass within paddle_rope.native.dispatch.plain_forms()"
_is_plain = ContextVar("is_plain", default=False)  # within plain_forms()


def native_form(
    native: Callable[..., Any], check: Callable[..., Any] | None = None, **only: Any
) -> Callable[[Function], Function]:
    """A decorator that gives a plain function a native form with the same arguments.

    The native form is used if :func:`is_enabled` holds for all arguments and it does not return None. The plain
    function, the definition, is used everywhere else and raises the errors. ``only`` maps an argument to the one value
    that the native form supports (None, a name or a function) and does not get. ``check`` is called with the arguments
    before both.
    """
    native = untraced(native)

    def decorate(plain: Function) -> Function:
        parameters = inspect.signature(plain).parameters
        defaults = {name: one.default for name, one in parameters.items() if one.default is not one.empty}

        @functools.wraps(plain)
        def dispatch(*arguments, **named):
            if check is not None:
                check(*arguments, **named)
            if is_enabled(*arguments, *named.values()):
                given = {**defaults, **dict(zip(parameters, arguments)), **named}
                if all(_is(given.pop(name), value) for name, value in only.items()):
                    result = native(**given)
                    if result is not None:
                        return result
            return plain(*arguments, **named)

        return paddle.jit.not_to_static(dispatch)

    return decorate


def untraced(function: Function) -> Function:
    """A decorator that switches off the reader of frames of ``to_static``'s defaults, which cannot read closures."""

    @functools.wraps(function)
    def call(*arguments, **named):
        reader = core.set_eval_frame(None)
        try:
            return function(*arguments, **named)
        finally:
            core.set_eval_frame(reader)

    return paddle.jit.not_to_static(call)


def is_enabled(*arguments: Any) -> bool:
    """Whether native operators accept the tensors among the arguments: float32, integers or bool, not empty, on CPU, as
    new tensors are, neither in a static graph nor under AMP."""
    if _is_plain.get() or library() is None or not paddle.in_dynamic_mode() or is_amp_on():
        return False
    tensors = [one for one in arguments if isinstance(one, Tensor)]
    return are_on_cpu(*tensors) and all(one.dtype in _TAKEN and 0 not in one.shape for one in tensors)


def are_on_cpu(*tensors: Tensor) -> bool:
    """Whether tensors are on the CPU, and new ones as well."""
    return not _HAS_DEVICES or (paddle.get_device() == "cpu" and all(one.place.is_cpu_place() for one in tensors))


@contextlib.contextmanager
def switched_on(switch: ContextVar[bool]) -> Iterator[None]:
    """A context in which a switch is True, in this thread only."""
    before = switch.set(True)
    try:
        yield
    finally:
        switch.reset(before)


def plain_forms() -> contextlib.AbstractContextManager:
    """A context in which the plain forms are used, for comparison. It does not apply to other threads."""
    return switched_on(_is_plain)


def sizes_of(*expected: tuple) -> dict[str, int] | None:
    """The size of each named axis; None if a tensor has other axes or dtypes, or contradicts another.

    ``expected`` are (tensor or None, names of its axes, allowed dtypes); without dtypes, any is allowed.
    """
    sizes: dict[str, int] = {}
    for tensor, axes, *dtypes in expected:
        if tensor is None:
            continue
        names = axes.split()
        if tensor.ndim != len(names) or (dtypes and tensor.dtype not in dtypes):
            return None
        for name, size in zip(names, tensor.shape):
            if sizes.setdefault(name, size) != size:
                return None
    return sizes


def _is(value, wanted):
    return value is wanted or (isinstance(value, str) and value == wanted)


def with_gradients(compute: Callable[..., tuple], *inputs: Tensor | None) -> Tensor | None:
    """The output of a native operator, with gradients; None if an input is not float32.

    ``compute(needs, *inputs)`` gets contiguous inputs and whether each needs a gradient. It returns the output, a new
    tensor; ``differentiate(gradient of the output)``, which returns a gradient for each input (anything if none is
    needed); and the values that ``differentiate`` reads, with an output among them detached, since it would otherwise
    hold the graph that holds it. Backward raises RuntimeError, which Paddle turns into OSError, if it runs a second
    time (which crashes in a ``PyLayer``), with ``create_graph``, or if a tensor that it needs was changed in place.
    """
    if any(x is not None and x.dtype not in FLOAT32 for x in inputs):
        return None  # the plain form computes or refuses it
    has_gradients = paddle.is_grad_enabled()
    needs = [has_gradients and x is not None and not x.stop_gradient for x in inputs]
    if not any(needs):
        return compute(needs, *map(contiguous, inputs))[0]
    graph = _Graph()
    computed = functools.partial(compute, needs, *map(contiguous, inputs))
    given = list(itertools.compress(inputs, needs))
    output = _Operator.apply(graph, computed, needs, *([given] if _LISTS_ARE_WHOLE else given))
    output.register_hook(functools.partial(_refuse_second_backward, weakref.ref(graph)))
    return output


class _Graph:
    """Lives as long as the graph of an output allows a backward pass."""


class _Operator(PyLayer):
    @staticmethod
    def forward(ctx: Any, graph: _Graph, computed: Callable, needs: Sequence[bool], *inputs: Any) -> Tensor:
        output, ctx.differentiate, saved = computed()
        ctx.graph, ctx.needs = graph, needs
        ctx.saved = [x for x in saved if isinstance(x, Tensor)]
        ctx.versions = [tensor.inplace_version for tensor in ctx.saved]
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Sequence[Tensor]:
        if paddle.is_grad_enabled():  # create_graph=True
            raise RuntimeError(f"a native operator has no gradient of its gradient; {_REMEDY}")
        if [tensor.inplace_version for tensor in ctx.saved] != ctx.versions:
            raise RuntimeError(
                "a tensor that a gradient needs was changed in place after the forward pass; change a copy"
            )
        with without_amp():
            of_inputs = list(itertools.compress(ctx.differentiate(contiguous(gradient)), ctx.needs))
        return of_inputs if _LISTS_ARE_WHOLE else tuple(of_inputs)


def _refuse_second_backward(graph, _):
    if graph() is None:
        raise RuntimeError(
            f"a native operator goes backward only once; add the losses and call backward() on the sum, or {_REMEDY}"
        )
