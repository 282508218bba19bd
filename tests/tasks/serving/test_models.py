"""Real models of all recipes, asked from several threads at once: they answer as the predictors do; on Ray Serve
with Ray's replicas in place of workers."""

import json
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from paddle_rope.tasks.recipes import load
from tests.conftest import REPOSITORY
from tests.helpers.models import FORMATS, export, like
from tests.tasks.ner.conftest import spans_of
from tests.tasks.serving.conftest import REAL, ask, running

pytestmark = pytest.mark.slow
TEXTS = [text[start : start + 12] for text in UNSEEN_SENTENCES for start in range(0, 8)] + ["", "a\u0000b", "😀"]
PAIRS = list(zip(TEXTS, TEXTS[3:]))


@pytest.fixture(scope="module", params=FORMATS)
def folders(request, trained, tmp_path_factory):
    """The folders of the models: all in ONNX; or some exported for Paddle Inference, and the others as trained."""
    place = tmp_path_factory.mktemp(request.param)
    exported = list(trained) if request.param == "onnx" else ["entities", "cross"]
    return trained | {name: export(place / name, request.param, trained[name]) for name in exported}


@pytest.fixture(scope="module")
def client(folders):
    """A service of the models, which ends without an error when it is told to; then its port is free."""
    words = [f"{name}={folder}" for name, folder in folders.items()]
    with running("-m", "paddle_rope", "serve", *words, "--batch_size", "8") as client:
        yield client
        client.process.terminate()
        assert client.process.wait(60) == 0
    socket.create_server(("127.0.0.1", client.port)).close()


def test_answers_to_several_threads_are_those_of_the_predictors(client, folders):
    entities, classes, pairs, cross = (load(folders[name], device="cpu") for name in REAL)
    vectors = [{"text": text, "vector": vector.tolist()} for text, vector in zip(TEXTS, pairs.encode(TEXTS))]
    expected = {  # path -> its field, its items, and the records of all of them
        "/predict": ("texts", TEXTS, entities(TEXTS)),
        "/predict/entities": ("texts", TEXTS, entities(TEXTS)),
        "/predict/classes": ("texts", TEXTS, classes(TEXTS)),
        "/predict/pairs": ("pairs", PAIRS, pairs(PAIRS)),
        "/predict/cross": ("pairs", PAIRS, cross(PAIRS)),
        "/embed": ("texts", TEXTS, vectors),
    }

    def ask(seed):
        draw = random.Random(seed)
        for _ in range(15):
            path = draw.choice(list(expected))
            field, items, records = expected[path]
            places = [draw.randrange(len(items)) for _ in range(draw.choice([1, 1, 2, 20]))]
            status, _, answer = client.ask("POST", path, json.dumps({field: [items[place] for place in places]}))
            assert status == 200, answer
            assert answer["results"] == like([records[place] for place in places])

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, range(6))) == [None] * 6
    assert sum(len(record["entities"]) for record in expected["/predict"][2]) > 5


def test_all_models_but_those_in_onnx_load_paddle(client, folders):
    is_onnx = (folders["entities"] / "model.onnx").is_file()
    workers = psutil.Process(client.process.pid).children()
    loads_paddle = ["libpaddle" in Path(f"/proc/{worker.pid}/maps").read_text() for worker in workers]
    assert any(loads_paddle) != is_onnx


# ---- Ray Serve
@pytest.fixture(scope="module")
def service(trained):
    """``service(path, body)`` -> (status, answer) of a request to a model on Ray Serve."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'paddle_rope[ray]'")
    from ray import serve

    from paddle_rope.tasks.serving.ray_serve import Arguments, build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # by default Ray stops a proxy that has not begun after 5 s, as on a busy machine, and begins another one
    environment = {"env_vars": {"PYTHONPATH": str(REPOSITORY), "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60"}}
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, runtime_env=environment)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        limits = {"max_queue": 8, "max_texts": 50, "max_body_bytes": 400_000}
        serve.run(build(Arguments(model=f"mine={trained['entities']}", **limits)))
        yield lambda path, body=None: ask(port, "POST" if body else "GET", path, body and json.dumps(body))[::2]
    finally:
        serve.shutdown()
        ray.shutdown()


def test_a_replica_answers_as_the_predictor_within_the_limits_of_the_application(service, trained):
    status, answer = service("/predict/mine", {"texts": TEXTS})
    expected = spans_of(NerPredictor(trained["entities"], "cpu")(TEXTS))
    assert status == 200 and spans_of(answer["results"]) == expected and any(expected)
    status, metrics = service("/metrics")
    assert status == 200 and "paddle_rope_ready_workers 1.0" in metrics
    status, answer = service("/predict", {"texts": ["x" * 400_001]})
    assert status == 413 and "400000 bytes" in answer["error"]


def test_every_request_is_answered_or_refused(service):
    given = [TEXTS[number % len(TEXTS)] for number in range(100)]
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda text: service("/predict", {"texts": [text]}), given))
    assert {status for status, _ in answers} <= {200, 503}
    answered = [(text, answer) for text, (status, answer) in zip(given, answers) if status == 200]
    assert answered and all(answer["results"][0]["text"] == text for text, answer in answered)
