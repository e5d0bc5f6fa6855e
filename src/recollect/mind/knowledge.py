"""What is known in one scope as one object: state facts, and read facts and entities as of any moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation, streaming
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
from recollect.models.recall import Filter
from recollect.models.service import Right
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.knowledge.facts import FactQuery
from recollect.store.knowledge.graph import WalkLimits as Walk
from recollect.verbs.knowledge.entities import check_cursor, get_entity, list_by_facts, list_entities, list_nearest
from recollect.verbs.knowledge.facts import add, end, list_facts, list_versions, read_time
from recollect.verbs.knowledge.graph import connections, export, neighbours, timeline
from recollect.verbs.knowledge.merge import merge, split
from recollect.verbs.knowledge.proposals import list_proposals


@dataclass(frozen=True, slots=True)
class KnowledgeView:
    """One caller's view of what is known in one scope."""

    access: Access

    @operation("POST /v1/facts", Right.WRITE, answer="facts", status=201)
    async def add(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """State one or many facts in one transaction; what is known already is recognised, what they replace ends."""
        stated = [facts] if isinstance(facts, NewFact) else facts
        return await add(self.access.parts, self.access.caller, self.access.scope, stated, idempotency_key)

    @operation("POST /v1/facts/{fact_id}/end", Right.WRITE)
    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a moment, by a further version of it."""
        return await end(self.access.parts, self.access.caller, self.access.scope, fact_id, at)

    @operation("GET /v1/facts", Right.READ, command="facts")
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
        moment, whenever = read_time(at)
        asked = FactQuery(entity, predicate, Filter(as_of=as_of, at=moment), whenever)
        return await list_facts(self.access.parts, self.access.scope, asked, cursor, limit)

    @operation("GET /v1/facts/{fact_id}/versions", Right.READ, answer="versions", command="facts")
    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """Fetch every version of a fact, oldest first."""
        return await list_versions(self.access.parts, self.access.scope, fact_id)

    @operation("GET /v1/entities", Right.READ, command="entities")
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
    ) -> Entities:
        """Fetch one page of the entities that facts speak of, those first that most do, each with how many."""
        wanted = EntityQuery(search, type)
        return await list_by_facts(self.access.parts, self.access.scope, wanted, cursor, limit)

    @operation("GET /v1/entities/{entity_id}", Right.READ)
    async def entity(self, entity_id: UUID, *, as_of: datetime | None = None) -> Entity:
        """Fetch one entity with all its names, and its newest description; also one that another has absorbed."""
        return await get_entity(self.access.parts, self.access.scope, entity_id, as_of)

    @operation("POST /v1/entities/{entity_id}/merge", Right.WRITE, command="graph")
    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Let an entity absorb another that is the same: its names, and its facts in further versions."""
        return await merge(self.access.parts, self.access.caller, self.access.scope, entity_id, absorbed)

    @operation("GET /v1/merges/proposed", Right.READ, command="graph")
    async def proposed_merges(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposals:
        """List which entities may be one, page by page; with `judge` the chat model is asked which surely are."""
        place = await self.access.locate()
        return await list_proposals(self.access.parts, self.access.scope, place, cursor, limit, judge=judge)

    @operation("POST /v1/entities/{entity_id}/split", Right.WRITE, command="graph")
    async def split(self, entity_id: UUID) -> Entity:
        """Take back that an entity was absorbed, with the facts that it had."""
        return await split(self.access.parts, self.access.caller, self.access.scope, entity_id)

    @operation("GET /v1/entities/{entity_id}/neighbours", Right.READ, command="graph")
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
        walk = Walk(hops, beam, Filter(as_of=as_of, at=at))
        return await neighbours(self.access.parts, self.access.scope, entity_id, walk)

    @operation("GET /v1/connections", Right.READ, answer="connections", command="graph")
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
        only = Filter(as_of=as_of, at=at)
        return await connections(self.access.parts, self.access.scope, (start, end), hops, limit, only)

    @operation("GET /v1/entities/{entity_id}/timeline", Right.READ, command="graph")
    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> Timeline:
        """Fetch one page of all versions of the facts about an entity, in the order in which they came true."""
        return await timeline(self.access.parts, self.access.scope, entity_id, as_of, cursor, limit)

    @streaming("GET /v1/graph", Right.READ, command="graph")
    async def export(
        self,
        format: GraphFormat | str = "graphml",  # noqa: A002 - its name
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Export the scope's facts and their entities as text, piece by piece, as long as it takes."""
        only = Filter(as_of=as_of, at=at)
        async for piece in export(self.access.parts, self.access.scope, GraphFormat(format), only):
            yield piece
