"""Segment: find where the topic of a conversation changes, in the texts of user and assistant."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

from recollect.core.conversations.messages import memory_text
from recollect.core.knowledge import segments
from recollect.core.knowledge.segments import DEFAULT, SegmentRules, to_turn
from recollect.errors import EmbedderError
from recollect.llm.embedder import serves
from recollect.models.agents import Profile
from recollect.models.conversations import Message
from recollect.models.knowledge import Segment, SegmentEnd
from recollect.models.memories import Embedding, Role
from recollect.verbs.knowledge.steps.draft import JOURNAL, SPEAKING, Draft, StepContext

MAX_EVENTS = 20
"""Maximum number of events in a batch that is read together."""


async def segment(context: StepContext, draft: Draft) -> Draft:
    """Close every finished segment, including the last one if the conversation is silent."""
    rules = rules_of(context.place.profile)
    silent = is_silent(context, rules)
    ended = context.asked or (SegmentEnd.IDLE if silent else None)
    if draft.segment.conversation == JOURNAL:
        return replace(draft, closed=tuple(cut_journal(draft.messages, silent=silent)))
    spoken = [message for message in draft.messages if message.role in SPEAKING]
    turns = [to_turn(each.id, each.occurred_at, memory_text(each), opens=each.role is Role.USER) for each in spoken]
    texts = {turn.id: memory_text(message) for turn, message in zip(turns, spoken, strict=True) if turn.terms}
    vectors = await find_vectors(context, [*texts.values()])
    turns = [replace(turn, embedding=vectors.get(texts.get(turn.id, ""))) for turn in turns]
    closed, _ = segments.segment(turns, rules, ended)
    return replace(draft, closed=tuple(closed))


def cut_journal(events: Sequence[Message], *, silent: bool) -> list[Segment]:
    """Cut events into batches by day and number; the last one stays open until it is full or silent."""
    turns = [to_turn(event.id, event.occurred_at, memory_text(event)) for event in events]
    days = [[*batch] for _, batch in groupby(turns, key=lambda turn: turn.occurred_at.date())]
    batches = [day[first : first + MAX_EVENTS] for day in days for first in range(0, len(day), MAX_EVENTS)]
    running = batches[-1:] if not silent and batches and len(batches[-1]) < MAX_EVENTS else []
    closed = batches[: len(batches) - len(running)]
    return [Segment(tuple(batch), SegmentEnd.IDLE if silent else SegmentEnd.LENGTH) for batch in closed]


async def find_vectors(context: StepContext, texts: Sequence[str]) -> dict[str, Embedding]:
    """Find the vector of each text alone; an embedder that cannot read a script finds all texts similar.

    The vectors of memories cannot be used: they include the speaker and the previous message, which hide changes of
    topic. So these vectors are computed again, and cached for the next time.
    """
    embedder, recent = context.parts.embedder, context.parts.process.recent_vectors
    if embedder is None or not serves(embedder, context.place.space):
        return {}
    read = {text for text in texts if embedder.reads(text)}
    # Without vectors, turns are compared by the terms they share.
    with suppress(EmbedderError):
        return await recent.embed(embedder, sorted(read), context.parts.options.embed_batch)
    return {}


def rules_of(profile: Profile) -> SegmentRules:
    """Return the rules of segments for an agent; fields that its profile does not set have defaults."""
    rules = DEFAULT
    if profile.segment_depth is not None:
        rules = replace(rules, vectors=replace(rules.vectors, depth=profile.segment_depth))
    if profile.idle_minutes is not None:
        rules = replace(rules, idle_minutes=profile.idle_minutes)
    return rules


def is_silent(context: StepContext, rules: SegmentRules) -> bool:
    """Return whether nothing was appended for too long; the clock counts, because appended messages may be old."""
    if context.since is None or not rules.idle_minutes:
        return False
    return context.now - context.since >= timedelta(minutes=rules.idle_minutes)
