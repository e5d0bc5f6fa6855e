"""Block: recall, and write the hits as one text within a token budget; in a conversation nothing twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from uuid import UUID

from recollect.core.conversations.appends import check_conversation, check_open
from recollect.core.conversations.block import (
    PINNED_PART,
    BlockMemory,
    Gauge,
    fill,
    fold,
    lay_out,
    leave_least,
    order,
    render,
    shorten_ids,
)
from recollect.core.conversations.shown import ShownMemory, compute_present, level_of, register
from recollect.core.conversations.wording import ENGLISH, Wording, choose_wording
from recollect.core.dates.periods import find_zone
from recollect.core.text.checks import MOST_HITS
from recollect.core.text.similar import SourceText
from recollect.errors import InvalidInputError, NotFoundError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import Block, Level, Line, Resolved
from recollect.models.memories import Memory, Role
from recollect.models.recall import Cue, Hit, Recollection
from recollect.models.service import Scope
from recollect.store.conversations import shown as shown_store
from recollect.store.conversations.shown import Shown
from recollect.store.database.pool import Connection
from recollect.store.database.replicas import primary_of
from recollect.store.memories import accesses, memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service.scopes import Place, locate
from recollect.verbs.conversations.history import MOST_TOKENS, choose_tokenizer
from recollect.verbs.memories.read import get
from recollect.verbs.parts import Parts
from recollect.verbs.recall import access as recall_access
from recollect.verbs.recall.judge import read_source_texts
from recollect.verbs.recall.recall import recall_relevant

MOST_PINNED = 200
"""So many of the newest pinned memories are read: more than a tenth of most budgets holds."""
TOKENS_PER_HIT = 30
"""The budget divided by this is how many memories are recalled: a line costs more, unless it is abstract."""
FEWEST_HITS = 10
NOTHING_SHOWN = Shown((), frozenset(), None)
SHORT_ID = re.compile(r"\[?m?([0-9a-f]{4,32})\]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """The options of a block."""

    cue: Cue
    budget: int
    conversation: str = ""
    """The conversation whose earlier blocks count; none if empty."""
    repeat: bool = False
    """Whether what they showed is shown again while it fades; if not, it is left out until it is gone."""
    tokenizer: str = ""

    @property
    def now(self) -> datetime:
        """Give the moment that fading is computed for."""
        return self.cue.now or datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class BlockMaterial:
    """The material of a block."""

    hits: Sequence[Hit]
    present: Mapping[UUID, ShownMemory]
    """What the conversation was shown before and is not gone."""
    repeated: Sequence[Memory]
    """What of it is shown again although the cue does not find it, the most present first."""
    names: Mapping[UUID, str]
    """The short id of everything that may be shown."""
    now: datetime
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    pinned: Sequence[Memory] = ()
    """Pinned memories, the newest first."""
    wording: Wording = ENGLISH
    """The words around them."""


@dataclass(frozen=True, slots=True)
class BlockFindings:
    """What was read for a block: hits, pinned memories, and what the conversation was shown."""

    hits: Sequence[Hit]
    pinned: Sequence[Memory]
    shown: Shown


async def block(parts: Parts, scope: Scope, asked: BlockRequest, place: Place | None) -> Block:
    """Recall more than is likely to be shown, fit it into the budget, and note what is shown."""
    if not 1 <= asked.budget <= MOST_TOKENS:
        raise InvalidInputError(f"budget must be between 1 and {MOST_TOKENS}")
    if asked.conversation:
        check_conversation(asked.conversation)
    if asked.cue.also:
        raise InvalidInputError("a block reads its own scope only: a short id is resolved there; leave out also")
    tokenizer = choose_tokenizer(parts, asked.tokenizer)
    place = place or await locate(parts.database, scope)
    shown = await read_shown(parts, place, asked.conversation)
    most = asked.cue.limit or place.profile.limit or MOST_HITS
    wider = min(MOST_HITS, max(FEWEST_HITS, min(most, asked.budget // TOKENS_PER_HIT)) + len(shown.memories))
    cue = replace(asked.cue, limit=wider, touch=False)
    try:
        async with asyncio.TaskGroup() as reading:
            recalling = reading.create_task(recall_relevant(parts, scope, cue, place))
            keeping = reading.create_task(read_pinned(parts, scope, asked.cue))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    recollection = recalling.result()
    found = BlockFindings(recollection.hits, keeping.result(), shown)
    material = await gather(parts, scope, place, asked, found)
    # In a thread: the first count reads a vocabulary, and long texts take time.
    made = await asyncio.to_thread(assemble, material, asked, most, tokenizer, recollection)
    await note(parts, place, asked, material, made)
    return made


async def read_shown(parts: Parts, place: Place, conversation: str) -> Shown:
    """Read what a conversation was shown; one that is deleted is refused."""
    if not conversation or place.scope_id is None:
        return NOTHING_SHOWN
    shown = await shown_store.read(parts.database, place.scope_id, conversation)
    if shown.state is not None:
        check_open(shown.state)
    return shown


def query_pinned(cue: Cue) -> RowQuery | None:
    """Ask for pinned memories within a cue's filter, the newest first; nothing where the filter excludes them."""
    only = replace(cue.filter, pinned=True)
    return None if cue.pinned is False else RowQuery(only=only, limit=MOST_PINNED, newest=True)


async def read_pinned(parts: Parts, scope: Scope, cue: Cue) -> list[Memory]:
    """Read pinned memories."""
    wanted = query_pinned(cue)
    if wanted is None:
        return []
    async with parts.database.reading(scope.tenant_id) as connection:
        found = await memories.ask(connection, scope, wanted)
    return [*(await memories.read(found)).values()]


async def gather(parts: Parts, scope: Scope, place: Place, asked: BlockRequest, found: BlockFindings) -> BlockMaterial:
    """Compute what is still present, and fetch what is shown again and the sources of summaries."""
    hits, shown = found.hits, found.shown
    reminded = {hit.memory.id for hit in hits}
    now = asked.now
    present = compute_present(shown.memories, now, reminded)
    repeated: list[Memory] = []
    if asked.repeat and (wanted := [each for each in present if each not in reminded and each in shown.in_sight]):
        fetched = await memories.fetch(parts.database, scope, wanted, asked.cue.filter)
        repeated = sorted(fetched.values(), key=lambda each: (-present[each.id].score, each.id))
    listed = [*reminded, *present, *(memory.id for memory in found.pinned)]
    names = shorten_ids(listed, {each.memory_id: each.short_id for each in shown.memories})
    memories_shown = [hit.memory for hit in hits if asked.repeat or hit.memory.id not in present]
    source_texts = await read_source_texts(parts, place.scope_id or 0, [*memories_shown, *repeated])
    wording = choose_wording(place.profile.language, asked.cue.text)
    return BlockMaterial(hits, present, repeated, names, now, source_texts, found.pinned, wording)


def assemble(
    material: BlockMaterial, asked: BlockRequest, most: int, tokenizer: Tokenizer, recollection: Recollection
) -> Block:
    """Fit memories into the budget, the best first, and write them as text, lines and messages."""
    wording = material.wording
    gauge = Gauge(cache(tokenizer.count), tokenizer.cut, find_zone(asked.cue.zone), wording)
    form = tokenizer.frame + gauge.count(render([], wording))
    room = asked.budget - form
    kept = choose(material, asked, [(memory, 0.0) for memory in material.pinned], pinned=True)
    pinned = fill(kept, min(asked.budget // PINNED_PART, room), gauge, len(kept))
    ranked = [(hit.memory, hit.score) for hit in material.hits] + [(memory, 0.0) for memory in material.repeated]
    candidates = choose(material, asked, ranked, shown=pinned.lines)

    def fits(lines: Sequence[Line]) -> bool:
        return tokenizer.frame + gauge.count(lay_out(lines, wording=wording)) <= asked.budget

    filled = fill(candidates, room - pinned.tokens, gauge, most)
    # All together may cost a little more than one by one.
    lines = order(leave_least([*pinned.lines.values(), *filled.lines.values()], fits))
    there = {line.memory_id for line in lines}
    text = lay_out(lines, wording=wording)
    repeats = 0 if asked.repeat else sum(hit.memory.id in material.present for hit in material.hits)
    return Block(
        text=text,
        lines=tuple(lines),
        messages=({"role": Role.SYSTEM.value, "content": text},) if text else (),
        tokens=tokenizer.frame + gauge.count(text) if text else 0,
        budget=asked.budget,
        tokenizer=tokenizer.name,
        left_out=sum(each.memory.id not in there for each in candidates),
        not_repeated=repeats,
        methods=recollection.methods,
        status=recollection.status,
        message=recollection.message,
        explanation=recollection.explanation,
        recall_id=recollection.recall_id,
        pinned_left_out=tuple(each.memory.id for each in kept if each.memory.id not in there),
    )


def choose(
    material: BlockMaterial,
    asked: BlockRequest,
    ranked: Sequence[tuple[Memory, float]],
    shown: Collection[UUID] = (),
    *,
    pinned: bool = False,
) -> list[BlockMemory]:
    """List what the block may show, best first: no two of the same words, and nothing that only repeats the cue."""
    told = {"", fold(asked.cue.text), *(fold(memory.content) for memory in material.pinned if memory.id in shown)}
    chosen: list[BlockMemory] = []
    for memory, score in ranked:
        before = material.present.get(memory.id)
        content = fold(memory.content)
        if content in told or (before is not None and not asked.repeat):
            continue
        told.add(content)
        # Pinned memories do not fade.
        level = level_of(before.score) if before and not pinned else None
        each = BlockMemory(memory, material.names[memory.id], score, material.source_texts, pinned=pinned)
        chosen.append(replace(each, ceiling=level or Level.FULL, again=before is not None))
    return chosen


async def note(parts: Parts, place: Place, asked: BlockRequest, material: BlockMaterial, made: Block) -> None:
    """Note the access and what the conversation was shown; a failure to note does not fail the block."""
    ids = [line.memory_id for line in made.lines if not line.pinned]
    if not asked.cue.touch or place.scope_id is None or not (made.lines or material.present):
        return
    scope_id = place.scope_id

    async def write(connection: Connection) -> None:
        if ids:
            await accesses.record(connection, scope_id, ids, asked.cue.now)
        if asked.conversation:
            new = [(line.memory_id, line.short_id) for line in made.lines]
            await shown_store.save(
                connection, scope_id, asked.conversation, register(material.present, new, material.now)
            )

    if asked.conversation:
        # The next block leaves out what this one has shown: its caller is told how far the log came by that.
        parts = replace(parts, database=primary_of(parts.database))
    await recall_access.note(parts, scope_id, write)


async def resolve(parts: Parts, scope: Scope, short_id: str, conversation: str) -> Resolved:
    """Find the memory that a short id stands for, and what it was made from.

    In a conversation that is the one it was shown; else the only one in the scope whose id ends so.
    """
    written = SHORT_ID.fullmatch(short_id.strip())
    if written is None:
        raise InvalidInputError("a short id is an m and at least 4 of the characters 0-9 and a-f, as in m1a2b")
    tail = written[1].lower()
    place = await locate(parts.database, scope)
    memory_id = await find(parts, place.scope_id, tail, conversation) if place.scope_id is not None else None
    if memory_id is None:
        raise NotFoundError("No memory is known by this short id here.")
    memory = await get(parts, scope, memory_id)
    found = await memories.fetch(parts.database, scope, memory.evidence) if memory.evidence else {}
    return Resolved(memory, tuple(found[each] for each in memory.evidence if each in found))


async def find(parts: Parts, scope_id: int, tail: str, conversation: str) -> UUID | None:
    """Find a memory by the end of its id; an ambiguous end is refused."""
    if conversation:
        check_conversation(conversation)
        return await shown_store.find_shown(parts.database, scope_id, conversation, f"m{tail}")
    ids = await shown_store.find_ending(parts.database, scope_id, tail)
    if len(ids) > 1:
        raise InvalidInputError("several memories' ids end so: name the conversation, or give more characters")
    return ids[0] if ids else None
