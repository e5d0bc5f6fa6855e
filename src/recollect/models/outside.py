"""Values outside the database: mirrors in other engines, scopes in object storage, backups, model files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """Status of one generation of a mirror, over all tenants."""

    name: str
    generation: int
    """The number of the generation."""
    state: str
    """`ready` answers, `building` is being filled, `stale` was filled from another record or embedding space."""
    scopes: int
    """Number of scopes that it contains."""
    behind: int
    """Number of its scopes that lack a change."""
    lag_seconds: float
    """The age of the oldest missing change."""
    answers: bool | None = None
    """Whether the engine answers; None if this process has no address for it."""
    shard: str = ""
    """Name of its server, if there are several."""


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """The differences between a mirror and the record, by the checksums of their rows."""

    scopes: int
    missing: int
    """Rows that were missing in the mirror."""
    changed: int
    """Rows that were different in the mirror."""
    extra: int
    """Rows that only the mirror had."""
    mended: bool

    @property
    def differing(self) -> int:
        """Return the number of rows that differed."""
        return self.missing + self.changed + self.extra


class StorageTier(StrEnum):
    """The location of a scope's rows."""

    HOT = "hot"
    LEAVING = "leaving"
    """Still in the database; they leave unless the scope is used."""
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class ScopeLocation:
    """A scope of a tenant, and the location of its rows."""

    scope_id: int
    agent: str
    user: str
    memories: int
    tier: StorageTier
    since: datetime | None


@dataclass(frozen=True, slots=True)
class ColdStats:
    """Number of cold scopes, over all tenants."""

    cold: int = 0
    leaving: int = 0
    bytes: int = 0
    """The size of the objects of cold scopes."""
    unneeded: int = 0
    """Objects that must still be removed, or are being uploaded."""


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of moving scopes to or from object storage."""

    moved: int = 0
    skipped: int = 0
    """Scopes that were used, changed or busy during the move, or were in the wrong place."""
    bytes: int = 0
    """The size of the objects."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A restored database that can be used again."""

    logged: int = 0
    """Number of log entries that are newer than the backup."""
    applied: int = 0
    """Number of these entries that had something to erase."""
    finished: int = 0
    """Number of scopes with an unfinished purge, which was finished."""
    incarnation: str = ""
    """The new incarnation."""
    aside: str = ""
    """The folder that the files of the replaced server were moved to."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """An embedding model that Recollect knows, before its files are downloaded."""

    name: str
    repository: str
    """Its place on a hub, as `owner/name`."""
    family: str
    dimensions: int
    languages: str
    """`en`, `zh`, or `many`."""
    licence: str
    megabytes: int
    """The approximate size of all its files."""
    pooling: str
    """Used if the model's files do not specify it."""
    graph: str = "onnx/model.onnx"
    more: tuple[str, ...] = ()
    """Further files that the graph needs."""
    cue_prefix: str = ""
    memory_prefix: str = ""
    revision: str = ""
    """Empty = the newest revision."""
    sha256: Mapping[str, str] = field(default_factory=dict[str, str])
    """Checksums by path, if known."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    path: str
    size: int | None
    """None if the source does not give it."""
    sha256: str = ""
    """Empty if it is not known yet."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model, with their source and license."""

    name: str
    repository: str
    source: str
    """The address or folder of the files."""
    revision: str
    licence: str
    files: tuple[ModelFile, ...]
    pinned: bool = False
    """Whether files with other checksums are refused from now on."""

    @property
    def size(self) -> int:
        """Return the sum of the known sizes."""
        return sum(each.size or 0 for each in self.files)
