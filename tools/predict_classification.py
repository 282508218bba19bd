#!/usr/bin/env python
"""Find the class of texts with a trained classifier.

Reads plain text, one text a line, or JSON lines with a "text" or "sentence", and writes JSON lines in the same order as
it goes: {"text": ..., "label": ..., "probability": ...}. What a pipe has brought so far is read, predicted in batches
of like length, written, and then more is read. A file given as --output appears when all of it is written.
"""

import bootstrap  # noqa: F401

import argparse
import os
import sys

from tasks.classification.data import TEXT_KEYS
from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.texts.json_lines import json_line
from tasks.common.texts.text_files import STDIN
from tasks.common.tool.prediction import progress_bar, standard_output

CHUNK_BATCHES = 16  # batches whose texts are sorted by length together


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    parser.add_argument("--max_characters", type=int, help="characters of a text that are read (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.classification.prediction import Classifier
    from tasks.common.files import atomic_writer, check_output_file
    from tasks.common.texts.text_stream import TextStream

    if options.output != STDIN:
        check_output_file(options.output)
        if options.input != STDIN and os.path.realpath(options.input) == os.path.realpath(options.output):
            raise InputError(f"{options.output}: is the input too; give another --output")
    stream = TextStream(options.input, CHUNK_BATCHES * max(1, options.batch_size), TEXT_KEYS)
    classifier = Classifier(
        options.model_dir, options.device, options.batch_size, options.max_characters, show_progress=sys.stderr.isatty()
    )
    output = standard_output() if options.output == STDIN else atomic_writer(options.output)
    with output as file, progress_bar(stream) as progress:
        for chunk in stream:
            records = classifier([text for text, _ in chunk])
            file.writelines(map(json_line, records))
            file.flush()
            progress.update(stream.position - progress.n if stream.size else len(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
