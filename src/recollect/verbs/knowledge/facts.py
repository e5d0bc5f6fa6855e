"""Knowledge: state facts without a model, read them as of a time, and read their entities."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import UUID, uuid4

from recollect.core.knowledge.entities import choose_end
from recollect.core.knowledge.fact_plan import NewVersion, Plan
from recollect.core.knowledge.facts import check_span
from recollect.core.knowledge.new_facts import UNKNOWN_END, check_new_facts, fingerprint_facts, to_memory
from recollect.core.memories.ids import RANDOM_BYTES, memory_id
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_idempotency_key, check_limit, check_line, check_moment
from recollect.core.text.names import normalize_name
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.knowledge import AnyTime, EntityType, Fact, FactEnd, FactPage, NewFact, ValidTime
from recollect.models.memories import JSON, NewMemory
from recollect.models.service import Caller, Scope
from recollect.store.database.pool import Connection
from recollect.store.knowledge import entities, facts, merges
from recollect.store.knowledge.entities import EntityName, NewEntity
from recollect.store.knowledge.facts import FactQuery, VersionQuery
from recollect.store.memories import memories
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.knowledge.write_facts import (
    FactWrite,
    FactWriteRow,
    PlannedFacts,
    add_facts,
    open_fact_write,
    write_fact_versions,
)
from recollect.verbs.memories.rows import embed_missing

NO_FACT = "No such fact in this scope."
Ends: TypeAlias = Mapping[tuple[FactEnd, EntityType | None], UUID]


async def remember_facts(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    new: Sequence[NewFact],
    key: str = "",
    noted: Sequence[Mapping[str, JSON]] = (),
) -> list[Fact]:
    """State facts in one transaction; return their current versions, the same ones for the same key.

    `noted` has the metadata of each fact's memory.
    """
    check_new_facts(new)
    check_idempotency_key(key)
    named = await name_ends(parts, scope, new)
    notes = noted or [{}] * len(new)
    wording = [replace(to_memory(fact, named), metadata=each) for fact, each in zip(new, notes, strict=True)]
    vectors = await embed_missing(parts, wording)
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        repeated = await claim(connection, scope, new, key) if key else None
        if repeated is None:
            ends = await resolve_ends(connection, fact_write, new)
            rows = list(vectors) if vectors is not None else [None] * len(new)
            taken = [
                replace(take(fact, memory, ends), vector=row)
                for fact, memory, row in zip(new, wording, rows, strict=True)
            ]
            believed = await add_facts(parts, connection, fact_write, taken)
            await mention_ends(connection, fact_write, taken, believed)
            if key:
                ids = [fact.memory_id or fact.id for fact in believed]
                done = [row is not None for row in rows]
                await memories.complete_claim(connection, fact_write.opening.scope_id, key, ids, done)
            return believed
    # Only after the connection is returned: callers that hold one and wait for another can block each other.
    return await replay(parts, scope, repeated)


async def claim(connection: Connection, scope: Scope, new: Sequence[NewFact], key: str) -> Sequence[UUID] | None:
    """Claim an idempotency key; return the facts stated with it before, None if it is new."""
    asked = fingerprint_facts(new)
    found = await memories.read_claim(await memories.ask_claim(connection, scope, key, asked))
    if found.fresh:
        return None
    if found.fingerprint != asked:
        raise ConflictError("This Idempotency-Key was already used for a different request.")
    return found.memory_ids


async def replay(parts: Dependencies, scope: Scope, ids: Sequence[UUID]) -> list[Fact]:
    """Return the same versions for a repeated key, without forgotten ones."""
    found = await facts.fetch_by_version(parts.database, scope, ids)
    return [found[each] for each in ids if each in found]


async def name_ends(parts: Dependencies, scope: Scope, new: Sequence[NewFact]) -> dict[UUID, str]:
    """Find the names of entities that facts name by ID; raise an error if one does not exist."""
    ids = {end for fact in new for end in (fact.subject, fact.object) if isinstance(end, UUID)}
    if not ids:
        return {}
    found = await entities.fetch(parts.database, scope, sorted(ids))
    if len(found) < len(ids):
        raise InvalidInputError(UNKNOWN_END)
    return {entity.id: entity.name for entity in found.values()}


def take(fact: NewFact, memory: NewMemory, ends: Ends) -> FactWriteRow:
    """Convert a caller's fact, whose entities were found."""
    subject, object_ = ends[(fact.subject, fact.subject_type)], ends[(fact.object, fact.object_type)]
    if subject == object_:
        raise InvalidInputError("subject and object must not be the same entity")
    return FactWriteRow(uuid4(), memory, subject, object_, ValidTime(fact.valid_at, fact.invalid_at), fact.replaces)


async def resolve_ends(connection: Connection, fact_write: FactWrite, new: Sequence[NewFact]) -> Ends:
    """Find the entities that facts name, all at once, and create new ones."""
    scope_id = fact_write.opening.scope_id
    asked = [end for fact in new for end in ((fact.subject, fact.subject_type), (fact.object, fact.object_type))]
    given = [end for end, _ in asked if isinstance(end, UUID)]
    known = await merges.fetch_known(connection, scope_id, given)
    if len(known) < len(set(given)):
        raise InvalidInputError(UNKNOWN_END)
    names = list(dict.fromkeys(end for end, _ in asked if isinstance(end, str)))
    candidates = await entities.find_candidates(connection, scope_id, names)
    ends: dict[tuple[FactEnd, EntityType | None], UUID] = {}
    unknown: dict[tuple[FactEnd, EntityType | None], tuple[str, EntityType]] = {}
    for end, kind in asked:
        if isinstance(end, UUID):
            ends[(end, kind)] = known[end].id
            continue
        found = choose_end(kind, [each for each in candidates if names[each.number] == end])
        if found is None:
            unknown[(end, kind)] = (end, find_type(end, kind, asked))
        else:
            ends[(end, kind)] = found.id
    wanted = [
        NewEntity(each, *named) for each, named in zip(new_ids(fact_write, len(unknown)), unknown.values(), strict=True)
    ]
    made = await entities.ensure(connection, scope_id, wanted, fact_write.moment)
    return ends | {end: made[(normalize_name(name), kind)] for end, (name, kind) in unknown.items()}


def find_type(name: str, kind: EntityType | None, asked: Sequence[tuple[FactEnd, EntityType | None]]) -> EntityType:
    """Return the type of a new entity; another fact of the same call may name it."""
    if kind is not None:
        return kind
    key = normalize_name(name)
    said = [other for end, other in asked if other and isinstance(end, str) and normalize_name(end) == key]
    return said[0] if said else EntityType.OTHER


def new_ids(fact_write: FactWrite, number: int) -> list[UUID]:
    """Create IDs that sort in the order in which entities were first mentioned."""
    return [memory_id(fact_write.moment, position, os.urandom(RANDOM_BYTES)) for position in range(number)]


async def mention_ends(
    connection: Connection, fact_write: FactWrite, taken: Sequence[FactWriteRow], believed: Sequence[Fact]
) -> None:
    """Store the names that facts use for their entities; the source is the fact itself."""
    namings = []
    for each, fact in zip(taken, believed, strict=True):
        moment = each.memory.occurred_at or fact_write.moment
        triple, source = each.memory.triple, fact.memory_id or fact.id
        namings += [EntityName(source, each.subject, triple.subject, moment)]
        namings += [EntityName(source, each.object, triple.object, moment)]
    await entities.mention(connection, fact_write.opening.scope_id, namings)


async def end_fact(parts: Dependencies, caller: Caller, scope: Scope, name: UUID, invalid_at: datetime) -> Fact:
    """End a fact at a time with a new version; its ID, or that of any version, names it."""
    check_moment("invalid_at", invalid_at)
    async with parts.database.transaction(scope.tenant_id) as connection:
        fact_write = await open_fact_write(connection, caller, scope)
        known = await facts.fetch_versions(connection, fact_write.opening.scope_id, VersionQuery(lineages=[name]))
        version = next((each for each in known if not each.hidden), None)
        if version is None:
            raise NotFoundError(NO_FACT)
        span = replace(version.fact.span, invalid_at=invalid_at)
        check_span(span)
        if span == version.fact.span:
            return version.fact
        change = NewVersion(replace(version.fact, span=span, version=version.fact.version + 1), version.fact, ())
        batch = PlannedFacts((), Plan((change,), ()), {version.fact.id: version}, {})
        written = await write_fact_versions(parts, connection, fact_write, batch)
    return written[version.fact.id]


async def list_facts(
    parts: Dependencies, scope: Scope, bounds: FactQuery, cursor: UUID | None = None, limit: int = 50
) -> FactPage:
    """Fetch one page of facts that were believed and true at given times; the default is now."""
    check_limit(limit)
    check_line("predicate", bounds.predicate)
    check_filter(bounds.only)
    at = bounds.only.at or bounds.only.as_of or datetime.now(UTC)
    asked = bounds if bounds.whenever else replace(bounds, only=replace(bounds.only, at=at))
    found = await facts.page(parts.database, scope, asked, cursor, limit + 1)
    return FactPage(tuple(found[:limit]), found[limit - 1].memory_id if len(found) > limit else None)


def read_time(at: datetime | AnyTime | None) -> tuple[datetime | None, bool]:
    """Read the time at which facts must be true: a timestamp, or "any"."""
    if isinstance(at, str) and at != "any":
        raise InvalidInputError('at must be a timestamp or "any"')
    return (at, False) if not isinstance(at, str) else (None, True)
