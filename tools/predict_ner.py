#!/usr/bin/env python
"""Find entities in texts with a trained NER model.

Reads plain text, one text a line, or JSON lines with a "text"; writes JSON lines in the same order:
{"text": ..., "entities": [{"start": 0, "end": 4, "type": ..., "text": ..., "score": ...}]}, offsets in characters,
end exclusive.
"""

import bootstrap  # noqa: F401

import argparse
import json
import os
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.ner.data import STDIN, read_texts


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    parser.add_argument("--max_length", type=int, help="longest text in characters (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.common.files import check_output_file, write_json_lines
    from tasks.ner.prediction import NerPredictor

    if options.output != STDIN:
        check_output_file(options.output)
        if os.path.realpath(options.output) == os.path.realpath(options.input):
            raise InputError(f"{options.output}: is the input too; give another --output")
    texts, where = zip(*read_texts(options.input))
    predictor = NerPredictor(
        options.model_dir, options.device, options.batch_size, options.max_length, show_progress=sys.stderr.isatty()
    )
    records = predictor(texts, where)
    if options.output == STDIN:
        print_records(records)
    else:
        write_json_lines(options.output, records)
    return 0


def print_records(records):
    """JSON lines in UTF-8, whatever the locale; silent when the reader, such as ``head``, has left."""
    if hasattr(sys.stdout, "reconfigure"):  # not where it is replaced by a stream of text
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        for record in records:
            print(json.dumps(record, ensure_ascii=False))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


if __name__ == "__main__":
    sys.exit(main())
