"""Requests to the service: the bytes of HTTP, given to its application without a network."""

import asyncio
import json
import os
from pathlib import Path

from tests.attack.mutators import OF_BYTES, OF_LINES, mutate
from tests.attack.targets import SilentLossError, Target
from tests.attack.trees import change_json

HEAD, BODY = "head", "body"
OPTIONS = {"max_texts": 8, "max_characters": 500, "max_body_bytes": 20_000, "max_seconds": 5.0, "max_wait_ms": 0}


class RefusedRequest(Exception):
    """What the HTTP server itself does not let through."""


def _samples():
    heads = [
        "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
        "POST /predict/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\nAccept: */*\r\n",
        "GET /models HTTP/1.1\r\nHost: x\r\n",
    ]
    bodies = [{"texts": ["浙商银行", "", "😀 a"]}, {"texts": ["a"]}, None]
    return [
        {HEAD: head.encode(), BODY: b"" if body is None else json.dumps(body, ensure_ascii=False).encode()}
        for head, body in zip(heads, bodies)
    ]


def _mutate(case, rng):
    name = rng.choice((HEAD, BODY, BODY, BODY))
    return {**case, name: mutate(case[name], rng, (*OF_BYTES, *OF_LINES, *[change_json] * 20))}


class _Application:
    """The application of a service whose model gives the texts back, and one request at a time to it."""

    def __init__(self):
        from tasks.serving.application import Service, build_application
        from tasks.serving.models import Work
        from tasks.serving.settings import ModelSource, Settings

        def echo(texts):
            return [json.dumps({"text": text, "entities": []}, ensure_ascii=False) for text in texts]

        self.loop = asyncio.new_event_loop()
        self.service = Service(Settings((ModelSource("echo", "unused", "ner"),), **OPTIONS))
        self.service.works = {("echo", "predict"): Work("echo", "predict", echo)}
        self.service.ready = True
        self.application = build_application(self.service)
        self.computing = self.loop.create_task(self.service.batcher.run())

    def answer(self, scope, body):
        """(status, content) of a request."""
        return self.loop.run_until_complete(self._answer(scope, body))

    async def _answer(self, scope, body):
        parts = [{"type": "http.request", "body": body, "more_body": False}]
        never = asyncio.Event()
        sent = []

        async def receive():
            if parts:
                return parts.pop()
            await never.wait()

        async def send(message):
            sent.append(message)

        await self.application(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


_APPLICATIONS = {}  # by process: threads do not survive a fork


def _scope(head, body):
    """The scope of a request as uvicorn makes it, h11 having read the head."""
    from urllib.parse import unquote

    import h11

    connection = h11.Connection(h11.SERVER)
    is_framed = b"transfer-encoding" in head.lower() or b"content-length" in head.lower()
    framing = b"" if is_framed else f"Content-Length: {len(body)}\r\n".encode()
    try:
        connection.receive_data(head.removesuffix(b"\r\n") + b"\r\n" + framing + b"\r\n" + body)
        event = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise RefusedRequest(f"not HTTP: {str(error)[:40]!r}") from None
    if not isinstance(event, h11.Request):
        raise RefusedRequest("no whole head")
    path, _, query = event.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": event.http_version.decode("ascii"),
        "method": event.method.decode("ascii"),
        "scheme": "http",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in event.headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


def read_request(folder: Path) -> None:
    """One request: an answer of 200 has the texts that were sent; all others are JSON with an error of one line."""
    application = _APPLICATIONS.get(os.getpid()) or _APPLICATIONS.setdefault(os.getpid(), _Application())
    head, body = ((folder / name).read_bytes() for name in (HEAD, BODY))
    scope = _scope(head, body)
    status, content = application.answer(scope, body)
    if status >= 500:
        raise SilentLossError(f"status {status}: {content[:300]!r}")
    if status == 200 and scope["method"] == "POST":
        texts = [result["text"] for result in json.loads(content)["results"]]
        if texts != json.loads(body)["texts"]:
            raise SilentLossError(f"{len(texts)} results of other texts than were sent")
    elif status >= 400 and scope["method"] != "HEAD":
        reason = json.loads(content)["error"]
        if "\n" in reason or "Traceback" in reason or not reason:
            raise SilentLossError(f"status {status}: {reason[:300]!r}")


TARGETS = [Target("request", _samples, _mutate, read_request, (RefusedRequest,))]
