#!/usr/bin/env python
"""Score a trained model of text matching on labelled data: accuracy, F1 of label 1 and Spearman correlation of pairs,
accuracy of triples. A bi-encoder says 1 from the threshold that its dev data gave."""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("data", metavar="DATA", help="labelled file: two texts and a label between tabs, or JSON lines")
    parser.add_argument("--output", metavar="FILE", help="write the figures to FILE as JSON")
    parser.add_argument("--max_tokens", type=int, help="tokens of a sequence (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.common.files import check_output_file, write_json
    from tasks.recipes import get_recipe

    if options.output:
        check_output_file(options.output, [options.data])
    figures = get_recipe("matching").evaluate(
        options.model_dir, options.data, options.device, options.batch_size, max_tokens=options.max_tokens
    )
    if options.output:
        write_json(options.output, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
