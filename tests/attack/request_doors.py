"""Requests of any size to a service of small models, as doors (:mod:`tests.attack.text_doors`)."""

import functools
import itertools
from pathlib import Path

from tests.attack.settings_targets import answer, started
from tests.attack.text_doors import SENTENCE, A, Door, Sent, distinct, place, text_of
from tests.attack.text_targets import FLAT
from tests.attack.watchdog import json_bytes
from tests.helpers.models import write_small_ner
from tests.tasks.commands.conftest import write_models
from tests.tasks.serving.conftest import REAL


@functools.cache
def _service():
    """A service with a small model of each kind."""
    from paddle_rope.tasks.serving.models import open_works
    from paddle_rope.tasks.serving.settings import ServiceSettings, model_sources

    home = Path(place().name)
    reading = {"window_tokens": 32, "longest_text": 32, "longest_entity": 8, "thresholds": 5.0}
    folders = {"entities": write_small_ner(home / "entities", FLAT, with_features=True, **reading)}
    folders |= write_models(home, {name: REAL[name] for name in ("classes", "pairs", "cross")})
    sources = model_sources([f"{name}={path}" for name, path in folders.items()])
    settings = ServiceSettings(models=sources, device="cpu")
    return started(settings, open_works(settings))


def posted(body_of, path="/predict") -> Door:
    """A request, whose body for a size is bytes or JSON."""

    def door(n):
        loop, application, _ = _service()
        body = body_of(n)
        body = body if isinstance(body, bytes) else json_bytes(body)

        def receive():
            status, content = loop.run_until_complete(answer(application, body, path))
            assert status in (200, 400, 422), content[:300]
            return len(content)

        return Sent(len(body), receive)

    return door


def found_in(text, **wishes) -> Door:
    """Entities of one text; its function and those among the wishes take the size."""

    def body(n):
        return {"texts": [text(n)], **{key: wish(n) if callable(wish) else wish for key, wish in wishes.items()}}

    return posted(body)


def terms(strings, mode="force", types=1):
    """A dictionary of strings that a function of the size gives."""
    names = [f"t{number}" for number in range(types)] if mode == "force" else ["name"]

    def dictionary(n):
        return [{"term": term, "type": kind, "mode": mode} for term, kind in zip(strings(n), itertools.cycle(names))]

    return dictionary


STUDIO = "/label-studio/"
BEST = {"min_probability": 1e-300, "top_k": 10**9}  # all spans that a window may have
REQUESTS = {  # name -> a door and its size
    "a long text": (found_in(text_of), 1000),
    "spaces": (found_in(" ".__mul__), 2000),
    "letters": (found_in(A), 500),
    "marks": (found_in(lambda n: "e" + "\u0301" * n), 2000),
    "ends of sentences": (found_in("。".__mul__), 2000),
    "many texts": (posted(lambda n: {"texts": [SENTENCE] * n}), 40),
    "escapes": (posted(lambda n: b'{"texts": ["%s"]}' % (b"\\u0061" * n)), 500),
    "low threshold": (found_in(text_of, min_probability=0.001), 1000),
    "lowest threshold, few": (found_in(text_of, min_probability=1e-300, top_k=3), 500),
    "lowest threshold, all": (found_in(text_of, **BEST), 300),
    "consistent": (found_in(text_of, consistent=True, **BEST), 300),
    "types": (found_in(A, types=distinct), 5000),
    "thresholds of types": (found_in(A, min_probability=lambda n: dict.fromkeys(distinct(n), 0.5)), 5000),
    "terms of 100 types": (found_in(A, dictionary=terms(lambda n: "a" * n, types=100)), 200),
    "terms of too many types": (found_in(A, dictionary=terms(distinct, types=10_000)), 2000),
    "distinct terms": (found_in(text_of, dictionary=terms(distinct)), 2000),
    "nested terms": (found_in(A, dictionary=terms(lambda n: map(A, range(1, 8)), types=100)), 500),
    "growing terms": (found_in(A, dictionary=terms(lambda n: map(A, range(1, n + 1)), types=100)), 60),
    "nested hints": (found_in(A, dictionary=terms(lambda n: map(A, range(1, 10)), "hint")), 500),
    "consistent terms": (found_in(A, dictionary=terms(lambda n: "a" * n, types=100), consistent=True), 200),
    "unknown keys": (posted(lambda n: {"texts": [], **dict.fromkeys(distinct(n))}), 2000),
    "wrong texts": (posted(lambda n: {"texts": [1] * n}), 5000),
    "brackets": (posted(lambda n: b"[" * n), 100_000),
    "digits": (posted(lambda n: b'{"texts": [], "top_k": %s}' % (b"9" * n)), 100_000),
    "classes": (posted(lambda n: {"texts": [text_of(1000)] * n}, "/predict/classes"), 10),
    "pairs": (posted(lambda n: {"pairs": [["甲", text_of(1000)]] * n}, "/predict/pairs"), 10),
    "a long pair": (posted(lambda n: {"pairs": [["甲", text_of(n)]]}, "/predict/cross"), 2000),
    "a vector": (posted(lambda n: {"texts": [text_of(n)]}, "/embed/pairs"), 2000),
    "documents to rank": (posted(lambda n: {"query": "甲", "documents": distinct(n)}, "/rerank"), 60),
    "Label Studio's tasks": (posted(lambda n: {"tasks": [{"data": {"text": SENTENCE}}] * n}, f"{STUDIO}predict"), 40),
    "Label Studio's labels": (posted(lambda n: {"schema": f"<View>{'<Labels/>' * n}</View>"}, f"{STUDIO}setup"), 5000),
}
