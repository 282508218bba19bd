"""The command line. Help is there without paddle, and so is all that needs no model."""

import sys

import paddle_rope
from tasks.commands import (
    benchmark,
    data,
    evaluate,
    experiment,
    model,
    predict,
    select,
    serve,
    train,
    weights,
)
from tasks.commands.options import choose
from tasks.common.cli.streams import on_terminal

COMMAND = "paddle-rope"
VERBS = {  # name -> (function of the words after it, what it does)
    "train": (train.train, "train a model, or resume a run: train ner CONFIG.yaml"),
    "predict": (predict.predict, "entities, scores or classes of texts: predict ner MODEL_DIR --input FILE"),
    "serve": (serve.serve, "serve models over HTTP: serve MODEL_DIR"),
    "select": (select.select, "the texts to label next: select ner MODEL_DIR --input FILE --count N"),
    "evaluate": (evaluate.evaluate, "score a model on labeled data: evaluate ner MODEL_DIR DATA"),
    "export": (model.export, "export a model for deployment: export ner MODEL_DIR --output FOLDER"),
    "tune": (model.tune, "thresholds and temperatures of a model: tune ner MODEL_DIR DEV_FILE"),
    "inspect": (data.inspect, "look at labeled NER data: inspect TRAIN [DEV] [TEST]"),
    "convert": (data.convert, "convert labeled NER data: convert SOURCE TARGET --to FORMAT"),
    "download": (data.download, "download a public NER data set: download cluener"),
    "demo": (data.demo, "write demo data: demo ner FOLDER"),
    "experiment": (experiment.experiment, "compare the variants of a plan: experiment PLAN.yaml"),
    "benchmark": (benchmark.benchmark, "measure time and memory: benchmark length"),
    "compare": (experiment.compare, "finished runs side by side: compare OUTPUT_DIR ..."),
    "convert-weights": (
        weights.convert_weights,
        "convert a checkpoint: convert-weights SOURCE TARGET --to FORMAT",
    ),
    "decay": (experiment.decay, "draw the long-range decay of RoPE: decay --output FOLDER"),
}


@on_terminal
def main(argv=None):
    """Do what the command line says; returns the exit status. ``argv``: its words; None for those of the process."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["--version"]:
        print(f"{COMMAND} {paddle_rope.__version__}")
        return 0
    verbs = {name: line for name, (_, line) in VERBS.items()}
    verb, words = choose(COMMAND, "verb", words or ["--help"], verbs)
    return VERBS[verb][0](words)
