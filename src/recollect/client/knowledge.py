"""What is known in one scope as one object: state facts, and read facts and entities as of any moment: on a server.

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
        Entities,
        Entity,
        EntityType,
        Fact,
        FactPath,
        Facts,
        GraphFormat,
        MergeProposals,
        Neighbourhood,
        NewFact,
        Timeline,
    )


class RemoteKnowledge(RemoteView):
    """What is known in one scope, on a server."""

    __slots__ = ()

    async def add(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """State one or many facts in one transaction; what is known already is recognised, what they replace ends."""
        answer: list[Fact] = await self.call("knowledge.add", facts=facts, idempotency_key=idempotency_key)
        return answer

    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a moment, by a further version of it."""
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
    ) -> Facts:
        """Fetch one page of facts, as believed at `as_of` and true `at` a moment; both are now by default.

        At `any` time there are also those that are over, and without `as_of` every version.
        """
        answer: Facts = await self.call(
            "knowledge.facts", entity=entity, predicate=predicate, as_of=as_of, at=at, cursor=cursor, limit=limit
        )
        return answer

    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """Fetch every version of a fact, oldest first."""
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
    ) -> Entities:
        """Fetch one page of entities, or the nearest to a text in meaning; as they were merged `as_of` a moment."""
        answer: Entities = await self.call(
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
    ) -> Entities:
        """Fetch one page of the entities that facts speak of, those first that most do, each with how many."""
        answer: Entities = await self.call(
            "knowledge.entities_by_facts", search=search, type=type, cursor=cursor, limit=limit
        )
        return answer

    async def entity(self, entity_id: UUID, *, as_of: datetime | None = None) -> Entity:
        """Fetch one entity with all its names, and its newest description; also one that another has absorbed."""
        answer: Entity = await self.call("knowledge.entity", entity_id=entity_id, as_of=as_of)
        return answer

    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Let an entity absorb another that is the same: its names, and its facts in further versions."""
        answer: Entity = await self.call("knowledge.merge", entity_id=entity_id, absorbed=absorbed)
        return answer

    async def proposed_merges(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposals:
        """List which entities may be one, page by page; with `judge` the chat model is asked which surely are."""
        answer: MergeProposals = await self.call("knowledge.proposed_merges", judge=judge, cursor=cursor, limit=limit)
        return answer

    async def split(self, entity_id: UUID) -> Entity:
        """Take back that an entity was absorbed, with the facts that it had."""
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
    ) -> Neighbourhood:
        """Return which entities facts lead to from one, in up to 3 hops along at most `beam` facts each."""
        answer: Neighbourhood = await self.call(
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
        """Return how two entities are connected by up to 6 facts, the shortest path first."""
        answer: list[FactPath] = await self.call(
            "knowledge.connections", start=start, end=end, hops=hops, limit=limit, as_of=as_of, at=at
        )
        return answer

    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> Timeline:
        """Fetch one page of all versions of the facts about an entity, in the order in which they came true."""
        answer: Timeline = await self.call(
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
        """Export the scope's facts and their entities as text, piece by piece, as long as it takes."""
        async for piece in load("recollect.client.special").export(self, format, as_of=as_of, at=at):
            yield piece
