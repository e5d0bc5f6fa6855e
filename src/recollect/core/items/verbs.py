"""The single operations on items, each a batch of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from recollect import models
from recollect.misspelt import name_arguments

if TYPE_CHECKING:
    from recollect.models.items import FoundItem, Item, ItemOperation, ItemResult, Path
    from recollect.models.memories import JSON, Embedding


class Putting(TypedDict, total=False):
    """The options of a put, except name and value."""

    text: str
    embedding: Embedding | None
    importance: float
    occurred_at: datetime | None
    expected: int | None
    memory: bool


@name_arguments
class ItemVerbs(ABC):
    """The methods of anything that runs batches of operations on items."""

    __slots__ = ()

    @abstractmethod
    def batch(
        self, operations: Sequence[ItemOperation], *, idempotency_key: str = ""
    ) -> Coroutine[Any, Any, list[ItemResult]]:
        """Run a batch of key-value operations in one transaction. Reads see the state before the writes."""

    async def put(self, path: Path, key: str, value: Mapping[str, JSON], **given: Unpack[Putting]) -> Item:
        """Store a value under a name, and replace the previous one; a text is also remembered."""
        [put] = await self.batch([models.PutItem(path, key, value, **given)])
        return cast("Item", put)

    async def get(self, path: Path, key: str) -> Item | None:
        """Return the item of a name, or None."""
        [found] = await self.batch([models.GetItem(path, key)])
        return cast("Item | None", found)

    async def drop(self, path: Path, key: str, *, expected: int | None = None) -> bool:
        """Delete the item of a name with its memory; return whether it existed."""
        [dropped] = await self.batch([models.DropItem(path, key, expected)])
        return bool(dropped)

    async def find(
        self,
        under: Path = (),
        *,
        where: Mapping[str, JSON] | None = None,
        text: str = "",
        embedding: Embedding | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> tuple[FoundItem, ...]:
        """Find the items under a path: the newest first, or the nearest to a text or vector."""
        [found] = await self.batch([models.FindItems(under, where or {}, text, embedding, limit, offset)])
        return cast("tuple[FoundItem, ...]", found)

    async def paths(
        self,
        under: Path = (),
        suffix: Path = (),
        *,
        depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> tuple[Path, ...]:
        """List the paths that contain items, in order; `*` matches any one segment."""
        [paths] = await self.batch([models.ListPaths(under, suffix, depth, limit, offset)])
        return cast("tuple[Path, ...]", paths)
