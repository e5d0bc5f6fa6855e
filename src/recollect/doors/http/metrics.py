"""Metrics for Prometheus, also if several processes serve one address."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from recollect.models.outside import ColdStats, MirrorStatus
from recollect.models.recall import Status

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder where processes that serve together keep their counters; read when the library is imported."""
POOL_SECONDS = 1.0
REQUESTS = Counter("recollect_http_requests_total", "Requests answered.", ["method", "route", "status"])
REFUSED = Counter("recollect_http_refused_total", "Requests refused because the process was busy.")
LIMITED = Counter("recollect_http_limited_total", "Requests refused because a key or a tenant has reached its limit.")
HELD = Gauge("recollect_http_held", "Requests held back that came before their time.", multiprocess_mode="livesum")
SECONDS = Histogram(
    "recollect_http_request_seconds",
    "Time from the first byte in to the last byte out.",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)
RECALLS = Counter("recollect_recalls_total", "Recalls, contexts and blocks answered, by status.", ["status"])
LATE = Counter("recollect_channels_late_total", "Channels that did not answer in time, by channel.", ["channel"])
WAKING = Histogram(
    "recollect_cold_waking_seconds",
    "Time to bring a scope back from object storage, in this process.",
    buckets=(0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60),
)
POOL = Gauge("recollect_pool", "Connection pool counters.", ["counter", "shard"], multiprocess_mode="livesum")


TOO_LATE = "did not answer"
"""What a method says of a channel, or of an embedder, that was given up."""


class AnsweredRecall(Protocol):
    """The outcome of a recall: of a result, a context or a block."""

    @property
    def status(self) -> Status:
        """Return the status of the recall."""
        ...

    @property
    def methods(self) -> Mapping[str, str]:
        """Return how each channel searched, or why it did not."""
        ...


Counted = TypeVar("Counted", bound=AnsweredRecall)


def count_recall(answer: Counted) -> Counted:
    """Count how a recall went, and the channels that were given up."""
    RECALLS.labels(answer.status.value).inc()
    for channel, method in answer.methods.items():
        if TOO_LATE in method:
            LATE.labels(channel).inc()
    return answer


class PoolClock:
    """When the counters of the pool were last noted; each process notes its own."""

    noted_at = float("-inf")


class ReadFamilies(Collector):
    """Metrics that are computed for each request."""

    def __init__(self, *families: GaugeMetricFamily) -> None:
        self._families = families

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield each family."""
        return iter(self._families)


def gather_jobs(counts: Iterable[tuple[str, str, str, int]]) -> Iterator[GaugeMetricFamily]:
    """Yield how many jobs wait, run or have failed, by task and status; by shard if there are several."""
    says = "Jobs that wait, run or have failed, by task and status."
    family = GaugeMetricFamily("recollect_jobs", says, labels=["task", "status", "shard"])
    for shard, task, status, jobs in counts:
        family.add_metric([task, status, shard], jobs)
    yield family


def gather_lags(mirrors: Iterable[MirrorStatus]) -> Iterator[GaugeMetricFamily]:
    """Yield how far each mirror that answers is behind the record, and in how many scopes it lacks something."""
    labels, says = ["mirror", "shard"], "Scopes of which it lacks a change."
    lag = GaugeMetricFamily("recollect_mirror_lag_seconds", "Age of the oldest change it lacks.", labels=labels)
    behind = GaugeMetricFamily("recollect_mirror_scopes_behind", says, labels=labels)
    for each in mirrors:
        if each.state != "building":
            lag.add_metric([each.name, each.shard], each.lag_seconds)
            behind.add_metric([each.name, each.shard], each.behind)
    yield from (lag, behind)


def gather_cold(standing: ColdStats) -> Iterator[GaugeMetricFamily]:
    """Yield the numbers of scopes in object storage by tier, and the bytes of their objects."""
    scopes = GaugeMetricFamily("recollect_cold_scopes", "Scopes in object storage, or leaving.", labels=["tier"])
    scopes.add_metric(["cold"], standing.cold)
    scopes.add_metric(["leaving"], standing.leaving)
    yield scopes
    yield GaugeMetricFamily("recollect_cold_bytes", "Bytes of their objects.", value=standing.bytes)


def record_pool_stats(read: Callable[[], Mapping[str, Mapping[str, int]]], *, at_once: bool = False) -> None:
    """Record the counters of this process's pools by shard, at most once a second unless `at_once`."""
    now = time.monotonic()
    if at_once or now >= PoolClock.noted_at + POOL_SECONDS:
        PoolClock.noted_at = now
        for shard, counters in read().items():
            for counter, value in counters.items():
                POOL.labels(counter, shard).set(value)


def write_metrics(
    job_counts: Iterable[tuple[str, str, str, int]], mirrors: Iterable[MirrorStatus], cold: ColdStats
) -> bytes:
    """Write all that was counted, by every process that serves this address."""
    counted, read = REGISTRY, CollectorRegistry()
    if FOLDER_VARIABLE in os.environ:
        counted = CollectorRegistry()
        MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    read.register(ReadFamilies(*gather_jobs(job_counts), *gather_lags(mirrors), *gather_cold(cold)))
    return generate_latest(counted) + generate_latest(read)
