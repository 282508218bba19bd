"""Engines that compute the same NER model, side by side; see ``paddle-rope benchmark prediction --help``."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.prediction.engines import ENGINES, PEER_FOLDER
from tasks.experiments.benchmarks.worker import Worker
from tasks.ner.data.reading import read_examples, read_texts
from tasks.ner.examples import Entity, Example
from tasks.ner.metrics import score_predictions

REFERENCE = "eager"
COLD_STARTS = 3
TOLERANCE = 1e-3  # of a score, where two engines round in another order
_ROUNDED_AWAY = 0.001  # share of spans that may come or go by rounding
COLUMNS = (
    *("engine", "threads", "sentences a second", "times the trained model", "without reading", "reading, share"),
    *("spans that differ", "F1", "MB", "first answer, s"),
)


def measure_engines(
    model_dir: str | os.PathLike,
    data: str | os.PathLike,
    engines: Sequence[str] = tuple(ENGINES),
    threads: Sequence[int] = (1,),
    rounds: int = 5,
    texts: int | None = None,
    batch_size: int = 32,
    peer_python: str | None = None,
) -> dict[str, Any]:
    """Measure engines, each in its own process, in turns: A B C A B C ...

    Args:
        model_dir: folder OUTPUT_DIR/model of a training run of NER.
        data: labeled file, or texts.
        engines: names of ``ENGINES``; the trained model, to which all are compared, is always measured.
        threads: numbers of threads, one after another.
        rounds: turns of each engine, after one to warm up.
        texts: how many of the file's beginning; None for all.
        batch_size: texts computed together.
        peer_python: Python of an environment with the packages of ``requirements-peers.txt``; None for this one.

    Returns:
        dict with ``texts``, ``characters``, ``batch_size``, ``notes`` (list of str: what was left out and why) and
        ``rows``, dicts with

        - ``engine`` (name), ``title``, ``version``, ``threads``, ``megabytes`` of the folder that is read,
        - ``seconds``, ``processor_seconds``, ``reading_seconds``: a list each, one number a round,
        - ``ratios``: the seconds of the trained model in the same round over these,
        - ``first_answer_seconds``: processor seconds from the start of Python to the first entities, a list,
        - ``changed``: share of spans that only one of the two has, ``score_difference``: the largest one of the others,
        - ``f1``: None without labels.

    Raises:
        InputError: the model, the file or a number is wrong, or the trained model cannot be run.
    """
    for name, value in (
        ("rounds", rounds),
        ("batch_size", batch_size),
        ("texts", texts),
        *(("threads", n) for n in threads),
    ):
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: must be at least 1")
    notes: list[str] = []
    examples, sentences = read_input(data, texts, notes)
    names = [name for name in ENGINES if name == REFERENCE or name in engines]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folders = dict(_write_models(model_dir, names, Path(temporary), notes))
        file = Path(temporary) / "texts.json"
        file.write_text(json.dumps(sentences), encoding="utf-8")
        for count in threads:
            settings = {"OMP_NUM_THREADS": str(count), "BATCH_SIZE": str(batch_size)}
            with contextlib.ExitStack() as stack:
                running = {}
                for name, folder in folders.items():
                    try:
                        python = peer_python if name == "torch" and peer_python else sys.executable
                        running[name] = _started(stack, python, name, folder, file, settings)
                    except InputError as error:
                        if name == REFERENCE:
                            raise
                        notes.append(f"{ENGINES[name].title} is left out: {error}")
                rows += measure_in_turns(running, examples, rounds, notes, {"threads": count})
        for row in rows:
            row["megabytes"] = _megabytes(folders[row["engine"]], row["engine"])
    size = {"texts": len(sentences), "characters": sum(map(len, sentences)), "batch_size": batch_size}
    return {**size, "notes": list(dict.fromkeys(notes)), "rows": rows}


def read_input(data: str | os.PathLike, count: int | None, notes: list[str]) -> tuple[list[Example] | None, list[str]]:
    """(examples, or None without labels, of which ``notes`` then says so; texts): the first ``count`` of a file."""
    try:
        examples = read_examples(data)[:count]
        return examples, [example.text for example in examples]
    except InputError as error:
        texts = [text for text, _ in read_texts(data) if text][:count]
        if not texts:
            raise
        notes.append(f"no F1, as {data} is read as texts without labels ({error})")
        return None, texts


def _write_models(model_dir, names, folder, notes) -> Iterator[tuple[str, Path]]:
    """Names of engines and the folders that they read, exported as need be."""
    from tasks.common.export.exporter import export
    from tasks.experiments.benchmarks.prediction.peer_files import write_peer
    from tasks.ner.export import NerExporter
    from tasks.ner.prediction.predictor import NerPredictor

    written = {"trained": Path(model_dir)}
    options = {"paddle": {"format": "paddle"}, "onnx": {}, "int8": {"quantize": "int8"}}
    for name in names:
        kind = ENGINES[name].model
        try:
            if kind not in written:
                export(NerExporter(), [model_dir], folder / kind, **options[kind])
                written[kind] = folder / kind
            if name == "torch":
                write_peer(NerPredictor(model_dir, "cpu").model, folder / PEER_FOLDER)
        except InputError as error:
            notes.append(f"{ENGINES[name].title} is left out: {error}")
        else:
            yield name, written[kind]


def _megabytes(folder, name):
    folder = folder.parent / PEER_FOLDER if name == "torch" else folder
    return round(sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6, 2)


class EngineWorker(Worker):
    """The process of an engine, ready to predict.

    Args:
        python: the program.
        name: of the engine.
        folder, file: of its model; JSON of the texts.
        settings: added to the environment.

    Raises:
        InputError: it cannot be started, or says why it cannot open the model.

    Attributes:
        first: its first answer, see :func:`tasks.experiments.benchmarks.prediction.engines.main`.
    """

    def __init__(self, python: str, name: str, folder: Path, file: Path, settings: dict[str, str | None]):
        module = "tasks.experiments.benchmarks.prediction.engines"
        super().__init__(python, ["-m", module, name, str(folder), str(file)], settings)

    def predict(self) -> dict[str, Any]:
        """Let it predict all texts once; returns its answer."""
        return self.ask("again")


def _started(stack, python, name, folder, file, settings):
    """The worker of an engine, after others that only gave the first answer; ``first`` has the times of all."""
    first_answers = []
    for number in range(COLD_STARTS):
        worker = EngineWorker(python, name, folder, file, settings)
        first_answers.append(worker.first["processor_seconds"])
        if number < COLD_STARTS - 1:
            worker.end()
    stack.callback(worker.end)
    worker.first["first_answer_seconds"] = first_answers
    return worker


def measure_in_turns(
    workers: dict[str, EngineWorker],
    examples: list[Example] | None,
    rounds: int,
    notes: list[str],
    more: dict[str, Any],
) -> list[dict[str, Any]]:
    """The rows, as of :func:`measure_engines` and with ``more``, of workers that predict in turns; an engine that finds
    other spans than the trained model is left out, with a note."""
    found = {}
    for name, worker in list(workers.items()):
        found[name] = [[Entity(*entity) for entity in of_text] for of_text in worker.predict()["entities"]]
        changed, difference = compare(found[REFERENCE], found[name])
        if ENGINES[name].exact and (changed > _ROUNDED_AWAY or difference > TOLERANCE):
            notes.append(
                f"{ENGINES[name].title} is left out: it is not the same model, as {changed:.2%} of the spans differ, "
                f"and scores by up to {difference:.2g}"
            )
            del workers[name]
    times = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            times[name].append(worker.predict())
    rows = []
    for name, worker in workers.items():
        seconds = [time["seconds"] for time in times[name]]
        changed, difference = compare(found[REFERENCE], found[name])
        rows.append(
            {
                "engine": name,
                "title": ENGINES[name].title,
                "version": worker.first["version"],
                **more,
                **{key: [time[key] for time in times[name]] for key in times[name][0]},
                "ratios": [one["seconds"] / other for one, other in zip(times[REFERENCE], seconds)],
                "first_answer_seconds": worker.first["first_answer_seconds"],
                "changed": changed,
                "score_difference": difference,
                "f1": score_predictions(examples, found[name], [])["f1"] if examples else None,
            }
        )
    return rows


def compare(wanted: list[list[Entity]], found: list[list[Entity]]) -> tuple[float, float]:
    """(spans that only one of two predictions has, as a share of the first one's, largest difference of a score that
    both have)."""
    only_one = in_first = 0
    difference = 0.0
    for first, second in zip(wanted, found):
        scores, others = ({entity[:3]: entity.score for entity in entities} for entities in (first, second))
        only_one += len(scores.keys() ^ others.keys())
        in_first += len(scores)
        difference = max([difference, *(abs(scores[span] - others[span]) for span in scores.keys() & others.keys())])
    return only_one / max(in_first, 1), difference


def as_table(measured: dict[str, Any]) -> str:
    """The medians of what :func:`measure_engines` returns, as a Markdown table."""
    rows = []
    for row in measured["rows"]:
        seconds, reading = (statistics.median(row[key]) for key in ("seconds", "reading_seconds"))
        without = [whole - part for whole, part in zip(row["seconds"], row["reading_seconds"])]
        rows.append(
            dict(
                zip(
                    COLUMNS,
                    (
                        f"{row['title']} {row['version']}",
                        row["threads"],
                        round(measured["texts"] / seconds),
                        f"{statistics.median(row['ratios']):.2f}",
                        round(measured["texts"] / statistics.median(without)),
                        f"{reading / seconds:.0%}",
                        f"{row['changed']:.2%}",
                        "" if row["f1"] is None else f"{row['f1']:.4f}",
                        row["megabytes"],
                        f"{statistics.median(row['first_answer_seconds']):.2f}",
                    ),
                )
            )
        )
    return as_markdown(rows, list(COLUMNS))
