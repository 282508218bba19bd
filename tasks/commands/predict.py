"""paddle-rope predict: texts in, entities, scores or classes out, as they come."""

import functools
import os
import sys

from paddle_rope.machine import physical_cores
from paddle_rope.tasks.commands.options import (
    add_model_dirs,
    add_prediction,
    add_reading,
    new_parser,
    open_model,
    prediction_options,
    reading,
    recipe_of,
    whole,
)
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import atomic_writer, check_apart, check_output_file
from paddle_rope.tasks.common.output import check_standard_output, standard_output
from paddle_rope.tasks.common.texts.streams import FileStream, TextStream
from paddle_rope.tasks.common.texts.text_files import STDIN
from paddle_rope.tasks.ner.formats.source import parse_fields
from paddle_rope.tasks.recipes import get_predictor

PREDICT = """\
Find entities in texts, score pairs of texts, or classify texts: what the model was trained for.

Plain text, one text a line, and JSON lines are read for every model, packed by gzip or not. Offsets count characters.

A NER model also reads a JSON list, a table with a header (CSV, TSV) and labeled data. --format:
  jsonl    {"text": ..., "entities": [{"start": 0, "end": 4, "type": ..., "text": ..., "score": ...}]}, end exclusive
  cluener  {"text": ..., "label": {type: {surface: [[first, last], ...]}}}, last inclusive
  doccano  {"text": ..., "label": [[start, end, type], ...]}, end exclusive
  bio      one character and its tag a line. Of nested and overlapping entities it holds only the one with the highest
           score; a note at the end counts the others
  labelstudio  one list of tasks with predictions and their probabilities, for import into Label Studio, where
           annotators correct them
All but the last are labeled data for the other verbs; an empty text is refused there, except in jsonl.

A matching model reads what training reads, with or without labels: two texts a line with a tab between them, JSON lines
with "sentence1" and "sentence2", or JSON lines with "A", "B" and "C". It writes JSON lines:
  pairs     {"sentence1": ..., "sentence2": ..., "score": 0.93, "label": 1}; no label from models of grades or triples
  triples   {"A": ..., "B": ..., "C": ..., "scores": [0.61, 0.58], "label": "B"}: the candidate that is closer to A
With --embed a bi-encoder reads texts (JSON lines have a "text") and writes their vectors, each of length 1, as an array
of NumPy [texts, hidden]. The dot product of two vectors is the score of the pair.

A classifier reads JSON lines with a "text" or "sentence", and writes {"text": ..., "label": ..., "probability": ...}.

Results come in the order of the input: what a pipe has brought so far is read, computed in batches of like length and
written, and then more is read. A file given as --output appears when all of it is written.

Many documents: with a folder or several files as --input, or with one of the options for them, --output is a folder.
Read are .txt, .jsonl, .json, .csv and .tsv (each also with .gz) and .parquet. Results are JSON lines with the other
keys of the input. What was rejected is in rejected.jsonl. The same command again goes on where it stopped."""
PART_RECORDS = 10_000
OF_MANY = ("processes", "threads", "ray", "part_records", "text_column")  # options for many documents
CHUNK_BATCHES = 32  # batches whose texts are sorted by length together


def predict(argv):
    options = _parse(argv)
    recipe = recipe_of(options.model_dirs, options)
    options.input = inputs = options.input or [STDIN]
    of_many = [name for name in OF_MANY if getattr(options, name) is not None]
    if options.whole_files and of_many:
        raise InputError(f"--{of_many[0]}: --whole_files reads one file after another; leave it out")
    if not options.whole_files:
        if of_many or len(inputs) > 1 or os.path.isdir(inputs[0]) or inputs[0].endswith(".parquet"):
            return predict_many(recipe, options)
        (options.input,) = inputs
    if options.embed and options.output == STDIN:
        raise InputError("--embed writes an array: give --output FILE.npy")
    check_files(options, [*inputs, *options.model_dirs, *filter(None, (options.dictionary, options.patterns))])
    if options.embed:
        embed(options)
    else:
        write_predictions(get_predictor(recipe), options)


def _parse(argv):
    from paddle_rope.tasks.ner.page import LANGUAGES
    from paddle_rope.tasks.ner.prediction.output_formats import FORMATS

    parser = new_parser("predict", PREDICT)
    add_model_dirs(parser)
    given = "texts; - is standard input (default); several files or a folder: see above"
    parser.add_argument("--input", nargs="+", action="extend", metavar="FILE", help=given)
    parser.add_argument("--output", default=STDIN, metavar="FILE", help="results; - is standard output (default)")
    add_reading(parser, texts_only=True)
    add_prediction(parser, with_filter=True)
    ner = parser.add_argument_group("entities")
    ner.add_argument("--format", choices=FORMATS, help="of the results (default: jsonl)")
    ner.add_argument("--html", metavar="FILE", help="also draw texts and entities as a page for a browser")
    ner.add_argument("--html_language", default="en", choices=LANGUAGES, help="of the page (default: en)")
    document = "each --input is one document with its lines, not one text a line"
    ner.add_argument("--whole_files", action="store_true", help=document)
    vectors = parser.add_argument_group("vectors, of a matching model")
    vectors.add_argument("--embed", action="store_true", help="write vectors of texts to --output FILE.npy")
    group = parser.add_argument_group("many documents")
    each = "processes, each with its own model (default: 1)"
    group.add_argument("--processes", type=whole(1), metavar="N", help=each)
    of_process = "of a process (default: cores / processes; on Ray 1)"
    group.add_argument("--threads", type=whole(1), metavar="N", help=of_process)
    place = "on Ray: the cluster of an address (auto, HOST:PORT, ray://HOST:PORT), or one of this machine"
    group.add_argument("--ray", nargs="?", const="local", metavar="ADDRESS", help=place)
    size = f"records of a finished file at most (default: {PART_RECORDS})"
    group.add_argument("--part_records", type=whole(1), metavar="N", help=size)
    group.add_argument("--text_column", metavar="NAME", help="key of the text, not of matching (default: text)")
    return parser.parse_args(argv)


def check_files(options, others):
    """Raise InputError if a file to write cannot be written or is one of the ``others`` of the command line."""
    if options.output == STDIN:
        check_standard_output()
    else:
        check_output_file(options.output, others)
    if getattr(options, "html", None) is not None:
        check_output_file(options.html, [*others, options.output])


def chunk_size(options):
    """The number of items that are read together."""
    return CHUNK_BATCHES * max(1, options.batch_size)


def open_output(output):
    """A context manager that gives the file of the path ``output``, or standard output for ``-``."""
    return standard_output() if output == STDIN else atomic_writer(output)


def chunks(stream, longest=None, longer=""):
    """The chunks of a stream, with a progress bar in bytes of a file or, for a pipe, in texts. A single note says what
    is done with texts longer than ``longest`` characters."""
    from tqdm import tqdm

    unit = {"unit": "B", "unit_scale": True, "total": stream.size} if stream.size else {"unit": "text"}
    with tqdm(disable=not sys.stderr.isatty(), **unit) as progress:
        for chunk in stream:
            if longest is not None and any(len(text) > longest for text, _ in chunk):
                print(f"note: longer texts are {longer}", file=sys.stderr)
                longest = None
            yield chunk
            progress.update(stream.position - progress.n if stream.size else len(chunk))


def write_predictions(predictor_class, options):
    """Write the results of texts or pairs, each chunk as soon as it is computed, and draw entities as a page."""
    if options.whole_files:
        stream = FileStream(options.input)
    else:
        stream = predictor_class.stream(options.input, chunk_size(options), **reading(options))
    predictor = open_model(options.model_dirs, options)
    drawn = []

    def predicted():
        for chunk in chunks(stream, *predictor.long_texts):
            items, where = zip(*chunk)
            records = predictor.answer(items, where)
            if options.html:
                drawn.extend(records)
            yield from zip(records, where)
            file.flush()

    try:
        with open_output(options.output) as file:
            file.writelines(predictor.written(predicted(), options.format, ", ".join(options.model_dirs)))
    except SystemExit:  # the reader of standard output, such as head, has left
        if options.html:
            raise InputError(f"{options.html}: not written, as not all results were read; give an --output") from None
        raise
    if options.html:
        from paddle_rope.tasks.ner.page.html import write_html

        with atomic_writer(options.html) as file:
            write_html(file, drawn, predictor.types, stream.name, predictor.is_calibrated, options.html_language)


def embed(options):
    """Write the vectors of texts to a NumPy file."""
    import numpy as np

    stream = TextStream(options.input, chunk_size(options))
    predictor = open_model(options.model_dirs, options)
    predictor.encode([])  # a cross-encoder is refused before the texts are read
    vectors = [predictor.encode([text for text, _ in chunk]) for chunk in chunks(stream)]
    with atomic_writer(options.output, binary=True) as file:
        np.save(file, np.concatenate(vectors))


# ---- many documents


def predict_many(task, options):
    if STDIN in options.input:
        raise InputError("--input: many documents are read from files; give files or a folder")
    if options.output == STDIN:
        raise InputError("many documents are written to a folder; give --output FOLDER")
    check_apart(options.output, options.model_dirs)
    if (options.format or "jsonl") != "jsonl":
        raise InputError(f"--format {options.format}: many documents are written as JSON lines; leave it out")
    for name in ("html", "embed"):
        if getattr(options, name):
            raise InputError(f"--{name}: is for one file of texts; leave it out, or give one --input alone")
    processes = options.processes or 1
    threads = 1 if options.ray else max(1, physical_cores() // processes)
    from paddle_rope.tasks.scaling.run import run_documents
    from paddle_rope.tasks.scaling.worker import Job

    job = Job(
        task=task,
        models=tuple(os.path.abspath(path) for path in options.model_dirs),
        output=os.path.abspath(options.output),
        text_column=options.text_column or parse_fields(options.fields or "").get("text", "text"),
        chunk_records=chunk_size(options),
        threads=options.threads or threads,
        options=prediction_options(options),
    )
    if options.ray is not None:
        from paddle_rope.tasks.scaling.on_ray import run_on_ray

        run_parts = functools.partial(run_on_ray, count=processes, address=options.ray)
    else:
        from paddle_rope.tasks.scaling.processes import run_in_processes

        run_parts = functools.partial(run_in_processes, count=processes)
    return run_documents(job, options.input, options.part_records or PART_RECORDS, run_parts)
