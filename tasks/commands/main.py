"""The command line. Help is there without paddle, and so is all that needs no model."""

import os
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
from tasks.common import language
from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.tool.streams import on_terminal

COMMAND = "paddle-rope"
VERBS = {  # name -> (function of the words after it, what it does)
    "train": (train.train, Message("train a model, or resume a run: train ner CONFIG.yaml")),
    "predict": (predict.predict, Message("entities, scores or classes of texts: predict ner MODEL_DIR --input FILE")),
    "serve": (serve.serve, Message("serve models over HTTP: serve MODEL_DIR")),
    "select": (select.select, Message("the texts to label next: select ner MODEL_DIR --input FILE --count N")),
    "evaluate": (evaluate.evaluate, Message("score a model on labeled data: evaluate ner MODEL_DIR DATA")),
    "export": (model.export, Message("export a model for deployment: export ner MODEL_DIR --output FOLDER")),
    "tune": (model.tune, Message("thresholds and temperatures of a model: tune ner MODEL_DIR DEV_FILE")),
    "inspect": (data.inspect, Message("look at labeled NER data: inspect TRAIN [DEV] [TEST]")),
    "convert": (data.convert, Message("convert labeled NER data: convert SOURCE TARGET --to FORMAT")),
    "download": (data.download, Message("download a public NER data set: download cluener")),
    "demo": (data.demo, Message("write demo data: demo ner FOLDER")),
    "experiment": (experiment.experiment, Message("compare the variants of a plan: experiment PLAN.yaml")),
    "benchmark": (benchmark.benchmark, Message("measure time and memory: benchmark layers")),
    "compare": (experiment.compare, Message("finished runs side by side: compare OUTPUT_DIR ...")),
    "convert-weights": (
        weights.convert_weights,
        Message("convert a checkpoint: convert-weights SOURCE TARGET --to FORMAT"),
    ),
    "decay": (experiment.decay, Message("draw the long-range decay of RoPE: decay --output FOLDER")),
}
LANGUAGE = Message("\nIn Chinese: --language zh, with any verb, or a Chinese locale; --language en: in English")


@on_terminal
def main(argv=None):
    """Do what the command line says; returns the exit status. ``argv``: its words; None for those of the process."""
    words = _speak(sys.argv[1:] if argv is None else list(argv))
    if words[:1] == ["--version"]:
        print(f"{COMMAND} {paddle_rope.__version__}")
        return 0
    verbs = {name: line for name, (_, line) in VERBS.items()}
    verb, words = choose(COMMAND, Message("verb"), words or ["--help"], verbs, more=LANGUAGE)
    return VERBS[verb][0](words)


def _speak(words):
    """Use the language that the words name; returns the others."""
    name, words = language.option_of(words)
    if name is not None:
        if name not in language.LANGUAGES:
            raise InputError("--language {name}: must be en or zh", name=name)
        language.use(name)
        os.environ["LANGUAGE"] = name  # processes that this one starts
    return words
