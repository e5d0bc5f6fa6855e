"""Where tenants lie: shards, and which of them serves which buckets of a tenant."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

FIRST_BUCKET, LAST_BUCKET = 0, 4095
OWN_BUCKET = -1
"""Stands for what belongs to a tenant and to no scope: keys, profiles, limits. The shard that serves it is its home."""


class ShardState(StrEnum):
    """Whether new tenants are placed on a shard."""

    OPEN = "open"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """Where a shard is reached: by the service's role, past a pooler if there is one, and by the tables' owner."""

    service: str = field(repr=False)
    owner: str = field(repr=False)
    direct: str = field(default="", repr=False)
    replicas: tuple[str, ...] = field(default=(), repr=False)
    """Its replicas, by the service's role."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One PostgreSQL server of several, and where it is reached."""

    id: int
    name: str
    address: str = field(repr=False)
    """The DSN of the service's role; it may hold a password."""
    direct: str = field(default="", repr=False)
    """The same past a pooler, for whoever listens or works; empty where there is no pooler."""
    state: ShardState = ShardState.OPEN
    replicas: tuple[str, ...] = field(default=(), repr=False)
    """The DSNs of its replicas, for reads."""

    def is_reached_like(self, other: Shard) -> bool:
        """Tell whether another entry names the same addresses."""
        return (self.address, self.direct, self.replicas) == (other.address, other.direct, other.replicas)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far the log of a server had come when a write was durable: a replica that has replayed it has the write."""

    shard: int
    """The number of the server; 0 where it is the only one."""
    timeline: int
    """Counted up when a replica becomes the primary: logs of two timelines cannot be compared."""
    lsn: int

    def __str__(self) -> str:
        return f"{self.shard}.{self.timeline}.{self.written_lsn}"

    @property
    def written_lsn(self) -> str:
        """Write the place in the log as PostgreSQL does."""
        return f"{self.lsn >> 32:X}/{self.lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True, slots=True)
class PlacedBuckets:
    """A range of a tenant's buckets, and the shard that serves it."""

    first_bucket: int
    last_bucket: int
    shard_id: int
    generation: int
    """Counted up with every move: the shard refuses who goes by an earlier one."""


@dataclass(frozen=True, slots=True)
class PlacedTenant:
    """All placements of a tenant: together they hold every bucket once."""

    tenant_id: int
    placements: tuple[PlacedBuckets, ...]
    """In the order of their buckets."""

    def find(self, bucket: int) -> PlacedBuckets:
        """Find who serves a bucket."""
        place = bisect_right(self.placements, bucket, key=lambda each: each.first_bucket) - 1
        return self.placements[place]

    @property
    def home(self) -> int:
        """Return the shard that has what belongs to no scope."""
        return self.placements[0].shard_id

    @property
    def shards(self) -> tuple[int, ...]:
        """List the shards that have something of the tenant, its home first."""
        return tuple(dict.fromkeys(each.shard_id for each in self.placements))
