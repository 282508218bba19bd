"""The door of the service: bodies are read here, within bounds, before anything looks at them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from tasks.serving import metrics
from tasks.serving.batching import Busy

BODY_SECONDS = 20  # in which a body must have arrived
BODIES_AT_ONCE = 100  # as many bodies of the largest size may be held while they arrive
DRAIN_SECONDS = 1  # for which what is still sent is read after a refusal, so that the client sees the answer
DRAIN_BODIES = 8  # and how much of it, in bodies of the largest size
CLIENT_LEFT = 499  # status that is counted for requests whose client has left; nobody sees it


class Refusal(Exception):
    """A request that is not served: HTTP status, reason in a line, and further headers."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None):
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def error_body(reason: str) -> bytes:
    """The body of every answer that is an error."""
    return json.dumps({"error": reason}).encode()


class Limits:
    """ASGI application around another: hands it requests with their whole body, and refuses others with JSON.

    Args:
        app: the other one.
        max_body_bytes: of a body.
        check: called when the body of a POST has arrived; raises Refusal or Busy if it is not wanted now.
        paths: those that are counted by their name.
    """

    def __init__(self, app: Callable, max_body_bytes: int, check: Callable[[], None], paths: set[str]) -> None:
        self.app, self.max_body_bytes, self.check, self.paths = app, max_body_bytes, check, paths
        self._held = 0  # bytes of bodies that are arriving

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.monotonic(), CLIENT_LEFT

        async def note_status(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
                refusal = Refusal(400, "Content-Length and Transfer-Encoding exclude each other; send one of them")
                await refuse(refusal, note_status, lambda: self._drain(receive))
            elif scope["method"] == "POST":
                await self._serve_post(scope, receive, note_status)
            else:
                await self.app(scope, receive, note_status)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            metrics.REQUESTS.labels(path, status).inc()
            metrics.REQUEST_SECONDS.labels(path).observe(time.monotonic() - begin)

    async def _serve_post(self, scope, receive, send):
        try:
            self._check_head(scope)
            body = await self._read(receive)
        except Refusal as refusal:
            await refuse(refusal, send, lambda: self._drain(receive))
            return
        except TimeoutError:
            refusal = Refusal(408, f"the body did not arrive within {BODY_SECONDS} s")
            await refuse(refusal, send, lambda: self._drain(receive))
            return
        if body is None:  # the client has left
            return
        try:
            self.check()
        except (Refusal, Busy) as error:
            await refuse(as_refusal(error), send)
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay():
            return messages.pop() if messages else await receive()

        await self.app(scope, replay, send)

    def _check_head(self, scope):
        headers = dict(scope["headers"])
        media = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if media != b"application/json":
            given = media.decode("latin-1") or "missing"
            raise Refusal(415, f"the Content-Type is {given}; send JSON with Content-Type: application/json")
        length = headers.get(b"content-length", b"0")
        if int(length) > self.max_body_bytes:  # digits only: h11 refuses others
            raise self._too_large()

    def _too_large(self):
        return Refusal(413, f"the body is larger than {self.max_body_bytes} bytes; send fewer texts at once")

    async def _read(self, receive):
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    body += part
                    self._held += len(part)
                    if len(body) > self.max_body_bytes:
                        raise self._too_large()
                    if self._held > BODIES_AT_ONCE * self.max_body_bytes:
                        raise as_refusal(Busy(1))
                    if not message.get("more_body", False):
                        return bytes(body)
        finally:
            self._held -= len(body)

    async def _drain(self, receive):
        rest = DRAIN_BODIES * self.max_body_bytes
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while rest > 0:
                    message = await receive()
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
                    rest -= len(message.get("body", b""))
        except TimeoutError:
            pass


def as_refusal(error: Refusal | Busy) -> Refusal:
    """The answer to a full queue: 503, with the time after which to try again."""
    if isinstance(error, Refusal):
        return error
    return Refusal(503, str(error), {"retry-after": str(error.retry_after)})


async def refuse(refusal: Refusal, send: Callable, drain: Callable | None = None) -> None:
    """Answer a request by its refusal. ``drain`` reads what is left of the body, after which the connection closes."""
    body = error_body(refusal.reason)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
    if drain:
        headers["connection"] = "close"
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": drain is not None})
    if drain:
        await drain()
        await send({"type": "http.response.body", "body": b""})
