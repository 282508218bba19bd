"""Trained models as an HTTP service: one ASGI application, with batches across requests and bounds on everything.

A request goes through :mod:`paddle_rope.tasks.serving.limits` (its body is read, or refused),
:mod:`paddle_rope.tasks.serving.application` (checked, put into the queue, answered) and
:mod:`paddle_rope.tasks.serving.batching` (computed together with others in one thread).
:mod:`paddle_rope.tasks.serving.server` runs the application in uvicorn's workers,
:mod:`paddle_rope.tasks.serving.ray_serve` in Ray's replicas.
"""
