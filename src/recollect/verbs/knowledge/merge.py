"""Merge two entities that are the same, and undo a merge; each fact keeps its versions."""

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
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.knowledge.entities import NO_ENTITY, get_entity
from recollect.verbs.knowledge.write_facts import FactWrite, PlannedFacts, open_fact_write, write_fact_versions

MAX_MERGED_FACTS = 2_000
"""Maximum number of facts: one transaction writes a version of each, and blocks other writers of the scope."""


async def merge(parts: Dependencies, caller: Caller, scope: Scope, kept: UUID, absorbed: UUID) -> Entity:
    """Merge an entity into another one, which gets its names and new versions of its facts."""
    if kept == absorbed:
        raise InvalidInputError("cannot merge an entity into itself")
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        await check_both(connection, fact_write, kept, absorbed)
        scope_id = fact_write.opening.scope_id
        own = VersionQuery(subjects=[absorbed], objects=[absorbed])
        visible = [each for each in await facts.fetch_versions(connection, scope_id, own) if not each.hidden]
        if len(visible) > MAX_MERGED_FACTS:
            raise ConflictError(
                f"The duplicate has {len(visible)} facts, more than {MAX_MERGED_FACTS}: merge in the other direction."
            )
        moved = {kept if end == absorbed else end for each in visible for end in (each.fact.subject, each.fact.object)}
        others = [end for end in moved if isinstance(end, UUID) and end != kept]
        pairs = [pair for other in others for pair in ((kept, other), (other, kept))]
        standing = await facts.fetch_versions(connection, scope_id, VersionQuery(pairs=pairs))
        planned = plan_merge(kept, absorbed, [each.fact for each in visible], [each.fact for each in standing])
        await apply(parts, connection, fact_write, planned, visible)
        await merges.store_merge(connection, scope_id, kept, absorbed, fact_write.moment)
    return await get_entity(parts, scope, kept)


async def check_both(connection: Connection, fact_write: FactWrite, kept: UUID, absorbed: UUID) -> None:
    """Refuse to merge entities that do not exist or were merged already."""
    known = await merges.fetch_known(connection, fact_write.opening.scope_id, [kept, absorbed])
    if len(known) < len((kept, absorbed)):
        raise NotFoundError(NO_ENTITY)
    for asked, entity in known.items():
        if asked != entity.id:
            raise ConflictError(f"Entity {asked} was merged into {entity.id}. Use that one, or split them.")


async def split(parts: Dependencies, caller: Caller, scope: Scope, absorbed: UUID) -> Entity:
    """Undo the merge of an entity; facts learned about the other one since then stay there."""
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        scope_id = fact_write.opening.scope_id
        ended = await merges.end_merge(connection, scope_id, absorbed, fact_write.moment)
        if ended is None:
            raise NotFoundError("This entity was not merged into another one.")
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
    parts: Dependencies, connection: Connection, fact_write: FactWrite, planned: MergePlan, versions: Sequence[Version]
) -> None:
    """Write the planned versions, and end old ones without a successor; later ones of a fact have precedence."""
    scope_id, moment = fact_write.opening.scope_id, fact_write.moment
    visible = {each.fact.id: each for each in versions}
    closed = [visible[fact.id].id for fact in planned.closed]
    await facts.supersede(connection, scope_id, closed, moment)
    await facts.exclude_from_recall(connection, scope_id, closed)
    await write_fact_versions(parts, connection, fact_write, PlannedFacts((), Plan(planned.changes, ()), visible, {}))
