"""The facts of one scope as one object: add facts, and read facts and entities as of any time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.mind.access import Access
from recollect.mind.operations import operation, streaming
from recollect.models.filters import Filter
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
from recollect.models.service import Right
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.knowledge.facts import FactQuery
from recollect.store.knowledge.graph import WalkLimits as Walk
from recollect.verbs.knowledge.entities import (
    BY_TEXT,
    check_order,
    list_by_facts,
    list_by_ids,
    list_entities,
    list_nearest,
)
from recollect.verbs.knowledge.facts import end_fact, list_facts, read_time, remember_facts
from recollect.verbs.knowledge.graph import export, find_neighbors, list_paths
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

    @operation("PATCH /v1/facts/{fact_id}", Right.WRITE)
    async def end(self, fact_id: UUID, invalid_at: datetime) -> Fact:
        """End a fact at a given time."""
        return await end_fact(self.access.parts, self.access.caller, self.access.scope, fact_id, invalid_at)

    @operation("GET /v1/facts", Right.READ, command="mind facts")
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
        moment, whenever = read_time(at)
        asked = FactQuery(about, predicate, Filter(as_of=as_of, at=moment), whenever)
        return await list_facts(self.access.parts, self.access.scope, asked, cursor, limit)

    @operation("GET /v1/entities", Right.READ, command="mind entities")
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
        wanted = EntityQuery(search, type, as_of, order)
        if ids is not None:
            return await list_by_ids(self.access.parts, self.access.scope, ids, wanted, cursor)
        check_order(wanted, cursor)
        if order in BY_TEXT:
            return await list_nearest(self.access.parts, self.access.scope, await self.access.locate(), wanted, limit)
        listed = list_by_facts if order == EntityOrder.FACTS else list_entities
        return await listed(self.access.parts, self.access.scope, wanted, cursor, limit)

    @operation("POST /v1/entities/{entity_id}/merge", Right.WRITE, command="mind graph")
    async def merge(self, entity_id: UUID, absorbed: UUID) -> Entity:
        """Merge a duplicate entity into this one."""
        return await merge(self.access.parts, self.access.caller, self.access.scope, entity_id, absorbed)

    @operation("GET /v1/entities/duplicates", Right.READ, command="mind graph")
    async def duplicates(
        self, *, judge: bool = False, cursor: UUID | None = None, limit: int = 50
    ) -> MergeProposalPage:
        """List likely duplicate entities."""
        place = await self.access.locate()
        return await list_proposals(self.access.parts, self.access.scope, place, cursor, limit, judge=judge)

    @operation("POST /v1/entities/{entity_id}/split", Right.WRITE, command="mind graph")
    async def split(self, entity_id: UUID) -> Entity:
        """Undo a merge."""
        return await split(self.access.parts, self.access.caller, self.access.scope, entity_id)

    @operation("GET /v1/entities/{entity_id}/neighbors", Right.READ, command="mind graph")
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
        walk = Walk(hops, beam, Filter(as_of=as_of, at=at))
        return await find_neighbors(self.access.parts, self.access.scope, entity_id, walk)

    @operation("GET /v1/graph/paths", Right.READ, answer="paths", command="mind graph")
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
        only = Filter(as_of=as_of, at=at)
        return await list_paths(self.access.parts, self.access.scope, (start, end), hops, limit, only)

    @streaming("GET /v1/graph", Right.READ, command="mind graph")
    async def export(
        self,
        format: GraphFormat | str = "graphml",
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Export facts and entities as GraphML or Cypher (streamed)."""
        only = Filter(as_of=as_of, at=at)
        async for piece in export(self.access.parts, self.access.scope, GraphFormat(format), only):
            yield piece
