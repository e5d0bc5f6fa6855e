"""Values of items: JSON values under the caller's names, and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from recollect.models.memories import JSON, Embedding

Path: TypeAlias = tuple[str, ...]
"""The path of an item: 1 to 16 segments of 1 to 200 characters each."""


@dataclass(frozen=True, slots=True)
class Item:
    """A JSON value under the caller's path and key."""

    path: Path
    key: str
    value: Mapping[str, JSON]
    text: str
    memory_id: UUID | None
    """The memory of its text, if there is one."""
    revision: int
    """How often it was put since its creation."""
    created_at: datetime
    updated_at: datetime
    embedding: tuple[float, ...] = ()
    """The item's vector, scaled to length 1; only set if a get requests it."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item of a search, with its cosine similarity for a search by meaning."""

    item: Item
    score: float | None = None


@dataclass(frozen=True, slots=True)
class GetItem:
    """Read one item, if it exists."""

    path: Path
    key: str
    vector: bool = False
    """Whether to return the item's vector."""


@dataclass(frozen=True, slots=True)
class PutItem:
    """Store an item under its name, and replace the previous one."""

    path: Path
    key: str
    value: Mapping[str, JSON]
    text: str = ""
    """The text to remember; nothing if empty."""
    embedding: Embedding | None = None
    """The caller's vector, of any dimensions; compared only with vectors of the same size."""
    importance: float | None = None
    """1 (mundane) to 10 (life-changing). None = rated by rules."""
    occurred_at: datetime | None = None
    expected: int | None = None
    """The required present revision, 0 if the item must not exist; any if None."""
    memory: bool = True
    """Whether the text becomes a memory; if not, the text is only stored."""


@dataclass(frozen=True, slots=True)
class DropItem:
    """Delete one item, if it exists."""

    path: Path
    key: str
    expected: int | None = None
    """The required present revision, 0 if the item must not exist; any if None."""


@dataclass(frozen=True, slots=True)
class FindItems:
    """Find the items under a path: the newest, or the nearest to a text or vector."""

    under: Path = ()
    where: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """Conditions on fields of the value: a value, or operators such as `{"$gt": 4}`."""
    text: str = ""
    embedding: Embedding | None = None
    limit: int = 10
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ListPaths:
    """List the paths that contain items, in order; `*` matches any one segment."""

    under: Path = ()
    suffix: Path = ()
    depth: int | None = None
    """Maximum number of segments; paths are cut and listed once. None = not cut."""
    limit: int = 100
    offset: int = 0


ItemRead: TypeAlias = GetItem | FindItems | ListPaths
ItemWrite: TypeAlias = PutItem | DropItem
ItemOperation: TypeAlias = ItemRead | ItemWrite
ItemResult: TypeAlias = Item | bool | tuple[FoundItem, ...] | tuple[Path, ...] | None
"""For a get the item or None; for a put the item; for a drop whether it existed; for a find or list the results."""
