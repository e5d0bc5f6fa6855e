"""Merge two entities that are one, and take a merge back; each fact keeps its versions."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from recollect.core.knowledge.fact_plan import Plan
from recollect.core.knowledge.merges import MergePlan, plan_merge, plan_split
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.knowledge import Entity
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge import facts, merges
from recollect.store.knowledge.facts import Version, VersionQuery
from recollect.verbs.knowledge.entities import NO_ENTITY, get_entity
from recollect.verbs.knowledge.write_facts import FactWrite, PlannedFacts, open_fact_write, write
from recollect.verbs.parts import Parts

MOST_MOVED = 2_000
"""One transaction writes a version of each fact, and other writers of the scope wait for it."""


async def merge(parts: Parts, caller: Caller, scope: Scope, kept: UUID, absorbed: UUID) -> Entity:
    """Let one entity absorb another: its names lead to the first, and its facts get versions about the first."""
    if kept == absorbed:
        raise InvalidInputError("an entity cannot absorb itself")
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        await check_both(connection, fact_write, kept, absorbed)
        scope_id = fact_write.opening.scope_id
        own = VersionQuery(subjects=[absorbed], objects=[absorbed])
        visible = [each for each in await facts.fetch_versions(connection, scope_id, own) if not each.hidden]
        if len(visible) > MOST_MOVED:
            raise ConflictError(
                f"The absorbed entity has {len(visible)} facts, more than {MOST_MOVED}: merge the other way round."
            )
        moved = {kept if end == absorbed else end for each in visible for end in (each.fact.subject, each.fact.object)}
        others = [end for end in moved if isinstance(end, UUID) and end != kept]
        pairs = [pair for other in others for pair in ((kept, other), (other, kept))]
        standing = await facts.fetch_versions(connection, scope_id, VersionQuery(pairs=pairs))
        planned = plan_merge(kept, absorbed, [each.fact for each in visible], [each.fact for each in standing])
        await apply(parts, connection, fact_write, planned, visible)
        await merges.add(connection, scope_id, kept, absorbed, fact_write.moment)
    return await get_entity(parts, scope, kept)


async def check_both(connection: Connection, fact_write: FactWrite, kept: UUID, absorbed: UUID) -> None:
    """Refuse to merge what does not exist, or has been absorbed already."""
    known = await merges.fetch_known(connection, fact_write.opening.scope_id, [kept, absorbed])
    if len(known) < len((kept, absorbed)):
        raise NotFoundError(NO_ENTITY)
    for asked, entity in known.items():
        if asked != entity.id:
            raise ConflictError(f"The entity {asked} has been absorbed by {entity.id}: name that one, or split them.")


async def split(parts: Parts, caller: Caller, scope: Scope, absorbed: UUID) -> Entity:
    """Take back that an entity was absorbed; what was learned of the other meanwhile stays there."""
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        scope_id = fact_write.opening.scope_id
        ended = await merges.end(connection, scope_id, absorbed, fact_write.moment)
        if ended is None:
            raise NotFoundError("There is no such entity in this scope that another one has absorbed.")
        listed = await merges.list_ended(connection, scope_id, ended)
        asked = VersionQuery(ids=[each for each, _ in listed], lineages=[lineage for _, lineage in listed])
        versions = await facts.fetch_versions(connection, scope_id, asked)
        hidden = {each.fact.id for each in versions if each.hidden}
        former = [each for each in versions if each.fact.superseded_at is not None and each.fact.id not in hidden]
        current = [each for each in versions if each.fact.superseded_at is None and each.fact.id not in hidden]
        believed = {each.fact.id: each.fact for each in current}
        planned = plan_split(ended, [each.fact for each in former], believed)
        await apply(parts, connection, fact_write, planned, [*former, *current])
    return await get_entity(parts, scope, absorbed)


async def apply(
    parts: Parts, connection: Connection, fact_write: FactWrite, planned: MergePlan, versions: Sequence[Version]
) -> None:
    """Write the planned versions, and end those that have none after them; later ones of a fact have precedence."""
    scope_id, moment = fact_write.opening.scope_id, fact_write.moment
    visible = {each.fact.id: each for each in versions}
    closed = [visible[fact.id].id for fact in planned.closed]
    await facts.supersede(connection, scope_id, closed, moment)
    await facts.withhold(connection, scope_id, closed)
    await write(parts, connection, fact_write, PlannedFacts((), Plan(planned.changes, ()), visible, {}))
