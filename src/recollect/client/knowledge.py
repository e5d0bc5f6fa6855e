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
        EntityPage,
        EntityType,
        Fact,
        FactPage,
        FactPath,
        GraphFormat,
        MergeProposalPage,
        Neighbors,
        NewFact,
        TimelinePage,
    )


class RemoteKnowledge(RemoteView):
    """The facts of one scope, on a server."""

    __slots__ = ()

    async def add(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """Add facts in one transaction. Known facts are recognized; replaced facts end."""
        answer: list[Fact] = await self.call("knowledge.add", facts=facts, idempotency_key=idempotency_key)
        return answer

    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a given time."""
        answer: Fact = await self.call("knowledge.end", fact_id=fact_id, at=at)
        return answer

    async def facts(
        self,
        entity: UUID | None = None,
        predicate: str = "",
        *,
        as_of: datetime | None = None,
        at: datetime | AnyTime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> FactPage:
        """Fetch one page of facts, as believed at `as_of` and true `at` a time; both are now by default.

        At `any` time there are also those that are over, and without `as_of` every version.
        """
        answer: FactPage = await self.call(
            "knowledge.facts", entity=entity, predicate=predicate, as_of=as_of, at=at, cursor=cursor, limit=limit
        )
        return answer

    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """List all versions of a fact, oldest first."""
        answer: list[Fact] = await self.call("knowledge.fact_versions", fact_id=fact_id)
        return answer

    async def entities(
        self,
        search: str = "",
        *,
        type: EntityType | None = None,  # noqa: A002 - its name
        meaning: str = "",
        as_of: datetime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> EntityPage:
        """List entities, or those most similar to a text."""
        answer: EntityPage = await self.call(
            "knowledge.entities", search=search, type=type, meaning=meaning, as_of=as_of, cursor=cursor, limit=limit
        )
        return answer

    async def entities_by_facts(
        self,
        search: str = "",
        *,
        type: EntityType | None = None,  # noqa: A002 - its name
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> EntityPage:
        """List entities by number of facts, most first."""
        answer: EntityPage = await self.call(
            "knowledge.entities_by_facts", search=search, type=type, cursor=cursor, limit=limit
        )
        return answer

    async def entity(self, entity_id: UUID, *, as_of: datetime | None = None) -> Entity:
        """Get an entity with its names and description."""
        answer: Entity = await self.call("knowledge.entity", entity_id=entity_id, as_of=as_of)
        return answer

    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Merge a duplicate entity into this one."""
        answer: Entity = await self.call("knowledge.merge", entity_id=entity_id, absorbed=absorbed)
        return answer

    async def proposed_merges(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposalPage:
        """List likely duplicate entities."""
        answer: MergeProposalPage = await self.call(
            "knowledge.proposed_merges", judge=judge, cursor=cursor, limit=limit
        )
        return answer

    async def split(self, entity_id: UUID) -> Entity:
        """Undo a merge."""
        answer: Entity = await self.call("knowledge.split", entity_id=entity_id)
        return answer

    async def neighbours(
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
            "knowledge.neighbours", entity_id=entity_id, hops=hops, beam=beam, as_of=as_of, at=at
        )
        return answer

    async def connections(
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
            "knowledge.connections", start=start, end=end, hops=hops, limit=limit, as_of=as_of, at=at
        )
        return answer

    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> TimelinePage:
        """List all versions of the facts about an entity in chronological order."""
        answer: TimelinePage = await self.call(
            "knowledge.timeline", entity_id=entity_id, as_of=as_of, cursor=cursor, limit=limit
        )
        return answer

    async def export(
        self,
        format: GraphFormat | str = "graphml",  # noqa: A002 - its name
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Export facts and entities as GraphML or Cypher (streamed)."""
        async for piece in load("recollect.client.special").export(self, format, as_of=as_of, at=at):
            yield piece
