"""Compute the parts of a run on Ray: on this machine, or on a cluster whose machines see the same files.

Each actor has its own predictor and does one part at a time. An actor that dies, or whose machine is lost, is replaced,
and its part is computed again.
"""

import functools
import logging
import os
import socket
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import paddle_rope
from paddle_rope.tasks.common.errors import InputError, reason_of
from paddle_rope.tasks.scaling.formats import Part
from paddle_rope.tasks.scaling.worker import MOST_DEATHS, Done, Job, PartWorker

LOCAL = "local"
OBJECT_STORE_BYTES = 200 << 20  # of a cluster started here; only positions of parts and counts pass through it
ROOT = str(Path(paddle_rope.__file__).resolve().parents[1])


def run_on_ray(job: Job, parts: list[Part], count: int, address: str = LOCAL) -> Iterator[Done | None]:
    """Compute all parts with ``count`` actors; actors that the cluster cannot place (yet) get no parts. ``address`` is
    a cluster's, as for ``ray.init``; ``"local"`` starts a cluster on this machine for this call. Yields and raises as
    :func:`paddle_rope.tasks.scaling.processes.run_in_processes`."""
    ray = _start(address, count * job.threads)
    decided = {name: os.environ[name] for name in ("PADDLE_ROPE_BFLOAT16",) if name in os.environ}  # same everywhere
    actor = ray.remote(
        num_cpus=job.threads,
        num_gpus=int((job.options.get("device") or "").startswith("gpu")),
        runtime_env={"env_vars": {"OMP_NUM_THREADS": str(job.threads), **decided}},
        max_restarts=-1,
        max_task_retries=MOST_DEATHS - 1,
    )(_Actor)
    try:
        waiting, left, is_open = deque(parts), len(parts), False
        workers = [actor.remote(job) for _ in range(min(count, len(parts)))]
        calls = {worker.open.remote(): (worker, None) for worker in workers}
        while left:
            (call,), _ = ray.wait(list(calls))
            worker, part = calls.pop(call)
            done = _result(ray, call, part)
            if part is not None:
                left -= 1
                yield done
            elif not is_open:
                is_open = True
                yield None
            if waiting:
                part = waiting.popleft()
                calls[worker.do.remote(part)] = (worker, part)
    finally:
        ray.shutdown()


class _Actor:
    """A Ray process with a :class:`PartWorker`, which is opened at first use, also after a restart."""

    def __init__(self, job):
        self._job = job

    @functools.cached_property
    def worker(self):
        return PartWorker(self._job)

    def open(self):
        assert self.worker

    def do(self, part) -> Done:
        return self.worker(part)


def _start(address, processors):
    """The module ``ray``, connected to a cluster, or to a new local one with ``processors`` CPUs."""
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: {error}; pip install 'paddle_rope[ray]'") from None
    cluster = {"address": address}
    if address == LOCAL:
        path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
        cluster |= {"num_cpus": processors, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        cluster |= {"runtime_env": {"env_vars": {"PYTHONPATH": path}}}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # where nothing listens, Ray would wait five minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(**cluster, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # of any kind: Ray raises a plain Exception if a node does not start in time
        remedy = "start one, or leave the address out for one on this machine"
        raise InputError(f"--ray {address}: no cluster there ({reason_of(error)}); {remedy}") from None
    return ray


def _result(ray, call, part):
    """The result of an actor call; raises InputError if actors have died or the call raised one."""
    try:
        return ray.get(call)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise InputError(str(error.cause)) from None
        raise
    except ray.exceptions.RayActorError as error:
        where = f"over {part.path}, records {part.first} to {part.last}" if part else "before their first part"
        remedy = "give them more memory, then run the same command again to go on"
        raise InputError(f"{MOST_DEATHS} actors have died {where} ({reason_of(error)}); {remedy}") from None
