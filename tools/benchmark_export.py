#!/usr/bin/env python
"""Time prediction of a trained NER model against its export, side by side on CPU: all that predict_ner.py does with
texts (features, tokens, scores, decoding), and the scores alone."""

import bootstrap  # noqa: F401

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error
from tasks.common.tool.prediction import add_model_dirs

ROUNDS = 5


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help="labelled file whose texts are predicted")
    parser.add_argument("--texts", type=int, default=640, help="of the file's beginning (default: 640)")
    parser.add_argument("--batch_size", type=int, default=32)
    options = parser.parse_args(argv)
    from paddle_rope.machine import machine_in_words
    from tasks.ner import NerPredictor
    from tasks.ner.data.reading import read_examples
    from tasks.ner.deployment.export import export

    texts = [example.text for example in read_examples(options.data)][: options.texts]
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        export(options.model_dirs, exported)
        predictors = [NerPredictor(model, "cpu", options.batch_size) for model in (options.model_dirs, exported)]
        trained, graph = measure(predictors, texts)
    characters = sum(map(len, texts))
    print(f"{len(texts)} texts, {characters} characters, batches of {options.batch_size}; {machine_in_words()}")
    print(f"characters a second, median of {ROUNDS}")
    print("| | trained | exported | exported / trained |")
    print("|---|---|---|---|")
    for what, before, after in zip(("all", "scores alone"), trained, graph):
        print(f"| {what} | {characters / before:.0f} | {characters / after:.0f} | {before / after:.2f} |")
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
