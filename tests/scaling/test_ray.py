"""The same parts on Ray, and the model behind HTTP on Ray Serve."""

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tasks.ner import NerPredictor
from tasks.scaling.run import run_documents
from tasks.scaling.worker import Job
from tests.scaling.conftest import write_jsonl
from tests.verbs import verb

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-ray.txt")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def given(tmp_path, model, texts):
    """Words of a command for 40 texts."""
    write_jsonl(tmp_path / "in.jsonl", [{"id": number, "text": text} for number, text in enumerate(texts)])
    return [str(model), "--input", str(tmp_path / "in.jsonl"), "--part_records", "5", "--device", "cpu"]


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.jsonl")}


def test_ray_writes_what_processes_write(given, tmp_path, capfd):
    for output, more in (("one", ["--processes", "1"]), ("two", ["--ray", "--processes", "2"])):
        assert verb("predict").main([*given, "--output", str(tmp_path / output), *more]) == 0
        assert "40 documents in 8 parts" in capfd.readouterr().out
    assert len(files(tmp_path / "one")) == 8
    assert files(tmp_path / "two") == files(tmp_path / "one")


def test_a_killed_actor_loses_nothing(given, tmp_path, model, texts):
    from tasks.scaling.on_ray import run_on_ray

    killed = []

    def run(job, parts, events):
        done = events.done

        def kill_another(one):
            done(one)
            if not killed:
                children = psutil.Process().children(recursive=True)
                killed.append(next(child.pid for child in children if "ray::_Actor" in " ".join(child.cmdline())))
                os.kill(killed[0], signal.SIGKILL)

        events.done = kill_another
        run_on_ray(job, parts, events, 2)

    job = Job("ner", (str(model),), str(tmp_path / "out"), chunk_records=4, options={"device": "cpu"})
    assert run_documents(job, [str(tmp_path / "in.jsonl")], 5, run) == 0
    found = [json.loads(line) for content in files(tmp_path / "out").values() for line in content.decode().splitlines()]
    assert killed and sorted(record["id"] for record in found) == list(range(len(texts)))


def test_wrong_models_and_clusters_are_told(given, tmp_path, fails):
    (tmp_path / "model").mkdir()
    words = [*given[1:], "--output", "out", "--ray"]
    assert "model: no model here" in fails(verb("predict", "model"), *words)
    assert "--ray 127.0.0.1:1: no cluster there" in fails(verb("predict"), *given[:1], *words, "127.0.0.1:1")


@pytest.fixture(scope="module")
def service(model):
    """Asks a model on Ray Serve: ``service(path, body)`` -> (status, what the answer says)."""
    from ray import serve

    from tasks.scaling.ray_serve import Arguments, build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"env_vars": {"PYTHONPATH": str(REPOSITORY)}}
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, runtime_env=environment)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(build(Arguments(model=str(model), max_queued=1, max_texts=50, max_characters=100, max_megabytes=0.1)))

    def ask(path, body=None):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode("utf-8")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            content = error.read()
            return error.code, json.loads(content)["error"] if content.startswith(b"{") else content.decode()

    yield ask
    serve.shutdown()
    ray.shutdown()


def test_service_answers_as_the_predictor(service, model, texts):
    assert service("/health") == (200, {"status": "ok"})
    status, answer = service("/predict", {"texts": texts})
    assert status == 200
    expected = NerPredictor(model, "cpu")(texts)
    for found, record in zip(answer["results"], expected):
        assert found["text"] == record["text"]
        spans = [[(one["start"], one["end"], one["type"]) for one in of["entities"]] for of in (found, record)]
        assert spans[0] == spans[1]
    assert len(answer["results"]) == len(texts)
    assert service("/predict", {"texts": []}) == (200, {"results": []})


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/nope", None, 404, "nothing at /nope; POST to /predict"),
        ("/predict", None, 405, "GET is not for /predict"),
        ("/predict", b"{", 400, "malformed JSON"),
        ("/predict", b"\xff", 400, "malformed JSON"),
        ("/predict", [], 400, "there is no list of texts"),
        ("/predict", {"texts": "x"}, 400, "there is no list of texts"),
        ("/predict", {"texts": ["x", 1]}, 400, "texts[1]: is no string"),
        ("/predict", {"texts": ["a\0"]}, 400, 'texts[0]: "text" holds a NUL'),
        ("/predict", {"texts": ["x"] * 51}, 413, "51 texts; send 50 or less at once"),
        ("/predict", {"texts": ["x" * 101]}, 413, "texts[0]: 101 characters; send 100 or less"),
        ("/predict", {"texts": ["x" * 200_000]}, 413, "the body has more than 0.1 MB"),
    ],
)
def test_service_says_what_is_wrong(service, path, body, status, message):
    found, answer = service(path, body)
    assert (found, answer[: len(message)]) == (status, message)


def test_every_request_is_answered_or_refused(service, texts):
    with ThreadPoolExecutor(100) as threads:
        given = [texts[number % len(texts)] for number in range(300)]
        answers = list(threads.map(lambda text: service("/predict", {"texts": [text]}), given))
    assert {status for status, _ in answers} <= {200, 503}
    answered = [(text, answer) for text, (status, answer) in zip(given, answers) if status == 200]
    assert answered and all(answer["results"][0]["text"] == text for text, answer in answered)
