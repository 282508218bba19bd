"""paddle-rope benchmark: trained models, in engines, services and many processes."""

import json
from pathlib import Path

from paddle_rope.machine import machine_in_words, physical_cores
from tasks.commands import predict_many
from tasks.commands.options import LABELED, add_model_dir, add_model_dirs, new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_output_file
from tasks.common.process import prepare

PREDICTION = """\
Time the engines that can predict with a trained NER model, side by side on CPU, from texts to entities.

    paddle-rope benchmark prediction runs/cluener/model --input data/ner/cluener/dev.json --threads 1 2

The model is exported as need be. Each engine has a process of its own; they take turns, A B C A B C ..., and medians
count: what else the machine does then slows all of them. "Reading" is what comes before the model: tokens and word
features. The first answer is the processor time from the start of Python to the entities of one text. All find the same
entities, which is checked; int8 rounds, so its spans are compared.

PyTorch wants an environment without Paddle: python -m venv PEERS, PEERS/bin/pip install --group peers, then
--peer_python PEERS/bin/python. What is not installed is left out with a note."""

ENTITIES = """\
Measure how F1 of trained NER models changes with the length of the text, and with the position in it.

    paddle-rope benchmark entities runs/cluener/model --input data/ner/cluener/dev.json --output runs/lengths --lists

Neighboring texts of the file are joined to documents of several lengths; the texts are the same at all lengths. What is
found in a tenth of the documents is compared with what is found in the same texts alone. --lists measures documents of
nothing but entities, too, with 、 between them. A length is left out, with a note, where it would not fit into
memory. Writes entities.json, entities.md and entities.png."""

SERVICE = """\
Start paddle-rope serve on a model, and load it from several connections of this machine:

1. capacity: each connection sends its next request when it has the answer to the last one;
2. 50 % of it: requests come at random times, whether or not others have been answered;
3. 10 times as many as it can answer, or as many as this machine can send: the others are refused.

Prints a table of requests a second and of milliseconds. Words after -- go to paddle-rope serve:

    paddle-rope benchmark service MODEL_DIR --input FILE -- --workers 2"""

LONG_DOCUMENT = """\
Measure time and peak memory of predicting one document with a trained or exported NER model, against its length.

    paddle-rope benchmark long_document MODEL_DIR --texts FILE ... --characters 10000 100000 1000000

The document is the texts, a line each, again and again up to so many characters. Each length has a process of its own.
idle_mb is the peak before: libraries, weights, dictionary, the document, and the first prediction of a short text."""

DOCUMENTS = """\
Predict a large corpus with several processes, and on Ray, side by side: documents per second, memory, and how many
processes a million documents a day need.

    paddle-rope benchmark documents MODEL_DIR --texts FILE ... --output FOLDER --records 1000000 --processes 1 2 --ray 2

The corpus, in FOLDER/input, is drawn with a seed from the sentences of the texts (plain text, or JSON lines with a
"text"). Call it again to resume: what is finished is not computed again."""


def benchmark_prediction(words):
    from tasks.experiments.benchmarks.prediction.engines import ENGINES

    parser = new_parser("benchmark prediction", PREDICTION)
    add_model_dir(parser)
    parser.add_argument("--input", required=True, metavar="FILE", help=f"{LABELED}; or texts, one a line")
    parser.add_argument("--output", metavar="FILE", help="write all that was measured as JSON")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="numbers of threads (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (default: 5)")
    parser.add_argument("--texts", type=int, help="of the file's beginning (default: all)")
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: this one)")
    options = parser.parse_args(words)
    prepare()
    from tasks.common.files import write_json
    from tasks.experiments.benchmarks.prediction.measured import as_table, measure_engines

    if options.output:
        check_output_file(options.output, [options.input])
    more = {
        name: getattr(options, name) for name in ("engines", "threads", "rounds", "texts", "batch_size", "peer_python")
    }
    measured = {"machine": machine_in_words(), **measure_engines(options.model_dir, options.input, **more)}
    if options.output:
        write_json(options.output, measured)
    print(measured["machine"])
    print("{texts} texts, {characters} characters, batches of {batch_size}".format(**measured))
    print(as_table(measured), end="")
    for note in measured["notes"]:
        print(f"note: {note}")
    return 0


def benchmark_entities(words):
    parser = new_parser("benchmark entities", ENTITIES)
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help="folders of trained or exported models")
    parser.add_argument("--input", required=True, metavar="FILE", help=LABELED)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="for the table, the picture and all numbers")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="of the models (default: those of their runs)")
    parser.add_argument(
        "--lengths",
        nargs="+",
        type=int,
        metavar="N",
        default=[64, 256, 1024, 4096, 16384],
        help="characters of a document (default: 64 256 1024 4096 16384)",
    )
    parser.add_argument("--characters", type=int, default=60_000, help="of all documents of a length (default: 60000)")
    parser.add_argument("--max_tokens", type=int, help="tokens computed at once (default: what each model does)")
    parser.add_argument("--whole", action="store_true", help="measure each model reading whole documents, too")
    parser.add_argument("--lists", action="store_true", help="measure lists of entities, too")
    parser.add_argument("--seed", type=int, default=0, help="of the lists (default: 0)")
    parser.add_argument("--memory", type=float, metavar="GB", help="for one document (default: 0.8 of what is free)")
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(words)
    prepare()
    from tasks.common.files import check_makeable, write_files
    from tasks.experiments.benchmarks.entities.measured import measure_entities
    from tasks.experiments.benchmarks.entities.reports import as_report, draw

    check_makeable(options.output, "--output")
    given = {key: value for key, value in vars(options).items() if key not in ("model_dirs", "input", "output")}
    measured = {"machine": machine_in_words(), **measure_entities(options.model_dirs, options.input, **given)}
    report, folder = as_report(measured), Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = json.dumps(measured, ensure_ascii=False, indent=2) + "\n"
    write_files(folder, {"entities.json": numbers, "entities.md": report, "entities.png": draw(measured)})
    print(report, end="")
    return 0


def benchmark_service(words):
    parser = new_parser("benchmark service", SERVICE)
    parser.add_argument("model_dir", metavar="FOLDER", help="of a trained or exported model")
    parser.add_argument("--input", required=True, metavar="FILE", help="texts, one a line, or JSON lines with a text")
    parser.add_argument("--output", metavar="FILE", help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load (default: 10)")
    parser.add_argument("--connections", type=int, default=64, help="for the capacity (default: 64)")
    parser.add_argument("--texts", type=int, default=1, help="texts, or pairs, of a request (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the times of the requests (default: 0)")
    words, served = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options = parser.parse_args(words)
    prepare()
    from tasks.experiments.benchmarks.service import measure_service

    measure_service(
        options.model_dir,
        options.input,
        options.output,
        options.seconds,
        options.connections,
        options.texts,
        options.seed,
        served,
    )
    return 0


def benchmark_long_document(words):
    parser = new_parser("benchmark long_document", LONG_DOCUMENT)
    add_model_dir(parser)
    parser.add_argument("--texts", nargs="+", required=True, metavar="FILE", help="texts, one a line, or JSON lines")
    lengths = {"nargs": "+", "type": int, "default": [10_000, 100_000, 1_000_000], "metavar": "N"}
    parser.add_argument("--characters", **lengths, help="lengths (default: 10000 100000 1000000)")
    parser.add_argument("--max_tokens", type=int, help="tokens computed at once (default: as trained)")
    options = parser.parse_args(words)
    if min(options.characters) < 1:
        raise InputError(f"--characters {min(options.characters)}: must be 1 or more")
    prepare()
    from tasks.experiments.benchmarks.long_document import as_table, measure_documents

    print(machine_in_words())
    rows = measure_documents(options.model_dir, options.texts, options.characters, options.max_tokens)
    print(as_table(rows), end="")
    return 0


def benchmark_documents(words):
    parser = new_parser("benchmark documents", DOCUMENTS)
    add_model_dirs(parser)
    parser.add_argument("--texts", nargs="+", required=True, metavar="FILE", help="real texts to draw sentences from")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="for the corpus and the results")
    parser.add_argument("--records", type=int, default=1_000_000, help="sentences of the corpus (default: 1000000)")
    parser.add_argument("--files", type=int, default=8, help="files of the corpus (default: 8)")
    parser.add_argument("--seed", type=int, default=2021, help="of the choice of sentences (default: 2021)")
    parser.add_argument("--processes", type=int, nargs="*", default=[1], metavar="N", help="numbers of (default: 1)")
    parser.add_argument("--ray", type=int, nargs="*", default=[], metavar="N", help="numbers of actors of Ray")
    parser.add_argument("--part_records", type=int, default=10_000, help="of a finished file (default: 10000)")
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    options = parser.parse_args(words)
    ways = {f"processes_{count}": (count, predict_many.runner(count)) for count in options.processes}
    ways |= {f"ray_{count}": (count, predict_many.runner(count, "local")) for count in options.ray}
    if not ways or min(count for count, _ in ways.values()) < 1:
        raise InputError("--processes and --ray: give numbers of 1 or more")
    from tasks.experiments.benchmarks.documents import measure_ways, write_corpus
    from tasks.scaling.worker import Job

    folder = Path(options.output) / "input"
    if not folder.is_dir():
        count = write_corpus(folder, options.texts, options.records, options.files, options.seed)
        print(f"{folder}: {options.records:,} sentences of {count:,} different ones")

    def job_of(output, processes):
        threads = max(1, physical_cores() // processes)
        more = {"batch_size": options.batch_size}
        return Job("ner", tuple(options.model_dirs), output, "text", 64 * options.batch_size, threads, more)

    print(measure_ways(job_of, ways, options.output, options.part_records))
    return 0
