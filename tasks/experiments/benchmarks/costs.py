"""What a model costs on paper: operations, bytes and memory against the length; and what a large corpus takes.

Counted are the products of matrices, which are nearly all operations of an encoder. ``tests/experiments/test_costs.py``
compares the counts with the products that a model really computes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.common.runs.room import BYTES, GIGABYTE, Load

HEAD_SIZE = 64  # of attention and of the span head
VOCABULARY = 6000
TRAINING = 3  # a product has two others in the backward pass, of the same size
SMALLEST_BLOCK = 32  # of window attention and of the band
MASKED_SHARE = 0.15  # of the tokens, which the masked language model predicts
CHARACTER_BYTES = 3  # of a Chinese character in UTF-8
STATE_BYTES = 16  # of a parameter: float32 weight, gradient, two moments
HALF_BYTES = 2  # of a bfloat16


class Product(NamedTuple):
    """``count`` products of matrices ``[rows, inner]`` and ``[inner, columns]``."""

    count: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each term."""
        return 2 * self.count * self.rows * self.inner * self.columns

    @property
    def numbers(self) -> int:
        """That are read and written, each once."""
        return self.count * (self.rows * self.inner + self.inner * self.columns + self.rows * self.columns)


class Costs(NamedTuple):
    """Of a batch."""

    flops: int  # of a prediction; a training step takes TRAINING times as many
    moved_bytes: int  # the least that its products read and write, in float32
    training_bytes: float  # peak of the process on a CPU
    prediction_bytes: float


def products(config: Any, batch: int, tokens: int) -> list[Product]:
    """The products of a forward pass.

    Args:
        config: a NerConfig; without types there is no span head. Linear attention is that without decay, with
            ``normalizer="unrotated"``.
        batch: texts.
        tokens: of each.
    """
    rows, hidden, inner = batch * tokens, config.hidden_size, config.intermediate_size
    found = []
    for kind in config.layer_attention:
        found += [Product(4, rows, hidden, hidden), Product(1, rows, hidden, inner), Product(1, rows, inner, hidden)]
        found += _of_attention(kind, batch * config.num_attention_heads, tokens, config)
    return found + (_of_span_head(config, batch, tokens) if config.types else [])


def _of_attention(kind, heads, tokens, config):
    size = config.head_dim
    if kind == "linear":
        return [
            Product(heads, size, tokens, size),
            Product(heads, tokens, size, size),
            Product(heads, tokens, size, 1),
        ]
    window, block = config.attention_window, max(config.attention_window, SMALLEST_BLOCK)
    if kind == "softmax" or tokens <= block + 2 * window:
        queries = keys = tokens
    else:
        queries, keys = block, -(-(block + 2 * window) // block) * block
        heads *= -(-tokens // block)
    return [Product(heads, queries, size, keys), Product(heads, queries, keys, size)]


def _of_span_head(config, batch, tokens):
    types, size, rows = len(config.types), config.head_size, batch * tokens
    if config.span_head == "efficient":
        count, found = batch, [Product(1, rows, config.hidden_size, 2 * size), Product(1, rows, 2 * size, 2 * types)]
    else:
        count, found = batch * types, [Product(1, rows, config.hidden_size, 2 * size * types)]
    if config.max_span_length is None:
        return [*found, Product(count, tokens, size, tokens)]
    columns = min(config.max_span_length, tokens)
    block = max(columns, min(SMALLEST_BLOCK, tokens))
    return [*found, Product(count * -(-tokens // block), block, size, block + columns - 1)]


def parameters(config: Any) -> int:
    """Weights of the matrices and the embedding; norms and biases are less than 1 % of them."""
    hidden = config.hidden_size
    found = config.vocab_size * hidden
    found += config.num_hidden_layers * (4 * hidden**2 + 2 * hidden * config.intermediate_size)
    if config.types:
        heads = 1 if config.span_head == "efficient" else len(config.types)
        found += 2 * hidden * config.head_size * heads
    return found


def costs(config: Any, batch: int, tokens: int) -> Costs:
    """Of a batch of ``batch`` texts of ``tokens`` tokens each; ``config`` as of :func:`products`."""
    counted = products(config, batch, tokens)
    load = _load(config, batch, tokens)
    return Costs(
        sum(product.flops for product in counted),
        BYTES * sum(product.numbers for product in counted),
        load.peak_bytes,
        load.prediction_bytes,
    )


def _load(config, batch, tokens):
    from tasks.ner.spans import scores_of_text

    scores = (lambda length: scores_of_text(config, length)) if config.types else None
    return Load(parameters(config), config, batch, tokens, scores)


def layers_and_hidden(size: str) -> tuple[int, int]:
    """``"12x768"`` -> (12, 768).

    Raises:
        InputError: it is not of that form, or the hidden size is not a multiple of 64.
    """
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", size)
    if not match or int(match[2]) % HEAD_SIZE:
        raise InputError(
            "{size}: give layers x hidden size such as 12x768, the hidden size a multiple of {head_size}",
            size=size,
            head_size=HEAD_SIZE,
        )
    return int(match[1]), int(match[2])


def made_config(size: tuple[int, int], types: int = 0, **options: Any) -> Any:
    """A NerConfig of ``size``, layers and hidden size, as the recipes make it; ``options`` are others of it."""
    from tasks.ner.model import NerConfig

    layers, hidden = size
    return NerConfig(
        types=[f"type {number}" for number in range(types)],
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        embedding_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // HEAD_SIZE,
        intermediate_size=4 * hidden,
        **options,
    )


def costs_table(size: tuple[int, int], kinds: list[str], lengths: list[int], batch: int, **options: Any) -> str:
    """Markdown: a row for each kind of attention and length; ``options`` are those of :func:`made_config`."""
    rows = []
    for kind in kinds:
        config = made_config(size, attention=kind, **options)
        for length in lengths:
            found = costs(config, batch, length)
            of_head = sum(product.flops for product in _of_span_head(config, batch, length)) if config.types else 0
            rows.append(
                (
                    kind, f"{length:,}", f"{found.flops / 1e9:,.1f}", f"{100 * of_head / found.flops:.1f}",
                    f"{TRAINING * found.flops / 1e9:,.1f}", f"{found.moved_bytes / GIGABYTE:.2f}",
                    f"{found.flops / found.moved_bytes:.0f}", f"{found.prediction_bytes / GIGABYTE:.1f}",
                    f"{found.training_bytes / GIGABYTE:.1f}",
                )
            )  # fmt: skip
    heads = (
        "attention", "tokens", "prediction, GFLOP", "of it head, %", "training step, GFLOP", "products move, GB",
        "FLOP a byte", "prediction, GB", "training, GB",
    )  # fmt: skip
    return as_markdown([dict(zip(heads, row)) for row in rows], heads)


@contextlib.contextmanager
def counted_products() -> Iterator[list[Product]]:
    """The products that Paddle is asked for while the block runs; additions of a bias, written as products with
    ``inner`` of 1, are left out."""
    import paddle

    found, kernels = [], paddle._C_ops
    matmul, linear = kernels.matmul, kernels.linear

    def count(x, y, transpose_x=False, transpose_y=False):
        rows, inner = x.shape[-2:][::-1] if transpose_x else x.shape[-2:]
        columns = y.shape[-2] if transpose_y else y.shape[-1]
        rows = rows if len(y.shape) > 2 else x.size // inner
        if inner > 1:
            found.append(Product(x.size // (rows * inner), rows, inner, columns))

    def counted_matmul(x, y, transpose_x=False, transpose_y=False, *more):
        count(x, y, transpose_x, transpose_y)
        return matmul(x, y, transpose_x, transpose_y, *more)

    def counted_linear(x, weight, *more):
        count(x, weight)
        return linear(x, weight, *more)

    kernels.matmul, kernels.linear = counted_matmul, counted_linear
    try:
        yield found
    finally:
        kernels.matmul, kernels.linear = matmul, linear


def check_table(size: tuple[int, int], kinds: list[str], lengths: list[int], batch: int, **options: Any) -> str:
    """Markdown: the counted operations and the measured peaks of memory on this CPU beside those on paper."""
    rows = []
    for kind in kinds:
        for length in lengths:
            paper = costs(made_config(size, attention=kind, **options), batch, length)
            case = {"size": size, "batch": batch, "length": length, "options": {"attention": kind, **options}}
            flops, predicting = _measured({**case, "trains": False})
            _, training = _measured({**case, "trains": True})
            rows.append(
                (
                    kind, f"{length:,}", f"{flops / 1e9:,.1f}", f"{paper.flops / flops:.2f}",
                    f"{predicting / GIGABYTE:.2f}", f"{paper.prediction_bytes / predicting:.2f}",
                    f"{training / GIGABYTE:.2f}", f"{paper.training_bytes / training:.2f}",
                )
            )  # fmt: skip
    heads = (
        "attention", "tokens", "counted, GFLOP", "paper / counted", "prediction, GB", "paper / prediction",
        "training, GB", "paper / training",
    )  # fmt: skip
    return as_markdown([dict(zip(heads, row)) for row in rows], heads)


def _measured(case):
    """(operations of a forward pass, peak in bytes) of a process of its own, by plain forms."""
    command = [sys.executable, "-m", "tasks.experiments.benchmarks.costs", json.dumps(case)]
    environment = {**os.environ, "PADDLE_ROPE_NATIVE": "0"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def _measure(size, batch, length, trains, options):
    from tasks.common.tool.process import prepare

    prepare()
    import paddle

    from tasks.experiments.benchmarks.lengths import peak_megabytes
    from tasks.ner.model import NerModel

    paddle.seed(0)
    config = made_config(size, **options)
    model = NerModel(config)
    ids = paddle.randint(1, VOCABULARY, [batch, length])
    seen = paddle.ones([batch, length], dtype="bool")
    labels = paddle.to_tensor([[[0, 0, 0]]] * batch) if config.types else None
    optimizer = paddle.optimizer.AdamW(parameters=model.parameters())

    def run():
        if not config.types:
            return model.roformer(ids, seen).mean()
        found = model(ids, seen, seen, labels=labels if trains else None)
        return found[0] if trains else found

    model.train() if trains else model.eval()
    with counted_products() as found:
        for _ in range(2):
            if not trains:
                with paddle.no_grad():
                    run()
                continue
            run().backward()
            optimizer.step()
            optimizer.clear_grad()
    return sum(product.flops for product in found) // 2, peak_megabytes() * 2**20


class Node(NamedTuple):
    """An estimate for pretraining a masked language model on a corpus; nothing of it is measured."""

    tokens: float
    flops: float
    hours: float
    gpu_bytes: float
    disk_bytes: float


def pretraining_estimate(
    size: tuple[int, int], corpus_gb: float, gpus: int, peak_teraflops: float, share: float, batch: int, length: int
) -> Node:
    """One pass over a corpus with softmax attention in bfloat16, data parallel.

    Args:
        size: layers, hidden size.
        corpus_gb: UTF-8 text, 3 bytes a token.
        peak_teraflops: of a GPU, in bfloat16.
        share: of that peak which is reached, an assumption.
        batch: rows of a GPU at once.
        length: tokens of a row.
    """
    config, tokens = made_config(size), corpus_gb * GIGABYTE / CHARACTER_BYTES
    hidden = config.hidden_size
    of_token = sum(product.flops for product in products(config, 1, length)) / length
    of_token += MASKED_SHARE * 2 * (hidden**2 + hidden * config.vocab_size)
    flops = TRAINING * tokens * of_token
    load = _load(config, batch, length)
    state = STATE_BYTES * load.parameters
    # the blocks in bfloat16, but for the logits of the masked tokens, which are float32
    logits = 2 * BYTES * MASKED_SHARE * batch * length * config.vocab_size
    return Node(
        tokens,
        flops,
        flops / (gpus * peak_teraflops * 1e12 * share) / 3600,
        state + HALF_BYTES / BYTES * load.activation_bytes + logits,
        corpus_gb * GIGABYTE + BYTES * tokens,
    )


def estimate_lines(node: Node) -> str:
    """The estimate, a line each."""
    return "\n".join(
        (
            f"tokens           {node.tokens / 1e9:,.1f} billion",
            f"operations       {node.flops:.2e} FLOP",
            f"time             {node.hours:,.0f} hours",
            f"memory of a GPU  {node.gpu_bytes / GIGABYTE:,.0f} GB",
            f"disk             {node.disk_bytes / GIGABYTE:,.0f} GB",
        )
    )


if __name__ == "__main__":
    print(json.dumps(_measure(**json.loads(sys.argv[1]))))
