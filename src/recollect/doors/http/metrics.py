"""What is counted for Prometheus, also where several processes serve one address."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from recollect.models.outside import ColdStanding, MirrorStatus
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
READS = Counter(
    "recollect_reads_total", "Reads where there are replicas, by route and by who has read.", ["route", "server"]
)
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
    """What tells how a recall went: a recollection, a context or a block."""

    @property
    def status(self) -> Status:
        """Say how it went."""
        ...

    @property
    def methods(self) -> Mapping[str, str]:
        """Say how each channel searched, or why it did not."""
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


class JobCounts(Collector):
    """How many jobs wait, run or have failed: read for each request."""

    def __init__(self, counts: Iterable[tuple[str, str, str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one number for each task and status; of each shard, where there are several."""
        says = "Jobs that wait, run or have failed, by task and status."
        family = GaugeMetricFamily("recollect_jobs", says, labels=["task", "status", "shard"])
        for shard, task, status, jobs in self._counts:
            family.add_metric([task, status, shard], jobs)
        yield family


class MirrorLags(Collector):
    """How far mirrors are behind the record: read for each request."""

    def __init__(self, mirrors: Iterable[MirrorStatus]) -> None:
        self._mirrors = mirrors

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the lag of each mirror that answers, and in how many scopes it lacks something."""
        labels, says = ["mirror", "shard"], "Scopes of which it lacks a change."
        lag = GaugeMetricFamily("recollect_mirror_lag_seconds", "Age of the oldest change it lacks.", labels=labels)
        behind = GaugeMetricFamily("recollect_mirror_scopes_behind", says, labels=labels)
        for each in self._mirrors:
            if each.state != "building":
                lag.add_metric([each.name, each.shard], each.lag_seconds)
                behind.add_metric([each.name, each.shard], each.behind)
        yield lag
        yield behind


class ColdCounts(Collector):
    """How many scopes lie in object storage: read for each request."""

    def __init__(self, standing: ColdStanding) -> None:
        self._standing = standing

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers of scopes by tier, and the bytes of objects."""
        scopes = GaugeMetricFamily("recollect_cold_scopes", "Scopes in object storage, or leaving.", labels=["tier"])
        scopes.add_metric(["cold"], self._standing.cold)
        scopes.add_metric(["leaving"], self._standing.leaving)
        yield scopes
        yield GaugeMetricFamily("recollect_cold_bytes", "Bytes of their objects.", value=self._standing.bytes)


def note_pool(read: Callable[[], Mapping[str, Mapping[str, int]]], *, at_once: bool = False) -> None:
    """Note the counters of this process's pools by shard, at most once a second unless told otherwise."""
    now = time.monotonic()
    if at_once or now >= PoolClock.noted_at + POOL_SECONDS:
        PoolClock.noted_at = now
        for shard, counters in read().items():
            for counter, value in counters.items():
                POOL.labels(counter, shard).set(value)


def write_metrics(
    job_counts: Iterable[tuple[str, str, str, int]], mirrors: Iterable[MirrorStatus], cold: ColdStanding
) -> bytes:
    """Write all that was counted, by every process that serves this address."""
    counted, read = REGISTRY, CollectorRegistry()
    if FOLDER_VARIABLE in os.environ:
        counted = CollectorRegistry()
        MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    read.register(JobCounts(job_counts))
    read.register(MirrorLags(mirrors))
    read.register(ColdCounts(cold))
    return generate_latest(counted) + generate_latest(read)
