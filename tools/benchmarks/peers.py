"""Time our RoFormer, with native operators and without, against PaddleNLP's and Hugging Face's, on CPU in float32: a
training step and an inference on random tokens; and our linear attention against the same formula in PyTorch. Where the
processor has bfloat16, also in bfloat16.

    taskset -c 1 .venv/bin/python -m tools.benchmarks.peers --peer_python PEERS/bin/python

Each side has its own process, computes the same numbers (checked first), and takes turns with the others. The table
shows the median of their processor time / ours, in brackets of the wall-clock time, and the peak memory.
PyTorch needs an environment without Paddle: python -m venv PEERS; PEERS/bin/pip install --group peers.
"""

# A side (paddle_sides.py, torch_side.py) is an object with ``version`` and two methods: ``encoder`` and ``linear``
# return jobs to be timed, by name, and the output of the same computation for the first ``COMPARED`` tokens of the
# first text, to compare it between sides. No framework is imported before its turn.

import contextlib
import pkgutil
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.worker import Job, Worker, forget_peak, peak_megabytes, report, timed

SIDES = {  # name -> title; Hugging Face's sides run in PyTorch, and bfloat16 rounds
    "native": "ours, native operators",
    "plain": "ours, plain",
    "native_bfloat16": "ours, bfloat16",
    "products": "matrix products alone",
    "paddlenlp": "PaddleNLP with our settings",
    "paddlenlp_as_installed": "PaddleNLP",
    "huggingface": "Hugging Face",
    "huggingface_bfloat16": "Hugging Face, bfloat16",
}
WITH_LINEAR = ("native", "plain", "huggingface")
PREPARED = ("native", "plain", "native_bfloat16", "products", "paddlenlp")  # Paddle is set up as our commands do
# What our command sets for Paddle (paddle_rope.machine), removed for sides that are not prepared.
OUR_SETTINGS = ("FLAGS_use_stride_kernel", "MKL_DEBUG_CPU_TYPE")
JOBS = {"train": "training", "predict": "inference", "attend": "linear attention, forward and backward"}
HEAD_SIZE, LINEAR_HEADS = 64, 4
REST = 0.3  # seconds between turns with several threads, because threads of OpenMP spin for 200 ms after their work
COMPARED = 9  # tokens
TOLERANCE, ROUNDED_TOLERANCE = 1e-4, 0.1  # of outputs of about 1


def encoder_settings(layers: int, hidden: int) -> dict[str, Any]:
    """Configuration of an encoder, by the names that Hugging Face, PaddleNLP and this library share."""
    sizes = {"num_hidden_layers": layers, "num_attention_heads": hidden // HEAD_SIZE, "intermediate_size": 4 * hidden}
    rest = {"vocab_size": 3500, "type_vocab_size": 2, "pad_token_id": 0, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return {"embedding_size": hidden, "hidden_size": hidden, **sizes, **rest, **dropout}


def random_ids(texts: int, length: int) -> np.ndarray:
    """The tokens of all sides, int64 ``[texts, length]``, without padding."""
    return np.random.default_rng(0).integers(1, encoder_settings(1, HEAD_SIZE)["vocab_size"], (texts, length))


def random_qkv(length: int) -> np.ndarray:
    """The inputs of linear attention of all sides, float32 ``[3, 1, length, heads * HEAD_SIZE]``."""
    return np.random.default_rng(0).standard_normal((3, 1, length, LINEAR_HEADS * HEAD_SIZE), dtype=np.float32)


def start(name: str) -> tuple[dict[str, str], Callable[..., dict[str, Any]]]:
    """The worker's function for a side. A request with ``do="encoder"`` or ``"linear"`` calls this method of the side,
    which makes the jobs, and is answered by the ``output``; ``"run"`` runs one job and is answered by its times and
    ``megabytes``, its peak beyond the libraries."""
    places = {
        "products": "paddle_sides:ProductsSide",
        "paddlenlp": "paddle_sides:PaddleNLPSide",
        "huggingface": "torch_side:TorchSide",
    }
    place = places.get(name.partition("_")[0], "paddle_sides:OurSide")
    side = pkgutil.resolve_name(f"{__package__}.{place}")(name)
    jobs: dict[str, Job] = {}
    forget_peak()
    before = peak_megabytes()

    def respond(do: str, **arguments: Any) -> dict[str, Any]:
        if do == "run":
            forget_peak()
            return {**timed(jobs[arguments["job"]]), "megabytes": peak_megabytes() - before}
        jobs.clear()  # frees the model before the next one is made
        made, output = getattr(side, do)(**arguments)
        jobs.update(made)
        return {"output": output}

    return {"version": side.version}, respond


@on_terminal
def main(argv: list[str] | None = None) -> None:
    """Measure the sides in turns, A B C A B C ..., after one turn to warm up. Raises InputError if an option is wrong,
    a side fails, or its numbers differ from ours."""
    from paddle_rope.tasks.commands.benchmark import add_counts
    from tools.benchmarks.command import new_parser, parse

    parser, encoders = new_parser(__doc__), ["4x256,32x40", "4x256,8x256", "12x768,8x128"]
    shown = f"layers x hidden size, texts x length (default: {' '.join(encoders)})"
    parser.add_argument("--sizes", nargs="*", default=encoders, metavar="SIZE", help=shown)
    add_counts(parser, linear=([512, 2048, 8192], "lengths of one text for linear attention"))
    add_counts(parser, threads=(1, "threads of each side"), rounds=(5, "turns of each side"))
    shown = "sides to measure (default: all, which are in memory together); native or plain must be among them"
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), metavar="SIDE", help=shown)
    parser.add_argument("--peer_python", metavar="PATH", help="Python with PyTorch (default: without Hugging Face)")
    options = parse(parser, argv)
    import paddle

    from paddle_rope import RoFormerConfig, RoFormerModel
    from paddle_rope.roformer.checkpoints.huggingface import write_huggingface

    sizes = {size: read_size(size) for size in options.sizes}
    notes, rows, workers = [], [], {}

    def measure(size, **case):
        turns = measure_in_turns(workers, case, options.rounds, REST if options.threads > 1 else 0)
        rows.extend({"size": size, "job": job, "turns": of_job} for job, of_job in turns.items())

    with contextlib.ExitStack() as stack:
        for name in (name for name in SIDES if name in options.sides):
            settings = {"OMP_NUM_THREADS": str(options.threads)}
            settings |= {"PADDLE_ROPE_NATIVE": "0"} if name == "plain" else {}
            settings |= {} if name in PREPARED else dict.fromkeys(OUR_SETTINGS)
            python = options.peer_python if "huggingface" in name else None
            try:
                if "huggingface" in name and not python:
                    raise InputError("it needs --peer_python")
                worker = Worker("tools.benchmarks.peers", name, python=python, is_prepared=name in PREPARED, **settings)
                workers[name] = stack.enter_context(worker)
            except InputError as error:
                notes.append(f"{SIDES[name]} is left out: {error}")
        if not {"native", "plain"} & workers.keys():
            raise InputError("; ".join([f"--sides {' '.join(options.sides)}: add native or plain", *notes]))
        for size, (layers, hidden, texts, length) in sizes.items():
            with tempfile.TemporaryDirectory() as folder:
                paddle.seed(0)
                encoder = RoFormerModel(RoFormerConfig(**encoder_settings(layers, hidden)))
                write_huggingface(encoder, folder, length)
                measure(size, do="encoder", folder=folder, texts=texts, length=length)
        for length in options.linear:
            measure(f"1x{length}", do="linear", length=length)
    versions = {name: worker.first["version"] for name, worker in workers.items()}
    report({"versions": versions, "notes": notes, "rows": rows}, as_table(rows), options.output)


def read_size(size: str) -> tuple[int, ...]:
    """``"4x256,32x40"`` -> (layers, hidden size, texts, length); raises InputError for anything else."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*),([1-9]\d*)x([1-9]\d*)", size)
    if not match or int(match[2]) % HEAD_SIZE:
        form = "layers x hidden size, texts x length such as 4x256,32x40"
        raise InputError(f"--sizes {size}: expected {form}, with a hidden size that is a multiple of {HEAD_SIZE}")
    return tuple(map(int, match.groups()))


def measure_in_turns(workers: dict[str, Any], case: dict, rounds: int, rest: float = 0.0) -> dict[str, dict[str, list]]:
    """job -> side -> what it measured in each round except the first, with ``rest`` seconds before each turn. Raises
    InputError if the outputs of a side differ from ours."""
    running = {name: it for name, it in workers.items() if case["do"] != "linear" or name in WITH_LINEAR}
    outputs = {name: np.array(worker.ask(**case)["output"]) for name, worker in running.items()}
    for name, output in outputs.items():
        difference = float(np.abs(output - outputs[_ours(outputs)]).max())
        if not difference < (ROUNDED_TOLERANCE if "bfloat16" in name else TOLERANCE):  # True for a NaN
            raise InputError(f"{SIDES[name]}: {case['do']} differs from ours by up to {difference:.2g}")
    jobs = ("attend",) if case["do"] == "linear" else ("train", "predict")
    turns: dict = {job: {name: [] for name in running} for job in jobs}
    for round_number in range(rounds + 1):
        for job in jobs:
            for name, worker in running.items():
                time.sleep(rest)
                measured = worker.ask(do="run", job=job)
                if round_number:  # the first one warms up
                    turns[job][name].append(measured)
    return turns


def _ours(by_side):
    return "native" if "native" in by_side else "plain"


def as_table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: our milliseconds (native where built, else plain), and medians of their time / our time in the
    same round, all of processor time, with ratios of wall-clock time in brackets; and the highest peaks in MB, except
    for inference, whose turns use memory that training has left."""

    def ratio(theirs, ours, clock):
        return f"{statistics.median(their[clock] / our[clock] for their, our in zip(theirs, ours)):.2f}"

    cells = []
    for row in rows:
        ours, cell = row["turns"][_ours(row["turns"])], {"size": row["size"], "job": JOBS[row["job"]]}
        for name, turns in row["turns"].items():
            if turns is ours:
                times = f"{1000 * statistics.median(turn['processor_seconds'] for turn in ours):,.1f} ms"
            else:
                times = f"{ratio(turns, ours, 'processor_seconds')} ({ratio(turns, ours, 'seconds')})"
            peak = f", {max(turn['megabytes'] for turn in turns):,.0f} MB" if row["job"] != "predict" else ""
            cell[SIDES[name]] = times + peak
        cells.append(cell)
    return as_markdown(cells)


if __name__ == "__main__":
    sys.exit(main())
