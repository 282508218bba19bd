"""The costs on paper beside those of a model that computes on this CPU.

Run as a module, it measures one case in a process of its own, whose peak memory is then its own. What the allocator
keeps differs from process to process, so the median of three counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tasks.common.reports.tables import as_markdown
from tasks.common.runs.room import GIGABYTE
from tasks.experiments.benchmarks.costs.paper import VOCABULARY, Product, costs, made_config

PROCESSES = 3  # of which the median peak counts


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
    """(operations of a forward pass, peak in bytes) by plain forms."""
    command = [sys.executable, "-m", "tasks.experiments.benchmarks.costs.check", json.dumps(case)]
    environment = {**os.environ, "PADDLE_ROPE_NATIVE": "0"}
    runs = [subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment) for _ in range(PROCESSES)]
    flops, peaks = zip(*(json.loads(done.stdout.splitlines()[-1]) for done in runs))
    return flops[0], statistics.median(peaks)


def _measure(size, batch, length, trains, options):
    from tasks.common.tool.process import prepare

    prepare()
    import paddle

    from paddle_rope.native.adamw import AdamW
    from tasks.experiments.benchmarks.lengths import peak_megabytes
    from tasks.ner.model import NerModel

    paddle.seed(0)
    config = made_config(size, **options)
    model = NerModel(config)
    ids = paddle.randint(1, VOCABULARY, [batch, length])
    seen = paddle.ones([batch, length], dtype="bool")
    labels = paddle.to_tensor([[[0, 0, 0]]] * batch) if config.types else None
    optimizer = AdamW(parameters=model.parameters())

    def run():
        if not config.types:
            return model.roformer(ids, seen).mean()
        return model(ids, seen, seen, labels=labels if trains else None)

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


if __name__ == "__main__":
    print(json.dumps(_measure(**json.loads(sys.argv[1]))))
