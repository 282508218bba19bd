"""Bounds on requests before anything else sees them: their heads, their bodies, and how many of them are counted."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone

import anyio
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tasks.serving import metrics
from tasks.serving.settings import Settings

BODY_SECONDS = 20  # in which a body must have arrived
BODIES_AT_ONCE = 100  # as many bodies of the largest size may be held while they arrive
DRAIN_SECONDS = 1  # for which what is still sent is read after a refusal, so that the client sees the answer
DRAIN_BODIES = 8  # and how much of it, in bodies of the largest size
REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)  # of a client or a proxy
SECRET = ("/models", "/metrics")  # what the key protects besides what is sent by POST
CLIENT_LEFT = 499  # status that is counted for requests whose client has left; nobody sees it


class Unread(HTTPException):
    """A request that is refused before its body has been read to the end."""


class Problem(Response):
    """An answer that is an error: ``{"error": reason}``."""

    media_type = "application/json"

    def render(self, content: str) -> bytes:
        return json.dumps({"error": content}).encode()


class LastProblem(Problem):
    """The answer to an :class:`Unread` request: reads for a while what is left of it, and closes the connection."""

    async def __call__(self, scope, receive, send) -> None:
        rest = DRAIN_BODIES * scope["app"].state.service.settings.max_body_bytes
        self.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with anyio.move_on_after(DRAIN_SECONDS):
            more = True
            while more and rest > 0:
                message = await receive()
                more = message.get("more_body", False)  # not in http.disconnect
                rest -= len(message.get("body", b""))
        await send({"type": "http.response.body", "body": b""})


class BoundedRequest(Request):
    """A request from which FastAPI reads JSON: its body has to arrive in time and within bounds."""

    async def body(self) -> bytes:
        """The body; raises HTTPException if it is refused."""
        if not hasattr(self, "_body"):
            service = self.app.state.service
            self._check_head(service.settings.max_body_bytes)
            self._body = await self._read(service)
        return self._body

    def _check_head(self, most):
        media = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if media != "application/json":
            given = media or "missing"
            raise Unread(415, f"the Content-Type is {given}; send JSON with Content-Type: application/json")
        if int(self.headers.get("content-length", 0)) > most:  # digits only: h11 refuses others
            raise _too_large(most)

    async def _read(self, service):
        body, most = bytearray(), service.settings.max_body_bytes
        try:
            with anyio.fail_after(BODY_SECONDS):
                async for part in self.stream():
                    body += part
                    service.arriving_bytes += len(part)
                    if len(body) > most:
                        raise _too_large(most)
                    if service.arriving_bytes > BODIES_AT_ONCE * most:
                        raise Unread(503, "too many bodies arrive at once", {"retry-after": "1"})
                return bytes(body)
        except TimeoutError:
            raise Unread(408, f"the body did not arrive within {BODY_SECONDS} s") from None
        except ClientDisconnect:
            raise HTTPException(CLIENT_LEFT, "the client has left") from None
        finally:
            service.arriving_bytes -= len(body)


def _too_large(most):
    return Unread(413, f"the body is larger than {most} bytes; send fewer texts at once")


class BoundedRoute(APIRoute):
    """A route whose requests are :class:`BoundedRequest`."""

    def get_route_handler(self) -> Callable:
        handle = super().get_route_handler()

        async def handle_bounded(request):
            return await handle(BoundedRequest(request.scope, request.receive))

        return handle_bounded


class Counted:
    """ASGI middleware: counts and logs requests and their seconds, by path; those of no path of ``paths`` count as one.
    It refuses requests whose end is not certain, and those without the key."""

    def __init__(self, app: Callable, paths: set[str], settings: Settings) -> None:
        self.app, self.paths, self.settings = app, paths, settings

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, app, headers = time.monotonic(), CLIENT_LEFT, self.app, dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        if {b"content-length", b"transfer-encoding"} <= headers.keys():
            app = LastProblem("Content-Length and Transfer-Encoding exclude each other; send one of them", 400)
        elif not self._is_allowed(scope, headers):
            bearer = {"www-authenticate": "Bearer"}
            app = LastProblem("the API key is missing or wrong; send Authorization: Bearer KEY", 401, bearer)

        async def note_status(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await app(scope, receive, note_status)
        except Exception:  # answered by the application around this one
            status = 500
            raise
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            metrics.REQUESTS.labels(path, status).inc()
            seconds = time.monotonic() - begin
            metrics.REQUEST_SECONDS.labels(path).observe(seconds)
            if self.settings.log == "json":
                told = {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "request_id": request_id}
                told |= {"method": scope["method"], "path": scope["path"], "status": status}
                with contextlib.suppress(BrokenPipeError):
                    print(json.dumps({**told, "seconds": round(seconds, 4)}), flush=True)

    def _is_allowed(self, scope, headers):
        if not self.settings.api_key or scope["method"] == "GET" and not scope["path"].startswith(SECRET):
            return True
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if scheme == b"Basic":  # as Label Studio sends it: the key is the password, of any user
            try:
                key = base64.b64decode(key).partition(b":")[2]
            except binascii.Error:
                return False
        return scheme in (b"Bearer", b"Basic") and secrets.compare_digest(key, self.settings.api_key.encode())
