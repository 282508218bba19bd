"""The models whose time and memory are measured, each with random texts, loss and prediction; how they are measured."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import numpy as np
import paddle

from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from tasks.common.errors import InputError
from tasks.experiments.apart import call_apart
from tasks.experiments.benchmarks.lengths import fastest_seconds, peak_megabytes
from tasks.ner.arguments import NerArguments
from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.finding import predict_entities

SHORT = 64  # tokens of a text before the measured one, so that what is done once is not timed
CHARACTERS_AN_ENTITY, LONGEST_ENTITY = 20, 10
TYPES = ("person", "place", "organization")


class Classifier:
    """A classifier of documents; texts are int64 tensors ``[1, length]``."""

    vocabulary = 4000

    def __init__(self, recompute=False, **options):
        self.model = RoFormerForSequenceClassification(self.config(**options))
        self.model.roformer.enable_recompute = recompute

    @classmethod
    def config(cls, **options):
        return SequenceClassificationConfig(vocab_size=cls.vocabulary, pooling="mean", **options)

    def random_text(self, length):
        return paddle.randint(1, self.vocabulary, [1, length])

    def loss(self, ids):
        return self.model(ids, labels=paddle.zeros([1], dtype="int64"))[0]

    def predict(self, ids):
        with paddle.no_grad():
            return self.model(ids).numpy()


class Ner:
    """The NER model with the recipe's default sizes, from tokens to entities; texts have an entity for every
    ``CHARACTERS_AN_ENTITY`` characters."""

    vocabulary = 3500

    def __init__(self, recompute=False, **options):
        self.model = NerModel(self.config(**options))
        self.model.roformer.enable_recompute = recompute

    @classmethod
    def config(cls, **options):
        sizes = {**NerArguments().model_options(), **options}
        # untrained scores are about 0: with this threshold nearly nothing is found, as in real texts
        return NerConfig(types=TYPES, vocab_size=cls.vocabulary, thresholds=10.0, **sizes)

    def random_text(self, length):
        ids = np.random.randint(6, self.vocabulary, length + 2).tolist()
        offsets = [(0, 0), *((i, i + 1) for i in range(length)), (0, 0)]
        count = length // CHARACTERS_AN_ENTITY
        first = np.random.randint(1, length - LONGEST_ENTITY, count)
        last = first + np.random.randint(0, LONGEST_ENTITY, count)
        spans = np.stack([np.random.randint(0, len(TYPES), count), first, last], 1).tolist()
        return TokenizedText(ids, offsets, spans)

    def loss(self, text):
        batch = {name: paddle.to_tensor(array) for name, array in SpanCollator(pad_token_id=0)([text]).items()}
        return self.model(**batch)

    def predict(self, text):
        return predict_entities(self.model, [text], batch_size=1)


MODELS = {"classification": Classifier, "ner": Ner}


def check_options(task: str, where: str, options: dict[str, Any]) -> None:
    """Raise InputError, which begins with ``where``, unless the model of a task takes the options."""
    config = {name: value for name, value in options.items() if name != "recompute"}
    try:
        {"ner": NerConfig, "classification": SequenceClassificationConfig}[task].check_names(config)
        made = MODELS[task].config(**config)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    if task == "ner" and (made.max_span_length or LONGEST_ENTITY) < LONGEST_ENTITY:
        raise InputError(f"{where}: max_span_length must be {LONGEST_ENTITY} or more, the longest entity of its texts")


def measure(task: str, job: str, options: dict[str, Any], length: int, device: str = "cpu") -> dict[str, float]:
    """Time one job on one text of random tokens, and the peak memory of this process; random numbers have seed 0.

    Args:
        task: one of :data:`MODELS`.
        job: ``"train"`` (forward, backward, AdamW) or ``"predict"``.
        options: of the model's configuration, and ``recompute``.
        length: tokens.
        device: of paddle.

    Returns:
        dict with ``seconds``, ``peak_mb`` and ``idle_mb``, the peak before: libraries, weights, a short text. On a GPU
        the peak is that of its memory.
    """
    paddle.set_device(device)
    paddle.seed(0)
    np.random.seed(0)
    measured = MODELS[task](**options)
    optimizer = AdamW(learning_rate=1e-4, parameters=measured.model.parameters())

    def run(text):
        if job == "predict":
            measured.predict(text)
            return
        loss = measured.loss(text)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        loss.item()

    if job == "predict":
        measured.model.eval()
    run(measured.random_text(SHORT))
    idle = peak_megabytes(device)
    text = measured.random_text(length)
    seconds = fastest_seconds(lambda: run(text))
    return {"seconds": round(seconds, 4), "peak_mb": peak_megabytes(device), "idle_mb": idle}


def measure_apart(given: dict[str, Any]) -> dict[str, Any]:
    """:func:`measure` of the arguments ``given`` in a process of its own; ``{"left_out": why}`` if the process fails,
    as by a lack of memory."""
    done = call_apart("measure", given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    said = done.stderr.strip().splitlines() or ["it said nothing"]
    return {"left_out": f"failed with status {done.returncode}: {said[-1].strip()}"}
