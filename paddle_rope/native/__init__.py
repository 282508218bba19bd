"""Optional float32 operators for the CPU in C++, each with a plain form; they are faster and use less memory.

``python -m paddle_rope.native`` builds them once for this machine with the C++ compiler that it finds. If they are not
built, with ``PADDLE_ROPE_NATIVE=0``, in static graphs, on other devices and in other dtypes, the plain forms are used.
Paddle's ``PyLayer`` has limits: ``paddle.grad`` works without ``create_graph`` and ``no_grad_vars``, in Paddle 2.6 only
by all tensors with gradients that the forward pass saw, and backward works once; otherwise run the forward pass within
:func:`~paddle_rope.native.dispatch.plain_forms`. Why they are no custom operators of Paddle: docs/architecture.md.
"""
