#!/usr/bin/env python
"""Find entities in texts with a trained NER model.

Reads plain text, one text a line, or JSON lines with a "text"; writes JSON lines in the same order:
{"text": ..., "entities": [{"start": 0, "end": 4, "type": ..., "text": ..., "score": ...}]}, offsets in characters,
end exclusive.
"""

import bootstrap  # noqa: F401

import argparse
import json
import sys

from tasks.common.errors import exit_on_input_error
from tasks.ner.data import STDIN, read_texts


@exit_on_input_error
def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    parser.add_argument("--max_length", type=int, help="longest text in characters (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.common.files import write_json_lines
    from tasks.ner.prediction import NerPredictor

    texts, where = zip(*read_texts(options.input))
    predictor = NerPredictor(
        options.model_dir, options.device, options.batch_size, options.max_length, show_progress=sys.stderr.isatty()
    )
    records = predictor(texts, where)
    if options.output == STDIN:
        for record in records:
            print(json.dumps(record, ensure_ascii=False))
    else:
        write_json_lines(options.output, records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
