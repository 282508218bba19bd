"""paddle-rope benchmark: time and memory."""

import os

from paddle_rope.machine import machine_in_words
from tasks.commands.options import LABELED, add_model_dir, choose, new_parser
from tasks.common.tool.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml
    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/ner_length.yaml

Each cell (job, variant, length) has a process of its own, whose peak memory is then its own; the fastest of two or
three runs counts. A length is left out where the lengths before it foresee that it would pass a limit of the plan.
Writes speed.csv, speed.md and speed.png. Call it again to resume: what is in the table is not measured again."""
PREDICTION = """\
Time the engines that can predict with a trained NER model, side by side on CPU, from texts to entities.

    paddle-rope benchmark prediction runs/cluener/model --input data/ner/cluener/dev.json --threads 1 2

The model is exported as need be. Each engine has a process of its own; they take turns, A B C A B C ..., and medians
count: what else the machine does then slows all of them. "Reading" is what comes before the model: tokens and word
features. The first answer is the processor time from the start of Python to the entities of one text. All find the same
entities, which is checked; int8 rounds, so its spans are compared.

PyTorch wants an environment without Paddle: python -m venv PEERS, PEERS/bin/pip install -r requirements-peers.txt, then
--peer_python PEERS/bin/python. What is not installed is left out with a note."""
LAYERS = """\
Time our layers against Paddle's, the sparse loss against the dense one, packed linear attention against softmax
attention, and our RoFormer against PaddleNLP's, forward and backward, side by side on CPU."""


def benchmark(words):
    kinds = {
        "length": (benchmark_length, "time and memory against the length of the text"),
        "layers": (benchmark_layers, "our layers against Paddle's"),
        "prediction": (benchmark_prediction, "a NER model in Paddle, ONNX, OpenVINO and PyTorch"),
    }
    kind, words = choose("paddle-rope benchmark", "kind", words, {name: line for name, (_, line) in kinds.items()})
    return kinds[kind][0](words)


def benchmark_length(words):
    parser = new_parser("benchmark length", LENGTH)
    parser.add_argument("plan", metavar="PLAN", help="YAML file; its keys are described in docs/experiments/README.md")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(words)
    prepare()
    from tasks.experiments.benchmarks.speed import run_speed_plan

    print(run_speed_plan(options.plan, options.output_dir, options.device))
    return 0


def benchmark_layers(words):
    new_parser("benchmark layers", LAYERS).parse_args(words)
    prepare()
    from tasks.experiments.benchmarks.layers import print_layer_times

    print_layer_times()
    return 0


def benchmark_prediction(words):
    from tasks.experiments.benchmarks.engines import ENGINES

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
    os.environ.setdefault("GLOG_minloglevel", "2")  # Paddle's notes on what its own layers do in graphs
    prepare()
    from tasks.common.files import check_output_file, write_json
    from tasks.experiments.benchmarks.prediction import as_table, measure_engines

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
