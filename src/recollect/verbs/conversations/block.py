"""Block: recall, and write the hits as one text within a token budget; a conversation is shown nothing twice."""

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
    TextMeter,
    drop_last_lines,
    fill,
    fold,
    order,
    render,
    render_block,
    shorten_ids,
)
from recollect.core.conversations.prompt_texts import ENGLISH, Wording, choose_wording
from recollect.core.conversations.shown_memories import ShownMemory, level_of, register, still_visible
from recollect.core.dates.periods import find_zone
from recollect.core.text.checks import MAX_HITS
from recollect.core.text.similarity import SourceText
from recollect.errors import InvalidInputError, NotFoundError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import BlockLine, DetailLevel, MemoryBlock
from recollect.models.memories import Memory, Role
from recollect.models.recall import Cue, Hit, RecallResult
from recollect.models.service import Scope
from recollect.store.conversations import shown as shown_store
from recollect.store.conversations.shown import Shown
from recollect.store.database.pool import Connection
from recollect.store.memories import accesses, memories
from recollect.store.memories.memories import RowQuery
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.conversations.history import MAX_TOKENS, choose_tokenizer
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall import access as recall_access
from recollect.verbs.recall.judge import read_source_texts
from recollect.verbs.recall.recall import recall_relevant

MAX_PINNED = 200
"""Maximum number of newest pinned memories to read: more than fit in a tenth of most budgets."""
TOKENS_PER_HIT = 30
"""The budget divided by this is the number of memories to recall: most lines cost more."""
MIN_HITS = 10
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
    """Whether to show earlier memories again while they fade; if not, they are omitted until they are gone."""
    tokenizer: str = ""

    @property
    def now(self) -> datetime:
        """Return the time for which fading is computed."""
        return self.cue.now or datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class BlockMaterial:
    """The material of a block."""

    hits: Sequence[Hit]
    present: Mapping[UUID, ShownMemory]
    """The memories of earlier blocks that are not gone."""
    repeated: Sequence[Memory]
    """The memories of earlier blocks to show again although they are no hits, most present first."""
    names: Mapping[UUID, str]
    """The short IDs of all memories that may be shown."""
    now: datetime
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    pinned: Sequence[Memory] = ()
    """Pinned memories, newest first."""
    wording: Wording = ENGLISH
    """The words around them."""


@dataclass(frozen=True, slots=True)
class BlockFindings:
    """The data read for a block: hits, pinned memories, and the memories shown before."""

    hits: Sequence[Hit]
    pinned: Sequence[Memory]
    shown: Shown


async def block(parts: Dependencies, scope: Scope, asked: BlockRequest, place: ScopeHandle | None) -> MemoryBlock:
    """Recall more than is likely to be shown, fit it into the budget, and record the shown memories."""
    if not 1 <= asked.budget <= MAX_TOKENS:
        raise InvalidInputError(f"budget must be between 1 and {MAX_TOKENS}")
    if asked.conversation:
        check_conversation(asked.conversation)
    if asked.cue.also:
        raise InvalidInputError("also is not supported here: short IDs are resolved in one scope")
    tokenizer = choose_tokenizer(parts, asked.tokenizer)
    place = place or await locate(parts.database, scope)
    shown = await read_shown(parts, place, asked.conversation)
    most = asked.cue.limit or place.profile.limit or MAX_HITS
    wider = min(MAX_HITS, max(MIN_HITS, min(most, asked.budget // TOKENS_PER_HIT)) + len(shown.memories))
    cue = replace(asked.cue, limit=wider, touch=False)
    try:
        async with asyncio.TaskGroup() as reading:
            recalling = reading.create_task(recall_relevant(parts, scope, cue, place))
            keeping = reading.create_task(read_pinned(parts, scope, asked.cue))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    recollection = recalling.result()
    found = BlockFindings(recollection.hits, keeping.result(), shown)
    material = await collect_material(parts, scope, place, asked, found)
    # In a thread: the first count reads a vocabulary, and long texts take time.
    made = await asyncio.to_thread(assemble, material, asked, most, tokenizer, recollection)
    await note(parts, place, asked, material, made)
    return made


async def read_shown(parts: Dependencies, place: ScopeHandle, conversation: str) -> Shown:
    """Read the memories that a conversation was shown; refuse a deleted conversation."""
    if not conversation or place.scope_id is None:
        return NOTHING_SHOWN
    shown = await shown_store.fetch_shown(parts.database, place.scope_id, conversation)
    if shown.state is not None:
        check_open(shown.state)
    return shown


def query_pinned(cue: Cue) -> RowQuery | None:
    """Query pinned memories within a filter, newest first; None if the filter excludes them."""
    only = replace(cue.filter, pinned=True)
    return None if cue.pinned is False else RowQuery(only=only, limit=MAX_PINNED, newest=True)


async def read_pinned(parts: Dependencies, scope: Scope, cue: Cue) -> list[Memory]:
    """Read pinned memories."""
    wanted = query_pinned(cue)
    if wanted is None:
        return []
    async with parts.database.reading(scope.tenant_id) as connection:
        found = await memories.query_memories(connection, scope, wanted)
    return [*(await memories.read_memory_rows(found)).values()]


async def collect_material(
    parts: Dependencies, scope: Scope, place: ScopeHandle, asked: BlockRequest, found: BlockFindings
) -> BlockMaterial:
    """Compute which memories are still present, and fetch repeated memories and sources of summaries."""
    hits, shown = found.hits, found.shown
    reminded = {hit.memory.id for hit in hits}
    now = asked.now
    present = still_visible(shown.memories, now, reminded)
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
    material: BlockMaterial, asked: BlockRequest, most: int, tokenizer: Tokenizer, recollection: RecallResult
) -> MemoryBlock:
    """Fit memories into the budget, best first, and write them as text, lines and messages."""
    wording = material.wording
    gauge = TextMeter(cache(tokenizer.count), tokenizer.cut, find_zone(asked.cue.zone), wording)
    form = tokenizer.frame + gauge.count(render([], wording))
    room = asked.budget - form
    kept = choose_block_memories(material, asked, [(memory, 0.0) for memory in material.pinned], pinned=True)
    pinned = fill(kept, min(asked.budget // PINNED_PART, room), gauge, len(kept))
    ranked = [(hit.memory, hit.score) for hit in material.hits] + [(memory, 0.0) for memory in material.repeated]
    candidates = choose_block_memories(material, asked, ranked, shown=pinned.lines)

    def fits(lines: Sequence[BlockLine]) -> bool:
        return tokenizer.frame + gauge.count(render_block(lines, wording=wording)) <= asked.budget

    filled = fill(candidates, room - pinned.tokens, gauge, most)
    # All lines together may cost a little more than their sum.
    lines = order(drop_last_lines([*pinned.lines.values(), *filled.lines.values()], fits))
    there = {line.memory_id for line in lines}
    text = render_block(lines, wording=wording)
    repeats = 0 if asked.repeat else sum(hit.memory.id in material.present for hit in material.hits)
    return MemoryBlock(
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


def choose_block_memories(
    material: BlockMaterial,
    asked: BlockRequest,
    ranked: Sequence[tuple[Memory, float]],
    shown: Collection[UUID] = (),
    *,
    pinned: bool = False,
) -> list[BlockMemory]:
    """List memories for the block, best first: no two with the same text, and none that only repeats the query."""
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
        chosen.append(replace(each, ceiling=level or DetailLevel.FULL, again=before is not None))
    return chosen


async def note(
    parts: Dependencies, place: ScopeHandle, asked: BlockRequest, material: BlockMaterial, made: MemoryBlock
) -> None:
    """Record accesses and shown memories; an error here does not fail the block."""
    ids = [line.memory_id for line in made.lines if not line.pinned]
    if not asked.cue.touch or place.scope_id is None or not (made.lines or material.present):
        return
    scope_id = place.scope_id

    async def record_lines(connection: Connection) -> None:
        if ids:
            await accesses.record(connection, scope_id, ids, asked.cue.now)
        if asked.conversation:
            new = [(line.memory_id, line.short_id) for line in made.lines]
            await shown_store.save(
                connection, scope_id, asked.conversation, register(material.present, new, material.now)
            )

    await recall_access.note(parts, scope_id, record_lines)


async def resolve_short_id(parts: Dependencies, scope: Scope, short_id: str, conversation: str) -> UUID:
    """Find the memory of a short ID.

    With a conversation, it is the one that was shown there; else the only one in the scope whose ID has this ending.
    """
    written = SHORT_ID.fullmatch(short_id.strip())
    if written is None:
        raise InvalidInputError(
            "an ID must be a UUID, or a short ID: m and at least 4 of the characters 0-9 a-f, as in m1a2b"
        )
    tail = written[1].lower()
    place = await locate(parts.database, scope)
    memory_id = await find_by_ending(parts, place.scope_id, tail, conversation) if place.scope_id is not None else None
    if memory_id is None:
        raise NotFoundError("No memory with this short ID here.")
    return memory_id


async def find_by_ending(parts: Dependencies, scope_id: int, tail: str, conversation: str) -> UUID | None:
    """Find a memory by the end of its ID; refuse an ambiguous end."""
    if conversation:
        check_conversation(conversation)
        return await shown_store.find_shown(parts.database, scope_id, conversation, f"m{tail}")
    ids = await shown_store.find_ending(parts.database, scope_id, tail)
    if len(ids) > 1:
        raise InvalidInputError("several memories have this short ID: name the conversation, or give more characters")
    return ids[0] if ids else None
