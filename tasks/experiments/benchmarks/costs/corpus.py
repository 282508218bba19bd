"""What pretraining on a large corpus would take: an estimate, of which nothing is measured."""

from __future__ import annotations

from typing import NamedTuple

from tasks.common.runs.room import BYTES, GIGABYTE
from tasks.experiments.benchmarks.costs.paper import TRAINING, load_of, made_config, products

MASKED_SHARE = 0.15  # of the tokens, which the masked language model predicts
CHARACTER_BYTES = 3  # of a Chinese character in UTF-8
STATE_BYTES = 16  # of a parameter: float32 weight, gradient, two moments
HALF_BYTES = 2  # of a bfloat16


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
    load = load_of(config, batch, length)
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
