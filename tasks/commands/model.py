"""paddle-rope export and tune: what is done with a trained model."""

import pkgutil

from tasks.commands.options import LABELED, add_computing, add_model_dir, add_model_dirs, choose, computing, new_parser
from tasks.common.export.folder import FORMATS, ONNX
from tasks.common.process import prepare

EXPORT = """\
Export a trained model to use it elsewhere.

The folder it makes goes wherever a model's folder does: to paddle-rope predict, evaluate and serve, and to the
predictors in Python. An ONNX model needs neither Paddle nor PaddleNLP there. Export compares the scores of both."""
EXPORTERS = {
    "ner": ("tasks.ner.export:NerExporter", "entities; several models become one with the mean scores"),
    "matching": ("tasks.matching.export:MatchingExporter", "scores of pairs, or vectors of texts"),
    "classification": ("tasks.classification.export:ClassificationExporter", "classes of texts"),
}
TUNE = """\
Tune a trained NER model on labeled data: for each entity type a threshold, for the micro F1, and a temperature, so that
the probabilities of entities say how often they are right.

Writes them into the config.json of the model, where prediction and evaluation find them. Tune on dev data, not on the
data that you report. Tuning again starts anew. Temperatures change no score and no entity."""


def export(words):
    summaries = {name: summary for name, (_, summary) in EXPORTERS.items()}
    task, words = choose("paddle-rope export", "task", words, summaries)
    parser = new_parser(f"export {task}", EXPORT)
    (add_model_dirs if task == "ner" else add_model_dir)(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to make; must not exist or be empty")
    parser.add_argument(
        "--format", default=ONNX, choices=FORMATS, help="onnx, or paddle for Paddle Inference (default: onnx)"
    )
    parser.add_argument("--quantize", choices=["int8"], help="int8 weights: smaller and faster, nearly as good")
    parser.add_argument("--check", metavar="FILE", help="labeled file on which to score the trained and exported model")
    parser.add_argument("--license", metavar="NAME", help="license of the model, for its card")
    options = parser.parse_args(words)
    prepare()
    from tasks.common.export.exporter import export

    exporter = pkgutil.resolve_name(EXPORTERS[task][0])()
    models = options.model_dirs if task == "ner" else [options.model_dir]
    more = {name: getattr(options, name) for name in ("format", "quantize", "check", "license")}
    found = export(exporter, models, options.output, **more)
    if found.scores:
        print("| score | trained | exported |")
        print("|---|---|---|")
        for name, score in found.scores["trained"].items():
            print(f"| {name} | {score:.4f} | {found.scores['exported'][name]:.4f} |")
    print(f"{options.output}: exported; scores differ from the trained model's by at most {found.difference:.1g}")
    for limit in found.limits:
        print(f"note: {limit}")
    print(f"predict:  paddle-rope predict {task} {options.output} --input FILE")
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
