"""Prometheus metrics of the service; with several workers, each one reports the metrics of all."""

import os

import prometheus_client
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, multiprocess

from paddle_rope.tasks.serving.settings import METRICS_FOLDER

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
MODEL = ("model", "verb")

REQUESTS = Counter("paddle_rope_requests", "Requests; status 499: the client has left.", ["path", "status"])
REQUEST_SECONDS = Histogram(
    "paddle_rope_request_seconds", "From the head of a request to the end of its answer.", ["path"], buckets=SECONDS
)
TEXTS = Counter("paddle_rope_texts", "Texts (or pairs) answered.", MODEL)
BATCH_TEXTS = Histogram("paddle_rope_batch_texts", "Texts, pairs, or windows in a batch.", MODEL, buckets=SIZES)
BATCH_SECONDS = Histogram("paddle_rope_batch_seconds", "Time of a batch.", MODEL, buckets=SECONDS)
WAITING = Gauge("paddle_rope_waiting_texts", "Texts in the queue.", multiprocess_mode="livesum")
READY = Gauge("paddle_rope_ready_workers", "Workers that answer.", multiprocess_mode="livesum")


def exposition() -> tuple[bytes, str]:
    """All metrics in the format that Prometheus reads, and its content type."""
    registry = REGISTRY
    if METRICS_FOLDER in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
    return prometheus_client.generate_latest(registry), prometheus_client.CONTENT_TYPE_LATEST
