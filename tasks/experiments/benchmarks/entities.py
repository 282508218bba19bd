"""F1 of trained NER models against the length of the text and the position in it: ``benchmark entities``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError, is_out_of_memory
from tasks.common.reports.tables import as_markdown
from tasks.common.scores import f1_row
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Example, make_example, spans_of
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
    groups = {length: group_neighbors(texts, length) for length in sorted(set(lengths))}
    documents = {None: texts, **{length: join_found(texts, _gold(texts), groups[length]) for length in groups}}
    longest = max(len(document.text) for of_length in documents.values() for document in of_length)
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
        for length, of_length in documents.items():
            try:
                found[length] = predictor.find([document.text for document in of_length])
            except (MemoryError, RuntimeError, SystemError) as error:
                if length is None or not is_out_of_memory(error):
                    raise
                notes.append(f"{name}, {reading}: documents of {length:,} characters do not fit into memory")
        of_model = score_cases(texts, groups, documents, found)
        rows += [{"model": name, "reading": reading, **row} for row in of_model]
    what = (
        f"{data}: the first {len(texts):,} texts, {sum(len(text.text) for text in texts):,} characters, "
        f"{sum(len(text.entities) for text in texts):,} entities"
    )
    return {"what": what, "notes": notes, "rows": rows}


def first_texts(examples: Sequence[Example], characters: int) -> list[Example]:
    """The first texts of a file that have so many characters together, or all; empty ones are left out."""
    chosen: list[Example] = []
    count = 0
    for example in examples:
        if count >= characters:
            break
        if example.text:
            chosen.append(example)
            count += len(example.text)
    return chosen


def group_neighbors(texts: Sequence[Example], length: int) -> list[list[int]]:
    """The indices of the texts of each document of at most ``length`` characters; a longer text is one alone."""
    groups: list[list[int]] = []
    left = 0
    for number, text in enumerate(texts):
        needed = len(text.text) + len(_space_between(texts[number - 1].text if groups else "", text.text))
        if groups and needed <= left:
            groups[-1].append(number)
            left -= needed
        else:
            groups.append([number])
            left = length - len(text.text)
    return groups


def join(examples: Sequence[Example]) -> Example:
    """Texts one after the other, as sentences stand in a document, with their entities; ``where`` names the first.

    Nothing stands between them, but a space where an ASCII letter or digit stands on either side: two words or numbers
    would become one there.
    """
    text, entities = "", []
    for example in examples:
        text += _space_between(text, example.text)
        moved = len(text)
        entities += [one._replace(start=one.start + moved, end=one.end + moved) for one in example.entities]
        text += example.text
    return make_example(text, entities, examples[0].where)


def _space_between(before: str, after: str) -> str:
    ends = before[-1:] + after[:1]
    return " " if len(ends) == 2 and ends.isascii() and ends.isalnum() else ""


def join_found(texts: Sequence[Example], found: Sequence[list], groups: Sequence[list[int]]) -> list[Example]:
    """Documents of the texts with other entities: those ``found`` in each."""
    return [join([make_example(texts[i].text, found[i], texts[i].where) for i in group]) for group in groups]


def score_cases(
    texts: list[Example], groups: dict[int, list[list[int]]], documents: dict[int | None, list[Example]], found: dict
) -> list[dict[str, Any]]:
    """The rows of one model and reading.

    Args:
        texts: the texts alone.
        groups: length -> indices of the texts of each document.
        documents: length, None for the texts alone -> documents with the labeled entities.
        found: the same keys, as far as they were computed -> the entities that were found in each document.

    Returns:
        dicts with ``length``, ``count`` of the documents, ``precision``, ``recall``, ``f1``, ``support``,
        ``predicted``, ``correct``; ``difference`` of F1 from the texts alone; and of joined texts, ``tenths``, by where
        in the document entities begin: the same scores, and ``alone``, those of the same texts alone.
    """
    rows: list[dict[str, Any]] = []
    for length, entities in found.items():
        scores = score_predictions(documents[length], entities, [])
        del scores["per_type"]
        row = {"length": length, "count": len(documents[length]), **scores}
        row["difference"] = row["f1"] - (rows or [row])[0]["f1"]
        if length is not None:
            alone = join_found(texts, found[None], groups[length])
            pairs = zip(by_tenth(documents[length], entities), by_tenth(documents[length], _gold(alone)))
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
    table: dict = {}
    for row in measured["rows"]:
        of_model = table.setdefault((row["model"], row["reading"]), {"model": row["model"], "reads": row["reading"]})
        if row["length"] is None:
            of_model["alone"] = f"{row['f1']:.4f}"
        else:
            of_model[f"{row['length']:,}"] = f"{row['f1']:.4f} ({100 * row['difference']:+.1f})"
    columns = list(dict.fromkeys(name for of_model in table.values() for name in of_model))
    parts = ["F1, and points against the texts alone, by the length of the documents in characters:\n"]
    parts.append(as_markdown(list(table.values()), columns))
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
