"""paddle-rope benchmark: time, memory and scores."""

import argparse
import json
from pathlib import Path

from tasks.commands.options import LABELED, add_model_dir, add_model_dirs, choose, new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_makeable, check_output_file, write_files, write_json
from tasks.common.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, in training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml

Each cell (job, variant, length) runs in its own process, so that its peak memory is its own; the fastest of two or
three runs counts. A length is left out if the lengths before it predict that it would exceed a limit of the plan.
Writes speed.json, speed.md and speed.png. Run the command again to resume: finished cells are not measured again."""
PEERS = """\
Time our RoFormer, with native operators and without, against PaddleNLP's and Hugging Face's, on CPU in float32: a
training step (forward, backward, clipping, AdamW) with dropout 0.1 and an inference, on random tokens without padding;
and our linear attention, forward and backward, against the same formula in PyTorch. Where the processor multiplies
bfloat16, our products in bfloat16 and Hugging Face under autocast are measured, too.

    taskset -c 1 paddle-rope benchmark peers --peer_python PEERS/bin/python

Each side runs in its own process. The sides take turns, A B C A B C ..., and the table shows the median over the rounds
of their time / our time, so that above 1 ours is faster: processor time, and in brackets wall-clock time. First all
sides compute an encoder with the same weights and must agree. Paddle is slow on some processors unless the instruction
set is named; this command names it, and measures PaddleNLP with and without that. The megabytes are the peak of each
side beyond its libraries. A process keeps the memory of larger sizes, so give sizes in rising order.

PyTorch needs an environment without Paddle: python -m venv PEERS; PEERS/bin/pip install --group peers."""
DEVICE = """\
Check and time this library on a GPU or CPU: every layer against its plain form in float64, outputs and gradients, in
float32, bfloat16 and float16; a training step and an inference of three sizes, with tokens a second, memory and the
share of the speed of a matrix product; linear attention up to a million tokens.

    paddle-rope benchmark device --output check.json

The exit status is 1 if a layer exceeds its bound. The JSON file holds all figures, for a report to the project."""
PREDICTION = """\
Time the engines that can predict with a trained NER model, side by side on CPU, from texts to entities.

    paddle-rope benchmark prediction runs/cluener/model --input data/ner/cluener/dev.json

The model is exported as needed. Each engine runs in its own process; they take turns, and medians count, so that other
work on the machine slows all of them. "Reading" is tokenization and word features. The first answer is the processor
time from the start of Python to the entities of one text. All engines must find the same entities, except int8."""
ENTITIES = """\
Measure how F1 of trained NER models changes with the length of the text, and with the position in it.

    paddle-rope benchmark entities runs/cluener/model --input data/ner/cluener/dev.json --output runs/lengths

Neighboring texts of the file are joined to documents of several lengths. The entities found in each tenth of the
documents are compared with those found in the same texts alone. Writes entities.json and entities.md."""
SERVICE = """\
Start paddle-rope serve on a model, and load it from several connections of this machine:

1. capacity: each connection sends its next request when it has the answer to the last one;
2. 50 % of it: requests come at random times, whether or not others have been answered;
3. 10 times as many as it can answer, or as many as this machine can send: the others are refused.

Prints a table of requests a second and of milliseconds. Arguments after -- go to paddle-rope serve:

    paddle-rope benchmark service MODEL_DIR --input FILE -- --workers 2"""
DOCUMENTS = """\
Predict many documents with several processes, and on Ray, side by side: documents per second, memory, and how many
processes a million documents a day need.

    paddle-rope benchmark documents MODEL_DIR --input FILE_OR_FOLDER ... --output FOLDER --processes 1 2 --ray 2

Run the command again to resume: finished documents are not computed again."""


def benchmark(argv):
    """Run ``paddle-rope benchmark KIND``; returns the exit status."""
    kinds = {
        "length": (_length, LENGTH, "time and memory against the length of the text"),
        "peers": (_peers, PEERS, "our RoFormer against PaddleNLP's and Hugging Face's"),
        "prediction": (_prediction, PREDICTION, "a trained NER model and its exports"),
        "entities": (_entities, ENTITIES, "F1 of NER models against length and position"),
        "service": (_service, SERVICE, "a model served over HTTP, under load"),
        "documents": (_documents, DOCUMENTS, "many documents in several processes and on Ray"),
        "device": (_device, DEVICE, "every layer on a GPU or CPU: is it right, is it fast"),
    }
    kind, argv = choose("paddle-rope benchmark", "kind", argv, {name: line for name, (*_, line) in kinds.items()})
    run, description, _ = kinds[kind]
    return run(new_parser(f"benchmark {kind}", description), argv) or 0


def _count(text):
    """A whole number, 1 or more, for ``type`` of an argument."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, got {text}")
    return int(text)


def _add_counts(parser, **meanings):
    """Options that take a whole number: name -> (default, what it is)."""
    for name, (default, meaning) in meanings.items():
        shown = f"{meaning} (default: {default})"
        parser.add_argument(f"--{name}", type=_count, default=default, metavar="N", help=shown)


def _add_device(parser):
    parser.add_argument("--device", help="cpu, gpu, gpu:1 ... (default: a GPU if there is one)")


def _add_input(parser, **options):
    parser.add_argument("--input", dest="data", required=True, metavar="FILE", **options)


def _add_json(parser):
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write, with all numbers")


def _parse(parser, argv):
    """The options as a dict, and the JSON file to write, which was checked."""
    options = vars(parser.parse_args(argv))
    output = options.pop("output")
    if output is not None:
        check_output_file(output, [options[name] for name in ("data",) if name in options])
    prepare()
    return options, output


def _report(measured, lines, output):
    """Print the measurements, and write them to a JSON file if there is one."""
    from paddle_rope.machine import machine_in_words

    measured = {"machine": machine_in_words(), **measured}
    if output:
        write_json(output, measured)
    print(measured["machine"])
    print("\n".join([*lines, *(f"note: {note}" for note in measured.get("notes", ()))]))


def _length(parser, argv):
    parser.add_argument("plan", metavar="PLAN", help="YAML file; its keys are described in docs/results/experiments.md")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    _add_device(parser)
    options = parser.parse_args(argv)
    prepare()
    from tasks.experiments.benchmarks.length import run_length_plan

    print(run_length_plan(options.plan, options.output_dir, options.device))


def _peers(parser, argv):
    from tasks.experiments.benchmarks.peers import SIDES, as_table, measure_peers

    sizes, lengths = ["4x256,32x40", "4x256,8x256", "12x768,8x128"], [512, 2048, 8192]
    shown = f"layers x hidden size, texts x length (default: {' '.join(sizes)})"
    parser.add_argument("--sizes", nargs="*", default=sizes, metavar="SIZE", help=shown)
    shown = "lengths of one text for linear attention (default: 512 2048 8192)"
    parser.add_argument("--linear", nargs="*", type=_count, default=lengths, metavar="N", help=shown)
    _add_counts(parser, threads=(1, "threads of each side"), rounds=(5, "turns of each side"))
    shown = "sides to measure (default: all, which are in memory together); native or plain must be among them"
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), metavar="SIDE", help=shown)
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: without Hugging Face)")
    _add_json(parser)
    options, output = _parse(parser, argv)
    if not {"native", "plain"} & set(options["sides"]):
        raise InputError(f"--sides {' '.join(options['sides'])}: add native or plain")
    measured = measure_peers(**options)
    _report(measured, [as_table(measured["rows"])], output)


def _device(parser, argv):
    _add_device(parser)
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds instead of minutes")
    _add_json(parser)
    options, output = _parse(parser, argv)
    from tasks.experiments.benchmarks.device import check_device

    return 0 if check_device(**options, output=output) else 1


def _prediction(parser, argv):
    from tasks.experiments.benchmarks.prediction import ENGINES, as_table, measure_engines

    add_model_dir(parser)
    _add_input(parser, help=f"{LABELED}; or texts, one a line")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--texts", type=_count, metavar="N", help="only the first N (default: all)")
    counts = {"threads": (1, "threads of each engine"), "rounds": (5, "turns of each engine")}
    _add_counts(parser, **counts, batch_size=(32, "texts computed together"))
    _add_json(parser)
    options, output = _parse(parser, argv)
    measured = measure_engines(**options)
    size = f"{measured['texts']} texts, {measured['characters']} characters, batches of {options['batch_size']}"
    _report({**options, **measured}, [size, as_table(measured)], output)


def _entities(parser, argv):
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help="folders of trained or exported models")
    _add_input(parser, help=LABELED)
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="for the tables and all numbers")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="of the models (default: those of their runs)")
    lengths = [64, 256, 1024, 4096, 16384]
    shown = "characters of a document (default: 64 256 1024 4096 16384)"
    parser.add_argument("--lengths", nargs="+", type=_count, metavar="N", default=lengths, help=shown)
    parser.add_argument("--max_tokens", type=_count, metavar="N", help="tokens of a window (default: as trained)")
    parser.add_argument("--whole", action="store_true", help="also measure each model reading whole documents")
    counts = {"characters": (60_000, "characters of all texts together"), "batch_size": (32, "texts of a batch")}
    _add_counts(parser, **counts)
    _add_device(parser)
    options = vars(parser.parse_args(argv))
    prepare()
    from paddle_rope.machine import machine_in_words
    from tasks.experiments.benchmarks.entities import as_report, measure_entities

    folder = options.pop("output")
    check_makeable(folder, "--output")
    measured = {"machine": machine_in_words(), **measure_entities(**options)}
    report = as_report(measured)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = json.dumps(measured, ensure_ascii=False, indent=2) + "\n"
    write_files(folder, {"entities.json": numbers, "entities.md": report})
    print(report, end="")


def _service(parser, argv):
    parser.add_argument("folder", metavar="FOLDER", help="of a trained or exported model")
    _add_input(parser, help="texts, one a line, or JSON lines with a text")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load (default: 10)")
    counts = {"connections": (64, "connections for the capacity"), "texts": (1, "texts, or pairs, of a request")}
    _add_counts(parser, **counts)
    parser.add_argument("--seed", type=int, default=0, help="of the times of the requests (default: 0)")
    _add_json(parser)
    argv, served = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    options, output = _parse(parser, argv)
    if not options["seconds"] > 0:
        raise InputError(f"--seconds {options['seconds']}: must be more than 0")
    from tasks.common.reports.tables import as_markdown
    from tasks.experiments.benchmarks.service import COLUMNS, LEGEND, measure_service

    settings = {**options, "options": served}
    loads = measure_service(**settings)
    _report({"settings": settings, "loads": loads}, [as_markdown(loads, COLUMNS), LEGEND], output)


def _documents(parser, argv):
    add_model_dirs(parser)
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="files or folders of documents")
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="for the results")
    shown = "numbers of processes (default: 1)"
    parser.add_argument("--processes", type=_count, nargs="*", default=[1], metavar="N", help=shown)
    parser.add_argument("--ray", type=_count, nargs="*", default=[], metavar="N", help="numbers of actors of Ray")
    _add_counts(parser, part_records=(10_000, "records of a finished file"), batch_size=(32, "texts computed together"))
    options = parser.parse_args(argv)
    if not options.processes and not options.ray:
        raise InputError("--processes and --ray: give a number to one of them")
    from tasks.experiments.benchmarks.documents import measure_ways

    numbers = ["--part_records", str(options.part_records), "--batch_size", str(options.batch_size)]
    argv = [*options.model_dirs, *numbers, "--input", *options.input]
    print(measure_ways(argv, options.processes, options.ray, options.output))
