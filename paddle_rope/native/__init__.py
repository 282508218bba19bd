"""Optional operators for the CPU in C++, each with a plain form: faster, with less memory, in float32.

``python -m paddle_rope.native`` builds them once for this machine with the C++ compiler that it finds. Where they are
not built, with ``PADDLE_ROPE_NATIVE=0``, in static graphs, on other devices and in other dtypes the plain forms
compute. :func:`~paddle_rope.native.products.bfloat16_products` has linear layers multiply in bfloat16.

``paddle.grad`` with respect to some of the tensors only, where the forward pass saw others with gradients, is not for
these operators (a limit of Paddle's ``PyLayer``): compute such a forward pass within
:func:`~paddle_rope.native.dispatch.plain_forms`. ``backward()`` has no such limit.

A second ``backward()`` through one forward pass raises an error (:class:`~paddle_rope.native.operator.with_gradients`).
``paddle.grad`` after ``backward()`` through one forward pass crashes in Paddle.
"""
