"""Where automatic mixed precision must not reach."""

import contextlib

import paddle

# paddle 2.6.2 refuses the guard while it traces a static graph, where it casts nothing by itself.
_GUARDS_GRAPHS = not paddle.__version__.startswith("2.")


def without_amp():
    """A context in which AMP casts nothing."""
    if _GUARDS_GRAPHS or paddle.in_dynamic_mode():
        return paddle.amp.auto_cast(enable=False)
    return contextlib.nullcontext()
