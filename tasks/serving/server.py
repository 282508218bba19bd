"""Run the application in uvicorn's worker processes, with a bound on slow clients."""

import contextlib
import functools
import json
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback

import h11
import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from paddle_rope.tasks.common.errors import EXIT_BAD_INPUT, InputError
from paddle_rope.tasks.serving.settings import METRICS_FOLDER, ServiceSettings

BACKLOG = 2048  # connections that the system holds until they are accepted
ACCEPTED_AT_ONCE = 8  # connections, so that a worker leaves some to the others and attends to its open ones
HEAD_SECONDS = 20  # for the head of the first request to arrive
IDLE_SECONDS = 75  # the same for later requests; most proxies close idle connections after 60
ANSWER_SECONDS = 60  # for an answer to be read
MOST_CONNECTIONS = 1000  # of a worker
SILENT_SECONDS = 60  # after which a worker without a sign of life is replaced
KILL_SECONDS = 10  # for a worker to end, in addition to stop_seconds for its requests
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(settings: ServiceSettings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. Raises InputError if the address cannot be used."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # connections are files
    with _listener(settings) as listener, tempfile.TemporaryDirectory(prefix="paddle_rope_metrics_") as folder:
        os.environ[METRICS_FOLDER] = folder
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        models = ", ".join(source.name for source in settings.models)
        workers = f"workers {settings.workers}, threads of each {settings.threads}"
        place = f"http://{host}:{listener.getsockname()[1]}"
        _tell(f"{place} ({models}; {workers}); its page is /docs; Ctrl-C stops it")
        config = uvicorn.Config(
            functools.partial(_open_worker, settings),
            factory=True,
            workers=settings.workers,
            http=Protocol,
            ws="none",
            lifespan="on",
            loop="asyncio",
            backlog=ACCEPTED_AT_ONCE,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=settings.stop_seconds,
            timeout_worker_healthcheck=SILENT_SECONDS,
        )
        supervisor = Supervisor(config, listener)
        supervisor.run()
        return supervisor.status


def _listener(settings):
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:  # the latter for a name with an empty or a long part
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        place = f"{settings.host}:{settings.port}"
        raise InputError(f"{place}: cannot be served at ({reason}); give another --port or --host") from None


def _tell(line, file=None):
    with contextlib.suppress(BrokenPipeError):  # nobody reads; the service goes on
        print(line, file=file, flush=True)


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces workers that die. This one also reports when all workers are ready, removes
    dead workers from metrics, ends when a worker cannot start, and limits the time to stop. ``status``: exit status."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket) -> None:
        super().__init__(config, [listener])
        logging.getLogger("uvicorn.error").disabled = True  # a worker that cannot start has said why
        self.listener, self.status, self.is_ready = listener, 0, False

    def keep_subprocess_alive(self) -> None:
        if self.should_exit.is_set():
            return
        before = list(self.processes)
        for process in before:
            process.child_conn.close()  # the worker's end, so that uvicorn's check of a dead worker fails at once
        super().keep_subprocess_alive()
        if self.should_exit.is_set():  # a worker could not open its models, and said why
            self.status = EXIT_BAD_INPUT
            return
        for old in (process for process in before if process not in self.processes):
            mark_process_dead(old.pid)
            _tell(f"worker {old.pid} has ended; another one is started", sys.stderr)
            if not self.is_ready:  # the next one would end in the same way
                self.status = EXIT_BAD_INPUT
                self.should_exit.set()
        if not self.is_ready and all(process.is_ready() for process in self.processes):
            self.is_ready = True
            _tell("ready")
        self.listener.listen(BACKLOG)  # the backlog of uvicorn is also the number of connections accepted at once

    def terminate_all(self) -> None:
        self.listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for the workers; a second signal, or a worker that takes too long, ends them at once."""
        by = time.monotonic() + self.config.timeout_graceful_shutdown + KILL_SECONDS
        while any(process.process.is_alive() for process in self.processes) and time.monotonic() < by:
            if second := {*SIGNALS} & {*self.signal_queue}:  # not SIGWINCH: a terminal changes its size
                self.status = 128 + second.pop()
                break
            time.sleep(0.05)
        for process in self.processes:
            process.kill()
            process.join()


def _open_worker(settings):
    """The application of a worker, which exits if a model cannot be opened, and stops when its supervisor is gone."""
    # In a spawned process, a library's lock (tqdm makes one) gets a name that outlives the process; with fork, none.
    multiprocessing.set_start_method("fork", force=True)
    threading.Thread(target=_stop_with_supervisor, daemon=True).start()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        from paddle_rope.tasks.serving.application import open_application

        return open_application(settings)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
    except Exception:
        traceback.print_exc()
    finally:
        for number, handler in handlers.items():  # importing paddle replaces SIGTERM's handler
            signal.signal(number, handler)
    sys.exit(STARTUP_FAILURE)


def _stop_with_supervisor():
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)


class Protocol(H11Protocol):
    """uvicorn's HTTP, but a connection is closed if its next request does not arrive or its answer is not read, or if
    there are too many; invalid HTTP gets JSON, and clients are told when the connection ends with an answer."""

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # writing pauses as soon as the system's own buffer is full
        self.timeout_keep_alive_task = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse("503 Service Unavailable\r\nretry-after: 1", "too many connections; try again in a second")

    def data_received(self, data: bytes) -> None:
        """As in uvicorn, but the timer stops only when the whole head of a request has arrived."""
        self.conn.receive_data(data)
        self.handle_events()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.cutting = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.cutting.cancel()

    def shutdown(self) -> None:
        super().shutdown()
        if self.cycle is not None:
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE_HEADER]

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # no answer has begun
            self._refuse("400 Bad Request", msg)
        else:
            self.transport.close()

    def _refuse(self, status, reason):
        body = json.dumps({"error": reason}).encode()
        headers = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(f"HTTP/1.1 {status}\r\n{headers}".encode() + body)
        self.transport.close()
