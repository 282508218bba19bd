#!/usr/bin/env python
"""Find entities in texts with a trained NER model.

Reads plain text, one text a line, or JSON lines with a "text", and writes in the same order as it goes: what a pipe
has brought so far is read, predicted in batches of like length, written, and then more is read. A file given as
--output or --html appears when all of it is written.

Formats of the output; offsets count characters:
  jsonl    {"text": ..., "entities": [{"start": 0, "end": 4, "type": ..., "text": ..., "score": ...}]}, end exclusive
  cluener  {"text": ..., "label": {type: {surface: [[first, last], ...]}}}, last inclusive
  doccano  {"text": ..., "label": [[start, end, type], ...]}, end exclusive
  bio      one character and its tag a line. Of nested and overlapping entities it holds only one: that with the
           highest score stays; how many are left out is told at the end
All are labelled data for the other tools; an empty text is refused there, except in jsonl.
"""

import bootstrap  # noqa: F401

import argparse
import os
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.tool.prediction import add_model_dirs, progress_bar, standard_output
from tasks.ner.data.reading import STDIN
from tasks.ner.prediction.output_formats import FORMATS, write_predictions

CHUNK_BATCHES = 64  # batches whose texts are sorted by length together


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_dirs(parser)
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    parser.add_argument("--format", default="jsonl", choices=FORMATS, help="of the results (default: jsonl)")
    parser.add_argument("--html", metavar="FILE", help="also draw texts and entities as a page for a browser")
    parser.add_argument("--max_tokens", type=int, help="tokens at once (default: as trained); longer texts: windows")
    parser.add_argument("--overlap", type=int, help="tokens that two windows share (default: a quarter of max_tokens)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    check_files(options)
    from tasks.common.files import atomic_writer
    from tasks.common.texts.text_stream import TextStream
    from tasks.ner.prediction.html import write_html
    from tasks.ner.prediction.predictor import NerPredictor

    stream = TextStream(options.input, CHUNK_BATCHES * options.batch_size)
    predictor = NerPredictor(
        options.model_dirs,
        options.device,
        options.batch_size,
        options.max_tokens,
        show_progress=sys.stderr.isatty(),
        overlap=options.overlap,
    )
    drawn, left_out = [], 0
    output = standard_output() if options.output == STDIN else atomic_writer(options.output)
    try:
        with output as file, progress_bar(stream) as progress:
            for chunk in stream:
                texts, where = zip(*chunk)
                records = predictor(texts, where)
                left_out += write_predictions(records, where, file, options.format)
                file.flush()
                if options.html:
                    drawn += records
                progress.update(stream.position - progress.n if stream.size else len(records))
    except SystemExit:  # the reader of standard output, such as head, has left
        if options.html:
            raise InputError(f"{options.html}: not written, as not all results were read; give an --output") from None
        raise
    if left_out:
        print(
            f"note: {left_out} nested or overlapping entities are left out, as BIO cannot hold them; "
            "--format jsonl keeps all",
            file=sys.stderr,
        )
    if options.html:
        with atomic_writer(options.html) as file:
            write_html(file, drawn, predictor.types, f"Entities of {stream.name}")
    return 0


def check_files(options):
    """Raise InputError if a file to write cannot be written or is another file of the command line."""
    from tasks.common.files import check_output_file

    taken = {} if options.input == STDIN else {os.path.realpath(options.input): "the input"}
    for name, path in (("--output", options.output), ("--html", options.html)):
        if path is None or (name == "--output" and path == STDIN):
            continue
        check_output_file(path)
        if os.path.realpath(path) in taken:
            raise InputError(f"{path}: is {taken[os.path.realpath(path)]} too; give another {name}")
        taken[os.path.realpath(path)] = "the --output"


if __name__ == "__main__":
    sys.exit(main())
