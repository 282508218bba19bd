"""What computes a NER model, for the benchmark of prediction: each engine in a process of its own, which this file is.

All read the same texts with the same tokenizer and word features and decode in the same way; only what computes the
scores is another. No engine is imported before its turn.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tasks.common.errors import InputError

PEER_FOLDER = "peer"  # beside the exported folder: the weights for PyTorch


class Engine(NamedTuple):
    """An engine of the benchmark.

    Attributes:
        title: its name in tables.
        model: what it reads: ``"trained"``, or one of the exports ``"paddle"``, ``"onnx"`` and ``"int8"``.
        module: what it is in Python.
        requirements: file of what has to be installed.
        exact: whether it finds the spans of the trained model but for rounding.
        open: folder of that model -> predictor.
    """

    title: str
    model: str
    module: str
    requirements: str
    exact: bool
    open: Callable[[str], Any]


def _open_with_paddle(folder):
    from tasks.common.process import prepare

    prepare()
    return _open(folder)


def _open(folder):
    from tasks.ner.prediction.predictor import NerPredictor

    return NerPredictor(folder, "cpu", batch_size=int(os.environ["BATCH_SIZE"]))


def _open_with_openvino(folder):
    from tasks.experiments.benchmarks.prediction.openvino_graph import OpenVinoGraph

    return _open_computed_by(OpenVinoGraph, folder)


def _open_with_torch(folder):
    from tasks.experiments.benchmarks.prediction.torch_peer import TorchPeer

    return _open_computed_by(lambda folder, device: TorchPeer(Path(folder).parent / PEER_FOLDER), folder)


def _open_computed_by(graph, folder):
    from tasks.common.export import onnx_graph

    onnx_graph.OnnxGraph = graph  # of this process: the rest of the predictor is ours
    return _open(folder)


_PADDLE = ("paddle", "requirements.txt")
_ONNX = ("onnxruntime", "requirements-onnx.txt")
_OPENVINO = ("openvino", "requirements-openvino.txt")
_TORCH = ("torch", "requirements-peers.txt")
ENGINES = {
    "eager": Engine("Paddle, the trained model", "trained", *_PADDLE, True, _open_with_paddle),
    "paddle": Engine("Paddle Inference", "paddle", *_PADDLE, True, _open_with_paddle),
    "onnx": Engine("onnxruntime, float32", "onnx", *_ONNX, True, _open),
    "onnx_int8": Engine("onnxruntime, int8", "int8", *_ONNX, False, _open),
    "openvino": Engine("OpenVINO, float32", "onnx", *_OPENVINO, True, _open_with_openvino),
    "torch": Engine("PyTorch, Hugging Face's RoFormer", "onnx", *_TORCH, True, _open_with_torch),
}


def main(words: list[str]) -> None:
    """Open an engine, answer the first text, then predict all texts whenever a line comes in.

    Writes a line of JSON for each: ``{"processor_seconds": since the start of Python, "version"}``, or ``{"left_out":
    why}``; then ``{"seconds", "processor_seconds", "reading_seconds"}``, ``reading`` being tokens and features, once
    more by themselves. The first also has ``"entities"``, for each text its (start, end, type, score).

    Args:
        words: name of the engine, folder of its model, JSON file with a list of texts.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    name, folder, file = words
    engine = ENGINES[name]
    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    try:
        predictor = engine.open(folder)
        predictor(texts[:1])
    except ImportError as error:
        answer(left_out=f"{error}; pip install -r {engine.requirements}")
        return
    except InputError as error:
        answer(left_out=str(error))
        return
    first, version = time.process_time(), getattr(sys.modules[engine.module], "__version__", "")
    answer(processor_seconds=first, version=version.partition("-")[0])
    is_first = True
    for _ in sys.stdin:
        start = time.perf_counter()
        for text in texts:
            predictor.tokenize(text)
        reading, start, started = time.perf_counter() - start, time.perf_counter(), time.process_time()
        found = predictor.find(texts)
        measured = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - started}
        entities = {"entities": [[entity[:4] for entity in of_text] for of_text in found]} if is_first else {}
        answer(**measured, reading_seconds=reading, **entities)
        is_first = False


if __name__ == "__main__":
    main(sys.argv[1:])
