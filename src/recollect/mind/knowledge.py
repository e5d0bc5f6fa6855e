"""The facts of one scope as one object: add facts, and read facts and entities as of any time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation, streaming
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
from recollect.models.recall import Filter
from recollect.models.service import Right
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.knowledge.facts import FactQuery
from recollect.store.knowledge.graph import WalkLimits as Walk
from recollect.verbs.knowledge.entities import check_cursor, get_entity, list_by_facts, list_entities, list_nearest
from recollect.verbs.knowledge.facts import end_fact, list_facts, list_versions, read_time, remember_facts
from recollect.verbs.knowledge.graph import connections, export, neighbours, timeline
from recollect.verbs.knowledge.merge import merge, split
from recollect.verbs.knowledge.proposals import list_proposals


@dataclass(frozen=True, slots=True)
class KnowledgeView:
    """One caller's view of the facts of one scope."""

    access: Access

    @operation("POST /v1/facts", Right.WRITE, answer="facts", status=201)
    async def add(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """Add facts in one transaction. Known facts are recognized; replaced facts end."""
        stated = [facts] if isinstance(facts, NewFact) else facts
        return await remember_facts(self.access.parts, self.access.caller, self.access.scope, stated, idempotency_key)

    @operation("POST /v1/facts/{fact_id}/end", Right.WRITE)
    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a given time."""
        return await end_fact(self.access.parts, self.access.caller, self.access.scope, fact_id, at)

    @operation("GET /v1/facts", Right.READ, command="mind facts")
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
        moment, whenever = read_time(at)
        asked = FactQuery(entity, predicate, Filter(as_of=as_of, at=moment), whenever)
        return await list_facts(self.access.parts, self.access.scope, asked, cursor, limit)

    @operation("GET /v1/facts/{fact_id}/versions", Right.READ, answer="versions", command="mind facts")
    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """List all versions of a fact, oldest first."""
        return await list_versions(self.access.parts, self.access.scope, fact_id)

    @operation("GET /v1/entities", Right.READ, command="mind entities")
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
        wanted = EntityQuery(search, type, as_of, meaning)
        if not meaning:
            return await list_entities(self.access.parts, self.access.scope, wanted, cursor, limit)
        check_cursor(meaning, cursor)
        return await list_nearest(self.access.parts, self.access.scope, await self.access.locate(), wanted, limit)

    @operation("GET /v1/entities/by-facts", Right.READ)
    async def entities_by_facts(
        self,
        search: str = "",
        *,
        type: EntityType | None = None,  # noqa: A002 - its name
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> EntityPage:
        """List entities by number of facts, most first."""
        wanted = EntityQuery(search, type)
        return await list_by_facts(self.access.parts, self.access.scope, wanted, cursor, limit)

    @operation("GET /v1/entities/{entity_id}", Right.READ)
    async def entity(self, entity_id: UUID, *, as_of: datetime | None = None) -> Entity:
        """Get an entity with its names and description."""
        return await get_entity(self.access.parts, self.access.scope, entity_id, as_of)

    @operation("POST /v1/entities/{entity_id}/merge", Right.WRITE, command="mind graph")
    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Merge a duplicate entity into this one."""
        return await merge(self.access.parts, self.access.caller, self.access.scope, entity_id, absorbed)

    @operation("GET /v1/merges/proposed", Right.READ, command="mind graph")
    async def proposed_merges(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposalPage:
        """List likely duplicate entities."""
        place = await self.access.locate()
        return await list_proposals(self.access.parts, self.access.scope, place, cursor, limit, judge=judge)

    @operation("POST /v1/entities/{entity_id}/split", Right.WRITE, command="mind graph")
    async def split(self, entity_id: UUID) -> Entity:
        """Undo a merge."""
        return await split(self.access.parts, self.access.caller, self.access.scope, entity_id)

    @operation("GET /v1/entities/{entity_id}/neighbours", Right.READ, command="mind graph")
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
        walk = Walk(hops, beam, Filter(as_of=as_of, at=at))
        return await neighbours(self.access.parts, self.access.scope, entity_id, walk)

    @operation("GET /v1/connections", Right.READ, answer="connections", command="mind graph")
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
        only = Filter(as_of=as_of, at=at)
        return await connections(self.access.parts, self.access.scope, (start, end), hops, limit, only)

    @operation("GET /v1/entities/{entity_id}/timeline", Right.READ, command="mind graph")
    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> TimelinePage:
        """List all versions of the facts about an entity in chronological order."""
        return await timeline(self.access.parts, self.access.scope, entity_id, as_of, cursor, limit)

    @streaming("GET /v1/graph", Right.READ, command="mind graph")
    async def export(
        self,
        format: GraphFormat | str = "graphml",  # noqa: A002 - its name
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Export facts and entities as GraphML or Cypher (streamed)."""
        only = Filter(as_of=as_of, at=at)
        async for piece in export(self.access.parts, self.access.scope, GraphFormat(format), only):
            yield piece
