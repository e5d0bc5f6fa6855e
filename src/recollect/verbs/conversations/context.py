"""Context: one prompt from the newest turns, recalled memories and the running summary, in one token budget."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from uuid import UUID

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH, check_conversation, check_open
from recollect.core.conversations.budget import check_shares, fit
from recollect.core.conversations.messages import count_tokens, memory_text
from recollect.core.conversations.prompt_texts import choose_wording
from recollect.core.recall.checks import check_cue
from recollect.core.text.checks import MAX_CUE_LENGTH, MAX_HITS, check_text
from recollect.core.text.similarity import SourceText
from recollect.errors import InvalidInputError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import Omitted
from recollect.models.conversations import Context, Message
from recollect.models.filters import Filter
from recollect.models.memories import Memory, Role
from recollect.models.recall import Cue, Hit, RecallResult
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations
from recollect.store.conversations.conversations import Read
from recollect.store.memories import memories
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.conversations.block import query_pinned
from recollect.verbs.conversations.history import MAX_TOKENS, check_window, choose_tokenizer, find_silent, read_path
from recollect.verbs.conversations.omitted import list_left_out
from recollect.verbs.conversations.prompt import (
    NOTHING_RECALLED,
    PromptMaterial,
    PromptRequest,
    assemble,
    select_new_memories,
)
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall import access as recall_access
from recollect.verbs.recall.extra_scopes import RecallCaller, find_others, recall_others
from recollect.verbs.recall.judge import read_source_texts
from recollect.verbs.recall.recall import keep_relevant, recall, recall_relevant

TOKENS_PER_HIT = 60
"""The budget divided by this is the number of memories to recall: most cost less, some are in the history."""
MIN_HITS = 20


@dataclass(frozen=True, slots=True)
class RecalledContext:
    """The recalled memories, the location of the scope, and the maximum number of memories to show."""

    place: ScopeHandle
    recollection: RecallResult
    most: int
    cut_off: bool
    """Whether there may be more memories than requested."""
    source_texts: Mapping[UUID, SourceText]
    """The texts of sources of summaries among the hits."""
    others: Mapping[str, ScopeHandle] = field(default_factory=dict[str, ScopeHandle])
    """The locations of extra scopes that were read, by name."""
    irrelevant: Sequence[Hit] = ()
    """Hits that are hardly likely to help."""

    def group(self, hits: Sequence[Hit]) -> list[tuple[ScopeHandle, list[Memory]]]:
        """Group the memories of hits by the scope they were read from."""
        places = {"": self.place, **self.others}
        parted = [(place, [hit.memory for hit in hits if hit.scope == name]) for name, place in places.items()]
        return [(place, found) for place, found in parted if found]


@dataclass(frozen=True, slots=True)
class PromptPreamble:
    """The parts that a prompt always shows: the running summary, and pinned memories, newest first."""

    summary: Memory | None
    pinned: Sequence[Memory]


async def context(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    conversation: str,
    wanted: PromptRequest,
    place: ScopeHandle | None,
) -> Context:
    """Read the thread, recall and find a summary at once; then divide the budget, and record shown memories."""
    check_conversation(conversation)
    wanted = check(wanted, parts.channel_names)
    tokenizer = choose_tokenizer(parts, wanted.window.tokenizer)
    try:
        async with asyncio.TaskGroup() as reading:
            walked = reading.create_task(read_thread(parts, scope, conversation, wanted, tokenizer))
            extra = reading.create_task(read_summary_and_pinned(parts, scope, conversation, wanted))
            reminding = reading.create_task(recall_for_prompt(parts, caller, scope, wanted, place))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    known = extra.result()
    if walked.result() is None:
        # If the conversation is hidden, its summary is hidden, too.
        known = replace(known, summary=None)
    material = collect_material(walked.result() or [], known, reminding.result(), wanted)
    # In a thread: the first count reads a vocabulary, and long texts take time.
    made = await asyncio.to_thread(assemble, material, wanted, tokenizer)
    if is_starved(made, material, reminding.result(), wanted.cue):
        more = await recall_for_prompt(parts, caller, scope, wanted, reminding.result().place, MAX_HITS)
        material = collect_material(walked.result() or [], known, more, wanted)
        made = await asyncio.to_thread(assemble, material, wanted, tokenizer)
    await record_access(parts, reminding.result(), wanted.cue, made.hits)
    if not wanted.cue.explain:
        return made
    hits = await asyncio.to_thread(list_left_out, material, wanted, made, tokenizer)
    turns, tokens = await count_above(parts, scope, conversation, wanted, made, material)
    return replace(made, left_out=Omitted(hits, turns, tokens))


async def count_above(
    parts: Dependencies, scope: Scope, conversation: str, wanted: PromptRequest, made: Context, material: PromptMaterial
) -> tuple[int, int]:
    """Count the turns of the thread that are older than those in the prompt, and their tokens."""
    shown = made.history.messages
    start = shown[0].parent if shown else material.thread[0].message.id if material.thread else None
    if start is None:
        return 0, 0
    window = replace(wanted.window, leaf=start)
    return await conversations.count_thread(parts.database, scope, conversation, window, made.history.tokenizer)


def collect_material(
    path: Sequence[Read], extra: PromptPreamble, reminded: RecalledContext, wanted: PromptRequest
) -> PromptMaterial:
    """Collect the material of a prompt."""
    asked = find_asked(path, wanted)
    turn = {message.turn for message in asked}
    thread = [read for read in path if read.message.turn not in turn]
    return PromptMaterial(
        thread,
        asked,
        extra.summary,
        reminded.recollection,
        reminded.most,
        reminded.source_texts,
        extra.pinned,
        choose_wording(reminded.place.profile.language, wanted.cue.text),
        reminded.irrelevant,
    )


def is_starved(made: Context, material: PromptMaterial, reminded: RecalledContext, cue: Cue) -> bool:
    """Return whether more memories could be recalled and shown, because everything so far fitted."""
    if not reminded.cut_off or len(made.hits) >= reminded.most:
        return False
    shown = {hit.memory.id for hit in made.hits}
    pinned = {line.memory_id: line for line in made.lines if line.pinned}
    return all(each.memory.id in shown for each in select_new_memories(material, cue, made.history, pinned))


def check(wanted: PromptRequest, channels: Sequence[str]) -> PromptRequest:
    """Refuse invalid options; the window's own budget does not count."""
    if not 1 <= wanted.budget <= MAX_TOKENS:
        raise InvalidInputError(f"budget must be between 1 and {MAX_TOKENS}")
    check_text("system", wanted.system, MAX_MESSAGE_LENGTH)
    check_text("text", wanted.cue.text, MAX_MESSAGE_LENGTH)
    if wanted.cue.blank:
        raise InvalidInputError("context requires a query or an embedding")
    check_cue(shorten_cue(wanted.cue), channels)
    check_shares(wanted.shares)
    # The same time for the whole prompt: memories, messages and summary.
    window = replace(wanted.window, max_tokens=wanted.budget, as_of=wanted.cue.as_of, at=wanted.cue.at)
    check_window(window)
    return replace(wanted, window=window)


def shorten_cue(cue: Cue) -> Cue:
    """Shorten a long query to its end, which recall reads: in a dialogue the question is there."""
    text = cue.text.strip()
    # A saved recall is deleted with the message of the same text; one with a part of the text would stay.
    return replace(cue, text=text[-MAX_CUE_LENGTH:], keep=cue.keep if len(text) <= MAX_CUE_LENGTH else False)


async def read_thread(
    parts: Dependencies, scope: Scope, conversation: str, wanted: PromptRequest, tokenizer: Tokenizer
) -> list[Read] | None:
    """Read as much of the thread as could be shown, newest first; None without a conversation."""
    # Turns without an answer are always read: one of them may be the query's.
    window = replace(wanted.window, unanswered=False)
    path = await read_path(parts, scope, conversation, window, tokenizer)
    if not path:
        known = await find_silent(parts, scope, conversation, window)
        if known is None:
            return None
        # Fail now, before an answer is generated that cannot be appended.
        check_open(known.state)
    return await asyncio.to_thread(recount, path, tokenizer) if not all(read.exact for read in path) else path


def recount(path: Sequence[Read], tokenizer: Tokenizer) -> list[Read]:
    """Count the messages that this tokenizer did not count at the append: an estimate would leave room unused."""
    return [
        read if read.exact else Read(replace(read.message, tokens=count(read.message, tokenizer)), exact=True)
        for read in path
    ]


def count(message: Message, tokenizer: Tokenizer) -> int:
    """Count the tokens of a message in a prompt."""
    return count_tokens(message, tokenizer.count, tokenizer.frame, tokenizer.naming)


def find_asked(path: Sequence[Read], wanted: PromptRequest) -> tuple[Message, ...]:
    """Find the query at the end of the thread: a user's message with the same text, without an answer."""
    turn = [read.message for read in takewhile(lambda read: read.message.turn == path[0].message.turn, path)]
    if not turn or turn[-1].role is not Role.USER or memory_text(turn[-1]).strip() != wanted.cue.text.strip():
        return ()
    if fit(turn, MAX_TOKENS, unanswered=False).messages:
        return ()
    # Messages after the question, such as a tool's result, are shown if turns without an answer are.
    return tuple(reversed(turn)) if wanted.window.unanswered else (turn[-1],)


async def read_summary_and_pinned(
    parts: Dependencies, scope: Scope, conversation: str, wanted: PromptRequest
) -> PromptPreamble:
    """Read the running summary and pinned memories, if they are valid, trusted and have a share."""
    shares, cue = wanted.shares, wanted.cue
    if not shares.summary and not shares.memories:
        return PromptPreamble(None, ())
    # All other restrictions of a query are about memories recalled in addition to the summary.
    only = Filter(min_trust=cue.min_trust, as_of=cue.as_of, at=cue.at)
    pinned = query_pinned(cue) if shares.memories else None
    async with parts.database.reading(scope.tenant_id) as connection:
        named = await conversations.ask_summary(connection, scope, conversation, only) if shares.summary else None
        kept = await memories.query_memories(connection, scope, pinned) if pinned else None
    shown = [*(await memories.read_memory_rows(kept)).values()] if kept else []
    summary = await conversations.read_summary(named) if named else None
    found = await memories.fetch(parts.database, scope, [summary], only) if summary else {}
    return PromptPreamble(found.get(summary) if summary else None, shown)


async def recall_for_prompt(
    parts: Dependencies,
    caller: Caller,
    scope: Scope,
    wanted: PromptRequest,
    place: ScopeHandle | None,
    limit: int | None = None,
) -> RecalledContext:
    """Recall more than is likely to be shown, because some will be in the history; record no access yet."""
    place = place or await locate(parts.database, scope)
    most = wanted.cue.limit or place.profile.limit or MAX_HITS
    if not wanted.shares.memories:
        return RecalledContext(place, NOTHING_RECALLED, 0, cut_off=False, source_texts={})
    usual = max(MIN_HITS, wanted.budget // TOKENS_PER_HIT)
    fetched = limit or min(MAX_HITS, usual, most + usual // 2)
    cue = replace(shorten_cue(wanted.cue), limit=fetched, touch=False, explain=False)
    made = await recall(parts, scope, cue, place)
    recollection = keep_relevant(made, cue, place)
    kept = {hit.memory.id for hit in recollection.hits}
    irrelevant = tuple(hit for hit in made.hits if hit.memory.id not in kept)
    asker = RecallCaller(caller, scope, place)
    others = await find_others(parts, asker, cue)
    recollection = await recall_others(asker, cue, recollection, others, recall_relevant)
    cut_off = fetched == len(recollection.hits) < MAX_HITS
    places = {name: other.place for name, other in others.items()}
    reminded = RecalledContext(place, recollection, most, cut_off, {}, places, irrelevant)
    texts: dict[UUID, SourceText] = {}
    for read, found in reminded.group(recollection.hits):
        texts |= await read_source_texts(await parts_of(parts, place, read), read.scope_id or 0, found)
    return replace(reminded, source_texts=texts)


async def record_access(parts: Dependencies, reminded: RecalledContext, cue: Cue, hits: Sequence[Hit]) -> None:
    """Record accesses of the memories in the prompt; an error here does not fail the prompt."""
    for place, shown in reminded.group(hits) if cue.touch else ():
        if place.scope_id is not None:
            touched = {cue.now: [memory.id for memory in shown]}
            own = await parts_of(parts, reminded.place, place)
            await recall_access.record_access(own, place.scope_id, touched)


async def parts_of(parts: Dependencies, own: ScopeHandle, read: ScopeHandle) -> Dependencies:
    """Return the dependencies for an extra scope, which may be on another server."""
    if read.scope_id is None or read.scope_id == own.scope_id:
        return parts
    return replace(parts, database=await parts.servers.by_scope_id(read.scope_id))
