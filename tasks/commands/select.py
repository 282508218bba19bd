"""paddle-rope select: which unlabeled texts to label next."""

import sys

from paddle_rope.tasks.commands.options import (
    LABELED,
    add_model_dirs,
    add_prediction,
    add_reading,
    new_parser,
    open_model,
    reading,
    recipe_of,
    whole,
)
from paddle_rope.tasks.commands.predict import check_files, chunk_size, chunks, open_output
from paddle_rope.tasks.common.texts.text_files import STDIN
from paddle_rope.tasks.recipes import get_part, get_predictor, recipes_with

SELECT = """\
Select the texts that are most worth labeling next: the ones about whose entities a NER model is least certain.

    paddle-rope select MODEL_DIR --input texts.txt --labeled train.jsonl --count 500 --output next.jsonl

Reads what paddle-rope predict reads with a NER model. Writes the texts with the entities that the model finds in
them, for annotators to correct, the most uncertain text first. The uncertainty is the entropy, in nats, of all that the
model says about the spans of a text; jsonl has it under "uncertainty". Near duplicates are not selected twice, nor are
near duplicates of a labeled text. The formats are the same as for paddle-rope predict."""
SELECTED = "what is selected; - is standard output (default)"


def select(argv):
    from paddle_rope.tasks.ner.prediction.output_formats import FORMATS

    parser = new_parser("select", SELECT)
    add_model_dirs(parser)
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help=SELECTED)
    parser.add_argument("--count", type=whole(1), required=True, metavar="N", help="how many texts to select")
    parser.add_argument("--labeled", metavar="FILE", help=f"texts that need no more labels: {LABELED}")
    parser.add_argument("--format", default="jsonl", choices=FORMATS, help="of the output (default: jsonl)")
    add_reading(parser)
    add_prediction(parser, recipes_with("select"))
    options = parser.parse_args(argv)
    recipe = recipe_of(options.model_dirs, options, recipes_with("select"))
    check_files(options, [options.input, *options.model_dirs, *([options.labeled] if options.labeled else [])])
    predictor_class, given = get_predictor(recipe), reading(options)
    labeled = predictor_class.labeled.read_file(options.labeled, **given) if options.labeled else []
    stream = predictor_class.stream(options.input, chunk_size(options), **given)
    predictor = open_model(options.model_dirs, options)
    select_texts = get_part(recipe, "select")
    selected, seen = select_texts(predictor, chunks(stream), options.count, [example.text for example in labeled])
    with open_output(options.output) as file:
        file.writelines(predictor.written(selected, options.format, ", ".join(options.model_dirs)))
    note = f"selected {len(selected)} of {seen} texts"
    if len(selected) < options.count:
        note += f", fewer than {options.count}: the others are empty or near duplicates"
    print(note, file=sys.stderr)
