"""The products of matrices of a model, which are nearly all of its operations; bytes and peak memory.

``tests/experiments/test_costs.py`` compares the counts with the products that a model really computes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tasks.common.reports.tables import as_markdown
from tasks.common.runs.room import BYTES, GIGABYTE, Load
from tasks.experiments.benchmarks.sizes import HEAD_SIZE

VOCABULARY = 6000
TRAINING = 3  # a product has two others in the backward pass, of the same size
SMALLEST_BLOCK = 32  # of window attention and of the band


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
    load = load_of(config, batch, tokens)
    return Costs(
        sum(product.flops for product in counted),
        BYTES * sum(product.numbers for product in counted),
        load.peak_bytes,
        load.prediction_bytes,
    )


def load_of(config: Any, batch: int, tokens: int) -> Load:
    """What the estimate of memory wants to know; arguments as of :func:`products`."""
    from tasks.ner.spans import scores_of_text

    scores = (lambda length: scores_of_text(config, length)) if config.types else None
    return Load(parameters(config), config, batch, tokens, scores)


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
