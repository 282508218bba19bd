"""From tokenized texts to entities: texts -> windows -> batches -> scores -> spans -> the entities of each text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any

from tasks.common.inference import batched_outputs
from tasks.ner.batching import SpanCollator
from tasks.ner.examples import Entity
from tasks.ner.lengths import Reading, reading_of
from tasks.ner.prediction.windows import Window, merge_windows, windows_of
from tasks.ner.spans import of_types, probability
from tasks.ner.tokenized_text import TokenizedText

# Scores of one batch held at once: bounds memory for long texts.
MAX_BATCH_SCORES = 1 << 25
# Tokens whose windows are sorted by length and computed together, and held until then.
TOKENS_AT_ONCE = 1 << 17


def find_in_windows(
    model: Any,
    texts: Sequence[TokenizedText],
    batch_size: int,
    reading: Reading | None = None,
    thresholds: float | list[float] | None = None,
) -> list[list[Entity]]:
    """For each of the tokenized texts its entities, as :func:`find_in_parts`."""
    return list(find_in_parts(model, ([text] for text in texts), batch_size, reading, thresholds))


def find_in_parts(
    model: Any,
    texts: Iterable[Iterable[TokenizedText]],
    batch_size: int,
    reading: Reading | None = None,
    thresholds: float | list[float] | None = None,
    progress: Callable[[int], Any] | None = None,
) -> Iterator[list[Entity]]:
    """For each text its entities, ordered; a text longer than a window is read window by window.

    Texts are tokenized as they are read: the function holds the windows of ``TOKENS_AT_ONCE`` tokens, and the entities
    of one text.

    Args:
        model, batch_size, thresholds: as of :func:`predict_entities`.
        texts: each in parts as of :func:`tasks.ner.prediction.parts.read_parts`, one or more.
        reading: how texts are read; None follows the lengths of the model's training.
        progress: called after each batch with the number of characters that it adds to those before.
    """
    reading = reading or reading_of(model.config)
    bounds, found = [], []  # of the windows of one text
    for windows in _windows_at_once(texts, reading):

        def report(rows, windows=windows):
            if progress is not None:
                progress(sum(windows[row].characters for row in rows))

        parts = [window.text for window in windows]
        entities = predict_entities(model, parts, batch_size, thresholds, reading.max_entity_tokens, report)
        for window, of_window in zip(windows, entities):
            bounds.append(window.bounds)
            found.append(of_window)
            if window.end == inf:
                yield merge_windows(bounds, found)
                bounds, found = [], []


def _windows_at_once(texts: Iterable[Iterable[TokenizedText]], reading: Reading) -> Iterator[list[Window]]:
    windows, tokens = [], 0
    for parts in texts:
        for window in windows_of(parts, reading.max_tokens, reading.overlap):
            windows.append(window)
            tokens += len(window.text.ids)
            if tokens >= TOKENS_AT_ONCE:
                yield windows
                windows, tokens = [], 0
    if windows:
        yield windows


def predict_entities(
    model: Any,
    texts: list[TokenizedText],
    batch_size: int,
    thresholds: float | list[float] | None = None,
    max_entity_tokens: int | None = None,
    report: Callable[[list[int]], Any] | None = None,
) -> list[list[Entity]]:
    """For each of the tokenized texts, each read whole, its entities, ordered; computed in batches of like length.

    Args:
        model: a :class:`~tasks.ner.model.NerModel`, also while it is trained, or a model with the same methods.
        texts, batch_size, thresholds: as of :class:`NerPredictor` and its :meth:`~NerPredictor.find`.
        max_entity_tokens: tokens of the longest span that counts; None for any.
        report: called after each batch with the indices of its texts.
    """
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
