#!/usr/bin/env python
"""Score a trained classifier on labelled texts: accuracy, macro F1, each class, and which are taken for each other."""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("data", metavar="DATA", help="labelled file: JSON lines or text<TAB>label")
    parser.add_argument("--output", metavar="FILE", help="write all of it to FILE as JSON")
    parser.add_argument("--max_characters", type=int, help="characters of a text that are read (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.common.files import check_output_file, write_json
    from tasks.recipes import get_recipe

    if options.output:
        check_output_file(options.output, [options.data])
    scores = get_recipe("classification").evaluate(
        options.model_dir, options.data, options.device, options.batch_size, max_characters=options.max_characters
    )
    if options.output:
        write_json(options.output, scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
