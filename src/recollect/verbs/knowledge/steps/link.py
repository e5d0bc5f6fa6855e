"""Join what a segment says to what is known: entities, their names, and facts in their place among others."""

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
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.store.database.pool import Connection
from recollect.store.knowledge import entities, facts
from recollect.store.knowledge.entities import Naming, NewEntity
from recollect.verbs.knowledge.facts import new_ids
from recollect.verbs.knowledge.steps.draft import Desk, Draft
from recollect.verbs.knowledge.steps.staged import Beside
from recollect.verbs.knowledge.write_facts import Believing, Taken, believe, open_believing
from recollect.verbs.memories.remember import embed_missing

Key = tuple[str, EntityType]
MOST_WAITING = 100


@dataclass(frozen=True, slots=True)
class Linking:
    """What a segment says, with all that can be worked out before a connection is taken."""

    desk: Desk
    draft: Draft
    wording: Sequence[NewMemory]
    vectors: NDArray[np.float32] | None

    @property
    def said_at(self) -> datetime:
        """Give the moment at which the segment had said all it says."""
        return find_moment(self.draft)


async def link(desk: Desk, draft: Draft) -> Draft:
    """Prepare the writing of entities, mentions and facts; it is done in the transaction that applies the segment."""
    if not draft.mentions:
        return draft
    wording = [to_memory(statement, draft) for statement in draft.statements]
    vectors = await embed_missing(desk.parts, wording) if wording else None
    linking = Linking(desk, draft, wording, vectors)

    async def write(connection: Connection, _: int) -> None:
        await write_segment(connection, linking)

    return replace(draft, writes=(*draft.writes, write))


def to_memory(statement: Statement, draft: Draft) -> NewMemory:
    """Word a statement as a memory that rests on the segment's messages."""
    return NewMemory(
        content=statement.text,
        kind=Kind.FACT,
        importance=draft.importance,
        triple=Triple(statement.subject, statement.predicate, statement.object),
        occurred_at=find_moment(draft),
        evidence=find_evidence(draft),
    )


def find_moment(draft: Draft) -> datetime:
    """Find when the last word was said that a user said, or anybody."""
    spoken = [message for message in draft.messages if message.role is Role.USER] or draft.messages
    return max(message.occurred_at for message in spoken)


def find_evidence(draft: Draft) -> tuple[UUID, ...]:
    """Name the messages that a segment's facts rest on: all of them, for any of them may have said it."""
    return tuple(message.id for message in draft.messages)


async def write_segment(connection: Connection, linking: Linking) -> None:
    """Write what one segment says, in the current transaction."""
    desk, draft = linking.desk, linking.draft
    beside = desk.beside
    believing = beside.believing if beside else None
    if believing is None:
        believing = await open_believing(connection, desk.caller, desk.scope)
    found = await find_entities(connection, believing, draft, beside)
    called = {normalise_name(mention.name): found[key_of(mention)] for mention in reversed(draft.mentions)}
    await entities.mention(connection, desk.scope_id, name_all(draft, found, linking.said_at))
    if beside is None:
        await believe(desk.parts, connection, believing, await take_all(connection, linking, called))
        return
    # What a statement says is over must be a fact by then, so that its end can rest on the statement.
    replaced = {number for each in draft.statements for number in each.replaces}
    names = {fact.id for number, fact in enumerate(draft.shown, 1) if number in replaced}
    if len(beside.waiting) >= MOST_WAITING or any(each.id in names for each in beside.waiting):
        await believe_waiting(connection, desk, beside)
    beside.waiting += await take_all(connection, linking, called)


async def believe_waiting(connection: Connection, desk: Desk, beside: Beside) -> None:
    """Believe what the segments of a run have stated so far."""
    if beside.believing is not None:
        beside.believe(await believe(desk.parts, connection, beside.believing, beside.waiting))


async def find_entities(
    connection: Connection, believing: Believing, draft: Draft, beside: Beside | None = None
) -> Mapping[Key, UUID]:
    """Give every mention its entity: the one that was found, if it is still there, or one of its name and type."""
    scope_id = believing.opening.scope_id
    resolved = [entity.id for entity in draft.resolved.values() if entity is not None]
    present = await entities.fetch_known(connection, scope_id, resolved)
    found: dict[Key, UUID] = {}
    new: dict[Key, Mention] = {}
    seen: set[str] = set()
    for mention in draft.mentions:
        name = normalise_name(mention.name)
        # Of two mentions that are called the same, it was found out who the first one is.
        entity = draft.resolved.get(name) if name not in seen else None
        seen.add(name)
        if entity is not None and entity.id in present:
            found[key_of(mention)] = entity.id
        elif entity is not None and beside is not None and entity.id in beside.made:
            found[key_of(mention)] = beside.made[entity.id]
        else:
            new[key_of(mention)] = mention
    ids = new_ids(believing, len(new))
    wanted = [NewEntity(each, mention.name, mention.type) for each, mention in zip(ids, new.values(), strict=True)]
    made = dict(await entities.ensure(connection, scope_id, wanted))
    if beside is not None:
        beside.make(made)
    return found | made


def key_of(mention: Mention) -> Key:
    """Give what tells a mention from the others of its segment."""
    return normalise_name(mention.name), mention.type


def name_all(draft: Draft, found: Mapping[Key, UUID], moment: datetime) -> list[Naming]:
    """List what the segment calls its entities, and what it says of them."""
    namings = []
    for mention in draft.mentions:
        entity = found[key_of(mention)]
        namings.append(Naming(draft.segment.id, entity, mention.name, moment, mention.description))
        namings += [Naming(draft.segment.id, entity, alias, moment) for alias in mention.aliases]
    return namings


async def take_all(connection: Connection, linking: Linking, called: Mapping[str, UUID]) -> list[Taken]:
    """Take up the segment's statements; one that turns out to join an entity to itself says nothing."""
    draft = linking.draft
    shown = find_lineages(linking)
    # A fact that was shown may be gone, or out of sight, by the time that an answer says it is over.
    known = await facts.fetch_facts(connection, linking.desk.scope_id, lineages=sorted(set(shown))) if shown else []
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
    """Name the facts that the model was shown; what a run said itself is called otherwise since it is believed."""
    beside, shown = linking.desk.beside, [fact.id for fact in linking.draft.shown]
    return [beside.lineages.get(each, each) for each in shown] if beside else shown
