#!/usr/bin/env python
"""Score pairs or triples of texts, or embed texts, with a trained model of text matching.

Reads what training reads, with or without labels: two texts a line with a tab between them, JSON lines with
"sentence1" and "sentence2", or JSON lines with "A", "B" and "C". Writes JSON lines in the same order as it goes:
  pairs     {"sentence1": ..., "sentence2": ..., "score": 0.93, "label": 1}; no label from models of grades or triples
  triples   {"A": ..., "B": ..., "C": ..., "scores": [0.61, 0.58], "label": "B"}: the candidate that is closer to A

What a pipe has brought so far is read, scored in batches of like length, written, and then more is read. A file given
as --output appears when all of it is written.

With --embed it reads texts, one a line (or JSON lines with a "text"), and writes their vectors, each of length 1, as
an array of NumPy [texts, hidden]; bi-encoders only. The dot product of two vectors is the score of the pair.
"""

import bootstrap  # noqa: F401

import argparse
import os
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.texts.text_files import STDIN

CHUNK_BATCHES = 16  # batches whose texts are sorted by length together


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("--input", default=STDIN, metavar="FILE", help="texts; - is standard input (default)")
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    parser.add_argument("--embed", action="store_true", help="write vectors of texts to --output FILE.npy")
    parser.add_argument("--max_tokens", type=int, help="tokens of a sequence (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    check_files(options)
    from tasks.matching.prediction import MatchingPredictor

    predictor = MatchingPredictor(
        options.model_dir, options.device, options.batch_size, options.max_tokens, show_progress=sys.stderr.isatty()
    )
    (embed if options.embed else score)(predictor, options)
    return 0


def check_files(options):
    """Raise InputError if the output is missing where one is needed, cannot be written, or is the input."""
    from tasks.common.files import check_output_file

    if options.output == STDIN:
        if options.embed:
            raise InputError("--embed writes an array: give --output FILE.npy")
        return
    check_output_file(options.output)
    if options.input != STDIN and os.path.realpath(options.input) == os.path.realpath(options.output):
        raise InputError(f"{options.output}: is the input too; give another --output")


def score(predictor, options):
    """Scores of pairs or triples as JSON lines, written as they come."""
    from tasks.common.files import atomic_writer
    from tasks.common.texts.json_lines import json_line
    from tasks.common.tool.prediction import progress_bar, standard_output
    from tasks.matching.data import ExampleStream, prediction_records

    stream = ExampleStream(options.input, CHUNK_BATCHES * options.batch_size)
    output = standard_output() if options.output == STDIN else atomic_writer(options.output)
    with output as file, progress_bar(stream) as progress:
        for chunk in stream:
            tuples = [example.texts for example in chunk]
            scores = predictor.score_triples(tuples) if len(tuples[0]) == 3 else predictor.score(tuples)[:, None]
            file.writelines(map(json_line, prediction_records(tuples, scores, predictor.threshold)))
            file.flush()
            progress.update(stream.position - progress.n if stream.size else len(tuples))


def embed(predictor, options):
    """Vectors of texts as a file of NumPy."""
    import numpy as np

    from tasks.common.files import atomic_writer
    from tasks.common.texts.text_stream import TextStream
    from tasks.common.tool.prediction import progress_bar

    predictor.encode([])  # a cross-encoder is refused before the texts are read
    stream, vectors = TextStream(options.input, CHUNK_BATCHES * options.batch_size), []
    with progress_bar(stream) as progress:
        for chunk in stream:
            vectors.append(predictor.encode([text for text, _ in chunk]))
            progress.update(stream.position - progress.n if stream.size else len(chunk))
    with atomic_writer(options.output, binary=True) as file:
        np.save(file, np.concatenate(vectors))


if __name__ == "__main__":
    sys.exit(main())
