"""Segment: find where the topic of a conversation changes, among what its user says and in the order it was said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.core import segments
from recollect.core.messages import said
from recollect.core.segments import USUAL, Rules, to_turn
from recollect.core.terms import script_of
from recollect.models import Embedding, Message, Profile, Role
from recollect.models.knowledge import Ending, Segment
from recollect.verbs.steps.draft import Desk, Draft


async def segment(desk: Desk, draft: Draft) -> Draft:
    """Close every segment that came to its end, the last one too where the conversation has fallen silent."""
    rules = rules_of(desk.place.profile)
    turns = [
        to_turn(message.id, message.occurred_at, said(message), find_vector(desk, draft, message))
        for message in draft.messages
        if message.role is Role.USER
    ]
    closed, running = segments.segment(turns, rules)
    if is_silent(desk, rules):
        closed.append(Segment(running.turns, Ending.IDLE))
    return replace(draft, closed=tuple(closed))


def find_vector(desk: Desk, draft: Draft, message: Message) -> Embedding | None:
    """Find a message's vector, if it says anything: an embedder that cannot read a script finds all of it alike."""
    embedder = desk.parts.embedder
    readable = embedder is None or script_of(said(message)) in embedder.scripts
    return draft.vectors.get(message.id) if readable else None


def rules_of(profile: Profile) -> Rules:
    """Say when a segment ends for an agent; what its profile leaves open is as usual."""
    rules = USUAL
    if profile.topic_threshold is not None:
        rules = replace(rules, threshold=profile.topic_threshold)
    if profile.idle_minutes is not None:
        rules = replace(rules, idle_minutes=profile.idle_minutes)
    return rules


def is_silent(desk: Desk, rules: Rules) -> bool:
    """Tell whether nothing was appended for too long, by the clock: what was said long ago may have come today."""
    if desk.since is None or not rules.idle_minutes:
        return False
    return desk.now - desk.since >= timedelta(minutes=rules.idle_minutes)
