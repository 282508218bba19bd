"""Time and memory of one document with a trained NER model, against its length."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.common.texts.documents import read_plain_texts
from tasks.experiments.apart import call_apart
from tasks.experiments.benchmarks.lengths import peak_megabytes
from tasks.ner.prediction.predictor import NerPredictor

WARM_UP_CHARACTERS = 1000  # of the document, predicted before, so that what is done once is not timed


def document_of(files: Sequence[str], characters: int) -> str:
    """The texts of files, a line each, again and again up to so many characters."""
    lines = "\n".join(text for path in files for text in read_plain_texts(path)) + "\n"
    return (lines * -(-characters // len(lines)))[:characters]


def measure_document(model_dir: str, files: Sequence[str], characters: int, max_tokens: int | None) -> dict:
    """Predict one document of so many characters in this process.

    Returns:
        dict with ``characters``, ``entities``, ``seconds``, ``peak_mb`` and ``idle_mb``, the peak before: libraries,
        weights, dictionary, the document itself and what a short text takes.
    """
    text = document_of(files, characters)
    predictor = NerPredictor(model_dir, max_tokens=max_tokens)
    predictor.find([text[:WARM_UP_CHARACTERS]])
    idle, start = peak_megabytes(), time.perf_counter()
    (entities,) = predictor.find([text])
    return {
        "characters": characters,
        "entities": len(entities),
        "seconds": time.perf_counter() - start,
        "idle_mb": idle,
        "peak_mb": peak_megabytes(),
    }


def measure_documents(
    model_dir: str, files: Sequence[str], lengths: Sequence[int], max_tokens: int | None = None
) -> list[dict]:
    """:func:`measure_document` for each length, each in a process of its own.

    Raises:
        InputError: a process failed; it has said why.
    """
    rows = []
    for characters in lengths:
        given = {
            "model_dir": str(model_dir), "files": [str(path) for path in files], "characters": characters,
            "max_tokens": max_tokens,
        }  # fmt: skip
        done = call_apart("document", given, stdout=subprocess.PIPE)
        if done.returncode:
            raise InputError(f"{characters} characters: the process failed, with status {done.returncode}; see above")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def as_table(rows: Sequence[dict]) -> str:
    """The measurements as a table of Markdown."""
    columns = ["characters", "entities", "seconds", "idle_mb", "peak_mb"]
    return as_markdown([{**row, "seconds": round(row["seconds"], 1)} for row in rows], columns)
