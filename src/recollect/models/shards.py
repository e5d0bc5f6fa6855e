"""The placement of tenants: shards, and which shard serves which buckets of a tenant."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from enum import StrEnum

FIRST_BUCKET, LAST_BUCKET = 0, 4095
OWN_BUCKET = -1
"""The bucket of data that belongs to a tenant but to no scope: keys, profiles, limits. The shard that serves it is its
home."""


class ShardState(StrEnum):
    """Whether new tenants are placed on a shard."""

    OPEN = "open"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The catalog that a server belongs to, and its number there."""

    catalog_id: str
    number: int

    def __str__(self) -> str:
        return f"server {self.number} of the catalog {self.catalog_id}"


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """The addresses of a shard: for the role of the service, directly without a pooler, and for the tables' owner."""

    service: str = field(repr=False)
    owner: str = field(repr=False)
    direct: str = field(default="", repr=False)
    identity: ServerIdentity | None = field(default=None, compare=False)
    """The identity that the server must have, if there are several servers."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several PostgreSQL servers, with its addresses."""

    id: int
    name: str
    address: str = field(repr=False)
    """The DSN of the service's role, without a password."""
    direct: str = field(default="", repr=False)
    """The same without a pooler, for listeners and workers; empty if there is no pooler."""
    state: ShardState = ShardState.OPEN
    catalog_id: str = ""

    @property
    def identity(self) -> ServerIdentity:
        """Return the identity that each connection must find on the server."""
        return ServerIdentity(self.catalog_id, self.id)

    def has_same_addresses(self, other: Shard) -> bool:
        """Return whether another entry names the same server at the same addresses."""
        return replace(self, state=other.state) == other


@dataclass(frozen=True, slots=True)
class BucketPlacement:
    """A range of a tenant's buckets, and the shard that serves it."""

    first_bucket: int
    last_bucket: int
    shard_id: int
    generation: int
    """Increased with every move: the shard refuses requests with an older generation."""


@dataclass(frozen=True, slots=True)
class TenantPlacement:
    """All placements of a tenant, which together contain every bucket once."""

    tenant_id: int
    placements: tuple[BucketPlacement, ...]
    """In the order of their buckets."""

    def find_placement(self, bucket: int) -> BucketPlacement:
        """Return the placement of a bucket."""
        place = bisect_right(self.placements, bucket, key=lambda each: each.first_bucket) - 1
        return self.placements[place]

    def is_as_new_as(self, known: TenantPlacement | None) -> bool:
        """Return whether these placements are not older than the known ones."""
        return known is None or self.generation >= known.generation

    @property
    def generation(self) -> int:
        """Return the highest generation of its placements."""
        return max(each.generation for each in self.placements)

    @property
    def home(self) -> int:
        """Return the shard of the data that belongs to no scope."""
        return self.placements[0].shard_id

    @property
    def shards(self) -> tuple[int, ...]:
        """List the shards with data of the tenant, its home first."""
        return tuple(dict.fromkeys(each.shard_id for each in self.placements))
