"""A service of one process or several, from its start to its end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from multiprocessing.connection import Connection, wait

from tasks.common.errors import InputError
from tasks.serving.settings import Settings

READY = "ready"  # what a worker tells its supervisor, and the line that is printed
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # of the numbers that workers put together; read by prometheus_client
BEAT_SECONDS = 1
SILENT_SECONDS = 60  # after which a worker without a sign of life is ended, and another one started
KILL_SECONDS = 10  # for a worker to end, beyond those that it has for its requests
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status.

    Raises:
        InputError: the address cannot be used, or a model cannot be opened.
    """
    try:
        import fastapi_offline  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(f"{error.name} is not installed; pip install -r requirements-serve.txt") from None
    with _listener(settings) as listener:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = listener.getsockname()[1]
        _tell(f"http://{host}:{port} ({_count(settings)}); its page is /docs; Ctrl-C stops it")
        if settings.workers == 1:
            _serve_here(settings, listener)
        with tempfile.TemporaryDirectory(prefix="paddle_rope_metrics_") as folder:
            os.environ[FOLDER] = folder
            return Supervisor(settings, listener, folder).run()


def _serve_here(settings, listener):
    from tasks.serving.server import Server

    told = []

    def tick(server):
        if server.service.ready and not told:
            told.append(_tell(READY))

    Server(settings, tick=tick).serve_until_stopped(listener)
    _leave()


def _leave():
    """End the process, whatever its thread computes; the libraries take seconds to clean up."""
    os._exit(0)


def _listener(settings):
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if (error.errno or 0) > 0 else error.strerror or str(error)
        place = f"{settings.host}:{settings.port}"
        raise InputError(f"{place}: cannot be served at ({reason}); give another --port or --host") from None


def _count(settings):
    models = ", ".join(source.name for source in settings.models)
    workers = f"{settings.workers} worker{'s' * (settings.workers > 1)}"
    return f"{models}; {workers} of {settings.threads} thread{'s' * (settings.threads > 1)}"


def _tell(line):
    with contextlib.suppress(BrokenPipeError):  # nobody reads; the service goes on
        print(line, flush=True)
    return True


class Worker:
    """A process that serves, seen from its supervisor."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        context = multiprocessing.get_context("spawn")  # paddle and onnxruntime do not survive a fork
        self.link, other_end = context.Pipe()
        self.process = context.Process(target=_work, args=(settings, listener, other_end), daemon=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the worker unblocks them when it can handle them
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        other_end.close()
        self.is_ready, self.problem, self.heard = False, None, time.monotonic()

    def listen(self) -> None:
        """Take note of what the worker has sent."""
        try:
            while self.link.poll():
                kind, problem = self.link.recv()
                self.heard = time.monotonic()
                self.is_ready = self.is_ready or kind == READY
                self.problem = problem or self.problem
        except (EOFError, OSError):  # it has ended
            pass

    def stop(self) -> None:
        """Tell it to answer what it has accepted and to end."""
        with contextlib.suppress(OSError):  # it has ended
            self.link.send("stop")


class Supervisor:
    """Starts workers on one listening socket, starts another one where one dies, and ends with all of them.

    A worker that ends before it was ever ready ends the service: the next one would end in the same way.
    """

    def __init__(self, settings: Settings, listener: socket.socket, metrics_folder: str) -> None:
        self.settings, self.listener, self.metrics_folder = settings, listener, metrics_folder
        self.signals: list[int] = []
        self.workers: list[Worker] = []

    def run(self) -> int:
        """Returns the exit status; raises InputError if a worker could not open its models."""
        for number in SIGNALS:
            signal.signal(number, lambda number, frame: self.signals.append(number))
        try:
            self.workers = [Worker(self.settings, self.listener) for _ in range(self.settings.workers)]
            told = False
            while not self.signals:
                self._watch()
                if not told and all(worker.is_ready for worker in self.workers):
                    told = _tell(READY)
            self.listener.close()
            self._stop()
            return 0
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.join()

    def _watch(self):
        wait([thing for worker in self.workers for thing in (worker.link, worker.process.sentinel)], timeout=0.2)
        for place, worker in enumerate(self.workers):
            worker.listen()
            if worker.process.is_alive() and time.monotonic() - worker.heard < SILENT_SECONDS:
                continue
            worker.process.kill()
            worker.process.join()
            worker.listen()
            self._forget_metrics(worker)
            if self.signals:
                return
            if not worker.is_ready:
                status = worker.process.exitcode
                raise InputError(worker.problem or f"a worker ended at its start with status {status}; see above")
            print(f"worker {worker.process.pid} has ended; another one is started", file=sys.stderr, flush=True)
            self.workers[place] = Worker(self.settings, self.listener)

    def _forget_metrics(self, worker):
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(worker.process.pid, self.metrics_folder)

    def _stop(self):
        """Tell the workers to end, and wait until they have; a second signal ends them at once."""
        known = len(self.signals)
        for worker in self.workers:
            worker.stop()
        by = time.monotonic() + self.settings.stop_seconds + KILL_SECONDS
        while any(worker.process.is_alive() for worker in self.workers) and time.monotonic() < by:
            if len(self.signals) > known:
                sys.exit(128 + self.signals[-1])
            wait([worker.process.sentinel for worker in self.workers if worker.process.is_alive()], timeout=0.1)
            for worker in self.workers:
                worker.listen()


def _work(settings: Settings, listener: socket.socket, link: Connection) -> None:
    """What a worker process does. ``link`` leads to the supervisor; when that is gone, the worker stops."""
    # A lock of a library (tqdm makes one) gets a name in a spawned process, which outlives it; with fork it has none.
    multiprocessing.set_start_method("fork", force=True)
    from tasks.serving.server import Server

    beat = 0.0

    def tick(server):
        nonlocal beat
        try:
            if link.poll():
                link.recv()
                server.stop()
            if time.monotonic() - beat > BEAT_SECONDS:
                beat = time.monotonic()
                link.send((READY if server.service.ready else "alive", None))
        except (EOFError, OSError):  # the supervisor was killed
            server.stop()

    try:
        Server(settings, is_worker=True, tick=tick).serve_until_stopped(listener)
    except InputError as error:
        link.send(("failed", str(error)))
        sys.exit(2)
    _leave()
