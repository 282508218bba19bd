"""F1 of trained NER models against the length of the text and the position in it: ``benchmark entities``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError, is_out_of_memory
from tasks.common.reports.tables import as_markdown
from tasks.common.scores import f1_row
from tasks.experiments.benchmarks.entity_documents import (
    first_texts,
    group_neighbors,
    join_found,
    list_documents,
    most_frequent_type,
)
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Example, spans_of
from tasks.ner.metrics import score_predictions
from tasks.ner.prediction.predictor import NerPredictor

LENGTHS = (64, 256, 1024, 4096, 16384)
TENTHS = 10
FEWEST = 30  # entities; a tenth with fewer is not shown


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
        batch_size, device: as of :class:`~tasks.ner.prediction.predictor.NerPredictor`.

    Returns:
        dict with what is measured in words (``what``), ``notes`` (list of str: what was left out and why) and ``rows``,
        as of :func:`score_cases`, with ``model`` and ``reading``: ``"default"``, ``"windows of N"`` or ``"whole"``.

    Raises:
        InputError: a model, a name or the file is wrong.
    """
    names = names_of(model_dirs) if names is None else list(names)
    if len(names) != len(model_dirs) or len(set(names)) < len(names):
        raise InputError(f"--names {' '.join(names)}: expected {len(model_dirs)} different names, one for each model")
    texts = first_texts(read_examples(data), characters)
    if not texts:
        raise InputError(f"{data}:1: all texts are empty; give data with entities")
    kind = most_frequent_type(texts)
    groups = {length: group_neighbors(texts, length) for length in sorted(set(lengths))}
    documents = {("texts", None): texts, **{("texts", n): join_found(texts, _gold(texts), groups[n]) for n in groups}}
    made = {("lists", n): list_documents(texts, kind, n, characters, seed) for n in groups if lists}
    documents.update({case: of_case for case, of_case in made.items() if of_case})
    longest = max(len(document.text) for of_case in documents.values() for document in of_case)
    readings = {"default" if max_tokens is None else f"windows of {max_tokens}": max_tokens}
    readings.update({"whole": longest} if whole else {})
    predictors = {
        (name, reading): NerPredictor(folder, max_tokens=tokens, device=device, batch_size=batch_size)
        for name, folder in zip(names, model_dirs)
        for reading, tokens in readings.items()
    }
    for predictor in predictors.values():
        for example in texts:
            check_types(example, predictor.types)
    rows, notes = [], []
    for (name, reading), predictor in predictors.items():
        found: dict = {}
        for (documents_kind, length), of_case in documents.items():
            try:
                found[documents_kind, length] = predictor.find([document.text for document in of_case])
            except (MemoryError, RuntimeError, SystemError) as error:
                if length is None or not is_out_of_memory(error):
                    raise
                notes.append(f"{name}, {reading}: {documents_kind} of {length:,} characters do not fit into memory")
        of_model = score_cases(texts, groups, documents, found)
        rows += [{"model": name, "reading": reading, **row} for row in of_model]
    what = (
        f"{data}: the first {len(texts):,} texts, {sum(len(text.text) for text in texts):,} characters, "
        f"{sum(len(text.entities) for text in texts):,} entities; lists of {kind}, seed {seed}"
    )
    return {"what": what, "notes": notes, "rows": rows}


def score_cases(
    texts: list[Example], groups: dict[int, list[list[int]]], documents: dict[tuple, list[Example]], found: dict
) -> list[dict[str, Any]]:
    """The rows of one model and reading.

    Args:
        texts: the texts alone.
        groups: length -> indices of the texts of each document.
        documents: (``"texts"`` or ``"lists"``, length) -> documents with the labeled entities.
        found: the same keys, as far as they were computed -> the entities that were found in each document.

    Returns:
        dicts with ``documents``, ``length`` (None for the texts alone), ``count`` of the documents, ``precision``,
        ``recall``, ``f1``, ``support``, ``predicted``, ``correct``; ``difference`` of F1 from the texts alone, or from
        the shortest lists; and of joined texts, ``tenths``, by where in the document entities begin: the same scores,
        and ``alone``, those of the same texts alone.
    """
    rows, first_f1 = [], {}
    for (kind, length), entities in found.items():
        of_case = documents[kind, length]
        scores = score_predictions(of_case, entities, [])
        del scores["per_type"]
        difference = scores["f1"] - first_f1.setdefault(kind, scores["f1"])
        row = {"documents": kind, "length": length, "count": len(of_case), **scores, "difference": difference}
        if kind == "texts" and length is not None:
            alone = join_found(texts, found["texts", None], groups[length])
            pairs = zip(by_tenth(of_case, entities), by_tenth(of_case, _gold(alone)))
            row["tenths"] = [{**tenth, "alone": of_alone} for tenth, of_alone in pairs]
        rows.append(row)
    return rows


def _gold(examples):
    return [example.entities for example in examples]


def by_tenth(documents: Sequence[Example], found: Sequence[list]) -> list[dict]:
    """Scores of the entities that begin in each tenth of their document."""
    counts = [[0, 0, 0] for _ in range(TENTHS)]  # gold, predicted, both
    for document, entities in zip(documents, found):
        gold, predicted = document.spans, spans_of(entities)
        for column, spans in enumerate((gold, predicted, gold & predicted)):
            for start, _, _ in spans:
                counts[TENTHS * start // len(document.text)][column] += 1
    return [f1_row(*row) for row in counts]


def names_of(model_dirs: Sequence[str | os.PathLike]) -> list[str]:
    """What models are called: the folder of the run for OUTPUT_DIR/model; where two are the same, the whole path."""
    paths = [Path(folder).absolute() for folder in model_dirs]
    names = [path.parent.name if path.name == "model" else path.name for path in paths]
    return [str(folder) if names.count(name) > 1 else name for name, folder in zip(names, model_dirs)]


def as_report(measured: dict[str, Any]) -> str:
    """Markdown: tables of F1 against length and position, and how it was measured."""
    by_case: dict = {}
    for row in measured["rows"]:
        case = by_case.setdefault((row["model"], row["reading"], row["documents"]), {})
        if row["length"] is None:
            case["alone"] = f"{row['f1']:.4f}"
        else:
            case[f"{row['length']:,}"] = f"{row['f1']:.4f} ({100 * row['difference']:+.1f})"
    table = [dict(zip(("model", "reads", "documents"), case), **cells) for case, cells in by_case.items()]
    parts = ["F1 (points against the texts alone; of lists, against the shortest), by the length in characters:\n"]
    parts.append(as_markdown(table, list(dict.fromkeys(name for row in table for name in row))))
    tenths = [
        {
            **{"model": row["model"], "reads": row["reading"], "length": f"{row['length']:,}"},
            **{f"{number}/10": _gap(tenth) for number, tenth in enumerate(row["tenths"], 1)},
        }
        for row in measured["rows"]
        if "tenths" in row
    ]
    if tenths:
        parts.append("Points of F1 against the same texts alone, by the tenth of the document:\n")
        parts.append(as_markdown(tenths, list(tenths[0])))
    parts += [f"note: {note}\n" for note in measured["notes"]]
    return "\n".join([*parts, f"{measured['what']}. {measured['machine']}\n"])


def _gap(tenth):
    """Points of F1 of a tenth over that of the same texts alone; None where there are few entities."""
    return f"{100 * (tenth['f1'] - tenth['alone']['f1']):+.1f}" if tenth["support"] >= FEWEST else None
