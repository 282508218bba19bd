"""A model behind HTTP on Ray Serve, on one machine or a cluster.

    serve run tasks.scaling.ray_serve:build model=runs/mine/model replicas=2

``POST /predict`` takes ``{"texts": [...]}``, of a model of text matching ``{"pairs": [[..., ...], ...]}``, and answers
``{"results": [...]}`` in the same order, as ``paddle-rope predict`` writes them. ``GET /health`` answers when a replica
does. What is wrong with a request is said as ``{"error": ...}`` with status 400, 404, 405 or 413; when as many requests
wait as may, the answer is 503.

Texts of all requests are computed together, by one thread: a replica holds one predictor.
"""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from tasks.common.errors import InputError
from tasks.scaling.answers import Answers, keys_of, texts_of
from tasks.scaling.worker import Job, open_job_predictor

MAX_ONGOING = 64  # requests that a replica has begun
PAIR = ("sentence1", "sentence2")


class Arguments(BaseModel):
    """The arguments of :func:`build`, ``NAME=VALUE`` on the command line."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str  # folder
    task: str = Field("ner", pattern="^(ner|classification|matching)$")
    replicas: int = Field(1, ge=1)  # processes, each with its own predictor
    threads: int = Field(1, ge=1)  # of a replica
    batch_size: int = Field(32, ge=1)  # texts computed together
    wait_milliseconds: float = Field(5, ge=0)  # that the first text of a batch waits for others
    max_queued: int = Field(128, ge=1)  # requests that may wait; others get 503
    max_texts: int = Field(256, ge=1)  # of a request
    max_characters: int = Field(20_000, ge=1)  # of a text
    max_megabytes: float = Field(4, gt=0)  # of a request's body


def build(arguments: Arguments) -> serve.Application:
    """The application. Raises InputError if there is no such folder."""
    if not os.path.isdir(arguments.model):
        raise InputError(f"{arguments.model}: no such folder; give the folder of a model")
    arguments = arguments.model_copy(update={"model": os.path.abspath(arguments.model)})
    service = serve.deployment(Service).options(
        name=arguments.task,
        num_replicas=arguments.replicas,
        max_ongoing_requests=MAX_ONGOING,
        max_queued_requests=arguments.max_queued,
        ray_actor_options={
            "num_cpus": arguments.threads,
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": str(arguments.threads)}},
        },
    )
    return service.bind(arguments.model_dump())


class _Refused(Exception):
    """A request that gets no answer: HTTP status, reason."""


class Service:
    """A replica: answers requests by one predictor."""

    def __init__(self, arguments: dict[str, Any]):
        self._arguments = arguments = Arguments(**arguments)
        job = Job(arguments.task, (arguments.model,), "", options={"batch_size": arguments.batch_size})
        self._keys = keys_of(arguments.task, "text")
        self._answers = Answers(arguments.task, open_job_predictor(job), self._keys)
        self._thread = ThreadPoolExecutor(1)
        self._compute.set_max_batch_size(arguments.batch_size)
        self._compute.set_batch_wait_timeout_s(arguments.wait_milliseconds / 1000)

    async def __call__(self, request: Request) -> JSONResponse:
        try:
            if request.url.path == "/health" and request.method == "GET":
                return JSONResponse({"status": "ok"})
            if request.url.path != "/predict":
                raise _Refused(404, f"nothing at {request.url.path}; POST to /predict")
            if request.method != "POST":
                raise _Refused(405, f"{request.method} is not for /predict; POST to it")
            items = self._items(await self._body(request))
            return JSONResponse({"results": await asyncio.gather(*map(self._compute, items))})
        except _Refused as refused:
            status, reason = refused.args
            return JSONResponse({"error": reason}, status)

    async def _body(self, request):
        most, body = int(self._arguments.max_megabytes * 2**20), b""
        async for block in request.stream():
            body += block
            if len(body) > most:
                raise _Refused(
                    413, f"the body has more than {self._arguments.max_megabytes:g} MB; send several requests"
                )
        return body

    def _items(self, body):
        """The texts, or pairs, of a request, each a tuple of strings."""
        key, what = ("pairs", PAIR) if self._arguments.task == "matching" else ("texts", ("text",))
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _Refused(400, f"malformed JSON ({error}); send an object with {key}") from None
        values = given.get(key) if isinstance(given, dict) else None
        if not isinstance(values, list):
            raise _Refused(400, f'there is no list of {key}; send {{"{key}": [...]}}')
        if len(values) > self._arguments.max_texts:
            raise _Refused(413, f"{len(values)} {key}; send {self._arguments.max_texts} or less at once")
        return [self._texts(value, what, f"{key}[{place}]") for place, value in enumerate(values)]

    def _texts(self, value, names, where):
        values = value if len(names) > 1 else [value]
        if not isinstance(values, list) or len(values) != len(names):
            raise _Refused(400, f"{where}: is no pair of texts; send two strings")
        if not all(isinstance(text, str) for text in values):
            raise _Refused(400, f"{where}: is no string; send strings")
        try:
            texts = texts_of(dict(zip(names, values)), where, self._keys)
        except InputError as error:
            raise _Refused(400, str(error)) from None
        longest = max(map(len, texts))
        if longest > self._arguments.max_characters:
            raise _Refused(413, f"{where}: {longest} characters; send {self._arguments.max_characters} or less")
        return texts

    @serve.batch
    async def _compute(self, items):
        found = asyncio.get_running_loop().run_in_executor(self._thread, self._find, items)
        return await found

    def _find(self, items):
        return list(self._answers([({}, texts) for texts in items]))
