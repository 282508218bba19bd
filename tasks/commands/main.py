"""The command line. Help, like everything that needs no model, works without importing Paddle."""

import os
import sys

import paddle_rope
from paddle_rope.tasks.commands import benchmark, data, experiment, model, predict, select, serve, train
from paddle_rope.tasks.commands.options import choose
from paddle_rope.tasks.common.output import on_terminal

COMMAND = "paddle-rope"
GROUPS = {  # title in the help -> verb -> (function of the arguments after it, what it does)
    "Train": {
        "train": (train.train, "train a model, or resume a run: train CONFIG.yaml"),
        "evaluate": (model.evaluate, "score a model on labeled data: evaluate MODEL_DIR DATA"),
        "tune": (model.tune, "thresholds and temperatures of a NER model: tune MODEL_DIR DEV_FILE"),
    },
    "Use a model": {
        "predict": (predict.predict, "entities, scores or classes of texts: predict MODEL_DIR --input FILE"),
        "serve": (serve.serve, "serve models over HTTP: serve MODEL_DIR"),
        "select": (select.select, "the texts to label next: select MODEL_DIR --input FILE --count N"),
        "export": (model.export, "export a model for deployment: export MODEL_DIR --output FOLDER"),
        "convert-weights": (model.convert_weights, "convert a checkpoint: convert-weights SOURCE TARGET --to FORMAT"),
    },
    "Data": {
        "inspect": (data.inspect, "look at labeled NER data: inspect TRAIN [DEV] [TEST]"),
        "convert": (data.convert, "convert labeled NER data: convert SOURCE TARGET --to FORMAT"),
        "download": (data.download, "download a data set or an encoder: download cluener, download hfl/rbt3"),
        "demo": (data.demo, "write demo data: demo ner FOLDER"),
    },
    "Experiments": {
        "experiment": (experiment.experiment, "compare the variants of a plan: experiment PLAN.yaml"),
        "compare": (experiment.compare, "finished runs side by side: compare OUTPUT_DIR ..."),
        "benchmark": (benchmark.benchmark, "time, memory and F1 against the length of the text: benchmark length"),
        "decay": (experiment.decay, "draw the long-range decay of RoPE: decay --output FOLDER"),
    },
}
VERBS = {name: verb for verbs in GROUPS.values() for name, verb in verbs.items()}


@on_terminal
def main(argv=None):
    """Run a command line, by default ``sys.argv``; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    os.environ["MPLBACKEND"] = "agg"  # a notebook's backend, which a command inherits, may be missing here
    if argv[:1] == ["--version"]:
        print(f"{COMMAND} {paddle_rope.__version__}")
        return 0
    groups = {title: {name: line for name, (_, line) in verbs.items()} for title, verbs in GROUPS.items()}
    verb, argv = choose(COMMAND, "verb", argv or ["--help"], groups)
    return VERBS[verb][0](argv)
