"""The worker of the benchmark of length: one training step or prediction of a model on one text of random tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.measuring import peak_megabytes, seconds_of, training_step
from tasks.ner.arguments import NerArguments
from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.finding import predict_entities

SHORT = 64  # tokens of a text before the measured one, so that what is done once is not timed
CHARACTERS_AN_ENTITY, LONGEST_ENTITY = 20, 10
TYPES = ("person", "place", "organization")


class Classifier:
    """A classifier of documents; texts are int64 tensors ``[1, length]``."""

    config_class, model_class = SequenceClassificationConfig, RoFormerForSequenceClassification
    defaults = {"vocab_size": 4000, "pooling": "mean"}

    def __init__(self, recompute: bool = False, **options: Any):
        self.model = self.model_class(self.config(**options))
        self.model.roformer.enable_recompute = recompute

    @classmethod
    def config(cls, **options: Any) -> Any:
        return cls.config_class(**cls.defaults, **options)

    def random_text(self, length):
        return paddle.randint(1, self.defaults["vocab_size"], [1, length])

    def loss(self, ids):
        return self.model(ids, labels=paddle.zeros([1], dtype="int64"))[0]

    def predict(self, ids):
        with paddle.no_grad():
            self.model(ids).numpy()


class Ner(Classifier):
    """The NER model, from tokens to entities; texts have an entity for every ``CHARACTERS_AN_ENTITY`` characters."""

    config_class, model_class = NerConfig, NerModel
    # untrained scores are about 0: with this threshold nearly nothing is found, as in real texts
    defaults = {"types": TYPES, "vocab_size": 3500, "thresholds": 10.0}

    @classmethod
    def config(cls, **options: Any) -> NerConfig:
        return super().config(**{**NerArguments().model_options(), **options})

    def random_text(self, length):
        ids = np.random.randint(6, self.defaults["vocab_size"], length + 2).tolist()
        offsets = [(0, 0), *((i, i + 1) for i in range(length)), (0, 0)]
        count = length // CHARACTERS_AN_ENTITY
        first = np.random.randint(1, length - LONGEST_ENTITY, count)
        last = first + np.random.randint(0, LONGEST_ENTITY, count)
        spans = np.stack([np.random.randint(0, len(TYPES), count), first, last], 1).tolist()
        return TokenizedText(ids, offsets, spans)

    def loss(self, text):
        return self.model(**{name: paddle.to_tensor(array) for name, array in SpanCollator(0)([text]).items()})

    def predict(self, text):
        predict_entities(self.model, [text], batch_size=1)


MODELS = {"classification": Classifier, "ner": Ner}


def check_options(task: str, options: dict[str, Any]) -> None:
    """Raise InputError unless the model of a task takes the options: those of its configuration, and ``recompute``."""
    config = {name: value for name, value in options.items() if name != "recompute"}
    model = MODELS[task]
    try:
        model.config_class.check_names(config)
        made = model.config(**config)
    except ValueError as error:
        raise InputError(str(error)) from None
    if task == "ner" and (made.max_span_length or LONGEST_ENTITY) < LONGEST_ENTITY:
        raise InputError(f"max_span_length must be {LONGEST_ENTITY} or more, the longest entity of its texts")


def measure(task: str, job: str, options: dict[str, Any], length: int, device: str) -> dict[str, float]:
    """Time one job on one text of random tokens, and the peak memory of this process; random numbers have seed 0.

    Args:
        task: one of :data:`MODELS`.
        job: ``"train"`` (forward, backward, AdamW) or ``"predict"``.
        options: of the model's configuration, and ``recompute``.
        length: tokens.
        device: of paddle.

    Returns:
        dict with ``seconds``, of the fastest of two runs, or of three that are short; ``peak_mb``; and ``idle_mb``, the
        peak before: libraries, weights, a short text.
    """
    paddle.set_device(device)
    paddle.seed(0)
    np.random.seed(0)
    measured = MODELS[task](**options)
    optimizer = AdamW(learning_rate=1e-4, parameters=measured.model.parameters())
    if job == "predict":
        measured.model.eval()

    def run(text):
        if job == "predict":
            measured.predict(text)
        else:
            training_step(optimizer, lambda: measured.loss(text))

    run(measured.random_text(SHORT))
    idle, text = peak_megabytes(), measured.random_text(length)
    # the first run is slower: the process has not touched its memory before
    seconds = min(seconds_of(lambda: run(text), least_runs=2, most_runs=3, enough_seconds=5.0))
    return {"seconds": round(seconds, 4), "peak_mb": peak_megabytes(), "idle_mb": idle}


def start() -> tuple[dict, Callable[..., dict[str, float]]]:
    """Of a worker: its requests are the arguments of :func:`measure`."""
    return {}, measure
