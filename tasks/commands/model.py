"""paddle-rope evaluate, export and tune: what is done with a trained model."""

from paddle_rope.machine import prepare_process
from tasks.commands.options import LABELED, add_computing, add_model_dirs, computing, new_parser, recipe_of, whole
from tasks.common.export.folder import FORMATS, ONNX
from tasks.common.files import check_output_file, write_json
from tasks.common.process import own_command, prepare, quoted
from tasks.recipes import get_evaluation, get_exporter, get_predictor

EVALUATE = """\
Score a model on labeled data.

ner             precision, recall and F1 of each type, the kinds of errors, which types are taken for each other, scores
                by length and nesting, and the texts with the most errors
matching        accuracy, F1 of label 1 and Spearman correlation of pairs, accuracy of triples; a bi-encoder says 1 from
                the threshold that its dev data gave
classification  accuracy, macro F1, the scores of each class, and which classes are taken for each other"""
DATA = f"""\
{LABELED}; for matching two texts and a label between tabs, or JSON lines; for classification JSON lines or
text<TAB>label"""
EXAMPLES = 5
EXPORT = """\
Export a trained model to use it elsewhere.

The folder it makes goes wherever a model's folder does: to paddle-rope predict, evaluate and serve, and to the
predictors in Python. An ONNX model needs neither Paddle nor PaddleNLP there. Several NER models become one with their
mean scores. Export compares the scores of the trained and the exported model."""
TUNE = """\
Tune a trained NER model on labeled data: for each entity type a threshold, for the micro F1, and a temperature, so that
the probabilities of entities say how often they are right.

Writes them into the config.json of the model, where prediction and evaluation find them. Tune on dev data, not on the
data that you report. Tuning again starts anew. Temperatures change no score and no entity."""


def evaluate(argv):
    parser = new_parser("evaluate", EVALUATE)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    parser.add_argument("--examples", type=whole(0), metavar="N", help="NER: texts with errors shown (default: 5)")
    add_computing(parser)
    options = parser.parse_args(argv)
    models, recipe = options.model_dirs, recipe_of(options.model_dirs, options)
    shown = {"num_examples": EXAMPLES if options.examples is None else options.examples} if recipe == "ner" else {}
    if options.output:
        check_output_file(options.output, [options.data])
    prepare_process()
    evaluation = get_evaluation(recipe)
    examples = evaluation.read_labeled(options.data)
    models = models if recipe == "ner" else models[0]
    predictor = get_predictor(recipe)(models, show_progress=True, **computing(options))
    scores = evaluation.evaluate_predictor(predictor, examples, str(options.data), **shown)
    if options.output:
        write_json(options.output, scores)
    return 0


def export(argv):
    parser = new_parser("export", EXPORT)
    add_model_dirs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to make; must not exist or be empty")
    of_engine = "onnx, or paddle for Paddle Inference (default: onnx)"
    parser.add_argument("--format", default=ONNX, choices=FORMATS, help=of_engine)
    parser.add_argument("--quantize", choices=["int8"], help="int8 weights: smaller and faster, nearly as good")
    parser.add_argument("--check", metavar="FILE", help="labeled file on which to score the trained and exported model")
    parser.add_argument("--license", metavar="NAME", help="license of the model, for its card")
    options = vars(parser.parse_args(argv))
    models, output = options.pop("model_dirs"), options.pop("output")
    recipe = recipe_of(models)
    prepare()
    from tasks.common.export.exporter import export

    found = export(get_exporter(recipe), models, output, **options)
    if found.scores:
        print("| score | trained | exported |\n|---|---|---|")
        for name, score in found.scores["trained"].items():
            print(f"| {name} | {score:.4f} | {found.scores['exported'][name]:.4f} |")
    print(f"{output}: exported; scores differ from the trained model's by at most {found.difference:.1g}")
    for limit in found.limits:
        print(f"note: {limit}")
    print(f"predict:  {own_command()} predict {quoted(output)} --input FILE")
    return 0


def tune(argv):
    parser = new_parser("tune", TUNE)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("data", metavar="DEV_FILE", help=LABELED)
    parser.add_argument("--only", choices=("thresholds", "temperatures"), help="leave the other as they are")
    add_computing(parser)
    options = parser.parse_args(argv)
    recipe_of([options.model_dir], options, ["ner"])
    prepare()
    from tasks.ner.tuning import tune_model

    tune_model(options.model_dir, options.data, only=options.only, **computing(options))
    return 0
