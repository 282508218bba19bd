"""Optional operators for the CPU in C++, each beside its plain form: faster, with less memory, in float32.

``python -m paddle_rope.native`` builds them once for this machine, with the C++ compiler that it finds; ``tools/setup.sh``
calls it. Until then, with ``PADDLE_ROPE_NATIVE=0``, in static graphs, on other devices and in other dtypes the plain
forms compute, and nothing else is different.
"""
