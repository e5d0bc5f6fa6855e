"""What lies outside the record: mirrors in other engines, scopes in object storage, backups, and files of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How one filling of a mirror stands over all tenants."""

    name: str
    generation: int
    """The number of the filling."""
    state: str
    """`ready` answers, `building` is filled beside it, `stale` was filled from another record or embedding space."""
    scopes: int
    """How many scopes it holds."""
    behind: int
    """In how many of them it lacks a change."""
    lag_seconds: float
    """The age of the oldest change that it lacks."""
    answers: bool | None = None
    """Whether the engine answers; None where this process has no address of it."""
    shard: str = ""
    """Which server it is of, where there are several."""


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """How a mirror compares with the record, by the checksums of its rows."""

    scopes: int
    missing: int
    """Rows that it lacked."""
    changed: int
    """Rows that it had otherwise."""
    extra: int
    """Rows that it should not have had."""
    mended: bool

    @property
    def differing(self) -> int:
        """Count the rows that were not equal."""
        return self.missing + self.changed + self.extra


class Tier(StrEnum):
    """Where the rows of a scope are."""

    HOT = "hot"
    LEAVING = "leaving"
    """Still in the database; they leave unless somebody asks for the scope."""
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class FoundScope:
    """A scope of a tenant, and where its rows are."""

    scope_id: int
    agent: str
    user: str
    memories: int
    tier: Tier
    since: datetime | None


@dataclass(frozen=True, slots=True)
class ColdStanding:
    """How many scopes of all tenants are cold."""

    cold: int = 0
    leaving: int = 0
    bytes: int = 0
    """The size of the objects of those that are cold."""
    unneeded: int = 0
    """Objects that are still to be removed, or on their way."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of scopes that were to leave or to come back."""

    moved: int = 0
    skipped: int = 0
    """Asked for, written to or busy meanwhile, or not where they would have to be."""
    bytes: int = 0
    """The size of the objects."""


class BackupKind(StrEnum):
    """How a backup was made."""

    BASE = "base"
    """All files of the server, by pg_basebackup."""
    DUMP = "dump"
    """One database, by pg_dump."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made, or looked through."""

    name: str
    """Where it is."""
    kind: BackupKind
    made_at: datetime
    bytes: int
    rows: int
    """How many rows it has in all tables."""
    indexes: int = 0
    """How many indexes were checked."""
    compared: bool = True
    """Whether the rows were compared with those of the server, which stood still meanwhile."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reapplied:
    """What became of erasures from the log in a restored record."""

    logged: int = 0
    """How many entries were newer than the backup."""
    applied: int = 0
    """How many of them had something to erase."""
    finished: int = 0
    """How many scopes had a purge under way, which was finished."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A record that was restored and may be used again."""

    made_at: datetime | None
    """When the backup was begun; None where it was restored by other means."""
    incarnation: str
    """The new one."""
    reapplied: Reapplied


@dataclass(frozen=True, slots=True)
class KnownModel:
    """An embedding model that Recollect can name: what is known of it before its files are there."""

    name: str
    repository: str
    """Where it is on a hub, as `owner/name`."""
    family: str
    dimensions: int
    languages: str
    """`en`, `zh`, or `many`."""
    licence: str
    megabytes: int
    """About how large its files are together."""
    pooling: str
    """Used where the model's own files do not say it."""
    graph: str = "onnx/model.onnx"
    more: tuple[str, ...] = ()
    """Files beside the graph that it reads."""
    cue_prefix: str = ""
    memory_prefix: str = ""
    revision: str = ""
    """Empty = the newest."""
    sha256: Mapping[str, str] = field(default_factory=dict[str, str])
    """By path, where it is known for certain."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    path: str
    size: int | None
    """None where the source does not say it."""
    sha256: str = ""
    """Empty where it is not known yet."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model, where they come from, and under which licence."""

    name: str
    repository: str
    source: str
    """The address or folder."""
    revision: str
    licence: str
    files: tuple[ModelFile, ...]
    pinned: bool = False
    """Whether other checksums are refused from now on."""

    @property
    def size(self) -> int:
        """Add up the sizes that are known."""
        return sum(each.size or 0 for each in self.files)
