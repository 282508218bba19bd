"""Opened models, and what a service computes with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.common.errors import missing_paddle_named
from tasks.matching.data import prediction_records
from tasks.recipes import open_predictor
from tasks.serving.settings import ModelSource, Settings

EXAMPLE_TEXTS = ["浙商银行企业信贷部叶老桂博士在杭州出席了会议。", "今天天气很好。"]
EXAMPLE_PAIRS = [["花呗如何还款", "花呗怎么还钱"], ["花呗如何还款", "今天天气很好"]]


@dataclass(frozen=True)
class Work:
    """One thing that a model does: ``compute`` takes a list of items (texts, or pairs of them) and returns for each one
    its result as JSON. It is called by one thread."""

    model: str
    verb: str
    compute: Callable[[Sequence[Any]], list[str]]


def open_works(settings: Settings) -> dict[tuple[str, str], Work]:
    """Open the models: dict from (name of the model, ``"predict"`` or ``"embed"``) to a :class:`Work` that has computed
    once, so that what libraries prepare at their first use is there.

    Raises:
        InputError: a folder is damaged, or its device cannot be used.
    """
    works = {}
    for source in settings.models:
        for verb, compute in _open(source, settings).items():
            works[source.name, verb] = Work(source.name, verb, compute)
            compute(examples(source, verb))
    return works


def examples(source: ModelSource, verb: str) -> list:
    """Items that the model takes, for its documentation."""
    return EXAMPLE_PAIRS if (source.recipe, verb) == ("matching", "predict") else EXAMPLE_TEXTS


def _open(source, settings):
    options = {"device": settings.device, "batch_size": settings.batch_size, "bf16": settings.bf16}
    with missing_paddle_named():
        predictor = open_predictor(source.folder, **options)
    if source.recipe != "matching":
        return {"predict": lambda texts: list(map(_json, predictor(texts)))}

    def score(pairs):
        pairs = list(map(tuple, pairs))
        return list(map(_json, prediction_records(pairs, predictor.score(pairs)[:, None], predictor.threshold)))

    def embed(texts):
        vectors = np.round(predictor.encode(texts).astype(np.float64), 7).tolist()
        return [_json({"text": text, "vector": vector}) for text, vector in zip(texts, vectors)]

    return {"predict": score, "embed": embed} if source.embeds else {"predict": score}


def _json(record):
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
