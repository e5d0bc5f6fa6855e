"""Link what a segment says to what is known: entities, their names, and facts in their place among others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.knowledge.rerun import name_statement
from recollect.core.text.names import normalise_name
from recollect.models.knowledge import EntityType, Mention, Statement
from recollect.models.memories import ImportanceFrom, Kind, NewMemory, Role, Triple
from recollect.store.database.pool import Connection
from recollect.store.knowledge import entities, facts, merges
from recollect.store.knowledge.entities import Naming, NewEntity
from recollect.verbs.knowledge.facts import new_ids
from recollect.verbs.knowledge.steps.draft import Draft, StepContext
from recollect.verbs.knowledge.steps.staged import Staged
from recollect.verbs.knowledge.write_facts import FactWrite, Taken, add_facts, open_fact_write
from recollect.verbs.memories.rows import embed_missing

Key = tuple[str, EntityType]
MOST_WAITING = 100


@dataclass(frozen=True, slots=True)
class Linking:
    """What a segment says, with all that can be computed before a connection is taken."""

    context: StepContext
    draft: Draft
    wording: Sequence[NewMemory]
    vectors: NDArray[np.float32] | None

    @property
    def said_at(self) -> datetime:
        """Return the moment of the segment's last message."""
        return find_moment(self.draft)


async def link(context: StepContext, draft: Draft) -> Draft:
    """Prepare the writing of entities, mentions and facts; it is done in the transaction that applies the segment."""
    if not draft.mentions:
        return draft
    wording = [to_memory(statement, draft) for statement in draft.statements]
    vectors = await embed_missing(context.parts, wording) if wording else None
    linking = Linking(context, draft, wording, vectors)

    async def write(connection: Connection, _: int) -> None:
        await write_segment(connection, linking)

    return replace(draft, writes=(*draft.writes, write))


def to_memory(statement: Statement, draft: Draft) -> NewMemory:
    """Word a statement as a memory that rests on the segment's messages."""
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
    """Find the time of the last message of a user, or of anybody."""
    spoken = [message for message in draft.messages if message.role is Role.USER] or draft.messages
    return max(message.occurred_at for message in spoken)


def find_evidence(draft: Draft) -> tuple[UUID, ...]:
    """Return the messages that a segment's facts rest on: all of them, as any may have said it."""
    return tuple(message.id for message in draft.messages)


async def write_segment(connection: Connection, linking: Linking) -> None:
    """Write what one segment says, in the current transaction."""
    context, draft = linking.context, linking.draft
    staged = context.staged
    fact_write = staged.fact_write if staged else None
    if fact_write is None:
        fact_write = await open_fact_write(connection, context.caller, context.scope)
    found = await find_entities(connection, fact_write, draft, staged)
    called = {normalise_name(mention.name): found[key_of(mention)] for mention in reversed(draft.mentions)}
    await entities.mention(connection, context.scope_id, name_all(draft, found, linking.said_at))
    if staged is None:
        await add_facts(context.parts, connection, fact_write, await take_all(connection, linking, called))
        return
    # A fact that a statement ends must be written by then, so that its end can rest on the statement.
    replaced = {number for each in draft.statements for number in each.replaces}
    names = {fact.id for number, fact in enumerate(draft.shown, 1) if number in replaced}
    if len(staged.waiting) >= MOST_WAITING or any(each.id in names for each in staged.waiting):
        await state_waiting(connection, context, staged)
    staged.waiting += await take_all(connection, linking, called)


async def state_waiting(connection: Connection, context: StepContext, staged: Staged) -> None:
    """Write the facts that the segments of a run have stated so far."""
    if staged.fact_write is not None:
        staged.note_written(await add_facts(context.parts, connection, staged.fact_write, staged.waiting))


async def find_entities(
    connection: Connection, fact_write: FactWrite, draft: Draft, staged: Staged | None = None
) -> Mapping[Key, UUID]:
    """Give every mention its entity: the one that was found, if it still exists, or one of its name and type."""
    scope_id = fact_write.opening.scope_id
    resolved = [entity.id for entity in draft.resolved.values() if entity is not None]
    present = await merges.fetch_known(connection, scope_id, resolved)
    found: dict[Key, UUID] = {}
    new: dict[Key, Mention] = {}
    seen: set[str] = set()
    for mention in draft.mentions:
        name = normalise_name(mention.name)
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
    """Return what distinguishes a mention from the others of its segment."""
    return normalise_name(mention.name), mention.type


def name_all(draft: Draft, found: Mapping[Key, UUID], moment: datetime) -> list[Naming]:
    """List the names and descriptions that the segment gives its entities."""
    namings = []
    for mention in draft.mentions:
        entity = found[key_of(mention)]
        namings.append(Naming(draft.segment.id, entity, mention.name, moment, mention.description))
        namings += [Naming(draft.segment.id, entity, alias, moment) for alias in mention.aliases]
    return namings


async def take_all(connection: Connection, linking: Linking, called: Mapping[str, UUID]) -> list[Taken]:
    """Take the segment's statements; one that joins an entity to itself says nothing."""
    draft = linking.draft
    shown = find_lineages(linking)
    # A fact that was shown may be gone or hidden when an answer says that it is over.
    known = await facts.fetch_facts(connection, linking.context.scope_id, lineages=sorted(set(shown))) if shown else []
    left = {fact.id for fact in known}
    taken = []
    for index, (statement, memory) in enumerate(zip(draft.statements, linking.wording, strict=True)):
        subject, object_ = called[normalise_name(statement.subject)], called[normalise_name(statement.object)]
        replaced = dict.fromkeys(shown[number - 1] for number in statement.replaces if number <= len(shown))
        contradicted = tuple(lineage for lineage in replaced if lineage in left)
        vector = None if linking.vectors is None else linking.vectors[index]
        if subject != object_:
            name = name_statement(draft.segment.id, index)
            taken.append(Taken(name, memory, subject, object_, statement.span, contradicted, vector))
    return taken


def find_lineages(linking: Linking) -> list[UUID]:
    """Return the facts that the model was shown; what a run stated itself has another id once it is written."""
    staged, shown = linking.context.staged, [fact.id for fact in linking.draft.shown]
    return [staged.lineages.get(each, each) for each in shown] if staged else shown
