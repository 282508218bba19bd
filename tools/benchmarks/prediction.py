"""Time the engines that can predict with a trained NER model, side by side on CPU, from texts to entities.

    .venv/bin/python -m tools.benchmarks.prediction runs/cluener/model --input data/ner/cluener/dev.json

The model is exported as needed. Each engine runs in its own process; they take turns, and medians count. All of them
read, tokenize and decode the same texts in the same way, and must find the same entities, except in int8 and bfloat16.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from paddle_rope.tasks.commands.benchmark import add_counts
from paddle_rope.tasks.commands.options import LABELED, MODEL_DIR, whole
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.model_folder import ONNX_FILE
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.worker import Worker, report, timed
from tools.benchmarks.command import new_parser, parse

REFERENCE, BFLOAT16, INT8 = "eager", "bfloat16", "onnx_int8"
ENGINES = {
    REFERENCE: "Paddle, the trained model",
    BFLOAT16: "Paddle, bfloat16",
    "paddle": "Paddle Inference",
    "onnx": "onnxruntime, float32",
    INT8: "onnxruntime, int8",
    "openvino": "OpenVINO, float32",
}
PREPARED = (REFERENCE, BFLOAT16, "paddle")  # Paddle is set up as our commands do
EXPORTS = {"paddle": {"format": "paddle"}, INT8: {"quantize": "int8"}}  # options of ``export``
TOLERANCE = 1e-3  # of a score, because engines round in different orders
ROUNDED_AWAY = 0.001  # share of spans that may come or go by rounding


def start(folder: str, file: str, batch_size: str, engine: str) -> tuple[dict, Callable[..., dict[str, Any]]]:
    """The worker's function: opens the model in ``folder`` and predicts the first text in the JSON file. Returns the
    ``processor_seconds`` since the start of Python; and a function that predicts all texts and returns the keys of
    :func:`timed`, ``reading_seconds`` of tokens and features once more by themselves, and, if ``with_entities``, the
    (start, end, type, score) of each text's entities."""
    from paddle_rope.tasks.ner.prediction.predictor import NerPredictor

    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    predictor = NerPredictor(folder, "cpu", batch_size=int(batch_size), bf16=engine == BFLOAT16)
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
    """Like :class:`paddle_rope.tasks.common.export.model.OnnxGraph`, but computed by OpenVINO for one caller."""

    def __init__(self, folder: str | os.PathLike):
        try:
            import openvino
        except ImportError:
            raise InputError("OpenVINO is not installed; pip install 'paddle_rope[openvino]'") from None
        core = openvino.Core()
        # by default OpenVINO uses bfloat16 where the processor has it
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"])}
        model = core.compile_model(core.read_model(Path(folder) / ONNX_FILE), "CPU", settings)
        self._inputs = {port.any_name for port in model.inputs}
        self.outputs = [port.any_name for port in model.outputs]
        self._request = model.create_infer_request()

    def run(self, batch: dict[str, Any], outputs: Sequence[str] | None = None) -> list[Any]:
        """Outputs of the graph by name, None for the first one."""
        self._request.infer({name: array for name, array in batch.items() if name in self._inputs}, share_inputs=True)
        return [self._request.get_tensor(name).data.copy() for name in outputs or self.outputs[:1]]


@on_terminal
def main(argv: list[str] | None = None) -> None:
    """Measure engines, each in its own process, in turns, A B C A B C ...; the trained model, to which all are
    compared, is always measured. Raises InputError if the model or the file is wrong, or the trained model fails."""
    parser = new_parser(__doc__)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help=MODEL_DIR)
    parser.add_argument("--input", dest="data", required=True, metavar="FILE", help=LABELED)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--texts", type=whole(1), metavar="N", help="only the first N (default: all)")
    counts = {"threads": (1, "threads of each engine"), "rounds": (5, "turns of each engine")}
    add_counts(parser, **counts, batch_size=(32, "texts computed together"))
    options = parse(parser, argv)
    from paddle_rope.tasks.ner.data.reading import read_examples
    from paddle_rope.tasks.ner.examples import Entity
    from paddle_rope.tasks.ner.metrics import entity_scores

    examples = read_examples(options.data)[: options.texts]
    texts = [example.text for example in examples]
    notes, workers, rows, expected = [], {}, {}, None
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        file = Path(temporary) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        for name in (name for name in ENGINES if name == REFERENCE or name in options.engines):
            try:
                folder = _exported(options.model_dir, Path(temporary), name)
                arguments = ("tools.benchmarks.prediction", str(folder), str(file), str(options.batch_size), name)
                settings = {
                    "is_prepared": name in (REFERENCE, BFLOAT16, "paddle"),
                    "OMP_NUM_THREADS": str(options.threads),
                }
                worker = stack.enter_context(Worker(*arguments, **settings))
                found = [[Entity(*one) for one in of_text] for of_text in worker.ask(with_entities=True)["entities"]]
                changed, difference = compare(found if expected is None else expected, found)
                if name not in (INT8, BFLOAT16) and (changed > ROUNDED_AWAY or difference > TOLERANCE):
                    differences = f"{changed:.2%} of the spans differ, and scores by up to {difference:.2g}"
                    raise InputError(f"it is not the same model, as {differences}")
            except InputError as error:
                if name == REFERENCE:
                    raise
                notes.append(f"{ENGINES[name]} is left out: {error}")
                continue
            workers[name], expected = worker, expected or found
            size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
            f1 = entity_scores(examples, found, [])["f1"]
            row = {"engine": name, "first_answer_seconds": worker.first["processor_seconds"], "changed": changed}
            rows[name] = {**row, "f1": f1, "megabytes": round(size / 1e6, 2), "turns": []}
        for _ in range(options.rounds):
            for name, worker in workers.items():
                rows[name]["turns"].append(worker.ask())
    size = f"{len(texts)} texts, {sum(map(len, texts))} characters, batches of {options.batch_size}"
    measured = {"texts": len(texts), "notes": notes, "rows": list(rows.values())}
    given = {name: value for name, value in vars(options).items() if name not in ("output", "texts")}
    report({**given, **measured}, f"{size}\n{as_table(measured)}", options.output)


def _exported(model_dir, temporary, name):
    """The folder of a model for an engine, exported into ``temporary`` unless the engine computes the trained one."""
    if name in (REFERENCE, BFLOAT16):
        return Path(model_dir)
    from paddle_rope.tasks.common.export.exporter import export
    from paddle_rope.tasks.ner.export import NerExporter

    export(NerExporter(), [model_dir], temporary / name, **EXPORTS.get(name, {}))
    return temporary / name


def compare(expected: list[list], found: list[list]) -> tuple[float, float]:
    """(number of spans that only one of two predictions has, relative to the spans of the first, largest difference of
    the scores of a span that both have)."""
    first, second = (
        {(text, *entity[:3]): entity.score for text, of_text in enumerate(predicted) for entity in of_text}
        for predicted in (expected, found)
    )
    difference = max((abs(first[span] - second[span]) for span in first.keys() & second.keys()), default=0.0)
    return len(first.keys() ^ second.keys()) / max(len(first), 1), difference


def as_table(measured: dict[str, Any]) -> str:
    """The medians of the turns, as a Markdown table."""
    rows = []
    for row in measured["rows"]:
        pairs = list(zip(measured["rows"][0]["turns"], row["turns"]))
        seconds, reading = (median(turn[key] for turn in row["turns"]) for key in ("seconds", "reading_seconds"))
        rows.append({
            "engine": ENGINES[row["engine"]],
            "sentences a second": round(measured["texts"] / seconds),
            "times the trained model": f"{median(a['seconds'] / b['seconds'] for a, b in pairs):.2f}",
            "reading, share": f"{reading / seconds:.0%}",
            "spans that differ": f"{row['changed']:.2%}",
            "F1": f"{row['f1']:.4f}",
            "MB": row["megabytes"],
            "first answer, s": f"{row['first_answer_seconds']:.2f}",
        })  # fmt: skip
    return as_markdown(rows)


if __name__ == "__main__":
    sys.exit(main())
