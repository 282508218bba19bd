"""How a service starts and ends: what was accepted is answered."""

import contextlib
import http.client
import json
import os
import signal
import time

import psutil
import pytest

from tests.tasks.serving.conftest import END_SECONDS, JSON, STUB, running, wait_until

pytestmark = pytest.mark.slow


def refuses_connections(client):
    try:
        client.connect().connect()
    except ConnectionRefusedError:
        return True
    return False


def test_what_was_accepted_is_answered_before_the_end(start, gate):
    with start() as client:
        held = gate(client)
        kept = client.connect()
        kept.request("POST", "/predict", '{"texts": ["accepted"]}', JSON)
        wait_until(lambda: held.waiting() == 1)
        client.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(client))
        client.process.send_signal(signal.SIGWINCH)  # a terminal changes its size
        time.sleep(0.5)
        assert [status for status, _ in held.open()] == [200]
        answer = kept.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert client.process.wait(END_SECONDS) == 0
    assert client.lines[1:] == ["ready"]


def test_a_service_without_work_ends_though_clients_hold_connections(start):
    with start("--stop_seconds", "3000") as client:
        idle, begun, used = (client.connect() for _ in range(3))
        idle.connect()
        begun.connect()
        begun.sock.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 5\r\n")
        used.request("POST", "/predict", '{"texts": ["meanwhile"]}', JSON)
        assert b"meanwhile" in used.getresponse().read()
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(END_SECONDS) == 0


def test_after_the_bound_requests_are_refused(start, gate):
    with start("--stop_seconds", "0.3") as client:
        held = gate(client)
        held.send("accepted")
        client.process.send_signal(signal.SIGTERM)
        assert [one.result(END_SECONDS) for one in held.sent] == [(503, {"error": "the service has stopped"})] * 2
        assert client.process.wait(END_SECONDS) == 0


def test_a_second_signal_ends_at_once(start, gate):
    with start("--stop_seconds", "3000", "--workers", 2) as client:
        held = gate(client)
        client.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(client))
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(END_SECONDS) == 128 + signal.SIGTERM
        assert held.sent[0].exception(END_SECONDS)


def test_a_request_waits_no_longer_than_its_bound(start, gate):
    with start("--max_seconds", "0.5") as client:
        held = gate(client)
        status, headers, answer = client.ask("POST", "/predict", '{"texts": ["a"]}')
        assert (status, answer) == (503, {"error": "no answer within 0.5 s"}) and "Retry-After" in headers
        held.open()
        wait_until(lambda: client.predict("a")[0] == 200)


def test_a_worker_whose_computation_does_not_end_is_replaced(start, gate, monkeypatch):
    monkeypatch.setenv("STUB_BOUNDS", '{"application.STUCK_SECONDS": 1}')
    with start("--max_seconds", "0.5") as client:
        held = gate(client)
        assert held.sent[0].result(END_SECONDS)[0] == 503 and client.predict("a")[0] == 503
        wait_until(lambda: any("has ended; another one is started" in line for line in client.lines))
        assert client.predict("b")[0] == 200  # accepted when the model is open


def test_a_model_that_cannot_be_opened_ends_the_service_with_a_line(start):
    with start("--workers", 2, model="broken", until_ready=False) as client:
        assert client.process.wait(END_SECONDS) == 2
        client.reader.join(END_SECONDS)
        assert set(client.lines[1:]) == {"error: the model is broken"}  # after the address


def test_a_dead_worker_is_replaced_by_one_that_begins_when_its_model_is_open(start, monkeypatch, tmp_path):
    opens, reached = tmp_path / "opens", tmp_path / "opens.reached"
    opens.touch()
    monkeypatch.setenv("STUB_OPENS", str(opens))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    with start("--workers", 2) as client:
        wait_until(lambda: client.metric("paddle_rope_ready_workers") == 2)
        processes = set()
        while len(processes) < 2:
            status, answer = client.predict("a")
            processes.add(answer["results"][0]["process"])
        counts = {client.metric("paddle_rope_texts_total") for _ in range(10)}
        assert len(counts) == 1 and min(counts) >= 2  # metrics of all workers are added
        opens.unlink()
        reached.unlink()
        os.kill(processes.pop(), signal.SIGKILL)
        wait_until(reached.exists)
        answers = [client.predict("b") for _ in range(40)]
        assert {(status, answer["results"][0]["process"]) for status, answer in answers} == {(200, processes.pop())}
        opens.touch()
        wait_until(lambda: any("has ended; another one is started" in line for line in client.lines))
        wait_until(lambda: client.metric("paddle_rope_ready_workers") == 2)
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(END_SECONDS) == 0
        with pytest.raises(ConnectionRefusedError):
            client.get("/health")
        client.reader.join(END_SECONDS)
        assert not [line for line in client.lines if "leaked semaphore" in line]


def test_sighup_replaces_the_workers(tmp_path):
    config = {"model_type": "paddle_rope_ner", "types": ["old"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with running(STUB, f"echo={tmp_path}") as client:
        first = client.predict("a")[1]["results"][0]["process"]
        (tmp_path / "config.json").write_text(json.dumps({**config, "types": ["new"]}))
        client.process.send_signal(signal.SIGHUP)
        answers, types = [], []

        def is_another():
            with contextlib.suppress(OSError, http.client.HTTPException):  # connections that the first one closes
                answers.append(client.predict("b"))
                types.append(client.get("/models")[1]["models"][0]["types"])
            return answers[-1][1]["results"][0]["process"] != first and types[-1] == ["new"]

        wait_until(is_another)
        assert {status for status, _ in answers} == {200}


def test_workers_are_replaced_though_nobody_reads_errors_and_end_with_supervisor(start, monkeypatch):
    monkeypatch.setenv("STUB_NOBODY_READS", "1")
    with start() as client:
        first = client.predict("a")[1]["results"][0]["process"]
        os.kill(first, signal.SIGKILL)
        process = client.predict("b")[1]["results"][0]["process"]
        assert process not in (first, client.process.pid) and psutil.pid_exists(process)
        client.process.kill()
        wait_until(lambda: not psutil.pid_exists(process) or psutil.Process(process).status() == psutil.STATUS_ZOMBIE)
