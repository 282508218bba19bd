"""What requests may want, and the service in the forms of other programs, with small models of random weights."""

import base64
import json
import time

import numpy as np
import pytest

from paddle_rope.tasks.ner.prediction.entity_filter import EntityFilter, EntityRuler
from paddle_rope.tasks.recipes import load
from paddle_rope.tasks.serving.models import open_works
from paddle_rope.tasks.serving.settings import ServiceSettings, model_sources
from tests.helpers.browser import chromium, open_page
from tests.tasks.ner.conftest import spans_of
from tests.tasks.serving.conftest import REAL, running
from tests.tasks.serving.test_models import TEXTS

pytestmark = pytest.mark.slow
KEY = {"Content-Type": "application/json", "Authorization": "Bearer secret"}
CONFIGURATION = '<View><Labels name="l" toName="t"/><Text name="t" value="$content"/></View>'


@pytest.fixture(scope="module")
def client(trained):
    words = [f"{name}={folder}" for name, folder in trained.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PADDLE_ROPE_SERVE_API_KEY", "secret")
        patch.setenv("PADDLE_ROPE_SERVE_LOG", "json")
        with running("-m", "paddle_rope", "serve", *words, "--max_texts", "50") as client:
            yield client


@pytest.fixture(scope="module")
def entities(trained):
    return load(trained["entities"], device="cpu")


@pytest.fixture
def ask(client):
    def ask(path, status=200, **body):
        answered, _, answer = client.ask("POST", path, json.dumps(body), KEY)
        assert answered == status, answer
        return answer

    return ask


@pytest.mark.parametrize("choice", [
    {"types": ["b"]}, {"top_k": 1}, {"min_probability": 0.9}, {"min_probability": {"a": 0.99}}, {"consistent": True},
    {},
], ids=str)  # fmt: skip
def test_a_request_chooses_and_the_predictor_agrees(ask, entities, choice):
    expected = spans_of(entities(TEXTS, entity_filter=EntityFilter(**choice)))
    assert spans_of(ask("/predict/entities", texts=TEXTS, **choice)["results"]) == expected and any(expected)


def test_the_most_probable_of_very_many_spans_are_found(ask, entities):
    text, choice = "".join(TEXTS)[:200], {"min_probability": 1e-300, "top_k": 3}
    expected = spans_of(entities([text], entity_filter=EntityFilter(**choice)))
    assert spans_of(ask("/predict/entities", texts=[text], **choice)["results"]) == expected
    assert len(expected[0]) == 3


def test_a_dictionary_of_a_request_sets_entities_of_any_type(ask):
    terms = [{"term": "浙商银行", "type": "company"}, {"term": "银行", "type": "company"}]
    (found,) = ask("/predict", texts=["浙商银行与银行"], dictionary=terms, types=["company"])["results"]
    assert [(one["start"], one["end"], one["score"]) for one in found["entities"]] == [(0, 4, None), (5, 7, None)]


def test_a_request_with_low_thresholds_is_computed_alone(trained):
    settings = ServiceSettings(models=model_sources([f"entities={trained['entities']}"]), device="cpu")
    work = open_works(settings)["entities", "predict"]

    def is_computed_with_others(**choice):
        return work.filtered(EntityFilter(**choice)).key == work.key

    hint = EntityRuler([("甲", "a", "hint")])
    assert is_computed_with_others(min_probability=0.9, types=("a",), top_k=3, consistent=True)
    assert is_computed_with_others(ruler=EntityRuler([("甲", "a", "force")]))
    assert is_computed_with_others(min_probability=0.9, ruler=hint)
    assert not is_computed_with_others(min_probability=0.1) and not is_computed_with_others(ruler=hint)
    low = [work.filtered(EntityFilter(min_probability=0.1, top_k=top_k)).key for top_k in (None, 3, 4)]
    assert low[0] != low[1] == low[2]


def tasks(*data, **more):
    return {"tasks": [{"data": one} for one in data], **more}


def listed(*terms, mode="force", **more):
    return {"dictionary": [{"term": term, "type": kind, "mode": mode} for term, kind in terms], **more}


PREDICT, STUDIO = "/predict", "/label-studio/predict"
WRONG = [  # path, body, part of the error
    (PREDICT, {"types": ["nothing"]}, "nothing"),
    (PREDICT, {"top_k": 0}, "top_k"),
    *(("/predict/pairs", {"pairs": [wrong]}, "pairs[0]") for wrong in (["a"], ["a", "b", "c"], "ab", ["a", None])),
    (PREDICT, {"min_probability": 1e-300}, "at least 0.001"),
    (PREDICT, {"min_probability": 0.001, "texts": ["a" * 512]}, "more than 2,048 spans"),
    (PREDICT, listed(("a", "a"), mode="maybe"), "mode"),
    (PREDICT, {"dictionary": [{"term": "a", "typ": "a"}]}, "dictionary[0]: unknown key 'typ'; did you mean 'type'?"),
    (PREDICT, listed(("", "a")), "term"),
    (PREDICT, listed(("a", "x"), mode="hint"), "'x'"),
    (PREDICT, listed(*(("a", f"t{number}") for number in range(101))), "101 types, more than 100"),
    (PREDICT, listed(*((f"{number:0500}", "t") for number in range(201))), "100,500 characters in a dictionary"),
    (PREDICT, listed(*(("甲", f"t{number}") for number in range(100)), texts=["甲" * 1001]), "100,000 places"),
    (PREDICT, listed(*(("甲" * size, "a") for size in range(1, 12)), texts=["甲" * 9999], mode="hint"), "places"),
    (PREDICT, {"patterns": ["a"]}, "patterns"),  # of a stranger may take for ever
    ("/v1/embeddings", {"input": "a", "model": "entities"}, "'entities' is a model of ner; choose one of pairs"),
    (STUDIO, tasks({}), "'text'"),
    (STUDIO, tasks({"text": "a"}, label_config="<View/>"), "Labels"),
    (STUDIO, tasks({"text": "a"}, label_config="<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"), "document type"),
    (STUDIO, tasks({"text": "\ud800"}), "surrogate"),
    ("/label-studio/setup", {"schema": "\ud800"}, "XML"),
    (STUDIO, tasks(*[{"text": "a"}] * 51), "51 texts"),
]


@pytest.mark.parametrize("path, body, part", WRONG, ids=range(len(WRONG)))
def test_wrong_filters_and_tasks_are_refused(ask, path, body, part):
    assert part in ask(path, 422, **({"texts": ["a"], **body} if path == PREDICT else body))["error"]


def test_only_bi_encoders_embed_and_openai_and_rerank_give_the_numbers_of_the_models(ask, client, trained):
    models = client.ask("GET", "/models", headers=KEY)[2]["models"]
    assert [model["embeds"] for model in models] == [False, False, True, False]
    ask("/embed/cross", 404, texts=["a"])
    pairs = load(trained["pairs"], device="cpu")
    answer = ask("/v1/embeddings", input=TEXTS[:3], model="pairs")
    vectors = [one["embedding"] for one in answer["data"]]
    np.testing.assert_allclose(vectors, pairs.encode(TEXTS[:3]), atol=1e-5)
    assert ask("/v1/embeddings", input=TEXTS[0])["data"][0]["index"] == 0
    scores = pairs.score([(TEXTS[0], text) for text in TEXTS[:9]])
    ranked = ask("/rerank", query=TEXTS[0], documents=TEXTS[:9], top_n=4, model="pairs")["results"]
    assert [one["index"] for one in ranked] == sorted(range(9), key=lambda index: -scores[index])[:4]
    assert [one["relevance_score"] for one in ranked] == pytest.approx(sorted(scores, reverse=True)[:4], abs=1e-4)


def test_label_studio_gets_regions_of_its_own_names(ask, entities, client):
    assert client.get("/label-studio/health")[1]["status"] == "UP"
    assert ask("/label-studio/setup", schema=CONFIGURATION, project="1.2", hostname="x")["model_version"]
    given = tasks(*({"content": text} for text in TEXTS), label_config=CONFIGURATION, project="1.2", params={})
    answer = ask("/label-studio/entities/predict", **given)
    for result, found in zip(answer["results"], spans_of(entities(TEXTS)), strict=True):
        assert {(one["from_name"], one["to_name"], one["type"]) for one in result["result"]} <= {("l", "t", "labels")}
        values = [(one["value"]["start"], one["value"]["end"], *one["value"]["labels"]) for one in result["result"]]
        assert values == found


def test_the_key_protects_models_and_every_request_is_logged(client):
    wrong = ("", "Bearer other", "secret", "Basic secret", f"Basic {base64.b64encode(b'user:other').decode()}")
    for given in wrong:
        headers = {"Content-Type": "application/json", "X-Request-ID": "mine-1", "Authorization": given}
        status, given, answer = client.ask("POST", "/predict", '{"texts": ["a"]}', headers)
        assert status == 401 and "Bearer" in answer["error"] and given["X-Request-ID"] == "mine-1"
    status = {path: client.get(path)[0] for path in ("/models", "/metrics", "/health", "/ready", "/")}
    assert status == {"/models": 401, "/metrics": 401, "/health": 200, "/ready": 200, "/": 200}
    client.ask("GET", "/models", headers={**KEY, "X-Request-ID": "a b"})
    until = time.monotonic() + 20
    while time.monotonic() < until:
        logged = [json.loads(line) for line in client.lines if line.startswith("{")]
        if any(one["path"] == "/" for one in logged) and logged[-1]["path"] == "/models":
            break
    assert [one["status"] for one in logged if one["request_id"] == "mine-1"] == [401] * len(wrong)
    basic = {"Authorization": f"Basic {base64.b64encode(b'user:secret').decode()}"}  # as Label Studio sends it
    assert client.ask("GET", "/models", headers=basic)[0] == 200
    assert logged[-1]["status"] == 200 and logged[-1]["request_id"] not in ("a b", "mine-1")


@pytest.mark.skipif(chromium() is None, reason="no browser: apt-get install chromium")
def test_the_page_finds_entities(client, entities, tmp_path):
    text = next(text for text in TEXTS if entities([text])[0]["entities"])
    with open_page(tmp_path) as page:
        page.open(f"http://127.0.0.1:{client.port}/")
        page.wait_for("!document.getElementById('key_label').hidden")
        for key, kind, english, chinese in (
            ("", "quiet", "Enter the API key of this service.", "请输入本服务的密钥。"),
            ("other", "error", "The API key is wrong.", "密钥不对。"),
        ):
            page.run(f"at('key').value = '{key}'; document.forms[0].requestSubmit()")
            page.wait_for(f"at('message').textContent === '{english}' && at('message').className === '{kind}'")
            page.run("at('language').click()")
            assert page.run("at('message').textContent") == chinese
            page.run("at('language').click()")
        page.run("at('key').value = 'secret'; at('key').onchange()")
        page.wait_for("models.length === 4 && !at('message').textContent")
        assert page.run("[...at('model').options].map(option => option.value)") == list(REAL)
        page.run(f"at('text').value = {json.dumps(text)}; document.forms[0].requestSubmit()")
        page.wait_for("!at('copy').hidden")
        marks = page.run("[...document.querySelectorAll('mark')].map(mark => mark.dataset.type)")
        assert marks and set(marks) <= {one["type"] for one in entities([text])[0]["entities"]}
        assert page.run("at('results').textContent") == text and page.errors == []
        # without HTTPS navigator.clipboard is missing; a browser copies what is selected, if its user has clicked
        copy = "document.execCommand = () => { window.copied = document.activeElement.value; return true }"
        page.run(f"{copy}; at('copy').click()")
        assert json.loads(page.run("copied"))[0]["text"] == text and page.run("at('message').textContent") == "copied"
        nested = [{"start": at, "end": 300 - at, "type": "a"} for at in range(7)]
        page.run(f"answered = [{json.dumps({'text': '甲' * 300, 'entities': nested})}]; draw()")
        lines = page.run("[...document.querySelector('mark').getClientRects()].map(box => [box.top, box.bottom])")
        assert len(lines) > 3 and all(bottom < top for (_, bottom), (top, _) in zip(lines, lines[1:]))
        page.run("document.querySelectorAll('#types input').forEach(box => box.click())")
        assert page.run("document.querySelectorAll('mark').length") == 0
        page.run("at('language').click()")
        assert page.run("document.documentElement.lang") == "zh" and "预测" in page.text()
        page.run("at('model').value = 'pairs'; at('model').onchange()")
        assert page.run("at('copy').hidden && !at('results').textContent")
        page.run("at('text').value = 'a'; document.forms[0].requestSubmit()")
        page.wait_for("at('message').className === 'error'")
