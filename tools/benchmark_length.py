#!/usr/bin/env python
"""Time and peak memory of NER against the length of the text: softmax or linear attention, all spans or a band.

One training step (forward, backward, AdamW) on one text, and its prediction (batch, forward, decoding), each in a
process of its own, so that its peak memory is its own; the fastest of two or three runs counts. A length is left out
where the lengths before it tell that it would pass a limit. Writes length.csv and length.png into a folder. Random
numbers have seed 0.

    OMP_NUM_THREADS=1 python tools/benchmark_length.py --recompute --output runs/length
"""

import bootstrap  # noqa: F401

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import paddle

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.files import atomic_writer, check_makeable
from tasks.common.reports.figures import time_and_memory_png
from tasks.common.reports.tables import as_csv
from tasks.experiments.length_benchmark import fastest_seconds, measure_apart, peak_megabytes, reason_to_leave_out

FILES = ("length.csv", "length.png")
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 100_000]
ATTENTIONS, HEADS, JOBS = ("softmax", "linear"), ("full", "band"), ("train", "predict")
COLUMNS = ("job", "attention", "head", "length", "seconds", "peak_mb", "left_out")
VOCABULARY, CHARACTERS_AN_ENTITY, LONGEST_ENTITY = 3500, 20, 10
TYPES = ["person", "place", "organization"]
COLOURS = {"softmax": "#c8560a", "linear": "#1f5fa8"}
STYLES = {"full": "--", "band": "-"}


def build_model(options, attention, head):
    """The NER model of the recipe's default sizes."""
    from tasks.ner.arguments import NerArguments
    from tasks.ner.model import NerConfig, NerModel

    defaults = NerArguments()
    sizes = {**defaults.encoder_options(), **defaults.head_options()}
    sizes.update(attention=attention, max_span_length=options.max_span_length if head == "band" else None)
    model = NerModel(NerConfig(types=TYPES, vocab_size=VOCABULARY, thresholds=10.0, **sizes))
    model.roformer.enable_recompute = options.recompute
    return model


def random_text(length):
    """A text of random tokens with random entities, one for every ``CHARACTERS_AN_ENTITY`` characters."""
    from tasks.ner.batching import TokenizedText

    ids = np.random.randint(6, VOCABULARY, length + 2).tolist()
    offsets = [(0, 0), *((i, i + 1) for i in range(length)), (0, 0)]
    count = length // CHARACTERS_AN_ENTITY
    first = np.random.randint(1, length - LONGEST_ENTITY, count)
    last = first + np.random.randint(0, LONGEST_ENTITY, count)
    return TokenizedText(ids, offsets, np.stack([np.random.randint(0, len(TYPES), count), first, last], 1).tolist())


def training_step(model, optimizer, text):
    from tasks.ner.batching import SpanCollator

    batch = {name: paddle.to_tensor(array) for name, array in SpanCollator(pad_token_id=0)([text]).items()}
    loss, _ = model(**batch)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss.item()


def measure(options, job, attention, head, length):
    """Seconds of one job, and the peak memory of this process in MB; a short text goes first."""
    from tasks.ner.prediction.predictor import predict_entities

    paddle.set_device("cpu")
    paddle.seed(0)
    np.random.seed(0)
    model = build_model(options, attention, head)
    optimizer = paddle.optimizer.AdamW(learning_rate=1e-4, parameters=model.parameters())

    def run(text):
        if job == "train":
            training_step(model, optimizer, text)
        else:
            predict_entities(model, [text], TYPES, pad_token_id=0, batch_size=1)

    run(random_text(64))
    text = random_text(length)
    seconds = fastest_seconds(lambda: run(text))
    return {"seconds": round(seconds, 3), "peak_mb": peak_megabytes()}


def measure_cell(options, *cell):
    """:func:`measure` in a process of its own."""
    words = [__file__, "--max_span_length", options.max_span_length, *(["--recompute"] if options.recompute else [])]
    return measure_apart([*words, "--cell", *cell])


def measure_all(options):
    """Yield the rows of the table, dicts with ``COLUMNS``."""
    for job in JOBS:
        for attention in ATTENTIONS:
            for head in HEADS:
                known, left_out = [], ""  # known: (length, seconds, peak)
                for length in options.lengths:
                    row = dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, (job, attention, head, length)))
                    left_out = left_out and "a shorter text is left out"
                    left_out = left_out or reason_to_leave_out(known, length, options.memory_limit, options.time_limit)
                    if not left_out:
                        row |= measure_cell(options, job, attention, head, length)
                        left_out = row["left_out"]
                    if not left_out:
                        known.append((length, row["seconds"], row["peak_mb"]))
                    yield row | {"left_out": left_out}


def draw(rows, options):
    """Time above, memory below; training on the left, prediction on the right: PNG, bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (job, title) in enumerate(zip(JOBS, ("one training step on one text", "prediction of one text"))):
        for attention in ATTENTIONS:
            for head in HEADS:
                shown = [r for r in rows if (r["job"], r["attention"], r["head"]) == (job, attention, head)]
                shown = [r for r in shown if r["seconds"] != ""]
                lengths = [r["length"] for r in shown]
                spans = f"band of {options.max_span_length}" if head == "band" else "all spans"
                style = {"color": COLOURS[attention], "ls": STYLES[head], "marker": "o", "ms": 4}
                style["label"] = f"{attention} attention, {spans}"
                panels[0, column].plot(lengths, [r["seconds"] for r in shown], **style)
                panels[1, column].plot(lengths, [r["peak_mb"] / 1024 for r in shown], **style)
        panels[0, column].set_title(title)
        panels[1, column].set_xlabel("length in characters")
    return time_and_memory_png(figure, panels, legend_columns=2)


def check_options(options):
    """Raise InputError for what makes no sense and for files that are there already. Makes nothing."""
    if options.output is None:
        raise InputError("no --output: give a folder for the results")
    for name in ("max_span_length", "memory_limit", "time_limit"):
        if getattr(options, name) <= 0:
            raise InputError(f"--{name} {getattr(options, name)}: must be greater than 0")
    if options.max_span_length < LONGEST_ENTITY:
        raise InputError(f"--max_span_length {options.max_span_length}: must be {LONGEST_ENTITY} or more")
    if min(options.lengths) < 2 * LONGEST_ENTITY:
        raise InputError(f"--lengths {min(options.lengths)}: must be {2 * LONGEST_ENTITY} or more")
    if options.lengths != sorted(set(options.lengths)):
        raise InputError("--lengths: must rise, so that the shorter texts tell what the longer ones need")
    check_makeable(options.output, "--output")
    for name in FILES:
        if (options.output / name).exists():
            raise InputError(f"{options.output / name}: exists already; give another --output")


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where to write; made if missing")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="characters, rising")
    parser.add_argument("--max_span_length", type=int, default=32, help="width of the band (default: 32)")
    parser.add_argument("--memory_limit", type=float, default=12, help="GB (default: 12)")
    parser.add_argument("--time_limit", type=float, default=90, help="seconds of one cell (default: 90)")
    parser.add_argument("--recompute", action="store_true", help="keep only the inputs of the blocks in training")
    parser.add_argument("--cell", nargs=4, metavar=("JOB", "ATTENTION", "HEAD", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.cell:
        *cell, length = options.cell
        print(json.dumps(measure(options, *cell, int(length))))
        return 0
    check_options(options)
    rows = []
    for row in measure_all(options):
        rows.append(row)
        result = row["left_out"] and f"left out: {row['left_out']}" or f"{row['seconds']:9.3f} s {row['peak_mb']:7} MB"
        print(f"{row['job']:7} {row['attention']:7} {row['head']:4} {row['length']:7}  {result}", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in zip(FILES, (as_csv(rows, COLUMNS).encode("utf-8"), draw(rows, options))):
        with atomic_writer(options.output / name, binary=True) as file:
            file.write(content)
    recompute = "with" if options.recompute else "without"
    print(f"written to {options.output}: {', '.join(FILES)}; {machine_in_words()}; {recompute} recomputation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
