"""Native operators against their plain forms in whole models; see ``paddle-rope benchmark native --help``."""

import contextlib
import statistics
import time

import paddle
from paddle import nn

from paddle_rope import RoFormerConfig, RoFormerModel
from paddle_rope.native.adamw import AdamW
from paddle_rope.native.library import library, plain_forms, state_in_words
from paddle_rope.native.products import bfloat16_products, why_no_bfloat16
from tasks.common.errors import InputError
from tasks.common.reports.figures import BLUE, GREEN, ORANGE, new_figure, png
from tasks.experiments.benchmarks.sizes import HEAD_SIZE, VOCABULARY, read_size

_DECAY = {"attention": "linear", "normalizer": "none", "decay": 0.95}
VARIANTS = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "linear-decay": _DECAY,
    "linear-near": {**_DECAY, "convolutions": True, "output_gate": True},
}
SIDES = {"plain": plain_forms, "native": contextlib.nullcontext, "bfloat16": bfloat16_products}
JOBS = {"train": "training", "predict": "inference"}
WARM_UP = 1  # rounds before those that count


def measure_native(sizes, variants, rounds):
    """Processor time of plain forms, native operators, and these with products in bfloat16, where there are such.

    Args:
        sizes: such as ``"4x256,32x40"``: layers x hidden size, texts x length.
        variants: names of :data:`VARIANTS`.
        rounds: how often each side is measured; they take turns.

    Returns:
        list of dict: size, variant, and for train and predict the median milliseconds of each side of :data:`SIDES`,
        and under ``ratios`` the medians over the rounds of plain / side.

    Raises:
        InputError: a size cannot be read, or the operators are not built.
    """
    numbers = [read_size(size) for size in sizes]
    if library() is None:
        raise InputError(state_in_words())
    return [
        {"size": size, "variant": variant, **_compare(*known, VARIANTS[variant], rounds)}
        for size, known in zip(sizes, numbers)
        for variant in variants
    ]


def as_table(rows):
    """The rows as Markdown."""
    sides = [side for side in SIDES if side in rows[0]["train"]["ratios"]]
    names = [f"{name}: plain / {side}" for name in JOBS.values() for side in sides]
    lines = [
        f"| layers x hidden, texts x length | attention | {' | '.join(names)} |",
        "|---|---|" + len(names) * "---|",
    ]
    for row in rows:
        measured = [(row[job], side) for job in JOBS for side in sides]
        cells = [f"{of_job['ratios'][side]:.2f} ({of_job['ms'][side]:,.0f} ms)" for of_job, side in measured]
        lines.append(f"| {row['size']} | {row['variant']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(rows):
    """PNG: microseconds a token against the length of a text, training on the left; lines for attention and side."""
    figure, panels = new_figure(10, 4, 1, 2, squeeze=False)
    colors = dict(zip(SIDES, (BLUE, ORANGE, GREEN)))
    for (job, title), axes in zip(JOBS.items(), panels[0]):
        for number, variant in enumerate(dict.fromkeys(row["variant"] for row in rows)):
            shown = [(read_size(row["size"]), row[job]["ms"]) for row in rows if row["variant"] == variant]
            for side in shown[0][1]:
                points = sorted((length, 1000 * ms[side] / (texts * length)) for (_, _, texts, length), ms in shown)
                style = {"color": colors[side], "linestyle": ("-", "--", ":")[number], "marker": "o", "ms": 3}
                axes.plot(*zip(*points), label=f"{variant}, {side}", **style)
        axes.set(title=title, xlabel="tokens of a text", ylabel="microseconds a token", xscale="log", yscale="log")
        lengths = sorted({read_size(row["size"])[3] for row in rows})
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return png(figure)


def _compare(layers, hidden, texts, length, options, rounds):
    heads = hidden // HEAD_SIZE
    if "decay" in options:
        options = {**options, "decay": [options["decay"]] * heads}
    config = RoFormerConfig(
        vocab_size=VOCABULARY,
        embedding_size=hidden,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        **options,
    )
    paddle.seed(0)
    model = RoFormerModel(config)
    clip = nn.ClipGradByGlobalNorm(1.0)
    optimizer = AdamW(1e-4, parameters=model.parameters(), weight_decay=0.01, grad_clip=clip)
    ids, mask = paddle.randint(1, VOCABULARY, [texts, length]), paddle.ones([texts, length], dtype="int64")
    towards = paddle.randn([texts, length, hidden])

    def train():
        model.train()
        (model(ids, mask) * towards).mean().backward()
        optimizer.step()
        optimizer.clear_grad()

    def predict():
        model.eval()
        with paddle.no_grad():
            model(ids, mask)

    sides = {name: side for name, side in SIDES.items() if name != "bfloat16" or why_no_bfloat16() is None}
    times: dict = {(job, name): [] for job in (train, predict) for name in sides}
    for _ in range(WARM_UP + rounds):
        for (job, name), measured in times.items():
            with sides[name]():
                start = time.process_time()
                job()
                measured.append(1000 * (time.process_time() - start))
    return {job.__name__: _medians({name: times[job, name][WARM_UP:] for name in sides}) for job in (train, predict)}


def _medians(times):
    plain = times["plain"]
    ratios = {
        name: statistics.median(one / other for one, other in zip(plain, of_side))
        for name, of_side in times.items()
        if name != "plain"
    }
    return {"ms": {name: statistics.median(of_side) for name, of_side in times.items()}, "ratios": ratios}
