"""Open models, and the work that a service does with them."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddle_rope.tasks.common.errors import InputError, missing_package_named
from paddle_rope.tasks.common.prediction_options import PAIRS, PredictorOptions
from paddle_rope.tasks.ner.prediction.entity_filter import MODES, EntityFilter
from paddle_rope.tasks.recipes import load
from paddle_rope.tasks.serving.settings import ModelSource, ServiceSettings

MOST_PLACES = 100_000  # of a request's dictionary in its texts
EXAMPLE_TEXTS = ["浙商银行企业信贷部叶老桂博士在杭州出席了会议。", "今天天气很好。"]
EXAMPLE_PAIRS = [["花呗如何还款", "花呗怎么还钱"], ["花呗如何还款", "今天天气很好"]]


def characters_of(items: Sequence[Any]) -> int:
    """The characters of texts, or of pairs of texts."""
    return sum(len(item) if isinstance(item, str) else sum(map(len, item)) for item in items)


@dataclass(frozen=True)
class Work:
    """One thing that a model does with items, which are texts or pairs of texts. Only one thread calls it."""

    model: str  # its name
    verb: str  # "predict" or "embed"
    compute: Callable[[Sequence[Any]], Sequence[Any]]  # from pieces of items to the result of each
    # from an item to its pieces, each with its size in tokens or characters
    pieces: Callable[[Any], Iterable[tuple[Any, int]]] = lambda item: [(item, characters_of([item]))]
    # from an item and the results of its pieces to its result as JSON
    join: Callable[[Any, list], bytes] = lambda item, results: results[0]
    # from the filter of a request to its work; None where there are no entities
    filtered: Callable[[EntityFilter], Work] | None = None
    bounds: tuple[float, ...] = ()  # the thresholds of its spans, and whether only the highest are kept
    dictionary: int = 0  # characters of the dictionary that it holds

    @property
    def key(self) -> tuple:
        """Pieces of works with the same key are computed together. A request with low thresholds, which make work, is
        computed without others."""
        return self.model, self.verb, self.bounds


def open_works(settings: ServiceSettings) -> dict[tuple[str, str], Work]:
    """Open the models: dict from (name of the model, ``"predict"`` or ``"embed"``) to a :class:`Work` that has computed
    once, so that libraries have finished their first-use preparations. Raises InputError as the predictors do."""
    works = {}
    for source in settings.models:
        for work in _works_of(source, settings):
            works[source.name, work.verb] = work
            for item in examples(source, work.verb):
                work.join(item, list(work.compute([piece for piece, _ in work.pieces(item)])))
    return works


def examples(source: ModelSource, verb: str) -> list:
    """Items that the model takes, for its documentation."""
    return EXAMPLE_PAIRS if verb == "predict" and source.predicting.TAKES == PAIRS else EXAMPLE_TEXTS


def _works_of(source: ModelSource, settings: ServiceSettings) -> Iterator[Work]:
    options = {name: getattr(settings, name) for name in PredictorOptions.names()}
    with missing_package_named():
        predictor = load(source.folder, **options)

    def entities(entity_filter):
        entity_filter.check(predictor.model.config)
        own, asked = (one.candidates(predictor.model.config) for one in (predictor.entity_filter, entity_filter))
        thresholds = list(map(min, own, asked))  # higher ones only choose, so such requests share batches
        top = entity_filter.top_k is not None and thresholds != own
        ruler, places = entity_filter.ruler, 0

        def windows(text):
            nonlocal places
            if ruler is not None:
                of_text = itertools.chain.from_iterable(ruler.places(text, mode) for mode in MODES)
                places += sum(1 for _ in itertools.islice(of_text, MOST_PLACES + 1 - places))
                if places > MOST_PLACES:
                    where = f"more than {MOST_PLACES:,} places of the texts"
                    raise InputError(f"dictionary: its terms are at {where}; send fewer terms or texts at once")
            return ((window, len(window.text.ids)) for window in predictor.windows(text, entity_filter=entity_filter))

        def join(text, results):
            return _json(predictor.join(text, results, entity_filter))

        compute = functools.partial(predictor.find_in_windows, thresholds=thresholds, top=top)
        held = 0 if ruler is None else ruler.characters
        return Work(source.name, "predict", compute, windows, join, entities, (*thresholds, top), held)

    def vectors(texts):
        found = np.round(predictor.encode(texts).astype(np.float64), 7).tolist()
        return [_json({"text": text, "vector": vector}) for text, vector in zip(texts, found)]

    if source.predicting.FINDS_ENTITIES:
        yield entities(predictor.entity_filter)
    else:
        yield Work(source.name, "predict", lambda items: list(map(_json, predictor(items))))
    if source.embeds:
        yield Work(source.name, "embed", vectors)


def _json(record):
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
