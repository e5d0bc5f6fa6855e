"""Values of items: JSON values under the caller's own names, and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from recollect.models.memories import JSON, Embedding

Path: TypeAlias = tuple[str, ...]
"""Where an item lies: 1 to 16 segments, each of 1 to 200 characters."""


@dataclass(frozen=True, slots=True)
class Item:
    """A JSON value under a path and a key of the caller's own."""

    path: Path
    key: str
    value: Mapping[str, JSON]
    text: str
    memory_id: UUID | None
    """The memory that is made of its text, if there is one."""
    revision: int
    """How often it was put since it was created."""
    created_at: datetime
    updated_at: datetime
    embedding: tuple[float, ...] = ()
    """Its own vector, scaled to length 1; only if a get asks for it."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that was looked for; with its cosine similarity where it was searched by meaning."""

    item: Item
    score: float | None = None


@dataclass(frozen=True, slots=True)
class GetItem:
    """Read one item, if it is there."""

    path: Path
    key: str
    vector: bool = False
    """Whether to return its own vector."""


@dataclass(frozen=True, slots=True)
class PutItem:
    """Put an item under its name, replacing what is there."""

    path: Path
    key: str
    value: Mapping[str, JSON]
    text: str = ""
    """The text to remember; none if empty."""
    embedding: Embedding | None = None
    """The caller's own vector, of any dimensions; compared only with vectors of as many."""
    importance: float | None = None
    """1 (mundane) to 10 (life-changing); what the rules say if None."""
    occurred_at: datetime | None = None
    expected: int | None = None
    """The revision that must be there, 0 for no item; any if None."""
    memory: bool = True
    """Whether the text becomes a memory; if not, it is only stored."""


@dataclass(frozen=True, slots=True)
class DropItem:
    """Drop one item, if it is there."""

    path: Path
    key: str
    expected: int | None = None
    """The revision that must be there, 0 for no item; any if None."""


@dataclass(frozen=True, slots=True)
class FindItems:
    """Find the items under a path: the newest, or the nearest to a text or to a vector."""

    under: Path = ()
    where: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """Conditions on fields of the value: a value, or operators such as `{"$gt": 4}`."""
    text: str = ""
    embedding: Embedding | None = None
    limit: int = 10
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ListPaths:
    """List the paths that hold items, in their order; `*` stands for any one segment."""

    under: Path = ()
    suffix: Path = ()
    depth: int | None = None
    """To how many segments paths are cut; not at all if None."""
    limit: int = 100
    offset: int = 0


ItemRead: TypeAlias = GetItem | FindItems | ListPaths
ItemWrite: TypeAlias = PutItem | DropItem
ItemOperation: TypeAlias = ItemRead | ItemWrite
ItemResult: TypeAlias = Item | bool | tuple[FoundItem, ...] | tuple[Path, ...] | None
"""Of a get the item or None; of a put the item; of a drop whether it was there; of a find and a list what there is."""
