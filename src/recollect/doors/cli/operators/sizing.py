"""The needs of an installation, computed from measured bytes, WAL and processor time per memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

# docs/reference/figures.md, "What a server bears": bench/growth.py --memories 100000.
MEMORY_BYTES = 4_156
"""A memory on disk, with its indexes and a vector of `MEASURED_DIMENSIONS`."""
VECTOR_BYTES = 2_498
"""Of them those of the vector, which grow with its dimensions; the log has as many of it."""
LOG_BYTES, LOG_IMAGES = 8_785, 2_902
"""Write-ahead log of a memory, and of pages that are the first since a checkpoint."""
MEASURED_DIMENSIONS = 384
# docs/reference/figures.md, "What a server bears": bench/load.py and bench/writers.py, milliseconds of a core.
RECALL_DATABASE, RECALL_PROGRAM = 2.7, 7.2
"""A recall in a scope of 100 memories, the vector given."""
TURN_DATABASE, TURN_PROGRAM = 1.6, 2.3
"""A turn of two messages."""
LOCAL_MODEL = 8.0
"""What the local model adds to a recall or a written memory: 7 to 9 ms of the program."""

# docs/explanation/scale.md: the server, and the traffic where none is given.
SERVER_DISK, SERVER_RAM, SERVER_CORES = 2e12, 128e9, 16
FILLED, BUSY = 0.7, 0.5
"""How full a disk may be, and how busy cores."""
IN_USE, PEAK = 0.1, 5
"""The share of the memories that are in use at the same time; and the peak by the mean."""
SCOPE, ACTIVE, RECALLS, TURNS = 100, 0.1, 20, 5
"""Memories of a scope, the share of scopes that are active on a day, and what each of these asks."""
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Workload:
    """What an installation is to hold and to do; rates are those of the peak."""

    memories: int
    tenants: int
    dimensions: int
    writes: float
    recalls: float


@dataclass(frozen=True, slots=True)
class SizingResult:
    """Needs of an installation: bytes of one copy, WAL per day, RAM and cores."""

    memory_bytes: int
    disk_bytes: int
    disk_to_buy_bytes: int
    log_bytes_a_day: int
    ram_bytes: int
    database_cores: int
    api_cores: int
    local_model_cores: int
    largest_tenant_bytes: int
    shards: int


def default_write_rate(memories: int) -> float:
    """Return the default rate of memories written per second at the peak."""
    return memories / SCOPE * ACTIVE * TURNS * 2 * PEAK / DAY


def default_recall_rate(memories: int) -> float:
    """Return the default rate of recalls per second at the peak."""
    return memories / SCOPE * ACTIVE * RECALLS * PEAK / DAY


def compute(load: Workload) -> SizingResult:
    """Compute what a load needs."""
    wider = load.dimensions / MEASURED_DIMENSIONS - 1
    memory = MEMORY_BYTES + VECTOR_BYTES * wider
    log = LOG_BYTES + LOG_IMAGES + VECTOR_BYTES * wider
    disk, ram = load.memories * memory, load.memories * memory * IN_USE
    program = (load.recalls * RECALL_PROGRAM + load.writes * TURN_PROGRAM / 2) / 1000
    database = (load.recalls * RECALL_DATABASE + load.writes * TURN_DATABASE / 2) / 1000 / BUSY
    return SizingResult(
        memory_bytes=round(memory),
        disk_bytes=round(disk),
        disk_to_buy_bytes=round(disk / FILLED),
        log_bytes_a_day=round(load.writes / PEAK * DAY * log),
        ram_bytes=round(ram),
        database_cores=max(1, ceil(database)),
        api_cores=max(1, ceil(program / BUSY)),
        local_model_cores=ceil((load.recalls + load.writes) * LOCAL_MODEL / 1000 / BUSY),
        largest_tenant_bytes=round(disk * share_of_largest(load.tenants)),
        shards=ceil(max(disk / (SERVER_DISK * FILLED), ram / SERVER_RAM, database / SERVER_CORES, 1)),
    )


def share_of_largest(tenants: int) -> float:
    """Return the share of the largest tenant if sizes follow Zipf's law with the exponent 1."""
    return 1 / sum(1 / rank for rank in range(1, tenants + 1))
