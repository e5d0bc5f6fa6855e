"""Segment: find where the topic of a conversation changes, among the user's messages in their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from recollect.core.conversations.messages import said
from recollect.core.knowledge import segments
from recollect.core.knowledge.segments import USUAL, SegmentRules, to_turn
from recollect.core.text.terms import indexed_text
from recollect.errors import EmbedderError
from recollect.llm.embedder import serves
from recollect.models.agents import Profile
from recollect.models.conversations import Message
from recollect.models.knowledge import Ending, Segment
from recollect.models.memories import Embedding, Role
from recollect.verbs.knowledge.steps.draft import JOURNAL, Draft, StepContext

MOST_EVENTS = 20
"""A batch of events that is read together."""


async def segment(context: StepContext, draft: Draft) -> Draft:
    """Close every segment that has ended, also the last one if the conversation has become silent."""
    rules = rules_of(context.place.profile)
    if draft.segment.conversation == JOURNAL:
        return replace(draft, closed=tuple(cut_journal(draft.messages, silent=is_silent(context, rules))))
    spoken = [message for message in draft.messages if message.role is Role.USER]
    vectors = await find_vectors(context, draft, spoken)
    turns = [to_turn(message.id, message.occurred_at, said(message), vectors.get(message.id)) for message in spoken]
    closed, running = segments.segment(turns, rules)
    if is_silent(context, rules):
        closed.append(Segment(running.turns, Ending.IDLE))
    return replace(draft, closed=tuple(closed))


def cut_journal(events: Sequence[Message], *, silent: bool) -> list[Segment]:
    """Cut events into batches: of a day, or of so many; the last one goes on until it is full, or nothing comes."""
    turns = [to_turn(event.id, event.occurred_at, said(event)) for event in events]
    days = [[*batch] for _, batch in groupby(turns, key=lambda turn: turn.occurred_at.date())]
    batches = [day[first : first + MOST_EVENTS] for day in days for first in range(0, len(day), MOST_EVENTS)]
    running = batches[-1:] if not silent and batches and len(batches[-1]) < MOST_EVENTS else []
    closed = batches[: len(batches) - len(running)]
    return [Segment(tuple(batch), Ending.IDLE if silent else Ending.LENGTH) for batch in closed]


async def find_vectors(context: StepContext, draft: Draft, spoken: Sequence[Message]) -> dict[UUID, Embedding]:
    """Find the vector of each turn by itself; an embedder that cannot read a script finds all turns alike.

    One that has seen the utterance before is no use here: it hides that the topic changes. So it is made once more.
    """
    embedder = context.parts.embedder
    readable = [each for each in spoken if embedder is None or embedder.reads(said(each))]
    found = {each.id: draft.vectors[each.id] for each in readable if each.id in draft.vectors}
    lacking = [each for each in readable if each.id not in found and said(each).strip()]
    if embedder is None or not serves(embedder, context.place.space):
        return found
    # Without it, turns are compared by the terms they share.
    with suppress(EmbedderError):
        for first in range(0, len(lacking), context.parts.embed_batch):
            batch = lacking[first : first + context.parts.embed_batch]
            rows = await embedder.embed([indexed_text(each.name, said(each)) for each in batch])
            found |= {each.id: row.tolist() for each, row in zip(batch, rows, strict=True)}
    return found


def rules_of(profile: Profile) -> SegmentRules:
    """Return the rules of segments for an agent; what its profile does not set has its default."""
    rules = USUAL
    if profile.segment_threshold is not None:
        rules = replace(rules, threshold=profile.segment_threshold)
    if profile.idle_minutes is not None:
        rules = replace(rules, idle_minutes=profile.idle_minutes)
    return rules


def is_silent(context: StepContext, rules: SegmentRules) -> bool:
    """Tell whether nothing was appended for too long, by the clock: old messages may have been appended today."""
    if context.since is None or not rules.idle_minutes:
        return False
    return context.now - context.since >= timedelta(minutes=rules.idle_minutes)
