"""Time and peak memory of a model against the length of its text, in training and prediction: ``benchmark length``."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from tqdm import tqdm

from paddle_rope.machine import machine_in_words
from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.files import check_makeable, write_json
from paddle_rope.tasks.common.process import choose_device
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.plan import check_unchanged, named_settings, read_keys
from paddle_rope.tasks.experiments.worker import Job, Worker, paddle_jobs, peak_megabytes, timed
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.examples import TokenizedText
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from paddle_rope.tasks.ner.prediction.finding import predict_entities

JOBS = ("train", "predict")  # a training step on one text; prediction of one text
KEYS = {  # of a plan -> types of their values
    **dict.fromkeys(("output_dir", "task", "reference"), (str,)),
    **dict.fromkeys(("model", "variants"), (dict,)),
    "lengths": (list,),
    **dict.fromkeys(("memory_limit", "time_limit"), (int, float)),
}
SHORT = 64  # tokens of a text before the measured one, so that one-time work is not timed
ENOUGH_SECONDS = 5.0  # if two runs take this long, there is no third one
FITTED = 4  # longest lengths of a variant, where attention outweighs the rest


def run(options: Any) -> None:
    """Measure the cells (job, variant, length) of a plan that have no measurement yet, and write ``speed.json`` after
    each; print all cells, and the slopes. Raises InputError if the plan is wrong, or its options differ from earlier
    measurements."""
    plan = read_length_plan(options.plan, options.output_dir)
    folder, variants = Path(plan["output_dir"]), plan["variants"]
    check_makeable(folder, "--output_dir")
    device = choose_device(options.device)
    given = {name: {"device": device, "task": plan["task"], **variants[name]} for name in variants}
    store = folder / "speed.json"
    earlier = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else []
    for row in earlier:
        check_unchanged(row["variant"], folder, row["options"], given.get(row["variant"], row["options"]))
    folder.mkdir(parents=True, exist_ok=True)
    rows = {(row["job"], row["variant"], row["length"]): row for row in earlier}
    planned = [(job, variant, length) for job in JOBS for variant in variants for length in plan["lengths"]]
    for key in tqdm(planned, unit="cell", disable=not sys.stderr.isatty()):
        if key not in rows or rows[key]["left_out"]:
            shorter = [rows[key[:2] + (length,)] for length in plan["lengths"] if length < key[2]]
            rows[key] = {**measure_cell(plan, *key, device, shorter), "options": given[key[1]]}
            write_json(store, list(rows.values()))
        row = rows[key]
        result = f"left out: {row['left_out']}"
        if not row["left_out"]:
            processor = row.get("processor_seconds", float("nan"))  # which earlier versions did not write
            result = f"{row['seconds']:9.3f} s ({processor:.3f} of the processor) {row['peak_mb']:7} MB"
        print(f"{row['job']:7} {row['variant']:24} {row['length']:7}  {result}", flush=True)
    slopes = as_markdown(slope_rows(plan["reference"], [rows[key] for key in planned]))
    print(f"{machine_in_words()}\n\nAgainst {plan['reference']}:\n\n{slopes}")


def read_length_plan(path: str | Path, output_dir: str | Path | None = None) -> dict[str, Any]:
    """The keys of a plan, each variant with the options of ``model``; raises InputError if something is wrong."""
    plan = read_keys(path, KEYS, [key for key in KEYS if key != "task"], output_dir)
    if plan["reference"] not in plan["variants"]:
        raise InputError(f"{path}: the reference {plan['reference']!r} is not one of the variants")
    if plan.setdefault("task", "classification") not in MODELS:
        raise InputError(f"{path}: task is {plan['task']!r}; it has to be one of {', '.join(MODELS)}")
    lengths = plan["lengths"]
    if not all(type(length) is int for length in lengths) or lengths != sorted(set(lengths)) or lengths[0] < SHORT:
        raise InputError(f"{path}: lengths must be whole numbers that rise, from {SHORT} or more")
    plan["variants"] = named_settings(path, "variants", plan["variants"])
    for variant, options in plan["variants"].items():
        plan["variants"][variant] = {**plan["model"], **options}
        given = {name: value for name, value in plan["variants"][variant].items() if name != "recompute"}
        model = MODELS[plan["task"]]
        with as_input_error(f"{path}: variant {variant}: "):
            model.config_class.check_names(given)
            model.config_class(**{**model.defaults, **given})
    return plan


def measure_cell(
    plan: dict[str, Any], job: str, variant: str, length: int, device: str, shorter: list[dict]
) -> dict[str, Any]:
    """The row of a cell, measured in a separate process unless the ``shorter`` rows predict that it exceeds a limit."""
    row = {"job": job, "variant": variant, "length": length, "left_out": ""}
    known = [(one["length"], one["seconds"], one["peak_mb"]) for one in shorter if not one["left_out"]]
    reason = "a shorter text is left out" if len(known) < len(shorter) else reason_to_leave_out(known, length, plan)
    if not reason:
        try:
            return {**row, **measure_apart(plan["task"], job, plan["variants"][variant], length, device)}
        except InputError as error:  # such as a lack of memory
            reason = str(error)
    return {**row, "left_out": reason}


def measure_apart(task: str, job: str, options: dict, length: int, device: str) -> dict[str, float]:
    """The result of :func:`measure` in a separate process; raises InputError if that fails."""
    with Worker(__name__) as worker:
        return worker.ask(task=task, job=job, options=options, length=length, device=device)


def reason_to_leave_out(known: list[tuple], length: int, plan: dict[str, Any]) -> str:
    """Why a length would exceed the ``memory_limit`` (GB) or the ``time_limit`` (seconds) of a plan if time and memory
    follow the power law of the last two of ``known``, (length, seconds, peak in MB) of rising lengths; or ""."""
    if len(known) < 3:
        return ""
    idle = min(peak for _, _, peak in known) - 1
    (n1, t1, m1), (n2, t2, m2) = known[-2:]

    def foreseen(first, second):
        return second * (length / n2) ** np.clip(np.log(second / first) / np.log(n2 / n1), 1, 2)

    gigabytes, seconds = (idle + foreseen(m1 - idle, m2 - idle)) / 1024, foreseen(t1, t2)
    if gigabytes > plan["memory_limit"]:
        return f"{gigabytes:.0f} GB foreseen"
    return f"{seconds:.0f} s foreseen" if seconds > plan["time_limit"] else ""


def slope_rows(reference: str, rows: list[dict]) -> list[dict]:
    """One row for each job and variant: the exponents of time and of memory beyond the idle process in the length,
    fitted in logarithms to the last ``FITTED`` lengths, and the ratios to the reference at the longest length that both
    have."""
    measured: dict = {}  # (job, variant) -> length -> (seconds, MB beyond the idle process)
    for row in (row for row in rows if not row["left_out"]):
        of_variant = measured.setdefault((row["job"], row["variant"]), {})
        of_variant[row["length"]] = row["seconds"], max(row["peak_mb"] - row["idle_mb"], 1)
    result = []
    for (job, variant), mine in measured.items():
        row = {"job": job, "variant": variant, "longest": max(mine)}
        fitted, theirs = sorted(mine)[-FITTED:], measured.get((job, reference), {})
        both = max(mine.keys() & theirs.keys(), default=None)
        for place, name in enumerate(("time", "memory")):
            if len(fitted) > 1:
                values = [mine[length][place] for length in fitted]
                row[f"{name} slope"] = f"{np.polyfit(np.log(fitted), np.log(values), 1)[0]:.2f}"
            if both and variant != reference:
                row[f"{name} share"] = f"{mine[both][place] / theirs[both][place]:.2f} at {both}"
        result.append(row)
    return result


# ---- what is measured, in a separate process: models with random weights on texts of random tokens

CHARACTERS_AN_ENTITY, LONGEST_ENTITY = 20, 10
TYPES = ("person", "place", "organization")


class Classifier:
    """A classifier of documents with random weights."""

    config_class, model_class = SequenceClassificationConfig, RoFormerForSequenceClassification
    defaults: dict[str, Any] = {"vocab_size": 4000, "pooling": "mean"}

    def __init__(self, recompute: bool = False, **options: Any):
        self.model = self.model_class(self.config_class(**{**self.defaults, **options}))
        self.model.roformer.enable_recompute = recompute
        self.optimizer = AdamW(learning_rate=1e-4, parameters=self.model.parameters())

    def jobs(self, length: int) -> dict[str, Job]:
        """``train`` and ``predict`` on a new random text."""
        ids = paddle.randint(1, self.defaults["vocab_size"], [1, length])
        labels = paddle.zeros([1], dtype="int64")
        loss, predict = (lambda: self.model(ids, labels=labels)[0]), (lambda: self.model(ids).numpy())
        return paddle_jobs(self.model, self.optimizer, loss, predict)


class Ner(Classifier):
    """The NER model, from tokens to entities; its text has an entity for every ``CHARACTERS_AN_ENTITY`` characters."""

    config_class, model_class = NerConfig, NerModel
    # untrained scores are about 0: with this threshold nearly nothing is found, as in real texts
    defaults = {**NerArguments().model_options(), "types": TYPES, "vocab_size": 3500, "thresholds": 10.0}

    def jobs(self, length: int) -> dict[str, Job]:
        text = _random_ner_text(length, self.defaults["vocab_size"])
        batch = {name: paddle.to_tensor(array) for name, array in pad_spans([text], 0).items()}
        loss, predict = (lambda: self.model(**batch)), (lambda: predict_entities(self.model, [text], 1))
        return paddle_jobs(self.model, self.optimizer, loss, predict)


def _random_ner_text(length, vocab_size):
    ids = np.random.randint(6, vocab_size, length + 2).tolist()
    offsets = [(0, 0), *((i, i + 1) for i in range(length)), (0, 0)]
    count = length // CHARACTERS_AN_ENTITY
    first = np.random.randint(1, length - LONGEST_ENTITY, count)
    last = first + np.random.randint(0, LONGEST_ENTITY, count)
    spans = np.stack([np.random.randint(0, len(TYPES), count), first, last, np.ones(count)], 1).tolist()
    return TokenizedText(ids, offsets, spans)


MODELS = {"classification": Classifier, "ner": Ner}


def start() -> tuple[dict, Any]:
    """The worker's function; requests are the arguments of :func:`measure`."""
    return {}, measure


def measure(task: str, job: str, options: dict[str, Any], length: int, device: str) -> dict[str, float]:
    """``seconds`` and ``processor_seconds`` of a ``job`` of the model of a ``task`` on one text, the smallest of two
    runs, or of three short ones; ``peak_mb`` of this process; and ``idle_mb``, its peak before: libraries, weights, a
    short text."""
    paddle.set_device(device)
    paddle.seed(0)
    np.random.seed(0)
    model = MODELS[task](**options)
    model.jobs(SHORT)[job]()
    idle, run, runs = peak_megabytes(), model.jobs(length)[job], []
    # the first run is slower: the process has not touched its memory before
    while len(runs) < 2 or (len(runs) < 3 and sum(one["seconds"] for one in runs) < ENOUGH_SECONDS):
        runs.append(timed(run))
    smallest = {name: round(min(one[name] for one in runs), 4) for name in runs[0]}
    return {**smallest, "peak_mb": peak_megabytes(), "idle_mb": idle}
