"""Services in processes of their own, and requests to them."""

import contextlib
import functools
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.tasks.commands.conftest import MODELS, write_models

STUB = Path(__file__).with_name("stub_service.py")
START_SECONDS, END_SECONDS = 120, 60
JSON = {"Content-Type": "application/json"}
REAL = {  # name -> as of MODELS
    "entities": (*MODELS["ner"][:2], {"types": ["a", "b"], "head_size": 8, "thresholds": 0.5}),
    "classes": (*MODELS["classification"][:2], {"classes": ["x", "y", "z"]}),
    "pairs": MODELS["matching"],
    "cross": (*MODELS["matching"][:2], {"architecture": "cross_encoder", "token_type_ids": True, "type_vocab_size": 2}),
}


def skip_without_extra():
    """Skip the test where what a service needs is not installed."""
    for module in ("fastapi", "uvicorn", "prometheus_client", "fastapi_offline"):
        pytest.importorskip(module, reason=f"{module} is missing: pip install 'paddle_rope[serve]'")


def ask(port, method, path, body=None, headers=JSON):
    """(status, headers, body) of a request to this machine; the body is read as JSON where it is that."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        is_json = response.headers["Content-Type"] == "application/json"
        answer = json.loads(content) if is_json else content.decode(errors="replace")
        return response.status, response.headers, answer


class Client:
    """A running service: its process, its port, and what it has printed."""

    def __init__(self, process):
        self.process, self.lines, self.port = process, [], None
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            address = re.match(r"http://127\.0\.0\.1:(\d+) ", line)
            self.port = int(address[1]) if address else self.port
            if line == "ready\n":
                self.ready.set()
        self.ready.set()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)

    def ask(self, *request, **headers):
        """As :func:`ask`."""
        return ask(self.port, *request, **headers)

    def predict(self, *texts, path="/predict"):
        """(status, body)"""
        return self.ask("POST", path, json.dumps({"texts": texts}))[::2]

    def get(self, path):
        """(status, body)"""
        return self.ask("GET", path)[::2]

    def metric(self, name):
        """The sum of a metric over its labels."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}(\{{.*\}})? ", line))


@contextlib.contextmanager
def running(*words, until_ready=True):
    """A :class:`Client` of a Python program that serves, once it is ready; the process is killed at the end."""
    skip_without_extra()
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONWARNINGS": "ignore", **os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    argv = [sys.executable, *map(str, words), "--port", "0"]
    process = subprocess.Popen(argv, text=True, env=environment, cwd=REPOSITORY, **pipes)
    client = Client(process)
    try:
        if until_ready:
            assert client.ready.wait(START_SECONDS) and process.poll() is None, client.lines
        yield client
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """dict from the names of ``REAL`` to the folders of models with random weights."""
    return write_models(tmp_path_factory.mktemp("trained"), REAL)


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory):
    """What looks like the folder of a NER model."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def start(stub_folder):
    """``start(option ...)``: context manager of a service whose model does what its texts say."""
    return lambda *options, model="echo", **more: running(STUB, f"{model}={stub_folder}", *options, **more)


def wait_until(happens):
    until = time.monotonic() + END_SECONDS
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.02)


class Gate:
    """Holds the thread that computes until :meth:`open`; ``sent`` has the answers, (status, body), as futures."""

    def __init__(self, file, threads, client):
        self.file, self.threads, self.client = file, threads, client
        self.sent = [threads.submit(client.predict, f"gate:{file}")]
        wait_until(Path(f"{file}.reached").exists)

    def send(self, *texts):
        """Send a request that waits behind the gate."""
        before = self.waiting()
        self.sent.append(self.threads.submit(self.client.predict, *texts))
        wait_until(lambda: self.waiting() >= before + len(texts))

    def waiting(self):
        return self.client.metric("paddle_rope_waiting_texts")

    def open(self):
        """Let all go on; returns their answers."""
        self.file.touch()
        return [one.result() for one in self.sent]


@pytest.fixture
def gate(tmp_path):
    """``gate(client)`` -> a :class:`Gate`, opened at the end of the test at the latest."""
    with ThreadPoolExecutor() as threads:
        yield functools.partial(Gate, tmp_path / "gate", threads)
        (tmp_path / "gate").touch()
