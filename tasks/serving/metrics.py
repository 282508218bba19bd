"""What the service counts, for Prometheus; with several workers each one answers for all."""

from __future__ import annotations

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client at its import: where workers put their numbers together
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = Counter("paddle_rope_requests", "Requests; status 499: the client has left.", ["path", "status"])
REQUEST_SECONDS = Histogram(
    "paddle_rope_request_seconds", "From the head of a request to the end of its answer.", ["path"], buckets=SECONDS
)
TEXTS = Counter("paddle_rope_texts", "Texts (or pairs) answered.", ["model", "verb"])
BATCH_TEXTS = Histogram(
    "paddle_rope_batch_texts",
    "Texts, pairs, or windows of long texts computed together.",
    ["model", "verb"],
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
)
BATCH_SECONDS = Histogram("paddle_rope_batch_seconds", "Time of a batch.", ["model", "verb"], buckets=SECONDS)
WAITING = Gauge("paddle_rope_waiting_texts", "Texts in the queue.", multiprocess_mode="livesum")
READY = Gauge("paddle_rope_ready_workers", "Workers that answer.", multiprocess_mode="livesum")


def count_batch(work, pieces, seconds):
    """Note a batch of a :class:`tasks.serving.models.Work`."""
    labels = (work.model, work.verb)
    BATCH_TEXTS.labels(*labels).observe(pieces)
    BATCH_SECONDS.labels(*labels).observe(seconds)


def exposition() -> tuple[bytes, str]:
    """All metrics in the format that Prometheus reads, and its content type."""
    registry = REGISTRY
    if FOLDER in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST
