"""paddle-rope benchmark: time and memory."""

import json
import os
from pathlib import Path

from paddle_rope.choices import ATTENTION_KINDS
from paddle_rope.machine import machine_in_words, physical_cores
from tasks.commands import predict_many
from tasks.commands.options import LABELED, add_model_dir, add_model_dirs, choose, new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_output_file
from tasks.common.language import Message, tr
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

NATIVE = """\
Compare the native operators of this machine with their plain forms in whole models: a training step (forward, backward,
AdamW) and an inference of an encoder with dropout 0.1, on random tokens.

    OMP_NUM_THREADS=1 paddle-rope benchmark native

The two sides take turns in one process. Counted is processor time, of which other programs take less than of the
clock's; the median of the ratios counts."""

PEERS = """\
Time our RoFormer, with native operators and without, beside PaddleNLP's and Hugging Face's, on CPU in float32: a step
of training (forward, backward, clipping, AdamW) with dropout 0.1 and an inference, on random tokens without padding;
and our linear attention, forward and backward, beside the same formula in PyTorch.

    taskset -c 1 paddle-rope benchmark peers --peer_python PEERS/bin/python

Each side has a process of its own. They take turns, A B C A B C ..., and the median of the ratios of the rounds counts:
their time / ours, so that above 1 ours is faster; of processor time, and in brackets of the clock's. Before that all
compute an encoder with the same weights, and have to give the same numbers. Paddle is slow on some processors unless it
is told what they can; this command does so. PaddleNLP is measured with that and without.

PyTorch wants an environment without Paddle: python -m venv PEERS, PEERS/bin/pip install -r requirements-peers.txt."""

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

LONG_DOCUMENT = """\
Measure time and peak memory of predicting one document with a trained or exported NER model, against its length.

    paddle-rope benchmark long_document MODEL_DIR --texts FILE ... --characters 10000 100000 1000000

The document is the texts, a line each, again and again up to so many characters. Each length has a process of its own.
idle_mb is the peak before: libraries, weights, dictionary, the document, and the first prediction of a short text."""

ENTITIES = """\
Measure how F1 of trained NER models changes with the length of the text, and with the position in it.

    paddle-rope benchmark entities runs/cluener/model --input data/ner/cluener/dev.json --output runs/lengths --lists

Neighboring texts of the file are joined to documents of several lengths; the texts are the same at all lengths. What is
found in a tenth of the documents is compared with what is found in the same texts alone. --lists measures documents of
nothing but entities, too, with 、 between them. A length is left out, with a note, where it would not fit into
memory. Writes entities.json, entities.md and entities.png."""

DEVICE = """\
Check and time this library on a GPU, or on a CPU: versions; every layer against its plain form in float64, outputs and
gradients, in float32, bfloat16 and float16; a training step and an inference of three sizes, with tokens a second,
memory and share of what a product of matrices reaches; linear attention up to a million tokens.

    paddle-rope benchmark device --output check.json

Exit status 1 if a layer is beyond its bound. The JSON file holds all figures, for a report to the project."""

COSTS = """\
Print what a model costs on paper: operations, bytes that its products move, and peak memory, against the length.

    paddle-rope benchmark costs 4x256 --types 10 --lengths 256 1024 4096
    OMP_NUM_THREADS=1 paddle-rope benchmark costs 4x256 --types 10 --lengths 256 1024 --check
    paddle-rope benchmark costs 12x768 --lengths 512 --batch 32 --corpus_gb 100

--check counts the operations of a model and measures the peaks on this CPU, each in a process of its own, by plain
forms. --corpus_gb estimates, without measuring anything, one pass of pretraining over a corpus in bfloat16."""


def benchmark(words):
    kinds = {
        "length": (benchmark_length, Message("time and memory against the length of the text")),
        "layers": (benchmark_layers, Message("our layers against Paddle's")),
        "costs": (benchmark_costs, Message("operations, bytes and memory on paper")),
        "native": (benchmark_native, Message("native operators against their plain forms")),
        "peers": (benchmark_peers, Message("our RoFormer beside PaddleNLP's and Hugging Face's")),
        "prediction": (benchmark_prediction, Message("a NER model in Paddle, ONNX, OpenVINO and PyTorch")),
        "entities": (benchmark_entities, Message("F1 of NER models against length and position")),
        "service": (benchmark_service, Message("a model served over HTTP, under load")),
        "long_document": (benchmark_long_document, Message("one long document: time and memory against its length")),
        "documents": (benchmark_documents, Message("many documents in several processes and on Ray")),
        "device": (benchmark_device, Message("every layer on a GPU or CPU: is it right, is it fast")),
    }
    kind, words = choose(
        "paddle-rope benchmark", Message("kind"), words, {name: line for name, (_, line) in kinds.items()}
    )
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


def benchmark_costs(words):
    parser = new_parser("benchmark costs", COSTS)
    parser.add_argument("size", metavar="SIZE", help="layers x hidden size, such as 12x768")
    lengths = {"nargs": "+", "type": int, "default": [512, 2048, 8192], "metavar": "N"}
    parser.add_argument("--lengths", **lengths, help="tokens of a text (default: 512 2048 8192)")
    parser.add_argument("--batch", type=int, default=8, help="texts (default: 8)")
    parser.add_argument(
        "--attention", nargs="+", choices=ATTENTION_KINDS, default=ATTENTION_KINDS, help="(default: all)"
    )
    parser.add_argument("--types", type=int, default=0, help="of a span head (default: no head)")
    parser.add_argument("--max_span_length", type=int, metavar="N", help="of a span head with a band")
    parser.add_argument("--check", action="store_true", help="count and measure on this CPU, too")
    parser.add_argument("--corpus_gb", type=float, metavar="GB", help="UTF-8 text to pretrain on")
    parser.add_argument("--gpus", type=int, default=8, help="that share the batches (default: 8)")
    parser.add_argument("--peak_teraflops", type=float, default=312, help="of a GPU in bfloat16 (default: 312, A100)")
    parser.add_argument("--utilization", type=float, default=0.4, help="share of the peak, assumed (default: 0.4)")
    options = parser.parse_args(words)
    for name in ("batch", "types", "gpus", "max_span_length", "peak_teraflops", "utilization", "corpus_gb"):
        value = getattr(options, name)
        if value is not None and not (value > 0 or (name == "types" and value == 0)):
            raise InputError("--{name} {value}: must be positive", name=name, value=value)
    if min(options.lengths) < 1:
        raise InputError("--{name} {value}: must be positive", name="lengths", value=min(options.lengths))
    prepare()
    from tasks.experiments.benchmarks import costs

    size = costs.layers_and_hidden(options.size)
    more = {"types": options.types, "max_span_length": options.max_span_length}
    print(costs.costs_table(size, options.attention, options.lengths, options.batch, **more))
    if options.check:
        print(f"\n{machine_in_words()}\n")
        print(costs.check_table(size, options.attention, options.lengths, options.batch, **more))
    if options.corpus_gb is not None:
        given = options.corpus_gb, options.gpus, options.peak_teraflops, options.utilization, options.batch
        print("\n" + costs.estimate_lines(costs.pretraining_estimate(size, *given, options.lengths[0])))
    return 0


def benchmark_native(words):
    parser = new_parser("benchmark native", NATIVE)
    sizes = ["4x256,32x40", "4x256,8x256", "12x768,8x128"]
    shown = f"layers x hidden size, texts x length (default: {' '.join(sizes)})"
    parser.add_argument("--sizes", nargs="+", default=sizes, metavar="SIZE", help=shown)
    kinds = ["softmax", "linear", "linear-decay"]
    parser.add_argument("--attention", nargs="+", choices=kinds, default=kinds[:1], help="(default: softmax)")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each side (default: 8)")
    parser.add_argument("--output", metavar="FILE", help="JSON file to write")
    options = parser.parse_args(words)
    if options.rounds < 1:
        raise InputError("--rounds {rounds}: must be 1 or more", rounds=options.rounds)
    prepare()
    from tasks.common.files import check_output_file, write_json
    from tasks.experiments.benchmarks.native import as_table, measure_native

    if options.output:
        check_output_file(options.output, [])
    rows = measure_native(options.sizes, options.attention, options.rounds)
    machine = f"{machine_in_words()}, {os.environ['OMP_NUM_THREADS']} threads"
    if options.output:
        write_json(options.output, {"machine": machine, "rows": rows})
    print(machine)
    print(as_table(rows), end="")
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
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: without Hugging Face)")
    parser.add_argument("--output", metavar="FILE", help="JSON file to write")
    options = parser.parse_args(words)
    prepare()
    from tasks.common.files import check_output_file, write_json
    from tasks.experiments.benchmarks.peers.measured import as_table, measure_peers

    if options.output:
        check_output_file(options.output, [])
    more = {name: getattr(options, name) for name in ("sizes", "linear", "threads", "rounds", "peer_python")}
    measured = {"machine": machine_in_words(), **measure_peers(**more)}
    if options.output:
        write_json(options.output, measured)
    print(measured["machine"])
    print(as_table(measured), end="")
    for note in measured["notes"]:
        print(tr("note: {note}", note=note))
    return 0


def benchmark_prediction(words):
    from tasks.experiments.benchmarks.engines import ENGINES

    parser = new_parser("benchmark prediction", PREDICTION)
    add_model_dir(parser)
    parser.add_argument(
        "--input", required=True, metavar="FILE", help=Message("{labeled}; or texts, one a line", labeled=LABELED)
    )
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
    print(tr("{texts} texts, {characters} characters, batches of {batch_size}", **measured))
    print(as_table(measured), end="")
    for note in measured["notes"]:
        print(tr("note: {note}", note=note))
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
        raise InputError("--characters {characters}: must be 1 or more", characters=min(options.characters))
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
        print(
            tr(
                "{folder}: {records:,} sentences of {count:,} different ones",
                folder=folder,
                records=options.records,
                count=count,
            )
        )

    def job_of(output, processes):
        threads = max(1, physical_cores() // processes)
        more = {"batch_size": options.batch_size}
        return Job("ner", tuple(options.model_dirs), output, "text", 64 * options.batch_size, threads, more)

    print(measure_ways(job_of, ways, options.output, options.part_records))
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
