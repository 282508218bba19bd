"""paddle-rope evaluate: scores of a trained model on labeled data."""

from paddle_rope.machine import prepare_process
from tasks.commands.options import LABELED, add_computing, add_model_dirs, computing, new_parser, recipe_of
from tasks.common.errors import InputError
from tasks.common.files import check_output_file, write_json
from tasks.recipes import get_evaluation, get_predictor

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


def evaluate(argv):
    parser = new_parser("evaluate", EVALUATE)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    parser.add_argument("--examples", type=int, metavar="N", help="NER: texts with errors shown (default: 5)")
    add_computing(parser)
    options = parser.parse_args(argv)
    recipe = recipe_of(options.model_dirs, options)
    more = {}
    if recipe == "ner":
        more["num_examples"] = EXAMPLES if options.examples is None else options.examples
        if more["num_examples"] < 0:
            raise InputError(f"--examples {options.examples}: must be 0 or more")
    if options.output:
        check_output_file(options.output, [options.data])
    prepare_process()
    evaluation = get_evaluation(recipe)
    examples = evaluation.read_labeled(options.data)
    models = options.model_dirs if recipe == "ner" else options.model_dirs[0]
    predictor = get_predictor(recipe)(models, show_progress=True, **computing(options))
    scores = evaluation.evaluate_predictor(predictor, examples, str(options.data), **more)
    if options.output:
        write_json(options.output, scores)
    return 0
