"""F1 of trained NER models against the length of the text: ``benchmark entities``."""

import itertools
from collections.abc import Sequence
from typing import Any

from paddle_rope.tasks.common.errors import InputError, is_out_of_memory
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.worker import report
from paddle_rope.tasks.ner.batching import check_types
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Example, make_example
from paddle_rope.tasks.ner.metrics import entity_scores
from paddle_rope.tasks.ner.prediction.predictor import NerPredictor


def run(options: Any) -> None:
    """Score models on the first texts of a file, alone and joined to documents of several lengths. All lengths have the
    same texts, so the choice of texts makes no difference."""
    measured = measure(options)
    text = "F1, and points against the texts alone, by the length of the documents in characters:\n"
    report(measured, f"{measured['what']}\n{text}\n{as_table(measured['rows'])}", options.output)


def measure(options: Any) -> dict[str, Any]:
    """``what``, a description of the data; ``notes``, what was left out and why; and ``rows``: ``model``, ``length``
    (None for the texts alone), ``reading`` (``"default"``, ``"windows of N"``, or ``"whole"`` for documents that are
    read at once), ``count`` of the documents, and scores. Raises InputError if a model, a name or the file is wrong."""
    names, folders = options.names or options.model_dirs, options.model_dirs
    if len(names) != len(folders) or len(set(names)) < len(names):
        raise InputError(f"--names {' '.join(names)}: expected {len(folders)} different names, one for each model")
    examples = read_examples(options.data, fields=options.fields, on_error=options.on_error)
    texts = first_texts(examples, options.characters)
    if not texts:
        raise InputError(f"{options.data}:1: all texts are empty; give data with entities")
    documents = {None: texts}
    for length in sorted(set(options.lengths)):
        documents[length] = join_neighbors(texts, length)
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
            for length, of_length in documents.items():
                try:
                    found = predictor.find([document.text for document in of_length])
                except (MemoryError, RuntimeError, SystemError) as error:
                    if length is None or not is_out_of_memory(error):
                        raise
                    notes.append(f"{name}, {reading}: documents of {length:,} characters do not fit into memory")
                    continue
                scores = entity_scores(of_length, found, [])
                del scores["per_type"]
                row = {"model": name, "reading": reading, "length": length, "count": len(of_length)}
                rows.append({**row, **scores})
    characters, entities = (sum(map(len, parts)) for parts in zip(*((text.text, text.entities) for text in texts)))
    what = f"{options.data}: the first {len(texts):,} texts, {characters:,} characters, {entities:,} entities"
    return {"what": what, "notes": notes, "rows": rows}


def first_texts(examples: Sequence[Example], characters: int) -> list[Example]:
    """The first texts of a file, until they have ``characters`` characters together; empty texts are left out."""
    texts = [example for example in examples if example.text]
    ends = itertools.accumulate(len(example.text) for example in texts)
    return texts[: 1 + sum(end < characters for end in ends)]


def join_neighbors(texts: Sequence[Example], length: int) -> list[Example]:
    """Texts joined in order into documents of at most ``length`` characters, with their entities; a longer text is a
    document alone. A space is only added where ASCII letters or digits would become one word or number."""
    documents: list[Example] = []
    for text in texts:
        before = documents[-1].text if documents else ""
        ends = before[-1:] + text.text[:1]
        before += " " if len(ends) == 2 and ends.isascii() and ends.isalnum() else ""
        if not documents or len(before) + len(text.text) > length:
            documents.append(text)
            continue
        moved = [one._replace(start=one.start + len(before), end=one.end + len(before)) for one in text.entities]
        entities = [*documents[-1].entities, *moved]
        documents[-1] = make_example(before + text.text, entities, documents[-1].where)
    return documents


def as_table(rows: list[dict[str, Any]]) -> str:
    """Markdown: F1 against the length."""
    table: dict = {}
    alone = 0.0
    for row in rows:
        cells = table.setdefault((row["model"], row["reading"]), {"model": row["model"], "reads": row["reading"]})
        if row["length"] is None:  # the first row of a model
            alone, cells["alone"] = row["f1"], f"{row['f1']:.4f}"
        else:
            cells[f"{row['length']:,}"] = f"{row['f1']:.4f} ({100 * (row['f1'] - alone):+.1f})"
    return as_markdown(list(table.values()))
