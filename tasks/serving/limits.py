"""Check the heads and bodies of requests before anything else sees them, and count the requests."""

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
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from paddle_rope.tasks.serving import metrics
from paddle_rope.tasks.serving.settings import ServiceSettings

BODY_SECONDS = 20  # for a body to arrive
BODIES_AT_ONCE = 100  # bodies of the largest size that may be held while they arrive
DRAIN_SECONDS = 1  # for reading the rest of a refused request, so that the client sees the answer
REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)  # as given by a client or a proxy
SECRET = ("/models", "/metrics")  # path prefixes that the key protects, in addition to all POST requests
CLIENT_LEFT = 499  # status counted for requests whose client has left; it is never sent


class Problem(Response):
    """An error response: ``{"error": reason}``."""

    media_type = "application/json"

    def render(self, content: str) -> bytes:
        return json.dumps({"error": content}).encode()


FULL = Problem("the queue is full; try again in a second", 503, {"retry-after": "1"})


class LastProblem(Problem):
    """The answer to a request that was not read to its end: reads the rest for a while, then closes the connection."""

    async def __call__(self, scope, receive, send) -> None:
        self.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with anyio.move_on_after(DRAIN_SECONDS):
            while (await receive()).get("more_body"):  # http.disconnect has no such key
                pass
        await send({"type": "http.response.body", "body": b""})


class Counted:
    """ASGI middleware: counts and logs requests and their seconds by path; all paths not in ``paths`` count as one.
    It refuses requests of ambiguous length, requests without the key, bodies that are not JSON, too large or too slow,
    and POST requests while ``is_full()``. The application gets each body whole."""

    def __init__(self, app: Callable, paths: set[str], settings: ServiceSettings, is_full: Callable[[], bool]) -> None:
        self.app, self.paths, self.settings, self.is_full = app, paths, settings, is_full
        self.arriving_bytes = 0  # of bodies that have not arrived whole

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, headers = time.monotonic(), CLIENT_LEFT, dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex

        async def note_status(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            self._check_head(scope, headers)
            app = self.app
            if scope["method"] == "POST":
                receive = await self._read_body(receive)
                app = FULL if self.is_full() else app  # before anything is done for it
            await app(scope, receive, note_status)
        except HTTPException as error:
            await LastProblem(error.detail, error.status_code, error.headers)(scope, receive, note_status)
        except ClientDisconnect:
            pass
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

    def _check_head(self, scope, headers):
        """Raise HTTPException if a request is refused because of its head."""
        if {b"content-length", b"transfer-encoding"} <= headers.keys():
            raise HTTPException(400, "Content-Length and Transfer-Encoding exclude each other; send one of them")
        if not self._is_allowed(scope, headers):
            bearer = {"www-authenticate": "Bearer"}
            raise HTTPException(401, "the API key is missing or wrong; send Authorization: Bearer KEY", bearer)
        media = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and media != "application/json":
            given = media or "missing"
            raise HTTPException(415, f"the Content-Type is {given}; send JSON with Content-Type: application/json")
        self._check_size(int(headers.get(b"content-length", 0)))  # digits only: h11 refuses others

    def _check_size(self, size):
        most = self.settings.max_body_bytes
        if size > most:
            raise HTTPException(413, f"the body is larger than {most} bytes; send fewer texts at once")

    async def _read_body(self, receive):
        """A ``receive`` for a request whose body has fully arrived. Raises HTTPException if the body takes too long or
        is too large, and ClientDisconnect if the client leaves."""
        body, more = bytearray(), True
        try:
            with anyio.fail_after(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    part, more = message.get("body", b""), message.get("more_body", False)
                    body += part
                    self.arriving_bytes += len(part)
                    self._check_size(len(body))
                    if self.arriving_bytes > BODIES_AT_ONCE * self.settings.max_body_bytes:
                        raise HTTPException(503, "too many bodies arrive at once", {"retry-after": "1"})
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS} s") from None
        finally:
            self.arriving_bytes -= len(body)
        whole = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

        async def receive_whole():
            return next(whole, None) or await receive()

        return receive_whole

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
