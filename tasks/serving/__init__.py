"""Trained models as an HTTP service: FastAPI and uvicorn, batches across requests, bounds on everything.

A request goes through :mod:`tasks.serving.limits` (its body is read, or refused), :mod:`tasks.serving.application`
(checked, put into the queue, answered) and :mod:`tasks.serving.batching` (computed together with others in one thread).
:mod:`tasks.serving.server` runs that in a process, :mod:`tasks.serving.workers` several such processes.
"""
