"""paddle-rope benchmark: time and memory."""

from pathlib import Path

from paddle_rope.machine import physical_cores
from tasks.commands import predict_many
from tasks.commands.options import LABELED, add_model_dirs, choose, new_parser
from tasks.common.errors import InputError
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

SERVICE = """\
Start paddle-rope serve on a model, and load it from several connections of this machine:

1. capacity: each connection sends its next request when it has the answer to the last one;
2. 50 % of it: requests come at random times, whether or not others have been answered;
3. 10 times as many as it can answer, or as many as this machine can send: the others are refused.

Prints a table of requests a second and of milliseconds. Words after -- go to paddle-rope serve:

    paddle-rope benchmark service MODEL_DIR --input FILE -- --workers 2"""
DOCUMENTS = """\
Predict a large corpus with several processes, and on Ray, side by side: documents per second, memory, and how many
processes a million documents a day need.

    paddle-rope benchmark documents MODEL_DIR --texts FILE ... --output FOLDER --records 1000000 --processes 1 2 --ray 2

The corpus, in FOLDER/input, is drawn with a seed from the sentences of the texts (plain text, or JSON lines with a
"text"). Call it again to resume: what is finished is not computed again."""


def benchmark(words):
    kinds = {
        "length": (benchmark_length, "time and memory against the length of the text"),
        "layers": (benchmark_layers, "our layers against Paddle's"),
        "export": (benchmark_export, "a NER model against its export"),
        "service": (benchmark_service, "a model served over HTTP, under load"),
        "documents": (benchmark_documents, "many documents in several processes and on Ray"),
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
