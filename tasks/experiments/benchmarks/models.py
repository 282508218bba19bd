"""Models with random weights on texts of random tokens, to be timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.measuring import Job, paddle_jobs, peak_megabytes, seconds_of
from tasks.ner.arguments import NerArguments
from tasks.ner.batching import SpanCollator
from tasks.ner.examples import TokenizedText
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.finding import predict_entities

SHORT = 64  # tokens of a text before the measured one, so that one-time work is not timed
CHARACTERS_AN_ENTITY, LONGEST_ENTITY = 20, 10
TYPES = ("person", "place", "organization")


class Classifier:
    """A classifier of documents; its jobs compute one batch of texts of equal length."""

    config_class, model_class = SequenceClassificationConfig, RoFormerForSequenceClassification
    defaults: dict[str, Any] = {"vocab_size": 4000, "pooling": "mean"}

    def __init__(self, recompute: bool = False, **options: Any):
        self.model = self.model_class(self.config_class(**{**self.defaults, **options}))
        self.model.roformer.enable_recompute = recompute
        self.optimizer = AdamW(learning_rate=1e-4, parameters=self.model.parameters())

    def jobs(self, length: int, texts: int = 1, **options: Any) -> dict[str, Job]:
        """``train`` and ``predict`` on new random texts; ``options`` as of :func:`paddle_jobs`."""
        ids = paddle.randint(1, self.defaults["vocab_size"], [texts, length])
        labels = paddle.zeros([texts], dtype="int64")
        loss, predict = (lambda: self.model(ids, labels=labels)[0]), (lambda: self.model(ids).numpy())
        return paddle_jobs(self.model, self.optimizer, loss, predict, **options)


class Ner(Classifier):
    """The NER model, from tokens to entities; its text has an entity for every ``CHARACTERS_AN_ENTITY`` characters."""

    config_class, model_class = NerConfig, NerModel
    # untrained scores are about 0: with this threshold nearly nothing is found, as in real texts
    defaults = {**NerArguments().model_options(), "types": TYPES, "vocab_size": 3500, "thresholds": 10.0}

    def jobs(self, length: int, texts: int = 1, **options: Any) -> dict[str, Job]:
        of_batch = [_random_ner_text(length, self.defaults["vocab_size"])] * texts
        batch = {name: paddle.to_tensor(array) for name, array in SpanCollator(0)(of_batch).items()}
        loss, predict = (lambda: self.model(**batch)), (lambda: predict_entities(self.model, of_batch, texts))
        return paddle_jobs(self.model, self.optimizer, loss, predict, **options)


def _random_ner_text(length, vocab_size):
    ids = np.random.randint(6, vocab_size, length + 2).tolist()
    offsets = [(0, 0), *((i, i + 1) for i in range(length)), (0, 0)]
    count = length // CHARACTERS_AN_ENTITY
    first = np.random.randint(1, length - LONGEST_ENTITY, count)
    last = first + np.random.randint(0, LONGEST_ENTITY, count)
    spans = np.stack([np.random.randint(0, len(TYPES), count), first, last, np.ones(count)], 1).tolist()
    return TokenizedText(ids, offsets, spans)


MODELS = {"classification": Classifier, "ner": Ner}


def check_options(task: str, options: dict[str, Any]) -> None:
    """Raise InputError unless the model of a task takes the options: those of its configuration, and ``recompute``."""
    given, model = {name: value for name, value in options.items() if name != "recompute"}, MODELS[task]
    try:
        model.config_class.check_names(given)
        model.config_class(**{**model.defaults, **given})
    except ValueError as error:
        raise InputError(str(error)) from None


def measure(task: str, job: str, options: dict[str, Any], length: int, device: str) -> dict[str, float]:
    """``seconds`` of a ``job`` of the model of a ``task`` on one text, the fastest of two or three runs; ``peak_mb`` of
    this process; and ``idle_mb``, its peak before: libraries, weights, a short text."""
    paddle.set_device(device)
    paddle.seed(0)
    np.random.seed(0)
    model = MODELS[task](**options)
    model.jobs(SHORT)[job]()
    idle, run = peak_megabytes(), model.jobs(length)[job]
    # the first run is slower: the process has not touched its memory before
    seconds = min(seconds_of(run, least_runs=2, most_runs=3, enough_seconds=5.0))
    return {"seconds": round(seconds, 4), "peak_mb": peak_megabytes(), "idle_mb": idle}


def start() -> tuple[dict, Any]:
    """The worker's function; requests are the arguments of :func:`measure`."""
    return {}, measure
