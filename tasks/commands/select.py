"""paddle-rope select: which unlabeled texts to label next."""

import sys

from paddle_rope.tasks.commands.options import (
    LABELED,
    add_model_dirs,
    add_prediction,
    add_reading,
    new_parser,
    reading,
    recipe_of,
    whole,
)
from paddle_rope.tasks.commands.predict import check_files, chunk_size, chunks, open_model, open_output
from paddle_rope.tasks.common.texts.text_files import STDIN

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
    add_prediction(parser, ["ner"])
    options = parser.parse_args(argv)
    recipe_of(options.model_dirs, options, ["ner"])
    check_files(options, [options.input, *options.model_dirs, *([options.labeled] if options.labeled else [])])
    from paddle_rope.tasks.ner.calibration import LOWEST_THRESHOLD
    from paddle_rope.tasks.ner.data.reading import EntityTextStream, read_examples
    from paddle_rope.tasks.ner.prediction.output_formats import written
    from paddle_rope.tasks.ner.prediction.selection import rank, uncertainty

    known = [example.text for example in read_examples(options.labeled, **reading(options))] if options.labeled else []
    stream = EntityTextStream(options.input, chunk_size(options), options.fields)
    predictor = open_model("ner", options.model_dirs, options)
    seen, uncertainties = [], []
    for chunk in chunks(stream):
        seen += chunk
        uncertainties.extend(map(uncertainty, predictor.find(*zip(*chunk), LOWEST_THRESHOLD)))
    chosen = rank([text for text, _ in seen], uncertainties, options.count, known)
    texts, where = ([seen[index][part] for index in chosen] for part in (0, 1))
    records = predictor(texts, where)
    for record, index in zip(records, chosen):
        record["uncertainty"] = round(uncertainties[index], 4)
    with open_output(options.output) as file:
        file.writelines(written(zip(records, where), options.format, ", ".join(options.model_dirs)))
    note = f"selected {len(chosen)} of {len(seen)} texts"
    if len(chosen) < options.count:
        note += f", fewer than {options.count}: the others are empty or near duplicates"
    print(note, file=sys.stderr)
