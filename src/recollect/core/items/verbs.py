"""The ways to use items, each of them a batch of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from recollect import models

if TYPE_CHECKING:
    from recollect.models.items import FoundItem, Item, ItemOperation, ItemResult, Path
    from recollect.models.memories import JSON, Embedding


class Putting(TypedDict, total=False):
    """Options of a put, apart from its name and its value."""

    text: str
    embedding: Embedding | None
    importance: float
    occurred_at: datetime | None
    expected: int | None
    memory: bool


class ItemVerbs(ABC):
    """The methods of anything that runs batches of operations on items."""

    __slots__ = ()

    @abstractmethod
    def batch(
        self, operations: Sequence[ItemOperation], *, idempotency_key: str = ""
    ) -> Coroutine[Any, Any, list[ItemResult]]:
        """Run operations in one transaction: all reads on the state before, then the writes in their order."""

    async def put(self, path: Path, key: str, value: Mapping[str, JSON], **given: Unpack[Putting]) -> Item:
        """Put a value under a name, replacing what is there; its text is also remembered, if it has one."""
        [put] = await self.batch([models.PutItem(path, key, value, **given)])
        return cast("Item", put)

    async def get(self, path: Path, key: str) -> Item | None:
        """Read the item of a name, if there is one."""
        [found] = await self.batch([models.GetItem(path, key)])
        return cast("Item | None", found)

    async def drop(self, path: Path, key: str, *, expected: int | None = None) -> bool:
        """Drop the item of a name with its memory; tell whether it was there."""
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
        """Find the items under a path: the newest first, or the nearest to a text or to a vector."""
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
        """List the paths that hold items, in their order; `*` in either part stands for any one segment."""
        [paths] = await self.batch([models.ListPaths(under, suffix, depth, limit, offset)])
        return cast("tuple[Path, ...]", paths)
