"""Link a segment's statements to known data: entities, their names, and facts in order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.knowledge.rerun import name_statement
from recollect.core.text.names import normalize_name
from recollect.models.knowledge import EntityType, Mention, Statement
from recollect.models.memories import ImportanceFrom, Kind, NewMemory, Role, Triple
from recollect.store.database.pool import Connection
from recollect.store.knowledge import entities, facts, merges
from recollect.store.knowledge.entities import EntityName, NewEntity
from recollect.verbs.knowledge.facts import new_ids
from recollect.verbs.knowledge.steps.draft import Draft, StepContext
from recollect.verbs.knowledge.steps.staged import StagedStatements
from recollect.verbs.knowledge.write_facts import FactWrite, FactWriteRow, add_facts, open_fact_write
from recollect.verbs.memories.rows import embed_missing

Key = tuple[str, EntityType]
MAX_PENDING_FACTS = 100


@dataclass(frozen=True, slots=True)
class Linking:
    """The statements of a segment, with all data that is computed before a connection is taken."""

    context: StepContext
    draft: Draft
    wording: Sequence[NewMemory]
    vectors: NDArray[np.float32] | None

    @property
    def spoken_at(self) -> datetime:
        """Return the time of the segment's last message."""
        return find_moment(self.draft)


async def link(context: StepContext, draft: Draft) -> Draft:
    """Prepare to write entities, mentions and facts in the transaction that applies the segment."""
    if not draft.mentions:
        return draft
    wording = [to_memory(statement, draft) for statement in draft.statements]
    vectors = await embed_missing(context.parts, wording) if wording else None
    linking = Linking(context, draft, wording, vectors)

    async def write_linked_segment(connection: Connection, _: int) -> None:
        await write_segment(connection, linking)

    return replace(draft, writes=(*draft.writes, write_linked_segment))


def to_memory(statement: Statement, draft: Draft) -> NewMemory:
    """Convert a statement to a memory with the segment's messages as evidence."""
    return NewMemory(
        content=statement.text,
        kind=Kind.FACT,
        importance=draft.importance,
        importance_from=ImportanceFrom.MODEL,
        triple=Triple(statement.subject, statement.predicate, statement.object),
        occurred_at=find_moment(draft),
        evidence=find_evidence(draft),
    )


def find_moment(draft: Draft) -> datetime:
    """Find the time of the last message of a user, or else of the last message."""
    spoken = [message for message in draft.messages if message.role is Role.USER] or draft.messages
    return max(message.occurred_at for message in spoken)


def find_evidence(draft: Draft) -> tuple[UUID, ...]:
    """Return the messages that are evidence of a segment's facts: all, as any may be the source."""
    return tuple(message.id for message in draft.messages)


async def write_segment(connection: Connection, linking: Linking) -> None:
    """Write the statements of one segment in the current transaction."""
    context, draft = linking.context, linking.draft
    staged = context.staged
    fact_write = staged.fact_write if staged else None
    if fact_write is None:
        fact_write = await open_fact_write(connection, context.caller, context.scope)
    found = await find_entities(connection, fact_write, draft, staged)
    called = {normalize_name(mention.name): found[key_of(mention)] for mention in reversed(draft.mentions)}
    await entities.mention(connection, context.scope_id, list_names(draft, found, linking.spoken_at))
    if staged is None:
        await add_facts(context.parts, connection, fact_write, await collect_statements(connection, linking, called))
        return
    # A fact that a statement ends must be written first, so that the statement can be evidence of its end.
    replaced = {number for each in draft.statements for number in each.replaces}
    names = {fact.id for number, fact in enumerate(draft.shown, 1) if number in replaced}
    if len(staged.waiting) >= MAX_PENDING_FACTS or any(each.id in names for each in staged.waiting):
        await state_waiting(connection, context, staged)
    staged.waiting += await collect_statements(connection, linking, called)


async def state_waiting(connection: Connection, context: StepContext, staged: StagedStatements) -> None:
    """Write the facts that the segments of a run have stated so far."""
    if staged.fact_write is not None:
        staged.record_write_position(await add_facts(context.parts, connection, staged.fact_write, staged.waiting))


async def find_entities(
    connection: Connection, fact_write: FactWrite, draft: Draft, staged: StagedStatements | None = None
) -> Mapping[Key, UUID]:
    """Find the entity of each mention: the resolved one if it still exists, or one with its name and type."""
    scope_id = fact_write.opening.scope_id
    resolved = [entity.id for entity in draft.resolved.values() if entity is not None]
    present = await merges.fetch_known(connection, scope_id, resolved)
    found: dict[Key, UUID] = {}
    new: dict[Key, Mention] = {}
    seen: set[str] = set()
    for mention in draft.mentions:
        name = normalize_name(mention.name)
        # Of two mentions of the same name, the first one was resolved.
        entity = draft.resolved.get(name) if name not in seen else None
        seen.add(name)
        if entity is not None and entity.id in present:
            found[key_of(mention)] = present[entity.id].id
        elif entity is not None and staged is not None and entity.id in staged.made:
            found[key_of(mention)] = staged.made[entity.id]
        else:
            new[key_of(mention)] = mention
    ids = new_ids(fact_write, len(new))
    wanted = [NewEntity(each, mention.name, mention.type) for each, mention in zip(ids, new.values(), strict=True)]
    made = dict(await entities.ensure(connection, scope_id, wanted, fact_write.moment))
    if staged is not None:
        staged.make(made)
    return found | made


def key_of(mention: Mention) -> Key:
    """Return the key that distinguishes a mention from others in its segment."""
    return normalize_name(mention.name), mention.type


def list_names(draft: Draft, found: Mapping[Key, UUID], moment: datetime) -> list[EntityName]:
    """List the names and descriptions that the segment uses for its entities."""
    namings = []
    for mention in draft.mentions:
        entity = found[key_of(mention)]
        namings.append(EntityName(draft.segment.id, entity, mention.name, moment, mention.description))
        namings += [EntityName(draft.segment.id, entity, alias, moment) for alias in mention.aliases]
    return namings


async def collect_statements(
    connection: Connection, linking: Linking, called: Mapping[str, UUID]
) -> list[FactWriteRow]:
    """Collect the segment's statements, without those that join an entity to itself."""
    draft = linking.draft
    shown = find_lineages(linking)
    # A fact that was shown may be deleted or hidden when an answer ends it.
    known = await facts.fetch_facts(connection, linking.context.scope_id, lineages=sorted(set(shown))) if shown else []
    left = {fact.id for fact in known}
    taken = []
    for index, (statement, memory) in enumerate(zip(draft.statements, linking.wording, strict=True)):
        subject, object_ = called[normalize_name(statement.subject)], called[normalize_name(statement.object)]
        replaced = dict.fromkeys(shown[number - 1] for number in statement.replaces if number <= len(shown))
        contradicted = tuple(lineage for lineage in replaced if lineage in left)
        vector = None if linking.vectors is None else linking.vectors[index]
        if subject != object_:
            name = name_statement(draft.segment.id, index)
            taken.append(FactWriteRow(name, memory, subject, object_, statement.span, contradicted, vector))
    return taken


def find_lineages(linking: Linking) -> list[UUID]:
    """Return the facts that the model was shown; facts of a run get another ID when they are written."""
    staged, shown = linking.context.staged, [fact.id for fact in linking.draft.shown]
    return [staged.lineages.get(each, each) for each in shown] if staged else shown
