"""Requests are read here, within bounds, before anything else sees them."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio

from tasks.serving import metrics
from tasks.serving.refusal import Refusal, error_body

BODY_SECONDS = 20  # in which a body must have arrived
BODIES_AT_ONCE = 100  # as many bodies of the largest size may be held while they arrive
DRAIN_SECONDS = 1  # for which what is still sent is read after a refusal, so that the client sees the answer
DRAIN_BODIES = 8  # and how much of it, in bodies of the largest size
CLIENT_LEFT = 499  # status that is counted for requests whose client has left; nobody sees it


class Limits:
    """ASGI middleware: gives an application requests with their whole body, and refuses others with JSON.

    Args:
        app: the application.
        max_body_bytes: of a body.
        check: called when the body of a POST has arrived; raises Refusal if it cannot be taken now.
        paths: paths that are counted by their name; all others count as one.
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
        except Exception:  # answered by the application around this one
            status = 500
            raise
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
        if body is None:  # the client has left
            return
        try:
            self.check()
        except Refusal as refusal:
            await refuse(refusal, send)
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
            with anyio.fail_after(BODY_SECONDS):
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
                        raise Refusal(503, "too many bodies arrive at once", {"retry-after": "1"})
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {BODY_SECONDS} s") from None
        finally:
            self._held -= len(body)

    async def _drain(self, receive):
        rest = DRAIN_BODIES * self.max_body_bytes
        with anyio.move_on_after(DRAIN_SECONDS):
            while rest > 0:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
                rest -= len(message.get("body", b""))


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
