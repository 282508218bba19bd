"""Optional operators for the CPU in C++, each with a plain form: faster, with less memory, in float32.

``python -m paddle_rope.native`` builds them once for this machine with the C++ compiler that it finds. Where they are
not built, with ``PADDLE_ROPE_NATIVE=0``, in static graphs, on other devices and in other dtypes the plain forms
compute. Limits of Paddle's ``PyLayer``: ``paddle.grad`` takes all tensors with gradients that the forward pass saw, and
a forward pass goes backward once; otherwise compute it within :func:`~paddle_rope.native.dispatch.plain_forms`.
"""
