"""What is known in one scope as one object: state facts, and read facts and entities as of any moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.models.knowledge import (
    Entities,
    Entity,
    EntityType,
    Fact,
    FactPath,
    Facts,
    GraphFormat,
    Neighbourhood,
    NewFact,
    Timeline,
)
from recollect.models.recall import Times
from recollect.models.service import Right
from recollect.store.knowledge.facts import FactQuery
from recollect.store.knowledge.graph import WalkLimits as Walk
from recollect.verbs.knowledge.facts import end, get_entity, list_entities, list_facts, list_versions, state
from recollect.verbs.knowledge.graph import export, neighbours, paths, timeline


@dataclass(frozen=True, slots=True)
class KnowledgeView:
    """One caller's view of what is known in one scope."""

    access: Access

    async def state(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """State one or many facts in one transaction; what is known already is recognised, what they replace ends."""
        async with self.access.asking(Right.WRITE) as access:
            stated = [facts] if isinstance(facts, NewFact) else facts
            return await state(access.parts, access.caller, access.scope, stated, idempotency_key)

    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a moment, by a further version of it."""
        async with self.access.asking(Right.WRITE) as access:
            return await end(access.parts, access.caller, access.scope, fact_id, at)

    async def facts(
        self,
        entity: UUID | None = None,
        predicate: str = "",
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> Facts:
        """Fetch one page of facts, as believed at `as_of` and true `at` a moment: now, where nothing is said."""
        async with self.access.asking(Right.READ) as access:
            return await list_facts(access.parts, access.scope, FactQuery(entity, predicate, as_of, at), cursor, limit)

    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """Fetch every version of a fact, oldest first."""
        async with self.access.asking(Right.READ) as access:
            return await list_versions(access.parts, access.scope, fact_id)

    async def entities(
        self,
        search: str = "",
        *,
        type: EntityType | None = None,  # noqa: A002 - its name
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> Entities:
        """Fetch one page of entities; those whose names contain something, and of one type, if asked."""
        async with self.access.asking(Right.READ) as access:
            return await list_entities(access.parts, access.scope, search, type, cursor, limit)

    async def entity(self, entity_id: UUID) -> Entity:
        """Fetch one entity with all that it is called, and the newest that was said of it."""
        async with self.access.asking(Right.READ) as access:
            return await get_entity(access.parts, access.scope, entity_id)

    async def neighbours(
        self,
        entity_id: UUID,
        hops: int = 1,
        beam: int = 100,
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> Neighbourhood:
        """Give back which entities facts lead to from one, in up to 3 hops along at most `beam` facts each."""
        async with self.access.asking(Right.READ) as access:
            return await neighbours(access.parts, access.scope, entity_id, Walk(hops, beam, Times(as_of, at)))

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
        """Give back how two entities are joined by up to 6 facts, the shortest path first."""
        async with self.access.asking(Right.READ) as access:
            return await paths(access.parts, access.scope, (start, end), hops, limit, Times(as_of, at))

    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> Timeline:
        """Fetch one page of all versions of the facts about an entity, in the order in which they came true."""
        async with self.access.asking(Right.READ) as access:
            return await timeline(access.parts, access.scope, entity_id, as_of, cursor, limit)

    async def export(
        self,
        format: GraphFormat = GraphFormat.GRAPHML,  # noqa: A002
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Give the scope's facts and the entities they join as text, piece by piece, as long as it takes."""
        self.access.require(Right.READ)
        async for piece in export(self.access.parts, self.access.scope, format, Times(as_of, at)):
            yield piece
