"""F1 of trained NER models against the length of the text and the position in it; see ``paddle-rope benchmark entities
--help``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError
from tasks.common.scores import f1_row
from tasks.experiments.benchmarks.entities.documents import (
    documents_of,
    first_texts,
    join_found,
    list_documents,
    most_frequent_type,
)
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Example, spans_of
from tasks.ner.metrics import score_predictions
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.spans import scores_of_text

LENGTHS = (64, 256, 1024, 4096, 16384)
TENTHS = 10
POINT = 0.01  # of F1; what is further under the texts alone is told
FEWEST = 30  # entities; a tenth with fewer is not told
BYTES = 4  # of a float32
COPIES = 4  # of their scores that softmax attention and the span head have in memory at once, as measured


def measure_entities(
    model_dirs: Sequence[str | os.PathLike],
    data: str | os.PathLike,
    names: Sequence[str] | None = None,
    lengths: Sequence[int] = LENGTHS,
    characters: int = 60_000,
    max_tokens: int | None = None,
    whole: bool = False,
    lists: bool = False,
    seed: int = 0,
    memory: float | None = None,
    batch_size: int = 32,
    device: str | None = None,
) -> dict[str, Any]:
    """Score models on the first texts of a file, alone and joined to documents of several lengths.

    The texts are the same at all lengths. What is found in a tenth of the documents is compared with what is found in
    the same texts alone: so no other text makes a difference.

    Args:
        model_dirs: folders of trained or exported models.
        data: labeled file.
        names: of the models, one each; None for those of their runs.
        lengths: of the documents, in characters.
        characters: of the texts together, and of the lists of each length.
        max_tokens: of a window; None for what each model does by default.
        whole: measure each model a second time, reading each document at once.
        lists: measure documents of nothing but entities of the most frequent type, too.
        seed: of the lists.
        memory: GB that the largest document may need; None for four fifths of what is free.
        batch_size, device: as of :class:`~tasks.ner.prediction.predictor.NerPredictor`.

    Returns:
        dict with ``file``, ``texts``, ``characters``, ``longest`` (characters of the longest text), ``entities``,
        ``seed``, ``list_type``, ``notes`` (list of str: what was left out and why) and ``rows``, dicts with

        - ``model``, ``reading`` (``"default"``, ``"windows of N"`` or ``"whole"``), ``documents`` (``"texts"`` or
          ``"lists"``), ``length`` (None for the texts alone), ``count`` of the documents,
        - ``precision``, ``recall``, ``f1``, ``support``, ``predicted``, ``correct``,
        - ``difference``: of F1 from the texts alone, or from the shortest lists,
        - of joined texts, ``tenths``, by where in the document entities begin, and ``places``, entities ``within``
          their text or ``at_ends``, those that begin or end where their text does: the same scores, and ``alone``,
          those of the same texts alone.

    Raises:
        InputError: a model, the file or a number is wrong.
    """
    for name, value in (("characters", characters), ("max_tokens", max_tokens), *(("lengths", n) for n in lengths)):
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: must be at least 1")
    lengths = sorted(set(lengths))
    names = names_of(model_dirs) if names is None else list(names)
    if len(names) != len(model_dirs) or len(set(names)) < len(names):
        raise InputError(f"--names {' '.join(names)}: give a name of its own to each of {len(model_dirs)} models")
    texts = first_texts(read_examples(data), characters)
    if not texts:
        raise InputError(f"{data}:1: all texts are empty; give data with entities")
    kind = most_frequent_type(texts)
    readings = {"default" if max_tokens is None else f"windows of {max_tokens}": max_tokens}
    predictors = [NerPredictor(folder, device=device, batch_size=batch_size) for folder in model_dirs]
    for predictor in predictors:
        for example in texts:
            check_types(example, predictor.types)
    measured = {
        "file": str(data),
        "texts": len(texts),
        "characters": sum(len(example.text) for example in texts),
        "longest": max(len(example.text) for example in texts),
        "entities": sum(len(example.entities) for example in texts),
        "seed": seed,
        "list_type": kind if lists else None,
        "notes": [],
        "rows": [],
    }
    limit = free_gigabytes() * 0.8 if memory is None else memory
    for name, folder, predictor in zip(names, model_dirs, predictors):
        for reading, tokens in {**readings, **({"whole": "whole"} if whole else {})}.items():
            cases = [("texts", None), *(("texts", n) for n in lengths), *(("lists", n) for n in lengths if lists)]
            scored = _Scored(texts, folder, {"device": device, "batch_size": batch_size}, limit)
            for documents, length in cases:
                made = None if documents == "texts" else list_documents(texts, kind, length, characters, seed)
                row, note = scored.row(predictor, tokens, length, made)
                label = {"model": name, "reading": reading, "documents": documents, "length": length}
                if note:
                    at = "texts alone" if length is None else f"{documents} of {length:,} characters"
                    measured["notes"].append(f"{name}, {reading}: {at} are left out, {note}")
                else:
                    measured["rows"].append({**label, **row})
    for row in measured["rows"]:
        row["difference"] = _difference(row, measured["rows"])
    return measured


class _Scored:
    """The scores of one model and reading; the texts alone come first."""

    def __init__(self, texts: list[Example], folder: Any, options: dict, limit: float):
        self.texts, self.folder, self.options, self.limit = texts, folder, options, limit
        self.found_alone: list[list] | None = None

    def row(self, predictor, tokens, length, made):
        """(scores, "") of the texts alone (no ``length``), joined to ``length``, or of the documents ``made``; or
        ({}, why they are left out)."""
        groups = [[i] for i in range(len(self.texts))] if length is None else documents_of(self.texts, length)
        documents = join_found(self.texts, [text.entities for text in self.texts], groups) if made is None else made
        if not documents:
            return {}, "there are no entities for them"
        longest = max(len(document.text) for document in documents)
        reader = predictor
        if tokens is not None:
            reader = NerPredictor(self.folder, max_tokens=longest if tokens == "whole" else tokens, **self.options)
        gigabytes = gigabytes_of(reader.model.config, min(longest, reader.max_tokens) + 2)
        if gigabytes > self.limit:
            return {}, f"{gigabytes:.1f} GB foreseen, {self.limit:.1f} GB are free or allowed"
        found = reader.find([document.text for document in documents])
        scores = score_predictions(documents, found, reader.types)
        del scores["per_type"]
        row = {"count": len(documents), **scores}
        if length is None:
            self.found_alone = found
        elif made is None and self.found_alone is not None:
            alone = [document.entities for document in join_found(self.texts, self.found_alone, groups)]
            row["tenths"] = _beside(by_tenth(documents, found), by_tenth(documents, alone))
            ends = [text_ends([self.texts[i].text for i in of_one]) for of_one in groups]
            places = _beside(by_place(documents, found, ends), by_place(documents, alone, ends))
            row["places"] = dict(zip(("within", "at_ends"), places))
        return row, ""


def by_tenth(documents: Sequence[Example], found: Sequence[list]) -> list[dict]:
    """Scores of the entities that begin in each tenth of their document."""
    lengths = [len(document.text) for document in documents]
    return _by_class(documents, found, TENTHS, lambda number, start, end: TENTHS * start // lengths[number])


def by_place(documents: Sequence[Example], found: Sequence[list], ends: Sequence[set[int]]) -> list[dict]:
    """Scores of the entities within the texts of their document, and of those that begin or end where a text does.

    Args:
        ends: for each document, :func:`text_ends` of its texts.
    """
    return _by_class(documents, found, 2, lambda number, start, end: int(bool({start, end} & ends[number])))


def text_ends(texts: Sequence[str]) -> set[int]:
    """Where in a document of these texts one begins or ends."""
    return {0, *itertools.accumulate(len(text) for text in texts)}


def _by_class(documents, found, classes, class_of):
    """Scores of each class of spans; ``class_of(document number, start, end)``."""
    counts = [[0, 0, 0] for _ in range(classes)]
    for number, (document, entities) in enumerate(zip(documents, found)):
        gold, predicted = document.spans, spans_of(entities)
        for column, spans in enumerate((gold, predicted, gold & predicted)):
            for start, end, _ in spans:
                counts[class_of(number, start, end)][column] += 1
    return [f1_row(*row) for row in counts]


def _beside(joined, alone):
    return [{**scores, "alone": apart} for scores, apart in zip(joined, alone)]


def names_of(model_dirs: Sequence[str | os.PathLike]) -> list[str]:
    """What models are called: the folder of the run for OUTPUT_DIR/model; where two are the same, the whole path."""
    paths = [Path(folder).absolute() for folder in model_dirs]
    names = [path.parent.name if path.name == "model" else path.name for path in paths]
    return [str(folder) if names.count(name) > 1 else name for name, folder in zip(names, model_dirs)]


def gigabytes_of(config: Any, tokens: int) -> float:
    """What the quadratic tensors of one window take: the weights of softmax attention, or the scores of the span head.

    Args:
        config: of a trained or exported NER model; where it does not tell the attention, softmax is assumed.
        tokens: of the window.
    """
    has_softmax = "softmax" in getattr(config, "layer_attention", ["softmax"])
    weights = has_softmax * getattr(config, "num_attention_heads", 12) * tokens**2
    return BYTES * COPIES * max(weights, scores_of_text(config, tokens)) / 1e9


def free_gigabytes() -> float:
    """Memory that Linux says is available; infinite on other systems."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("inf")
    free = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(free[0]) * 1024 / 1e9 if free else float("inf")


def _difference(row, rows):
    """Of the F1 of a row from that of the texts alone, or from that of the shortest lists."""
    same = [
        other for other in rows if all(other[key] == row[key] for key in ("model", "reading", "documents"))
    ]  # lengths rise
    reference = same[0]
    if row["documents"] == "texts" and reference["length"] is not None:
        return None
    return row["f1"] - reference["f1"]
