"""What a service answers to right and wrong requests, to many at once, and to clients that are slow or leave."""

import contextlib
import http.client
import json
import re
import socket

import pytest

from tests.tasks.serving.conftest import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(start):
    limits = {"queue": 8, "texts": 6, "characters": 300, "request_characters": 1000, "body_bytes": 4000}
    options = [word for name, value in limits.items() for word in (f"--max_{name}", value)]
    with start(*options, "--batch_size", "4") as client:
        yield client


def texts_of(answer):
    status, body = answer
    assert status == 200, body
    return [result["text"] for result in body["results"]]


def texts(*given):
    return json.dumps({"texts": given})


def test_results_come_in_the_order_of_the_texts(client):
    texts = ["一", "", "c\u0000\u0007d", "😀", "一"]
    assert texts_of(client.predict(*texts)) == texts
    assert texts_of(client.predict("a", path="/predict/echo")) == ["a"]
    assert texts_of(client.predict()) == []
    assert client.get("/health") == (200, {"status": "healthy"})
    assert client.get("/ready") == (200, {"status": "ready"})
    echo = {"name": "echo", "recipe": "ner", "takes": "texts", "embeds": False, "default": True}
    assert client.get("/models")[1] == {"models": [echo]}


WRONG = {  # body of a POST to /predict, status, words of the error, headers
    "no JSON": ("{", 400, "malformed JSON at character 1"),
    "no UTF-8": (b'{"texts": ["\xff"]}', 400, "UTF-8"),
    "deep": ("[" * 3999, 400, ""),
    "empty": ("", 422, "required"),
    "a list": ("[]", 422, "dictionary"),
    "no texts": ("{}", 422, "texts"),
    "one text": ('{"texts": "a"}', 422, "texts: .*list"),
    "a number": ('{"texts": ["a", 1]}', 422, r"texts\[1\]: .*string"),
    "half a character": (r'{"texts": ["\ud800"]}', 422, r"texts\[0\]: .*unicode"),
    "a key of another name": ('{"text": ["a"]}', 422, "unknown key 'text'; did you mean 'texts'"),
    "a key of another recipe": ('{"pairs": []}', 422, "unknown key 'pairs'; it is for models of matching"),
    "many texts": (texts(*["a"] * 7), 422, "7 texts.* 6;"),
    "a long text": (texts("a" * 301), 422, "301 characters.* 300;"),
    "long texts": (texts(*["a" * 251] * 4), 422, "1,004 characters.* 1,000;"),
    "a large body": (texts(*["a" * 299] * 20), 413, "4000 bytes"),
    "no content type": ("{}", 415, "application/json", {"Content-Type": ""}),
    "a form": ("{}", 415, "application/x", {"Content-Type": "application/x-www-form-urlencoded"}),
    "a wrong text": ('{"texts": ["refuse"]}', 422, "this text cannot be computed"),
    "a defect": ('{"texts": ["fail"]}', 500, "log"),
}
WRONG_PATHS = {  # method, path, body, status
    "no such model": ("POST", "/predict/other", "{}", 404, "/predict/other .*; did you mean '/predict/echo'"),
    "nothing to embed": ("POST", "/embed", '{"texts": []}', 404, "no such path: /embed with models of ner; "),
    "another recipe": ("POST", "/embed/echo", "{}", 404, "/embed/echo; echo is a model of ner, .* /predict/echo"),
    "no such path": ("GET", "/nothing", None, 404, "/nothing .*; see /docs .* /models"),
    "a wrong method": ("GET", "/predict", None, 405, "GET"),
}


@pytest.mark.parametrize("kind", [*WRONG, *WRONG_PATHS])
def test_wrong_requests_are_answered_by_a_line_of_json(client, kind):
    method, path, body, status, words, *headers = WRONG_PATHS.get(kind) or ("POST", "/predict", *WRONG[kind])
    body = body.encode("utf-8") if isinstance(body, str) else body
    answered, _, answer = client.ask(method, path, body, *headers)
    assert answered == status and list(answer) == ["error"]
    assert re.search(words, answer["error"]) and "\n" not in answer["error"] and "Traceback" not in answer["error"]
    assert texts_of(client.predict("after")) == ["after"]


def talk(client, *parts):
    """What the service answers to bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("parts, status", [
    ([b"NONSENSE\r\n\r\n"], 400),
    ([HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"], 400),
    ([HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"], 400),
    ([b"GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"], 400),
    ([HEAD + b"Content-Length: 99999999999\r\n\r\n"], 413),  # refused before the body comes
    ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 6], 413),
])  # fmt: skip
def test_broken_http_is_answered_by_json(client, parts, status):
    head, _, body = talk(client, *parts).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and b"application/json" in head
    assert list(json.loads(body)) == ["error"]


def test_connections_are_computed_together_and_refused_while_the_queue_is_full(client, gate):
    held = gate(client)
    before = client.metric("paddle_rope_batch_texts_count")
    for given in ("ab", "cd", "efgh"):
        held.send(*given)
    assert client.get("/health")[0] == client.get("/ready")[0] == 200
    for _ in range(20):
        status, headers, answer = client.ask("POST", "/predict", '{"texts": ["one more"]}')
        assert status == 503 and int(headers["Retry-After"]) >= 1 and "queue is full" in answer["error"]
    answers = sorted(texts_of(answer) for answer in held.open())
    assert [answer for answer in answers if "gate" not in answer[0]] == [[*"ab"], [*"cd"], [*"efgh"]]
    assert client.metric("paddle_rope_batch_texts_count") == before + 3  # one text in the gate, and two of four
    assert texts_of(client.predict("after")) == ["after"]


def test_texts_whose_client_has_left_are_not_computed(client, gate):
    held = gate(client)
    computed = client.metric("paddle_rope_texts_total")
    body = b'{"texts": ["left", "left"]}'
    with socket.create_connection(("127.0.0.1", client.port)) as leaving:
        leaving.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: held.waiting() == 2)
    wait_until(lambda: held.waiting() == 0)
    held.open()
    assert client.metric("paddle_rope_texts_total") == computed + 1  # the text in the gate


def test_slow_clients_do_not_hold_up_others(client):
    connections = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(50)]
    for place, connection in enumerate(connections):
        connection.sendall([b"", b"POST /pre", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{"][place % 4])
    assert texts_of(client.predict("meanwhile")) == ["meanwhile"]
    for connection in connections:
        connection.close()
    assert texts_of(client.predict("after")) == ["after"]


def test_who_does_not_read_an_answer_and_who_comes_too_many_lose_the_connection(start, monkeypatch):
    monkeypatch.setenv("STUB_BOUNDS", '{"server.ANSWER_SECONDS": 0.5, "server.MOST_CONNECTIONS": 2}')
    with start("--max_characters", 10**8, "--max_body_bytes", 10**8) as client:
        body = texts("a" * 10**7).encode()  # more than the system holds for a connection
        with (
            socket.create_connection(("127.0.0.1", client.port)) as reading,
            socket.create_connection(("127.0.0.1", client.port)) as deaf,
        ):
            deaf.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            head, _, refused = talk(client).partition(b"\r\n\r\n")
            assert b" 503 " in head and b"retry-after: 1" in head and list(json.loads(refused)) == ["error"]
            reading.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert reading.recv(100).startswith(b"HTTP/1.1 200 ")
            status = 503
            while status != 200:  # until the service has closed one of the connections
                with contextlib.suppress(http.client.HTTPException, OSError):
                    status, _ = client.get("/health")
            assert sum(iter(lambda: len(deaf.recv(1 << 20)), 0)) < 10**7


def test_the_page_needs_no_internet_and_its_examples_work(client):
    sources = re.findall(r'(?:src|href)="([^"]+)"', client.get("/docs")[1])
    assert len(sources) >= 3 and not [source for source in sources if "//" in source]
    assert {client.get(source)[0] for source in sources} == {200}
    paths = client.get("/openapi.json")[1]["paths"]
    ours = {path for path in paths if not path.startswith("/label-studio")}
    assert ours == {"/predict", "/predict/echo", "/models", "/health", "/ready", "/metrics"}
    example = paths["/predict"]["post"]["requestBody"]["content"]["application/json"]["examples"]["example"]["value"]
    assert texts_of(client.predict(*example["texts"])) == example["texts"]


def test_a_port_that_is_taken_is_told_in_a_line(client, refused, monkeypatch, stub_folder):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # other wrong starts: tests/tasks/commands/refusals.yaml
    assert "already in use" in refused("serve", stub_folder, "--port", client.port)
