"""paddle-rope benchmark: time and memory of layers and encoders."""

from pathlib import Path

from paddle_rope.machine import machine_in_words
from tasks.commands.options import new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_output_file
from tasks.common.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml
    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/ner_length.yaml

Each cell (job, variant, length) has a process of its own, whose peak memory is then its own; the fastest of two or
three runs counts. A length is left out where the lengths before it foresee that it would pass a limit of the plan.
Writes speed.csv, speed.md and speed.png. Call it again to resume: what is in the table is not measured again."""

PEERS = """\
Time our RoFormer, with native operators and without, beside PaddleNLP's and Hugging Face's, on CPU in float32: a step
of training (forward, backward, clipping, AdamW) with dropout 0.1 and an inference, on random tokens without padding;
and our linear attention, forward and backward, beside the same formula in PyTorch. Where the processor multiplies
bfloat16, ours with products in bfloat16 and Hugging Face's under autocast stand beside them.

    taskset -c 1 paddle-rope benchmark peers --peer_python PEERS/bin/python

Each side has a process of its own. They take turns, A B C A B C ..., and the median of the ratios of the rounds counts:
their time / ours, so that above 1 ours is faster; of processor time, and in brackets of the clock's. Before that all
compute an encoder with the same weights, and have to give the same numbers. Paddle is slow on some processors unless it
is told what they can; this command does so. PaddleNLP is measured with that and without. The second table is the peak
memory of each side beyond its libraries, which keeps what larger sizes before have taken; so let sizes rise.

PyTorch wants an environment without Paddle: python -m venv PEERS, PEERS/bin/pip install --group peers."""

DEVICE = """\
Check and time this library on a GPU, or on a CPU: versions; every layer against its plain form in float64, outputs and
gradients, in float32, bfloat16 and float16; a training step and an inference of three sizes, with tokens a second,
memory and share of what a product of matrices reaches; linear attention up to a million tokens.

    paddle-rope benchmark device --output check.json

Exit status 1 if a layer is beyond its bound. The JSON file holds all figures, for a report to the project."""


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


def benchmark_peers(words):
    parser = new_parser("benchmark peers", PEERS)
    sizes = ["4x256,32x40", "4x256,8x256", "12x768,8x128"]
    shown = f"layers x hidden size, texts x length (default: {' '.join(sizes)})"
    parser.add_argument("--sizes", nargs="*", default=sizes, metavar="SIZE", help=shown)
    lengths = [512, 2048, 8192]
    shown = "lengths of one text for linear attention (default: 512 2048 8192)"
    parser.add_argument("--linear", nargs="*", type=int, default=lengths, metavar="N", help=shown)
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="numbers of threads (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default: 5)")
    sides = ("native", "plain", "native_bfloat16", "paddlenlp", "paddlenlp_as_installed", "huggingface",
             "huggingface_bfloat16")  # fmt: skip
    shown = "whom to measure (default: all, which are in memory together); native or plain has to be among them"
    parser.add_argument("--sides", nargs="+", choices=sides, default=sides, metavar="SIDE", help=shown)
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: without Hugging Face)")
    parser.add_argument("--output", metavar="FILE", help="JSON file to write")
    options = parser.parse_args(words)
    if not {"native", "plain"} & set(options.sides):
        raise InputError(f"--sides {' '.join(options.sides)}: add native or plain")
    prepare()
    from tasks.common.files import check_output_file, write_json
    from tasks.experiments.benchmarks.peers.measured import as_memory_table, as_table, measure_peers

    if options.output:
        check_output_file(options.output, [])
    more = {name: getattr(options, name) for name in ("sizes", "linear", "threads", "rounds", "peer_python", "sides")}
    measured = {"machine": machine_in_words(), **measure_peers(**more)}
    if options.output:
        write_json(options.output, measured)
    print(measured["machine"])
    print(as_table(measured))
    print(as_memory_table(measured), end="")
    for note in measured["notes"]:
        print(f"note: {note}")
    return 0


def benchmark_device(words):
    parser = new_parser("benchmark device", DEVICE)
    parser.add_argument("--device", help="cpu, gpu, gpu:1 ... (default: a GPU where there is one)")
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds instead of minutes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write")
    options = parser.parse_args(words)
    if options.output is not None:
        check_output_file(options.output)
    prepare()
    from tasks.experiments.benchmarks.device.check import check_device

    return 0 if check_device(options.device, options.quick, options.output) else 1
