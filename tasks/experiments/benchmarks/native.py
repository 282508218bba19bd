"""Native operators against their plain forms in whole models; see ``paddle-rope benchmark native --help``."""

import contextlib
import statistics
import time

import paddle
from paddle import nn

from paddle_rope import RoFormerConfig, RoFormerModel
from paddle_rope.native.library import library, plain_forms, state_in_words
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.sizes import HEAD_SIZE, VOCABULARY, read_size

VARIANTS = {
    "softmax": {},
    "linear": {"attention": "linear"},
    "linear-decay": {"attention": "linear", "normalizer": "none", "decay": 0.95},
}
WARM_UP = 1  # rounds before those that count


def measure_native(sizes, variants, rounds):
    """Ratios of processor time, plain / native, medians over rounds in which the two take turns.

    Args:
        sizes: such as ``"4x256,32x40"``: layers x hidden size, texts x length.
        variants: names of :data:`VARIANTS`.
        rounds: how often each side is measured.

    Returns:
        list of dict: size, variant, and for train and predict the median ratio and the native milliseconds.

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
    lines = ["| layers x hidden, texts x length | attention | training: plain / native | inference: plain / native |"]
    lines.append("|---|---|---|---|")
    for row in rows:
        cells = (f"{row[job]['ratio']:.2f} ({row[job]['native_ms']:.0f} ms)" for job in ("train", "predict"))
        lines.append(f"| {row['size']} | {row['variant']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
    optimizer = paddle.optimizer.AdamW(1e-4, parameters=model.parameters(), weight_decay=0.01, grad_clip=clip)
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

    times: dict = {(job, side): [] for job in (train, predict) for side in (plain_forms, contextlib.nullcontext)}
    for _ in range(WARM_UP + rounds):
        for (job, side), measured in times.items():
            with side():
                start = time.process_time()
                job()
                measured.append(1000 * (time.process_time() - start))
    results = {}
    for job in (train, predict):
        plain, native = (times[job, side][WARM_UP:] for side in (plain_forms, contextlib.nullcontext))
        ratio = statistics.median(one / other for one, other in zip(plain, native))
        results[job.__name__] = {"ratio": ratio, "native_ms": statistics.median(native)}
    return results
