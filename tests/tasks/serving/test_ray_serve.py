"""The application on Ray Serve: as under uvicorn, with Ray's replicas in place of workers."""

import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from tests.conftest import REPOSITORY
from tests.tasks.ner.conftest import spans_of

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'paddle_rope[ray]'")
pytestmark = pytest.mark.slow
TEXTS = [text[start:] for text in UNSEEN_SENTENCES for start in range(4)]


@pytest.fixture(scope="module")
def service(trained):
    """``service(path, body)`` -> (status, body) of a request to a model on Ray Serve."""
    from ray import serve

    from paddle_rope.tasks.serving.ray_serve import Arguments, build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"env_vars": {"PYTHONPATH": str(REPOSITORY)}}
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, runtime_env=environment)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(
            build(Arguments(model=f"mine={trained['entities']}", max_queue=8, max_texts=50, max_body_bytes=400_000))
        )

        def ask(path, body=None):
            data, headers = body and json.dumps(body).encode("utf-8"), {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        yield ask
    finally:
        serve.shutdown()
        ray.shutdown()


def test_a_replica_answers_as_the_predictor(service, trained):
    status, answer = service("/predict/mine", {"texts": TEXTS})
    expected = spans_of(NerPredictor(trained["entities"], "cpu")(TEXTS))
    assert status == 200 and spans_of(json.loads(answer)["results"]) == expected and any(expected)


@pytest.mark.parametrize("path, body, status, message", [
    ("/ready", None, 200, "ready"), ("/metrics", None, 200, "paddle_rope_ready_workers 1.0"),
    ("/predict", {"texts": ["x" * 400_001]}, 413, "400000 bytes"),
])  # fmt: skip
def test_paths_and_limits_are_those_of_the_application(service, path, body, status, message):
    found, answer = service(path, body)
    assert found == status and message in answer


def test_every_request_is_answered_or_refused(service):
    given = [TEXTS[number % len(TEXTS)] for number in range(100)]
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda text: service("/predict", {"texts": [text]}), given))
    assert {status for status, _ in answers} <= {200, 503}
    answered = [(text, json.loads(answer)) for text, (status, answer) in zip(given, answers) if status == 200]
    assert answered and all(answer["results"][0]["text"] == text for text, answer in answered)
