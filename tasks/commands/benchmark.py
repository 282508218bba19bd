"""paddle-rope benchmark: time and memory."""

from tasks.commands.options import LABELLED, add_model_dirs, choose, new_parser
from tasks.common.tool.process import prepare

EXPORT = """\
Time prediction of a trained NER model against its export, side by side on CPU: all that prediction does with texts
(features, tokens, scores, decoding), and the scores alone."""
LAYERS = """\
Time our layers against Paddle's, the sparse loss against the dense one, packed linear attention against softmax
attention, and our RoFormer against PaddleNLP's, forward and backward, side by side on CPU."""


def benchmark(words):
    kinds = {"layers": (layers, "our layers against Paddle's"), "export": (export, "a NER model against its export")}
    kind, words = choose("paddle-rope benchmark", "kind", words, {name: line for name, (_, line) in kinds.items()})
    return kinds[kind][0](words) if kind else 0


def layers(words):
    new_parser("benchmark layers", LAYERS).parse_args(words)
    prepare()
    from tasks.experiments.layer_benchmark import benchmark_layers

    benchmark_layers()
    return 0


def export(words):
    parser = new_parser("benchmark export", EXPORT)
    add_model_dirs(parser)
    parser.add_argument("data", metavar="DATA", help=LABELLED)
    parser.add_argument("--texts", type=int, default=640, help="of the file's beginning (default: 640)")
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    options = parser.parse_args(words)
    prepare()
    from tasks.experiments.export_benchmark import benchmark_export

    benchmark_export(options.model_dirs, options.data, options.texts, options.batch_size)
    return 0
