"""What the benches stand on: a server of their own, a space whose vectors are all given, and calls timed in turns."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from types import MappingProxyType

import numpy as np

from recollect import Recollect, Settings
from recollect.mind.service import Addresses
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare

DIMENSIONS = 384
OUT = Path(__file__).resolve().parent / "out"
LARGE_MACHINE: Mapping[str, str] = MappingProxyType(
    {"shared_buffers": "4GB", "maintenance_work_mem": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
)
ONE_PROCESS: Mapping[str, str] = MappingProxyType(
    {**LARGE_MACHINE, "shared_buffers": "1GB", "max_parallel_workers_per_gather": "0"}
)
"""Where processor time is counted: that of parallel workers would be missed."""
WARMING = 3
"""Calls before the first that counts."""


class NoEmbedder:
    """A space without a model: every vector is given, so that no model is measured."""

    model, dimensions = "bench@1", DIMENSIONS

    def reads(self, text: str) -> bool:
        """Read nothing."""
        return not text

    async def embed(self, texts: list[str]) -> np.ndarray:
        """Refuse: nothing here may embed."""
        raise AssertionError(f"the bench gives every vector itself, and {len(texts)} were asked for")

    embed_cues = embed

    async def close(self) -> None:
        """Do nothing."""


@asynccontextmanager
async def running(cluster: Cluster, database: str, **settings: dict[str, str]) -> AsyncIterator[Recollect]:
    """Open Recollect on a database of its own."""
    await ensure_database(cluster.dsn(), database)
    addresses = Addresses(cluster.dsn(database, "recollect_service"), cluster.dsn(database))
    await prepare(addresses, NoEmbedder())
    async with connected(Settings(request_timeout_seconds=120, **settings), addresses, None) as recollect:
        yield recollect


@contextmanager
def open_folder(purpose: str) -> Iterator[Path]:
    """Make a folder that the server's account can enter, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"recollect-{purpose}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def alternate(
    rounds: int, *calls: Callable[[int], Awaitable[object]], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Time calls in turns and return the median milliseconds of each."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + WARMING):
        for call, measured in zip(calls, times, strict=True):
            started = clock()
            await call(number)
            measured.append((clock() - started) * 1000)
    return [median(measured[WARMING:]) for measured in times]


def processor_seconds(process: int) -> float:
    """Say how long a process has been on a processor: what it does itself, however busy the machine is."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
