"""Routes in the protocols of other programs: OpenAI's embeddings, reranking, and Label Studio's ML backend."""

import functools
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Optional, Union
from xml.etree import ElementTree

import fastapi
from pydantic import BaseModel, Field
from starlette.requests import Request

from paddle_rope.options import shown
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.prediction_options import PAIRS
from paddle_rope.tasks.common.texts.json_records import check_encodable
from paddle_rope.tasks.ner.formats.label_studio import FROM_NAME, TEXT_KEY, TO_NAME, prediction_task
from paddle_rope.tasks.serving.settings import ModelSource

# With any length bound, pydantic checks the characters and refuses half a surrogate pair.
Text = Annotated[str, Field(strict=True, min_length=0)]


class Embeddings(BaseModel):
    input: Union[Text, list[Text]]
    model: Optional[str] = None


class Rerank(BaseModel):
    query: Text
    documents: list[Text]
    top_n: Annotated[Optional[int], Field(ge=1)] = None
    model: Optional[str] = None


class Task(BaseModel):
    """A task of Label Studio."""

    data: dict[str, Any]


class Tasks(BaseModel):
    """What Label Studio sends for predictions; it sends more, which is ignored."""

    tasks: list[Task]
    label_config: str = ""


def add_protocols(app: fastapi.FastAPI, service: Any) -> None:
    """Add ``/v1/embeddings``, ``/rerank`` and ``/label-studio/...`` where there are models for them."""
    sources = service.settings.models
    embedding = [source for source in sources if source.embeds]
    matching = [source for source in sources if source.predicting.TAKES == PAIRS]
    finding = [source for source in sources if source.predicting.FINDS_ENTITIES]

    async def embeddings(request: Request, body: Embeddings) -> dict:
        source = _chosen(sources, embedding, body.model)
        items = [body.input] if isinstance(body.input, str) else body.input
        results = map(json.loads, await service.results(request, source.name, "embed", items))
        vectors = enumerate(result["vector"] for result in results)
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in vectors]
        used = sum(map(len, items))  # characters, which are tokens here
        usage = {"prompt_tokens": used, "total_tokens": used}
        return {"object": "list", "data": data, "model": source.name, "usage": usage}

    async def rerank(request: Request, body: Rerank) -> dict:
        source = _chosen(sources, matching, body.model)
        pairs = [[body.query, document] for document in body.documents]
        results = await service.results(request, source.name, "predict", pairs)
        scores = [json.loads(result)["score"] for result in results]
        order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[: body.top_n]
        ranked = [{"index": index, "relevance_score": scores[index]} for index in order]
        return {"model": source.name, "results": ranked}

    post = functools.partial(app.post, tags=["other programs"])
    if embedding:
        post("/v1/embeddings", summary="vectors of texts, as OpenAI's API has them")(embeddings)
    if matching:
        post("/rerank", summary="documents by how well they match a query")(rerank)
    for number, source in enumerate(finding):
        for path in [f"/label-studio/{source.name}"] + ["/label-studio"] * (number == 0):
            _add_label_studio(app, service, source, path)


def _chosen(sources: Sequence[ModelSource], fitting: list[ModelSource], name: str | None) -> ModelSource:
    """The source of a name among the ``fitting`` ones; the first of them for None."""
    found = next((source for source in fitting if name in (None, source.name)), None)
    if found is None:
        recipe = next((f"is a model of {source.recipe}" for source in sources if source.name == name), "is not served")
        raise InputError(f"model: {shown(name)} {recipe}; choose one of {', '.join(one.name for one in fitting)}")
    return found


def _add_label_studio(app, service, source, path):
    version = f"paddle_rope {source.name}"

    @app.get(f"{path}/health", tags=["other programs"], summary="for Label Studio: the backend is there")
    async def health() -> dict:
        return {"status": "UP", "model_class": version}

    @app.post(f"{path}/setup", tags=["other programs"], summary="for Label Studio: a project connects")
    async def setup(body: dict[str, Any]) -> dict:
        names_in(str(body.get("schema") or ""))
        return {"model_version": version}

    @app.post(f"{path}/predict", tags=["other programs"], summary="for Label Studio: entities of tasks")
    async def predict(request: Request, body: Tasks) -> dict:
        from_name, to_name, key = names_in(body.label_config)
        texts = [task.data.get(key) for task in body.tasks]
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                found = type(text).__name__
                raise InputError(f"tasks[{number}]: expected a text under {key!r} of its data, found {found}")
            check_encodable(text, repr(key), f"tasks[{number}]")
        results = await service.results(request, source.name, "predict", texts)
        predictions = [prediction_task(json.loads(result), version)["predictions"][0] for result in results]
        for prediction in predictions:
            for region in prediction["result"]:
                if "from_name" in region:  # relations have none
                    region.update(from_name=from_name, to_name=to_name)
        return {"results": predictions, "model_version": version}


def names_in(label_config: str) -> tuple[str, str, str]:
    """The names of the labels, of the text, and of the text's key in the tasks of a Label Studio project. Raises
    InputError if the configuration is not XML, or labels no text."""
    if not label_config:
        return FROM_NAME, TO_NAME, TEXT_KEY
    if re.search("<!(DOCTYPE|ENTITY)", label_config, re.IGNORECASE):
        raise InputError("label_config: a document type is not allowed; remove it")
    try:
        root = ElementTree.fromstring(label_config)
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise InputError(f"label_config: is not XML ({error})") from None
    texts = {node.get("name"): node.get("value", "").removeprefix("$") for node in root.iter("Text")}
    for labels in root.iter("Labels"):
        if labels.get("toName") in texts and labels.get("name"):
            return labels.get("name"), labels.get("toName"), texts[labels.get("toName")]
    raise InputError(
        "label_config: expected <Labels toName=...> and the <Text> of that name; see docs/guides/annotation.md"
    )
