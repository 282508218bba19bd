"""F1 of trained NER models against the length of the text and the position in it: ``benchmark entities``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError, is_out_of_memory
from tasks.common.files import check_makeable, write_files, write_json
from tasks.common.reports.tables import as_markdown, f1_row
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Example, make_example, spans_of
from tasks.ner.metrics import entity_scores
from tasks.ner.prediction.predictor import NerPredictor

TENTHS = 10
FEWEST = 30  # entities; a tenth with fewer is not shown


def run(options: Any) -> None:
    """Score models on the first texts of a file, alone and joined to documents of several lengths; write and print the
    tables. All lengths have the same texts, so the choice of texts makes no difference."""
    check_makeable(options.output, "--output")
    measured = {"machine": machine_in_words(), **measure(options)}
    report = as_report(measured)
    options.output.mkdir(parents=True, exist_ok=True)
    write_json(options.output / "entities.json", measured)
    write_files(options.output, {"entities.md": report})
    print(report, end="")


def measure(options: Any) -> dict[str, Any]:
    """``what``, a description of the data; ``notes``, what was left out and why; and ``rows``: the keys of
    :func:`score`, ``model``, ``length`` (None for the texts alone), ``reading`` (``"default"``, ``"windows of N"``, or
    ``"whole"`` for documents that are read at once). Raises InputError if a model, a name or the file is wrong."""
    names, folders = options.names or list(map(_run_of, options.model_dirs)), options.model_dirs
    if len(names) != len(folders) or len(set(names)) < len(names):
        raise InputError(f"--names {' '.join(names)}: expected {len(folders)} different names, one for each model")
    texts = first_texts(read_examples(options.data), options.characters)
    if not texts:
        raise InputError(f"{options.data}:1: all texts are empty; give data with entities")
    groups = {length: group_neighbors(texts, length) for length in sorted(set(options.lengths))}
    documents = {None: texts, **{length: join_groups(texts, groups[length]) for length in groups}}
    windows = options.max_tokens
    readings = {"default" if windows is None else f"windows of {windows}": windows}
    if options.whole:
        readings["whole"] = max(len(document.text) for of_length in documents.values() for document in of_length)
    rows, notes = [], []
    for name, folder in zip(names, folders):
        for reading, tokens in readings.items():
            predictor = NerPredictor(folder, options.device, options.batch_size, max_tokens=tokens)
            for example in texts:
                check_types(example, predictor.types)
            alone: list = []
            for length, of_length in documents.items():
                try:
                    found = predictor.find([document.text for document in of_length])
                except (MemoryError, RuntimeError, SystemError) as error:
                    if length is None or not is_out_of_memory(error):
                        raise
                    notes.append(f"{name}, {reading}: documents of {length:,} characters do not fit into memory")
                    continue
                alone = alone or [make_example(text.text, one, text.where) for text, one in zip(texts, found)]
                joined = None if length is None else join_groups(alone, groups[length])
                rows.append({"model": name, "reading": reading, "length": length, **score(of_length, found, joined)})
    characters, entities = (sum(map(len, parts)) for parts in zip(*((text.text, text.entities) for text in texts)))
    what = f"{options.data}: the first {len(texts):,} texts, {characters:,} characters, {entities:,} entities"
    return {"what": what, "notes": notes, "rows": rows}


def first_texts(examples: Sequence[Example], characters: int) -> list[Example]:
    """The first texts of a file that have so many characters together, or all; empty ones are left out."""
    texts = [example for example in examples if example.text]
    ends = itertools.accumulate(len(example.text) for example in texts)
    return texts[: 1 + sum(end < characters for end in ends)]


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
    """Texts as one document, with their entities; ``where`` names the first. A space separates only ASCII letters and
    digits, which would become one word or number without it."""
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


def join_groups(texts: Sequence[Example], groups: Sequence[list[int]]) -> list[Example]:
    """The document of each group of indices."""
    return [join([texts[i] for i in group]) for group in groups]


def score(documents: list[Example], found: list[list], alone: list[Example] | None) -> dict[str, Any]:
    """``count`` of the documents, ``precision``, ``recall``, ``f1``, ``support``, ``predicted``, ``correct``; and with
    ``alone``, the documents with the entities that were found in their texts alone, ``tenths``, by the part of the
    document in which entities begin: the same scores, and those of ``alone`` as ``alone``."""
    row = {"count": len(documents), **entity_scores(documents, found, [])}
    del row["per_type"]
    if alone is not None:
        pairs = zip(by_tenth(documents, found), by_tenth(documents, [document.entities for document in alone]))
        row["tenths"] = [{**tenth, "alone": of_alone} for tenth, of_alone in pairs]
    return row


def by_tenth(documents: Sequence[Example], found: Sequence[Sequence]) -> list[dict]:
    """Scores of the entities that begin in each tenth of their document."""
    counts = [[0, 0, 0] for _ in range(TENTHS)]  # gold, predicted, both
    for document, entities in zip(documents, found):
        gold, predicted = document.spans, spans_of(entities)
        for column, spans in enumerate((gold, predicted, gold & predicted)):
            for start, _, _ in spans:
                counts[TENTHS * start // len(document.text)][column] += 1
    return [f1_row(*row) for row in counts]


def _run_of(folder):
    """The name of a model: the folder of its run for OUTPUT_DIR/model."""
    path = Path(folder).absolute()
    return path.parent.name if path.name == "model" else path.name


def as_report(measured: dict[str, Any]) -> str:
    """Markdown: tables of F1 against length and position, and how it was measured."""
    table: dict = {}
    tenths, alone = [], 0.0
    for row in measured["rows"]:
        model = {"model": row["model"], "reads": row["reading"]}
        cells = table.setdefault((row["model"], row["reading"]), dict(model))
        if row["length"] is None:  # the first row of a model
            alone, cells["alone"] = row["f1"], f"{row['f1']:.4f}"
        else:
            length = f"{row['length']:,}"
            cells[length] = f"{row['f1']:.4f} ({100 * (row['f1'] - alone):+.1f})"
            gaps = [  # points over the same texts alone; None where there are few entities
                f"{100 * (one['f1'] - one['alone']['f1']):+.1f}" if one["support"] >= FEWEST else None
                for one in row["tenths"]
            ]
            tenths.append({**model, "length": length, **{f"{n}/{TENTHS}": gap for n, gap in enumerate(gaps, 1)}})
    columns = list(dict.fromkeys(name for cells in table.values() for name in cells))
    parts = ["F1, and points against the texts alone, by the length of the documents in characters:\n"]
    parts.append(as_markdown(list(table.values()), columns))
    if tenths:
        parts.append("Points of F1 against the same texts alone, by the tenth of the document:\n")
        parts.append(as_markdown(tenths, list(tenths[0])))
    parts += [f"note: {note}\n" for note in measured["notes"]]
    return "\n".join([*parts, f"{measured['what']}. {measured['machine']}\n"])
