"""The engines that predict with one NER model, from texts to entities: ``benchmark prediction``.

Each engine has a worker. All of them read, tokenize and decode the same texts in the same way, and differ only in how
the scores are computed.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX_FILE
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.measuring import timed
from tasks.experiments.benchmarks.worker import Worker


class Engine(NamedTuple):
    """An engine: its title, the options of ``export`` for its folder (None: the trained model), whether it
    needs Paddle, and whether it finds the spans of the trained model up to rounding."""

    title: str
    export: dict[str, str] | None
    needs_paddle: bool
    is_exact: bool = True


REFERENCE = "eager"
ENGINES = {
    REFERENCE: Engine("Paddle, the trained model", None, True),
    "paddle": Engine("Paddle Inference", {"format": "paddle"}, True),
    "onnx": Engine("onnxruntime, float32", {}, False),
    "onnx_int8": Engine("onnxruntime, int8", {"quantize": "int8"}, False, is_exact=False),
    "openvino": Engine("OpenVINO, float32", {}, False),
}
COLD_STARTS = 3
TOLERANCE = 1e-3  # of a score, where two engines round in another order
ROUNDED_AWAY = 0.001  # share of spans that may come or go by rounding


def start(folder: str, file: str, batch_size: str, engine: str) -> tuple[dict, Callable[..., dict[str, Any]]]:
    """The worker's function: open the model in ``folder`` and answer the first of the texts in the JSON file.

    Returns:
        ``{"processor_seconds": since the start of Python}``; and a function that predicts all texts: ``{"seconds",
        "processor_seconds", "reading_seconds"}``, ``reading`` being tokens and features, once more by themselves, and
        with ``with_entities`` the (start, end, type, score) of each text's entities.
    """
    from tasks.ner.prediction.predictor import NerPredictor

    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    predictor = NerPredictor(folder, "cpu", batch_size=int(batch_size))
    if engine == "openvino":
        predictor.model.graph = OpenVinoGraph(folder)
    predictor(texts[:1])
    seconds = time.process_time()

    def predict(with_entities: bool = False) -> dict[str, Any]:
        found: list = []
        reading = timed(lambda: [predictor.tokenize(text) for text in texts])["seconds"]
        times = timed(lambda: found.extend(predictor.find(texts)))
        entities = [[entity[:4] for entity in of_text] for of_text in found]
        return {**times, "reading_seconds": reading, **({"entities": entities} if with_entities else {})}

    return {"processor_seconds": seconds}, predict


class OpenVinoGraph:
    """As :class:`tasks.common.export.model.OnnxGraph`, computed by OpenVINO for one caller."""

    def __init__(self, folder: str | os.PathLike):
        try:
            import openvino
        except ImportError:
            raise InputError("OpenVINO is not installed; pip install 'paddle_rope[openvino]'") from None
        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",  # it takes bfloat16 by itself where the processor has it
            "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]),
            "NUM_STREAMS": 1,
        }
        model = core.compile_model(core.read_model(Path(folder) / ONNX_FILE), "CPU", settings)
        self._inputs = {port.any_name for port in model.inputs}
        self.outputs = [port.any_name for port in model.outputs]
        self._request = model.create_infer_request()

    def run(self, batch: dict[str, Any], outputs: Sequence[str] | None = None) -> list[Any]:
        """Outputs of the graph by name, None for the first one."""
        self._request.infer({name: array for name, array in batch.items() if name in self._inputs}, share_inputs=True)
        return [self._request.get_tensor(name).data.copy() for name in outputs or self.outputs[:1]]


def measure_engines(
    model_dir: str | os.PathLike,
    data: str | os.PathLike,
    engines: Sequence[str] = tuple(ENGINES),
    threads: int = 1,
    rounds: int = 5,
    texts: int | None = None,
    batch_size: int = 32,
) -> dict[str, Any]:
    """Measure engines, each in its own process, in turns: A B C A B C ...

    Args:
        model_dir: folder OUTPUT_DIR/model of a training run of NER.
        data: labeled file, or texts.
        engines: names of ``ENGINES``; the trained model, to which all are compared, is always measured.
        threads: of each engine.
        rounds: turns of each engine, after one to warm up.
        texts: only the first so many of the file; None for all.
        batch_size: texts computed together.

    Returns:
        dict with ``texts``, ``characters``, ``notes`` (list of str: what was left out and why) and ``rows``, dicts with
        ``engine``; ``megabytes`` of its folder; ``turns``, what it measured in each round; ``first_answer_seconds``,
        processor seconds from the start of Python to the first entities, a list; ``changed``, the share of spans that
        only this or only the trained model has; ``f1``, None without labels.

    Raises:
        InputError: the model or the file is wrong, or the trained model cannot be run.
    """
    from tasks.ner.metrics import score_predictions

    notes: list[str] = []
    examples, sentences = read_input(data, texts, notes)
    workers, rows, expected = {}, {}, None
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        file = Path(temporary) / "texts.json"
        file.write_text(json.dumps(sentences), encoding="utf-8")
        for name in (name for name in ENGINES if name == REFERENCE or name in engines):
            engine = ENGINES[name]
            try:
                folder = _exported(model_dir, Path(temporary) / name, engine.export)
                arguments = ("prediction", str(folder), str(file), str(batch_size), name)
                settings = {"is_prepared": engine.needs_paddle, "OMP_NUM_THREADS": str(threads)}
                seconds = []
                for _ in range(COLD_STARTS - 1):
                    with Worker(*arguments, **settings) as worker:
                        seconds.append(worker.first["processor_seconds"])
                worker = stack.enter_context(Worker(*arguments, **settings))
                seconds.append(worker.first["processor_seconds"])
                found = _entities(worker.ask(with_entities=True))
                changed, difference = compare(found if expected is None else expected, found)
                if engine.is_exact and (changed > ROUNDED_AWAY or difference > TOLERANCE):
                    differences = f"{changed:.2%} of the spans differ, and scores by up to {difference:.2g}"
                    raise InputError(f"it is not the same model, as {differences}")
            except InputError as error:
                if name == REFERENCE:
                    raise
                notes.append(f"{engine.title} is left out: {error}")
                continue
            workers[name], expected = worker, expected or found
            size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
            f1 = score_predictions(examples, found, [])["f1"] if examples else None
            row = {"engine": name, "first_answer_seconds": seconds, "changed": changed, "f1": f1}
            rows[name] = {**row, "megabytes": round(size / 1e6, 2), "turns": []}
        for _ in range(rounds):
            for name, worker in workers.items():
                rows[name]["turns"].append(worker.ask())
    size = {"texts": len(sentences), "characters": sum(map(len, sentences))}
    return {**size, "notes": notes, "rows": list(rows.values())}


def read_input(data: str | os.PathLike, count: int | None, notes: list[str]) -> tuple[list | None, list[str]]:
    """(examples, or None without labels, of which ``notes`` then says so; texts): the first ``count`` of a file."""
    from tasks.ner.data.reading import read_examples, read_texts

    try:
        examples = read_examples(data)[:count]
        return examples, [example.text for example in examples]
    except InputError as error:
        texts = [text for text, _ in read_texts(data) if text][:count]
        if not texts:
            raise
        notes.append(f"no F1, as {data} is read as texts without labels ({error})")
        return None, texts


def _exported(model_dir, folder, options):
    """The folder of a model, exported into ``folder`` unless the trained one is wanted."""
    if options is None:
        return Path(model_dir)
    from tasks.common.export.exporter import export
    from tasks.ner.export import NerExporter

    export(NerExporter(), [model_dir], folder, **options)
    return folder


def _entities(answer):
    from tasks.ner.examples import Entity

    return [[Entity(*entity) for entity in of_text] for of_text in answer["entities"]]


def compare(expected: list[list], found: list[list]) -> tuple[float, float]:
    """(spans that only one of two predictions has, as a share of the first one's, largest difference of a score that
    both have)."""
    only_one = in_first = 0
    difference = 0.0
    for first, second in zip(expected, found):
        scores, others = ({entity[:3]: entity.score for entity in entities} for entities in (first, second))
        only_one += len(scores.keys() ^ others.keys())
        in_first += len(scores)
        difference = max([difference, *(abs(scores[span] - others[span]) for span in scores.keys() & others.keys())])
    return only_one / max(in_first, 1), difference


def as_table(measured: dict[str, Any]) -> str:
    """The medians of what :func:`measure_engines` returns, as a Markdown table."""
    rows = []
    for row in measured["rows"]:
        pairs = list(zip(measured["rows"][0]["turns"], row["turns"]))
        seconds = statistics.median(turn["seconds"] for turn in row["turns"])
        reading = statistics.median(turn["reading_seconds"] for turn in row["turns"])
        rows.append(
            {
                "engine": ENGINES[row["engine"]].title,
                "sentences a second": round(measured["texts"] / seconds),
                "times the trained model": f"{statistics.median(a['seconds'] / b['seconds'] for a, b in pairs):.2f}",
                "reading, share": f"{reading / seconds:.0%}",
                "spans that differ": f"{row['changed']:.2%}",
                "F1": "" if row["f1"] is None else f"{row['f1']:.4f}",
                "MB": row["megabytes"],
                "first answer, s": f"{statistics.median(row['first_answer_seconds']):.2f}",
            }
        )
    return as_markdown(rows, list(rows[0]))
