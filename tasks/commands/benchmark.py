"""paddle-rope benchmark: time and memory."""

from tasks.commands.options import LABELED, add_model_dirs, choose, new_parser
from tasks.common.tool.process import prepare

LENGTH = """\
Measure time and peak memory against the length of the text, training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml
    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/ner_length.yaml

Each cell (job, variant, length) has a process of its own, whose peak memory is then its own; the fastest of two or
three runs counts. A length is left out where the lengths before it foresee that it would pass a limit of the plan.
Writes speed.csv, speed.md and speed.png. Call it again to resume: what is in the table is not measured again."""
EXPORT = """\
Time prediction of a trained NER model against its export, side by side on CPU: all that prediction does with texts
(features, tokens, scores, decoding), and the scores alone."""
LAYERS = """\
Time our layers against Paddle's, the sparse loss against the dense one, packed linear attention against softmax
attention, and our RoFormer against PaddleNLP's, forward and backward, side by side on CPU."""


def benchmark(words):
    kinds = {
        "length": (benchmark_length, "time and memory against the length of the text"),
        "layers": (benchmark_layers, "our layers against Paddle's"),
        "export": (benchmark_export, "a NER model against its export"),
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


def benchmark_export(words):
    parser = new_parser("benchmark export", EXPORT)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help=LABELED)
    parser.add_argument("--texts", type=int, default=640, help="of the file's beginning (default: 640)")
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    options = parser.parse_args(words)
    prepare()
    from tasks.experiments.benchmarks.export import print_export_times

    print_export_times(options.model_dirs, options.data, options.texts, options.batch_size)
    return 0
