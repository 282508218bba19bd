"""paddle-rope benchmark: time, memory and scores."""

import importlib
from pathlib import Path

from paddle_rope.tasks.commands.options import LABELED, MODEL_DIR, choose, new_parser, whole
from paddle_rope.tasks.common.files import check_output_file
from paddle_rope.tasks.common.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, in training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml

Each cell (job, variant, length) runs in its own process; the fastest of two or three runs counts. Lengths that would
exceed a limit of the plan are left out. Writes speed.json; the same command again resumes."""
PEERS = """\
Time our RoFormer, with native operators and without, against PaddleNLP's and Hugging Face's, on CPU in float32: a
training step and an inference on random tokens; and our linear attention against the same formula in PyTorch. Where the
processor has bfloat16, also in bfloat16.

    taskset -c 1 paddle-rope benchmark peers --peer_python PEERS/bin/python

Each side has its own process, computes the same numbers (checked first), and takes turns with the others. The table
shows the median of their processor time / ours, in brackets of the wall-clock time, and the peak memory.
PyTorch needs an environment without Paddle: python -m venv PEERS; PEERS/bin/pip install --group peers."""
DEVICE = """\
Check this library on a GPU or CPU: every layer in float32, and on a GPU in bfloat16 and float16, against the same layer
on the CPU in float64.

    paddle-rope benchmark device --output check.json

The exit status is 1 if a layer exceeds its bound."""
PREDICTION = """\
Time the engines that can predict with a trained NER model, side by side on CPU, from texts to entities.

    paddle-rope benchmark prediction runs/cluener/model --input data/ner/cluener/dev.json

The model is exported as needed. Each engine runs in its own process; they take turns, and medians count. All engines
must find the same entities, except int8."""
ENTITIES = """\
Measure how F1 of trained NER models changes with the length of the text.

    paddle-rope benchmark entities runs/cluener/model --input data/ner/cluener/dev.json

Neighboring texts are joined to documents of several lengths, and the entities found in them are compared with those
found in the same texts alone."""
SERVICE = """\
Start paddle-rope serve on a model, and load it from several connections of this machine: as fast as it answers, then
with half and with ten times as many requests at random times. Arguments after -- go to paddle-rope serve:

    paddle-rope benchmark service MODEL_DIR --input FILE -- --workers 2"""


def benchmark(argv):
    """Run ``paddle-rope benchmark KIND``, a module of :mod:`paddle_rope.tasks.experiments.benchmarks`; returns the exit
    status."""
    kinds = {
        "length": (_length, LENGTH, "time and memory against the length of the text"),
        "peers": (_peers, PEERS, "our RoFormer against PaddleNLP's and Hugging Face's"),
        "prediction": (_prediction, PREDICTION, "a trained NER model and its exports"),
        "entities": (_entities, ENTITIES, "F1 of NER models against the length of the text"),
        "service": (_service, SERVICE, "a model served over HTTP, under load"),
        "device": (_add_device, DEVICE, "every layer on a GPU or CPU: is it right"),
    }
    kind, argv = choose("paddle-rope benchmark", "kind", argv, {name: line for name, (*_, line) in kinds.items()})
    add_options, description, _ = kinds[kind]
    parser = new_parser(f"benchmark {kind}", description)
    add_options(parser)
    if kind != "length":
        parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write, with all numbers")
    end = argv.index("--") if kind == "service" and "--" in argv else len(argv)
    options = parser.parse_args(argv[:end])
    if kind == "service":
        options.served = argv[end + 1 :]
    if kind != "length" and options.output is not None:
        check_output_file(options.output, [options.data] if "data" in options else [])
    prepare()
    return importlib.import_module(f"paddle_rope.tasks.experiments.benchmarks.{kind}").run(options)


def _add_counts(parser, **meanings):
    """Add options that take a whole number, or several if the default is a list: name -> (default, meaning)."""
    for name, (default, meaning) in meanings.items():
        options = {"nargs": "*"} if isinstance(default, list) else {}
        shown = f"{meaning} (default: {' '.join(map(str, default)) if options else default})"
        parser.add_argument(f"--{name}", type=whole(1), default=default, metavar="N", help=shown, **options)


def _add_device(parser):
    parser.add_argument("--device", help="cpu, gpu, gpu:1 ... (default: a GPU if there is one)")


def _add_input(parser, **options):
    parser.add_argument("--input", dest="data", required=True, metavar="FILE", **options)


def _length(parser):
    parser.add_argument("plan", metavar="PLAN", help="YAML file; its keys are described in docs/results/experiments.md")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    _add_device(parser)


def _peers(parser):
    from paddle_rope.tasks.experiments.benchmarks.peers import SIDES

    sizes = ["4x256,32x40", "4x256,8x256", "12x768,8x128"]
    shown = f"layers x hidden size, texts x length (default: {' '.join(sizes)})"
    parser.add_argument("--sizes", nargs="*", default=sizes, metavar="SIZE", help=shown)
    _add_counts(parser, linear=([512, 2048, 8192], "lengths of one text for linear attention"))
    _add_counts(parser, threads=(1, "threads of each side"), rounds=(5, "turns of each side"))
    shown = "sides to measure (default: all, which are in memory together); native or plain must be among them"
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), metavar="SIDE", help=shown)
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: without Hugging Face)")


def _prediction(parser):
    from paddle_rope.tasks.experiments.benchmarks.prediction import ENGINES

    parser.add_argument("model_dir", metavar="MODEL_DIR", help=MODEL_DIR)
    _add_input(parser, help=LABELED)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--texts", type=whole(1), metavar="N", help="only the first N (default: all)")
    counts = {"threads": (1, "threads of each engine"), "rounds": (5, "turns of each engine")}
    _add_counts(parser, **counts, batch_size=(32, "texts computed together"))


def _entities(parser):
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help="folders of trained or exported models")
    _add_input(parser, help=LABELED)
    parser.add_argument("--names", nargs="+", metavar="NAME", help="of the models (default: their folders)")
    _add_counts(parser, lengths=([64, 256, 1024, 4096, 16384], "characters of a document"))
    parser.add_argument("--max_tokens", type=whole(1), metavar="N", help="tokens of a window (default: as trained)")
    parser.add_argument("--whole", action="store_true", help="also measure each model reading whole documents")
    counts = {"characters": (60_000, "characters of all texts together"), "batch_size": (32, "texts of a batch")}
    _add_counts(parser, **counts)
    _add_device(parser)


def _service(parser):
    parser.add_argument("folder", metavar="FOLDER", help="of a trained or exported model")
    _add_input(parser, help="texts, one a line, or JSON lines with a text")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load (default: 10)")
    _add_counts(parser, connections=(64, "connections for the capacity"))
