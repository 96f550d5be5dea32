"""The numbers at /metrics, in the text format of Prometheus, with those of the process: memory, time, open files."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
IMAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Each service counts for itself: a process may hold two, as the tests do."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.seconds = Histogram(
            "groundup_request_seconds",
            "From the first byte of a request to the end of its answer.",
            ["address", "status"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "groundup_batch_images",
            "Images that were computed together.",
            ["model"],
            buckets=IMAGES,
            registry=self.registry,
        )
        self.queue = Gauge(
            "groundup_queue_requests", "Requests that have begun and are not answered yet.", registry=self.registry
        )
        self.refusals = Counter(
            "groundup_refusals",
            "Requests that were refused: a full queue, a limit.",
            ["reason"],
            registry=self.registry,
        )

    def text(self) -> bytes:
        return generate_latest(self.registry)
