#!/usr/bin/env python
"""Time our layers against Paddle's on this machine, forward and backward, side by side in one run."""

import bootstrap  # noqa: F401

import statistics
import sys
import time

import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_rope.global_pointer import multilabel_categorical_crossentropy
from paddle_rope.layers import Dropout, Linear

BATCH, SEQ, HIDDEN, TYPES = 32, 40, 256, 10
ROUNDS = 20


def paddle_multilabel_loss(logits, labels):
    """The same loss by paddle.logsumexp."""
    excluded = paddle.full_like(logits, -1e9)
    negatives = paddle.logsumexp(paddle.where(labels, excluded, logits), axis=-1)
    positives = paddle.logsumexp(paddle.where(labels, -logits, excluded), axis=-1)
    return F.softplus(negatives) + F.softplus(positives)


def milliseconds(function, inputs):
    """One forward and backward pass."""
    start = time.perf_counter()
    output = function(*inputs)
    output.backward(paddle.ones_like(output))
    elapsed = time.perf_counter() - start
    for tensor in inputs:
        tensor.clear_gradient()
    return 1000 * elapsed


def main():
    paddle.set_device("cpu")
    hidden = paddle.randn([BATCH, SEQ, HIDDEN])
    logits = paddle.randn([BATCH * TYPES, SEQ * SEQ])
    logits = paddle.where(paddle.rand(logits.shape) < 0.5, logits, paddle.full_like(logits, -1e4))
    labels = paddle.rand(logits.shape) < 0.001
    for tensor in (hidden, logits):
        tensor.stop_gradient = False
    ours, theirs = Linear(HIDDEN, 4 * HIDDEN), nn.Linear(HIDDEN, 4 * HIDDEN)
    cases = {
        f"Linear {HIDDEN} to {4 * HIDDEN}": (theirs, ours, [hidden]),
        "Dropout 0.2": (nn.Dropout(0.2), Dropout(0.2), [hidden]),
        f"multi-label loss, {SEQ}x{SEQ} spans, {TYPES} types": (
            lambda x: paddle_multilabel_loss(x, labels),
            lambda x: multilabel_categorical_crossentropy(x, labels),
            [logits],
        ),
    }
    print(f"batch {BATCH}, length {SEQ}, hidden {HIDDEN}; milliseconds forward + backward, median of {ROUNDS}")
    print("| layer | paddle | ours | paddle / ours |")
    print("|---|---|---|---|")
    for name, (their_layer, our_layer, inputs) in cases.items():
        times = {their_layer: [], our_layer: []}
        for _ in range(ROUNDS + 2):
            for layer, results in times.items():
                results.append(milliseconds(layer, inputs))
        medians = [statistics.median(results[2:]) for results in times.values()]
        print(f"| {name} | {medians[0]:.2f} | {medians[1]:.2f} | {medians[0] / medians[1]:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
