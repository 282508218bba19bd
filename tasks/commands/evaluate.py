"""paddle-rope evaluate: scores of a trained model on labeled data."""

from paddle_rope.machine import prepare_process
from tasks.commands.options import LABELED, add_computing, add_model_dir, add_model_dirs, choose, computing, new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_output_file, write_json

TASKS = {  # name -> what it prints, its data
    "ner": (
        (
            "Score a NER model: precision, recall and F1 of each type, the kinds of errors, which types are taken for\n"
            "each other, scores by length and nesting, and the texts with the most errors."
        ),
        LABELED,
    ),
    "matching": (
        (
            "Score a model of text matching: accuracy, F1 of label 1 and Spearman correlation of pairs, accuracy of\n"
            "triples. A bi-encoder says 1 from the threshold that its dev data gave."
        ),
        "labeled file: two texts and a label between tabs, or JSON lines",
    ),
    "classification": (
        (
            "Score a classifier: accuracy, macro F1, the scores of each class, and which classes are taken for each "
            "other."
        ),
        "labeled file: JSON lines or text<TAB>label",
    ),
}


def evaluate(words):
    summaries = {name: what.split(":")[0] for name, (what, _) in TASKS.items()}
    task, words = choose("paddle-rope evaluate", "task", words, summaries)
    description, data = TASKS[task]
    parser = new_parser(f"evaluate {task}", description)
    (add_model_dirs if task == "ner" else add_model_dir)(parser)
    parser.add_argument("data", metavar="DATA", help=data)
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    if task == "ner":
        parser.add_argument("--examples", type=int, default=5, metavar="N", help="texts with errors shown (default: 5)")
    add_computing(parser, task)
    options = parser.parse_args(words)
    more = {}
    if task == "ner":
        if options.examples < 0:
            raise InputError(f"--examples {options.examples}: must be 0 or more")
        more = {"num_examples": options.examples}
    if options.output:
        check_output_file(options.output, [options.data])
    prepare_process()
    from tasks.recipes import get_evaluation, get_predictor

    model = options.model_dirs if task == "ner" else options.model_dir
    evaluation = get_evaluation(task)
    examples = evaluation.read_labeled(options.data)
    predictor = get_predictor(task)(model, show_progress=True, **computing(options))
    scores = evaluation.evaluate_predictor(predictor, examples, str(options.data), **more)
    if options.output:
        write_json(options.output, scores)
    return 0
