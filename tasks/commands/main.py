"""The command line. Help, like everything that needs no model, works without importing Paddle."""

import os
import sys

import paddle_rope
from paddle_rope.tasks.commands import benchmark, data, experiment, model, predict, select, serve, train
from paddle_rope.tasks.commands.options import choose
from paddle_rope.tasks.common.output import on_terminal

COMMAND = "paddle-rope"
VERBS = {  # name -> (function of the arguments after it, what it does)
    "train": (train.train, "train a model, or resume a run: train CONFIG.yaml"),
    "predict": (predict.predict, "entities, scores or classes of texts: predict MODEL_DIR --input FILE"),
    "serve": (serve.serve, "serve models over HTTP: serve MODEL_DIR"),
    "select": (select.select, "the texts to label next: select MODEL_DIR --input FILE --count N"),
    "evaluate": (model.evaluate, "score a model on labeled data: evaluate MODEL_DIR DATA"),
    "export": (model.export, "export a model for deployment: export MODEL_DIR --output FOLDER"),
    "tune": (model.tune, "thresholds and temperatures of a NER model: tune MODEL_DIR DEV_FILE"),
    "inspect": (data.inspect, "look at labeled NER data: inspect TRAIN [DEV] [TEST]"),
    "convert": (data.convert, "convert labeled NER data: convert SOURCE TARGET --to FORMAT"),
    "download": (data.download, "download a data set or an encoder: download cluener, download hfl/rbt3"),
    "demo": (data.demo, "write demo data: demo ner FOLDER"),
    "experiment": (experiment.experiment, "compare the variants of a plan: experiment PLAN.yaml"),
    "benchmark": (benchmark.benchmark, "measure time and memory: benchmark length"),
    "compare": (experiment.compare, "finished runs side by side: compare OUTPUT_DIR ..."),
    "convert-weights": (model.convert_weights, "convert a checkpoint: convert-weights SOURCE TARGET --to FORMAT"),
    "decay": (experiment.decay, "draw the long-range decay of RoPE: decay --output FOLDER"),
}


@on_terminal
def main(argv=None):
    """Run a command line, by default ``sys.argv``; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    os.environ["MPLBACKEND"] = "agg"  # a notebook's backend, which a command inherits, may be missing here
    if argv[:1] == ["--version"]:
        print(f"{COMMAND} {paddle_rope.__version__}")
        return 0
    verb, argv = choose(COMMAND, "verb", argv or ["--help"], {name: line for name, (_, line) in VERBS.items()})
    return VERBS[verb][0](argv)
