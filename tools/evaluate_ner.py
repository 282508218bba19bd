#!/usr/bin/env python
"""Score a trained NER model on labelled data: precision, recall and F1 of each type, the kinds of errors, which types
are taken for each other, scores by length and nesting, and the texts with the most errors."""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.tool.prediction import add_model_dirs


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help="labelled file, of a format that convert_data.py --help lists")
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="texts with errors to show (default: 5)")
    parser.add_argument("--max_tokens", type=int, help="longest text in characters (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.common.files import check_output_file, write_json
    from tasks.recipes import get_recipe

    if options.examples < 0:
        raise InputError(f"--examples {options.examples}: must be 0 or more")
    if options.output:
        check_output_file(options.output, [options.data])
    scores = get_recipe("ner").evaluate(
        options.model_dirs,
        options.data,
        options.device,
        options.batch_size,
        max_tokens=options.max_tokens,
        num_examples=options.examples,
    )
    if options.output:
        write_json(options.output, scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
