"""One process that serves: uvicorn, with a bound on slow clients and a stop that answers what was accepted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import time
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tasks.serving.application import Service, build_application
from tasks.serving.limits import error_body
from tasks.serving.settings import Settings

BACKLOG = 2048  # connections that the system holds until they are accepted
ACCEPTED_AT_ONCE = 100  # connections, before the others that are open are looked at
SHARED_AT_ONCE = 8  # the same, where other workers wait for connections, too
HEAD_SECONDS = 20  # in which the head of a request must have arrived
IDLE_SECONDS = 75  # after which a connection without a request is closed; proxies mostly close theirs after 60
TICK_SECONDS = 0.1  # as uvicorn's
LAST_SECONDS = 5  # for clients that do not read their answers, when the service stops
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Protocol(H11Protocol):
    """HTTP of uvicorn; closes a connection whose next request does not come, and answers what is not HTTP by JSON."""

    head_timer = None

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc) -> None:
        super().connection_lost(exc)
        self._forget_head()

    def _watch_head(self):
        if self.cycle is not None and not self.cycle.response_complete:  # the head is there
            self._forget_head()
        elif self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _forget_head(self):
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # no answer has begun
            body = error_body(msg)
            headers = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + headers.encode() + body)
        self.transport.close()


class Server(uvicorn.Server):
    """A server. A single one listens while it opens its models, one of several workers when they are open.

    Args:
        settings: of the service.
        is_worker: one of several, whose signals do no more than stop it gracefully; otherwise a second one ends the
            process at once.
        tick: called with the server ten times a second.

    Attributes:
        error: why it has stopped by itself, or None.
    """

    def __init__(
        self, settings: Settings, is_worker: bool = False, tick: Callable[[Server], None] = lambda server: None
    ) -> None:
        self.settings, self.is_worker, self.tick = settings, is_worker, tick
        self.error: BaseException | None = None
        super().__init__(
            uvicorn.Config(
                self._application,
                factory=True,
                http=Protocol,
                ws="none",
                lifespan="off",
                loop="asyncio",
                backlog=ACCEPTED_AT_ONCE if settings.workers == 1 else SHARED_AT_ONCE,  # see startup
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=LAST_SECONDS,
            )
        )

    def _application(self):
        self.service = Service(self.settings)
        return build_application(self.service)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._opening = asyncio.create_task(self.service.open())
        self._computing = asyncio.create_task(self.service.batcher.run())
        if self.is_worker:  # the others take the connections until its models are open
            while not self.service.ready and not await self.on_tick(0):
                await asyncio.sleep(TICK_SECONDS)
            if self.should_exit:
                return
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # uvicorn's backlog is both this and what is accepted at once

    async def on_tick(self, counter: int) -> bool:
        self._take_signals()  # again and again: paddle takes SIGTERM when it is imported
        self.tick(self)
        for task in (self._opening, self._computing):
            if task.done() and task.exception() is not None and self.error is None:
                self.error = task.exception()
                self.stop()
                self.should_exit = True
        if self.service.stopping and (not self.service.jobs or time.monotonic() > self._stop_by):
            self.service.give_up()
            self.should_exit = True
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Begin to stop: no more requests are taken, and those in work are answered within ``stop_seconds``."""
        if not self.service.stopping:
            self._stop_by = time.monotonic() + self.settings.stop_seconds
            self.service.stop()

    @contextlib.contextmanager
    def capture_signals(self):
        self._take_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        yield
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _take_signals(self):
        for number in SIGNALS:
            signal.signal(number, self.handle_exit)

    def handle_exit(self, sig, frame) -> None:
        if self.service.stopping and not self.is_worker:
            os._exit(128 + sig)
        self.stop()

    def serve_until_stopped(self, listener: socket.socket) -> None:
        """Serve at a bound socket; returns when the server was told to stop and has stopped; its thread may go on.

        Raises:
            InputError: a model cannot be opened.
        """
        _allow_many_connections()
        self.run([listener])
        if self.error is not None:
            raise self.error


def _allow_many_connections():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
