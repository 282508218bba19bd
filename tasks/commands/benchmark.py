"""paddle-rope benchmark: time, memory and scores."""

from pathlib import Path

from paddle_rope.tasks.commands.options import LABELED, add_reading, choose, new_parser, whole
from paddle_rope.tasks.common.files import check_output_file
from paddle_rope.tasks.common.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, in training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml

Each cell (job, variant, length) runs in its own process; the fastest of two or three runs counts. Lengths that would
exceed a limit of the plan are left out. Writes speed.json; the same command again resumes."""
ENTITIES = """\
Measure how F1 of trained NER models changes with the length of the text.

    paddle-rope benchmark entities runs/cluener/model --input data/ner/cluener/dev.json

Neighboring texts are joined to documents of several lengths, and the entities found in them are compared with those
found in the same texts alone."""
DEVICE = "cpu, gpu, gpu:1 ... (default: a GPU if there is one)"


def benchmark(argv):
    lines = {"length": "time and memory of a model", "entities": "F1 of NER models"}
    kind, argv = choose("paddle-rope benchmark", "kind", argv, {"Against the length of the text": lines})
    return {"length": length, "entities": entities}[kind](argv)


def length(argv):
    parser = new_parser("benchmark length", LENGTH)
    parser.add_argument("plan", metavar="PLAN", help="YAML file; its keys are described in docs/results/experiments.md")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help=DEVICE)
    options = parser.parse_args(argv)
    prepare()
    from paddle_rope.tasks.experiments.length import run

    return run(options)


def entities(argv):
    parser = new_parser("benchmark entities", ENTITIES)
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help="folders of trained or exported models")
    parser.add_argument("--input", dest="data", required=True, metavar="FILE", help=LABELED)
    parser.add_argument("--names", nargs="+", metavar="NAME", help="of the models (default: their folders)")
    add_reading(parser)
    add_counts(parser, lengths=([64, 256, 1024, 4096, 16384], "characters of a document"))
    parser.add_argument("--max_tokens", type=whole(1), metavar="N", help="tokens of a window (default: as trained)")
    parser.add_argument("--whole", action="store_true", help="also measure each model reading whole documents")
    counts = {"characters": (60_000, "characters of all texts together"), "batch_size": (32, "texts of a batch")}
    add_counts(parser, **counts)
    parser.add_argument("--device", help=DEVICE)
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write, with all numbers")
    options = parser.parse_args(argv)
    if options.output is not None:
        check_output_file(options.output, [options.data])
    prepare()
    from paddle_rope.tasks.experiments.entities import run

    return run(options)


def add_counts(parser, **meanings):
    """Add options that take a whole number, or several if the default is a list: name -> (default, meaning)."""
    for name, (default, meaning) in meanings.items():
        options = {"nargs": "*"} if isinstance(default, list) else {}
        shown = f"{meaning} (default: {' '.join(map(str, default)) if options else default})"
        parser.add_argument(f"--{name}", type=whole(1), default=default, metavar="N", help=shown, **options)
