"""Prediction of a trained NER model against that of its export, on CPU; see ``paddle-rope benchmark export --help``."""

import statistics
import tempfile
import time
from pathlib import Path

from paddle_rope.machine import machine_in_words
from tasks.ner import NerPredictor
from tasks.ner.data.reading import read_examples
from tasks.ner.export import export

ROUNDS = 5


def print_export_times(model_dirs, data, count, batch_size):
    """Print a table of characters a second, for the first ``count`` texts of a labeled file."""
    texts = [example.text for example in read_examples(data)][:count]
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        export(model_dirs, exported)
        predictors = [NerPredictor(model, "cpu", batch_size) for model in (model_dirs, exported)]
        trained, graph = measure(predictors, texts)
    characters = sum(map(len, texts))
    print(f"{len(texts)} texts, {characters} characters, batches of {batch_size}; {machine_in_words()}")
    print(f"characters a second, median of {ROUNDS}")
    print("| | trained | exported | exported / trained |")
    print("|---|---|---|---|")
    for what, before, after in zip(("all", "scores alone"), trained, graph):
        print(f"| {what} | {characters / before:.0f} | {characters / after:.0f} | {before / after:.2f} |")


def measure(predictors, texts):
    """For each predictor the medians of (seconds for all texts, those of them within the model)."""
    for predictor in predictors:
        predictor.model = Timed(predictor.model)
    times = [[] for _ in predictors]
    for _ in range(ROUNDS + 1):
        for predictor, results in zip(predictors, times):
            predictor.model.seconds, start = 0.0, time.perf_counter()
            predictor.find(texts)
            results.append((time.perf_counter() - start, predictor.model.seconds))
    return [[statistics.median(column) for column in zip(*results[1:])] for results in times]


class Timed:
    """A model that adds up the seconds of its calls."""

    def __init__(self, model):
        self.model = model
        self.seconds = 0.0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def __call__(self, **batch):
        start = time.perf_counter()
        scores = self.model(**batch)
        self.seconds += time.perf_counter() - start
        return scores
