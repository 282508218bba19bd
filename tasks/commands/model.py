"""paddle-rope export and tune: what is done with a trained NER model."""

import os

from tasks.commands.options import LABELED, add_computing, add_model_dir, add_model_dirs, choose, computing, new_parser
from tasks.common.tool.process import prepare

EXPORT = """\
Export a trained NER model as a static graph for Paddle Inference, to deploy it.

The folder it makes goes wherever a model's folder does: to paddle-rope predict ner, evaluate ner and
tasks.ner.NerPredictor. Several models become one whose scores are their mean. Without word features the graph needs
nothing of this project; its inputs and its output are in docs/ner.md."""
TUNE = """\
Tune a trained NER model on labeled data: for each entity type a threshold, for the micro F1, and a temperature, so that
the probabilities of entities say how often they are right.

Writes them into the config.json of the model, where prediction and evaluation find them. Tune on dev data, not on the
data that you report. Tuning again starts anew. Temperatures change no score and no entity."""


def export(words):
    _, words = choose("paddle-rope export", "task", words, {"ner": "a NER model as a static graph"})
    parser = new_parser("export ner", EXPORT)
    add_model_dirs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to make; must not exist or be empty")
    options = parser.parse_args(words)
    os.environ.setdefault("GLOG_minloglevel", "2")  # Paddle's notes on what its own layers do in graphs
    prepare()
    from tasks.ner.deployment.export import export

    difference = export(options.model_dirs, options.output)
    print(f"{options.output}: exported; scores of three sentences differ from the model's by at most {difference:.1g}")
    print(f"predict:  paddle-rope predict ner {options.output} --input FILE")
    return 0


def tune(words):
    _, words = choose("paddle-rope tune", "task", words, {"ner": "thresholds and temperatures of a NER model"})
    parser = new_parser("tune ner", TUNE)
    add_model_dir(parser)
    parser.add_argument("data", metavar="DEV_FILE", help=LABELED)
    parser.add_argument("--only", choices=("thresholds", "temperatures"), help="leave the other as they are")
    add_computing(parser, "ner")
    options = parser.parse_args(words)
    prepare()
    from tasks.ner.deployment.tuning import tune_model

    tune_model(options.model_dir, options.data, only=options.only, **computing(options))
    return 0
