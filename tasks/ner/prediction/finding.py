"""From tokenized texts to entities: texts -> windows -> batches -> scores -> spans -> the entities of each text."""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

from tasks.common.inference import batched_outputs
from tasks.ner.arguments import of_types, probability
from tasks.ner.batching import SpanCollator
from tasks.ner.examples import Entity, TokenizedText
from tasks.ner.lengths import reading_of
from tasks.ner.prediction.windows import Window, merge_windows, windows_of

Thresholds = float | list[float] | None
# Scores of one batch held at once: bounds memory for long texts.
MAX_BATCH_SCORES = 1 << 25
# Tokens whose windows are sorted by length and computed together, and held until then.
TOKENS_AT_ONCE = 1 << 17


def find_in_windows(
    model: Any, texts: Iterable[TokenizedText], batch_size: int, thresholds: Thresholds = None
) -> list[list[Entity]]:
    """For each of the tokenized texts its entities, in windows as the lengths of the model's training have it."""
    reading = reading_of(model.config)
    windows = (window for text in texts for window in windows_of([text], reading.max_tokens, reading.overlap))
    return list(entities_of_texts(model, windows, batch_size, thresholds, reading.max_entity_tokens))


def entities_of_texts(
    model: Any,
    windows: Iterable[Window],
    batch_size: int,
    thresholds: Thresholds = None,
    max_entity_tokens: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Iterator[list[Entity]]:
    """The entities of each text, ordered, from all windows of one text after the other, which are taken as they are
    computed. Holds the windows of ``TOKENS_AT_ONCE`` tokens, and one text's entities. ``progress`` is called after each
    batch with the number of characters that it adds to those before; the rest is as of :func:`predict_entities`."""
    of_text: list[tuple[tuple[float, float], list[Entity]]] = []  # bounds and entities of the windows of one text
    for chunk in _chunks(windows):

        def report(rows, chunk=chunk):
            if progress is not None:
                progress(sum(chunk[row].characters for row in rows))

        texts = [window.text for window in chunk]
        found = predict_entities(model, texts, batch_size, thresholds, max_entity_tokens, report)
        for window, entities in zip(chunk, found):
            of_text.append((window.bounds, entities))
            if window.bounds[1] == inf:
                yield merge_windows(*zip(*of_text))
                of_text = []


def _chunks(windows: Iterable[Window]) -> Iterator[list[Window]]:
    chunk, tokens = [], 0
    for window in windows:
        chunk.append(window)
        tokens += len(window.text.ids)
        if tokens >= TOKENS_AT_ONCE:
            yield chunk
            chunk, tokens = [], 0
    yield chunk


def predict_entities(
    model: Any,
    texts: list[TokenizedText],
    batch_size: int,
    thresholds: Thresholds = None,
    max_entity_tokens: int | None = None,
    report: Callable[[list[int]], Any] | None = None,
) -> list[list[Entity]]:
    """For each of the tokenized texts, each read whole, its entities, ordered; computed in batches of like length, by a
    :class:`~tasks.ner.model.NerModel`, also while it is trained, or a model with the same methods. Spans of more than
    ``max_entity_tokens`` do not count. ``report`` is called after each batch with the indices of its texts."""
    entities: list[list[Entity]] = [[] for _ in texts]
    types, collate = model.config.types, SpanCollator(model.config.pad_token_id, with_labels=False)
    temperatures = of_types(model.config.temperatures, len(types))
    outputs = batched_outputs(
        lambda batch: model.find_spans(batch, thresholds),
        *(texts, collate, batch_size, model.scores_of_text, MAX_BATCH_SCORES),
    )
    for rows, found in outputs:
        for row, spans in zip(rows, found):
            offsets = texts[row].offsets
            entities[row] = sorted(
                Entity(
                    offsets[start][0], offsets[end - 1][1], types[kind], score, probability(score, temperatures[kind])
                )
                for start, end, kind, score in spans
                if max_entity_tokens is None or end - start <= max_entity_tokens
            )
        if report is not None:
            report(rows)
    return entities
