"""The facts of one scope as one object: add facts, and read facts and entities as of any time: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.knowledge import (
        AnyTime,
        Entity,
        EntityOrder,
        EntityPage,
        EntityType,
        Fact,
        FactPage,
        FactPath,
        GraphFormat,
        MergeProposalPage,
        Neighbors,
        NewFact,
    )


class RemoteKnowledge(RemoteView):
    """The facts of one scope, on a server."""

    __slots__ = ()

    async def add(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """Add facts in one transaction. Known facts are recognized; replaced facts end."""
        answer: list[Fact] = await self.call("knowledge.add", facts=facts, idempotency_key=idempotency_key)
        return answer

    async def end(self, fact_id: UUID, invalid_at: datetime) -> Fact:
        """End a fact at a given time."""
        answer: Fact = await self.call("knowledge.end", fact_id=fact_id, invalid_at=invalid_at)
        return answer

    async def facts(
        self,
        about: UUID | None = None,
        predicate: str = "",
        *,
        as_of: datetime | None = None,
        at: datetime | AnyTime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> FactPage:
        """Fetch one page of facts, as believed at `as_of` and true `at` a time; both are now by default.

        They are about an entity, or versions of one fact, if `about` is its ID. At `any` time there are also those that
        are over, and without `as_of` every version: of an entity's facts by `valid_at`, else the oldest first.
        """
        answer: FactPage = await self.call(
            "knowledge.facts", about=about, predicate=predicate, as_of=as_of, at=at, cursor=cursor, limit=limit
        )
        return answer

    async def entities(
        self,
        search: str = "",
        *,
        ids: Sequence[UUID] | None = None,
        type: EntityType | None = None,
        order: EntityOrder | str = "age",
        as_of: datetime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> EntityPage:
        """List entities whose name contains `search`: the oldest first, or those with most `facts`.

        In the orders `meaning` and `words`, list those most similar to `search`, on one page. With at most 200 `ids`,
        list exactly these, in their order, also merged ones; unknown ones are omitted.
        """
        answer: EntityPage = await self.call(
            "knowledge.entities",
            search=search,
            ids=ids,
            type=type,
            order=order,
            as_of=as_of,
            cursor=cursor,
            limit=limit,
        )
        return answer

    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Merge a duplicate entity into this one."""
        answer: Entity = await self.call("knowledge.merge", entity_id=entity_id, absorbed=absorbed)
        return answer

    async def duplicates(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposalPage:
        """List likely duplicate entities."""
        answer: MergeProposalPage = await self.call("knowledge.duplicates", judge=judge, cursor=cursor, limit=limit)
        return answer

    async def split(self, entity_id: UUID) -> Entity:
        """Undo a merge."""
        answer: Entity = await self.call("knowledge.split", entity_id=entity_id)
        return answer

    async def neighbors(
        self,
        entity_id: UUID,
        hops: int = 1,
        beam: int = 100,
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> Neighbors:
        """List entities within 3 hops."""
        answer: Neighbors = await self.call(
            "knowledge.neighbors", entity_id=entity_id, hops=hops, beam=beam, as_of=as_of, at=at
        )
        return answer

    async def paths(
        self,
        start: UUID,
        end: UUID,
        hops: int = 4,
        limit: int = 10,
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[FactPath]:
        """List paths of up to 6 facts between two entities, shortest first."""
        answer: list[FactPath] = await self.call(
            "knowledge.paths", start=start, end=end, hops=hops, limit=limit, as_of=as_of, at=at
        )
        return answer

    async def export(
        self,
        format: GraphFormat | str = "graphml",
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Export facts and entities as GraphML or Cypher (streamed)."""
        async for piece in load("recollect.client.special").export(self, format, as_of=as_of, at=at):
            yield piece
