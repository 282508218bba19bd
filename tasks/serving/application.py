"""The routes of the service, with their requests and responses."""

import asyncio
import contextlib
import gc
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import fastapi
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

import paddle_rope
from paddle_rope.machine import prepare_process
from paddle_rope.options import did_you_mean, shown
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.prediction_options import PAIRS, TEXTS
from paddle_rope.tasks.ner.arguments import FilterOptions
from paddle_rope.tasks.ner.prediction.entity_filter import EntityFilter, EntityRuler
from paddle_rope.tasks.recipes import PREDICTING, get_options
from paddle_rope.tasks.serving import metrics
from paddle_rope.tasks.serving.batching import Batcher, late
from paddle_rope.tasks.serving.limits import CLIENT_LEFT, Counted, Problem
from paddle_rope.tasks.serving.models import Work, examples, open_works
from paddle_rope.tasks.serving.protocols import Text, add_protocols
from paddle_rope.tasks.serving.settings import ServiceSettings, model_sources

STUCK_SECONDS = 30  # of a batch for which nobody waits any more; then its worker ends
PAGE = Path(__file__).with_name("page.html")
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
LAST_SECONDS = 0.1  # for writing refusals when the service stops
DESCRIPTION = """\
Models of paddle_rope. Every error is JSON, `{"error": "what is wrong and what to do"}`. Open a path and
choose *Execute*: its example is sent."""

EXAMPLE_VECTOR = {"text": "今天天气很好。", "vector": [0.6, -0.8]}
PROBLEM = {
    "description": 'an error, `{"error": ...}`; only after 503 is it worth trying again, after Retry-After seconds'
}
MOST_TERMS, MOST_TYPES = 10_000, 100  # of a dictionary
FILTER: dict[str, Any] = {  # the keys of a request that choose entities
    one.name: (one.type, Field(one.default, description=one.metadata["help"])) for one in fields(FilterOptions)
}
Name = Annotated[str, Field(min_length=1, max_length=1000, strict=True)]


class Body(BaseModel):
    """The JSON of a request, whose keys are all known."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, given: Any) -> Any:
        """Raise ValueError for a key that there is not, or not for this recipe."""
        known = cls.model_fields
        for key in [key for key in given if key not in known] if isinstance(given, dict) else ():
            recipes = [one for one in PREDICTING if key in body_of(one).model_fields and cls is not Term]
            remedy = f"it is for models of {' or '.join(recipes)}" if recipes else did_you_mean(key, known)
            raise ValueError(f"unknown key {shown(key)}; {remedy or 'the keys are ' + ', '.join(known)}")
        return given


class Texts(Body):
    texts: list[Text]


class Pairs(Body):
    pairs: list[Annotated[list[Text], Field(min_length=2, max_length=2)]]


class Term(Body):
    """A term of a request's dictionary."""

    term: Name
    type: Name
    mode: Literal["force", "hint"] = "force"


class EntityTexts(create_model("FilteredTexts", __base__=Texts, **FILTER)):
    """Texts, and which entities to find in them; all keys but ``texts`` may be left out."""

    dictionary: list[Term] = Field([], max_length=MOST_TERMS, description="terms that are entities, or may be")

    def entity_filter(self) -> Optional[EntityFilter]:
        """The filter of the request, None if it has none; raises InputError if a value is out of range, or the
        dictionary has too many types."""
        if self.model_fields_set <= Texts.model_fields.keys():
            return None
        terms = [(one.term, one.type, one.mode) for one in self.dictionary]
        if (found := len({kind for _, kind, _ in terms})) > MOST_TYPES:
            raise InputError(f"dictionary: {found:,} types, more than {MOST_TYPES}; send fewer at once")
        with as_input_error():
            return EntityFilter(**self.model_dump(include=FILTER.keys()), ruler=EntityRuler(terms) if terms else None)


def body_of(recipe: str) -> type[Body]:
    """What /predict takes for the models of a recipe."""
    facts = get_options(recipe)
    return Pairs if facts.TAKES == PAIRS else EntityTexts if facts.FINDS_ENTITIES else Texts


class Service:
    """The state of a worker: its models and its queue."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.batcher = Batcher(settings)
        self.works: dict[tuple[str, str], Work] = {}

    @contextlib.asynccontextmanager
    async def lifespan(self, app: fastapi.FastAPI) -> AsyncIterator[None]:
        """Compute for as long as the application runs."""
        computing = asyncio.create_task(self.batcher.run())
        watching = asyncio.create_task(self._end_if_stuck(computing))
        metrics.READY.set(1)
        yield
        metrics.READY.set(0)
        await asyncio.sleep(LAST_SECONDS)
        watching.cancel()
        computing.cancel()

    async def _end_if_stuck(self, computing: asyncio.Task) -> None:
        """End this process, for a supervisor to start another one, once a batch does not end or no batch can begin."""
        begun = time.monotonic()
        while not computing.done() and time.monotonic() - begun < self.settings.max_seconds + STUCK_SECONDS:
            await asyncio.sleep(1)
            begun = self.batcher.computing_since or time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            print("error: this worker can no longer compute and ends", file=sys.stderr, flush=True)
        os._exit(1)

    async def results(self, request: Request, model: str, verb: str, items: list, entity_filter=None) -> list[bytes]:
        """The result of each item as JSON, computed together with other requests."""
        work = self.works[model, verb]
        work = work.filtered(entity_filter) if entity_filter and work.filtered else work
        characters = [len(text) for item in items for text in ([item] if isinstance(item, str) else item)]
        for bound, found, what in (
            ("max_texts", len(items), "texts"),
            ("max_characters", max(characters, default=0), "characters in a text"),
            ("max_request_characters", sum(characters) * (len(items) > 1), "characters in several texts"),
            ("max_request_characters", work.dictionary, "characters in a dictionary"),
        ):
            if found > (most := getattr(self.settings, bound)):
                raise InputError(f"{found:,} {what}, more than --{bound} {most:,}; send less at once")
        job = self.batcher.submit(work, items)
        left = asyncio.ensure_future(_has_left(request))
        try:
            await asyncio.wait({job.done, left}, timeout=self.settings.max_seconds, return_when=asyncio.FIRST_COMPLETED)
            if job.done.done():
                job.done.result()  # raises what the computation raised
                metrics.TEXTS.labels(model, verb).inc(len(items))
                return job.results
            if left.done():
                raise HTTPException(CLIENT_LEFT, "the client has left")
            raise late(self.settings)
        except asyncio.CancelledError:  # the server is stopping and has no time left for this request
            raise HTTPException(503, "the service has stopped", {"retry-after": "1"}) from None
        finally:
            left.cancel()
            self.batcher.drop(job)


async def _has_left(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass


def open_application(settings: ServiceSettings) -> fastapi.FastAPI:
    """The ASGI application of a service, whose models are opened in the thread that computes with them; raises
    InputError if one cannot be opened."""
    prepare_process()
    sources = model_sources([f"{one.name}={one.folder}" for one in settings.models])  # newer ones after SIGHUP
    service = Service(replace(settings, models=sources))
    service.works = service.batcher.thread.submit(open_works, service.settings).result()
    gc.freeze()  # collecting garbage among everything open now would delay requests again and again
    return build_application(service)


def build_application(service: Service) -> fastapi.FastAPI:
    """The ASGI application of a service."""
    app = FastAPIOffline(
        title="paddle_rope",
        version=paddle_rope.__version__,
        description=DESCRIPTION,
        redoc_url=None,
        swagger_ui_parameters={"defaultModelsExpandDepth": 0, "tryItOutEnabled": True, "validatorUrl": None},
        lifespan=service.lifespan,
    )
    models = service.settings.models
    for verb, sources in (("predict", models), ("embed", [source for source in models if source.embeds])):
        for number, source in enumerate(sources):
            if number == 0:
                _add_route(app, service, source, verb, f"/{verb}", "the default model")
            _add_route(app, service, source, verb, f"/{verb}/{source.name}", "the model")
    add_protocols(app, service)
    _add_status(app, service)
    paths = {route.path for route in app.routes}
    _add_errors(app, models, sorted(paths))
    app.add_middleware(Counted, paths=paths, settings=service.settings, is_full=service.batcher.is_full)
    return app


def _add_route(app, service, source, verb, path, whose):
    facts = source.predicting
    sent, field, summary, result = body_of(source.recipe), facts.TAKES, facts.RESULTS, facts.EXAMPLE
    if verb == "embed":
        sent, field, summary, result = Texts, TEXTS, "vectors of texts, of length 1", EXAMPLE_VECTOR
    example = {"example": {"value": {field: examples(source, verb)}}}

    async def answer(request: Request, body: Annotated[sent, fastapi.Body(openapi_examples=example)]) -> Response:
        entity_filter = body.entity_filter() if sent is EntityTexts else None
        results = await service.results(request, source.name, verb, getattr(body, field), entity_filter)
        return Response(b'{"results": [' + b", ".join(results) + b"]}", media_type="application/json")

    app.post(
        path,
        summary=f"{summary}; {whose}, {source.name}",
        tags=["models"],
        responses={200: {"content": {"application/json": {"example": {"results": [result]}}}}, "default": PROBLEM},
    )(answer)


def _add_status(app, service):
    sources = service.settings.models
    models = [
        {"name": source.name, "recipe": source.recipe, "takes": source.predicting.TAKES, "embeds": source.embeds}
        | {"default": source is sources[0]}
        | ({"types": source.types} if source.types else {})
        for source in sources
    ]

    @app.get("/models", tags=["service"], summary="the models by name")
    async def list_models() -> dict:
        return {"models": models}

    @app.get("/health", tags=["service"], summary="200 while the process works; restart it otherwise")
    async def health() -> dict:
        return {"status": "healthy"}

    @app.get("/ready", tags=["service"], summary="200 while requests are answered")
    async def ready() -> dict:
        return {"status": "ready"}

    @app.get("/metrics", tags=["service"], summary="counts and times for Prometheus", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        content, media_type = metrics.exposition()
        return Response(content, media_type=media_type)

    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return HTMLResponse(PAGE.read_bytes(), headers={"content-security-policy": PAGE_POLICY})


def _why_no_path(path, models, paths):
    source = next((source for source in models if source.name in path.split("/")), None)
    if source is not None:
        own = ", ".join(one for one in paths if source.name in one.split("/"))
        return f"no such path: {path}; {source.name} is a model of {source.recipe}, with the paths {own}"
    recipes = " and ".join(dict.fromkeys(source.recipe for source in models))
    remedy = did_you_mean(path, paths) or "see /docs for the paths, and /models for the models"
    return f"no such path: {path} with models of {recipes}; {remedy}"


def _add_errors(app, models, paths):
    @app.exception_handler(HTTPException)
    async def refused(request, error):
        reasons = {  # of FastAPI's own errors
            "There was an error parsing the body": "the body cannot be read; send JSON in UTF-8",
            "Not Found": _why_no_path(request.url.path, models, paths),
            "Method Not Allowed": f"{request.method} is not possible here; see /docs",
        }
        return Problem(reasons.get(error.detail, error.detail), error.status_code, error.headers)

    @app.exception_handler(InputError)
    async def wrong_input(request, error):
        return Problem(str(error), 422)

    @app.exception_handler(RequestValidationError)
    async def wrong_body(request, error):
        first, *others = error.errors()
        if first["type"] == "json_invalid":
            return Problem(f"malformed JSON at character {first['loc'][-1]}: {first['ctx']['error']}", 400)
        place = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, first["loc"][1:])) or "the body")
        reason = first["msg"].removeprefix("Value error, ")
        return Problem(f"{place}: {reason}{f' (and {len(others)} more)' if others else ''}", 422)

    @app.exception_handler(Exception)
    async def failed(request, error):  # the server writes the traceback into its log
        return Problem("the service failed at this request; its log says why", 500)
