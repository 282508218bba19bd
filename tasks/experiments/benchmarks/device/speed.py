"""Training and inference of encoders on a device, and linear attention of long texts: time, memory, share of peak."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import paddle

from paddle_rope import RotaryPositionEmbedding, linear_attention
from paddle_rope.native.adamw import AdamW
from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM

VOCABULARY = 4000
HEAD_DIM = 64
MOST_SECONDS = 3.0  # of measuring one job
MOST_RUNS = 20


class Size(NamedTuple):
    """Of an encoder and a batch."""

    layers: int
    width: int
    texts: int
    length: int

    def __str__(self) -> str:
        return f"{self.layers} x {self.width}, {self.texts} x {self.length}"

    def flops(self) -> int:
        """Of a forward pass: two for each weight of the matrices and token, and the products of attention."""
        tokens = self.texts * self.length
        matrices = self.layers * 12 * self.width**2
        return tokens * (2 * matrices + self.layers * 4 * self.length * self.width)


SIZES = (Size(4, 256, 64, 64), Size(12, 768, 16, 256), Size(12, 768, 4, 1024))
SMALL_SIZES = (Size(1, 64, 2, 16), Size(2, 64, 2, 32), Size(2, 128, 2, 32))  # for CPUs and tests


def is_gpu() -> bool:
    return paddle.get_device().startswith("gpu")


def seconds_of(run: Callable[[], Any], most_seconds: float = MOST_SECONDS) -> float:
    """The median time of ``run()`` after two that do not count."""

    def timed():
        _wait()
        start = time.perf_counter()
        run()
        _wait()
        return time.perf_counter() - start

    timed(), timed()
    seconds = []
    while not seconds or (sum(seconds) < most_seconds and len(seconds) < MOST_RUNS):
        seconds.append(timed())
    return sorted(seconds)[len(seconds) // 2]


def product_flops(dtype: str, width: int, most_seconds: float = MOST_SECONDS) -> float:
    """FLOP/s of a product of two square matrices: the peak that the shares are of."""
    a, b = (paddle.randn([width, width]).astype(dtype) for _ in range(2))
    return 2 * width**3 / seconds_of(lambda: paddle.matmul(a, b), most_seconds)


def measure_encoder(size: Size, dtype: str, peak: float, most_seconds: float = MOST_SECONDS) -> list[dict[str, Any]]:
    """Rows of one training step (forward, backward, AdamW; masked language model) and one inference.

    Args:
        dtype: of autocast; float32 for none.
        peak: FLOP/s, as of :func:`product_flops`.
    """
    paddle.seed(0)
    sizes = {"hidden_size": size.width, "num_hidden_layers": size.layers, "intermediate_size": 4 * size.width}
    heads = max(size.width // HEAD_DIM, 1)
    model = RoFormerForMaskedLM(RoFormerConfig(vocab_size=VOCABULARY, num_attention_heads=heads, **sizes))
    optimizer = AdamW(learning_rate=1e-4, parameters=model.parameters())
    scaler = paddle.amp.GradScaler(enable=dtype == "float16")
    ids = paddle.randint(1, VOCABULARY, [size.texts, size.length])
    labels = paddle.where(paddle.rand(ids.shape) < 0.15, ids, paddle.full_like(ids, -100))
    labels[:, 0] = ids[:, 0]  # at least one of each text

    def autocast():
        return paddle.amp.auto_cast(enable=dtype != "float32", dtype="bfloat16" if dtype == "float32" else dtype)

    def train():
        with autocast():
            loss, _ = model(ids, labels=labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()

    def predict():
        with paddle.no_grad(), autocast():
            model.roformer(ids)

    rows = []
    for job, run, times in (("training", train, 3), ("inference", predict, 1)):
        model.train() if job == "training" else model.eval()
        _forget_peak()
        seconds = seconds_of(run, most_seconds)
        rows.append(
            {
                "model": str(size), "dtype": dtype, "job": job, "seconds": seconds,
                "tokens_a_second": size.texts * size.length / seconds, "peak_mb": _peak_megabytes(),
                "share_of_peak": times * size.flops() / seconds / peak,
            }
        )  # fmt: skip
    return rows


def measure_linear_attention(
    lengths: list[int], dtype: str, most_seconds: float = MOST_SECONDS
) -> list[dict[str, Any]]:
    """Rows of forward and backward of linear attention, 4 heads of 64, up to the length for which memory does not
    suffice, which has a row that says so."""
    rotary = RotaryPositionEmbedding(HEAD_DIM)
    rows = []
    for length in lengths:
        _forget_peak()
        row = {"tokens": length, "dtype": dtype}
        try:
            q, k, v = (paddle.randn([1, length, 4, HEAD_DIM]).astype(dtype) for _ in range(3))
            for x in (q, k, v):
                x.stop_gradient = False

            def run(q=q, k=k, v=v):
                paddle.grad(linear_attention(q, k, v, rotary.cos_sin(q.shape[1])).sum(), [q, k, v])

            seconds = seconds_of(run, most_seconds)
        except (MemoryError, RuntimeError, OSError) as error:  # paddle's ResourceExhausted is one of these
            return [*rows, {**row, "error": " ".join(str(error).split())[:200]}]
        rows.append({**row, "seconds": seconds, "peak_mb": _peak_megabytes()})
    return rows


def _wait():
    if is_gpu():
        paddle.device.synchronize()


def _forget_peak():
    if is_gpu():
        paddle.device.cuda.empty_cache()
        paddle.device.cuda.reset_max_memory_allocated()


def _peak_megabytes():
    """Of tensors on the GPU; None on a CPU."""
    return round(paddle.device.cuda.max_memory_allocated() / 2**20) if is_gpu() else None
