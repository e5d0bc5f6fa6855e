"""Ask the channels: all queries are sent together, and a slow one does not delay the others.

The usual case costs one round trip. In a large scope two searches go side by side, over two connections. Where a
statement is ended by its time limit, what was answered before it is kept, its channel is given up, and the channels
behind it are asked once more, without it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from recollect.channels.channel import SKIPPED, Answer, Channel, Proposal, skipped
from recollect.core.recall.columns import Candidates
from recollect.core.recall.cues import Reading
from recollect.core.service.numbers import tenant_of
from recollect.errors import OverdueError
from recollect.models.recall import Cue
from recollect.store.database.pool import read_answered
from recollect.store.service.scopes import Place
from recollect.tracing import span
from recollect.verbs.parts import Parts

Outcome = TypeVar("Outcome")
FEWEST_CANDIDATES = 200
FEWEST_OF_OTHERS = 50
LEADING = frozenset({"text", "vector", "date", "opensearch"})
"""Candidates of these are worth reading far down; of the others, the first are enough."""
ASKING_SHARE = 0.75
"""This share of the deadline may be spent on the channels: the rest is for fetching the winners."""
LARGEST_BOX = 0.5
"""The most that one of several channels may take of that time: one that stalls leaves time for the rest."""
SHORTEST_SECONDS = 0.01
"""With less time than this left, a channel is not asked any more."""
SIDE_BY_SIDE = 20_000
"""In a scope of so many memories, what scans it and what searches words each take many milliseconds."""
SCANNING = frozenset({"vector", "stream", "graph"})
LATER = frozenset({"graph"})
"""Asked after the others of its cue, because it starts from what they found."""
GRACE_SECONDS = 0.25
"""We end a query ourselves this long after the server should: the connection is lost then."""


@dataclass(frozen=True, slots=True)
class AskedCue:
    """One parsed cue, with the channels that it is put to."""

    cue: Cue
    reading: Reading
    channels: Sequence[Channel]
    limit: int
    consulted: str = ""
    """The note on what the chat model read in the cue; empty where it was not asked."""

    @property
    def depth(self) -> int:
        """Say how many candidates each channel is asked for: fusion needs more than are shown."""
        return self.limit if len(self.channels) == 1 else max(FEWEST_CANDIDATES, self.limit)

    def depth_of(self, channel: Channel) -> int:
        """Say how many candidates a channel is asked for."""
        return self.depth if channel.name in LEADING else min(self.depth, max(FEWEST_OF_OTHERS, self.limit))


@dataclass(frozen=True, slots=True)
class Question:
    """One cue put to one channel: which of the cues, and which of its channels."""

    cue: int
    channel: Channel

    @property
    def key(self) -> tuple[int, str]:
        """Return the key of the query among all of a step."""
        return self.cue, self.channel.name


@dataclass(slots=True)
class Round:
    """What was sent in one round trip, and which query was running when the connection broke, if it did."""

    questions: Sequence[Question]
    sent: list[tuple[Question, Answer]] = field(default_factory=list[tuple[Question, Answer]])
    asking: Question | None = None
    broken: bool = False


async def ask_channels(parts: Parts, place: Place, step: Sequence[AskedCue]) -> list[dict[str, Proposal]]:
    """Put all questions to their channels; one that does not answer in time is named as skipped, with the reason."""
    questions = [Question(number, channel) for number, asked in enumerate(step) for channel in in_turn(asked.channels)]
    # Nobody else waits for a channel that is alone.
    alone = len({question.channel.name for question in questions}) <= 1
    # Several cues are answered from one snapshot, which one connection has.
    apart = len(step) == 1 and not alone and place.memory_count >= SIDE_BY_SIDE
    lanes: tuple[list[Question], list[Question]] = ([], [])
    for question in questions:
        lanes[apart and question.channel.name in SCANNING].append(question)
    asking = [ask_in_turn(parts, place, step, lane, alone=alone) for lane in lanes if lane]
    answered = await asyncio.gather(*asking) if len(asking) > 1 else [await each for each in asking]
    found = {key: proposal for each in answered for key, proposal in each.items()}
    return [{each.name: found[number, each.name] for each in asked.channels} for number, asked in enumerate(step)]


def in_turn(channels: Sequence[Channel]) -> list[Channel]:
    """Order the channels of a cue as they are asked."""
    return sorted(channels, key=lambda channel: channel.name in LATER)


async def ask_in_turn(
    parts: Parts, place: Place, step: Sequence[AskedCue], questions: Sequence[Question], *, alone: bool
) -> dict[tuple[int, str], Proposal]:
    """Put questions over one connection; those behind one that does not answer in time are asked again, without it."""
    found: dict[tuple[int, str], Proposal] = {}
    waiting = questions
    started = time.monotonic()
    whole = ASKING_SHARE * parts.database.deadline_seconds
    box = whole if alone else min(parts.channel_seconds, LARGEST_BOX * whole)
    while waiting:
        seconds = min(box, whole - (time.monotonic() - started))
        if seconds < SHORTEST_SECONDS:
            found |= {question.key: give_up("there was no time left to ask it") for question in waiting}
            break
        with span("channels") as traced:
            sent = await send(parts, place, step, Round(waiting), seconds)
            proposals = await (keep_answered if sent.broken else read_all)(sent, seconds)
            traced.note(asked=" ".join(dict.fromkeys(each.channel.name for each in waiting)), answered=len(proposals))
        waiting = [question for question in waiting if question.key not in proposals]
        found |= proposals
    return found


async def send(parts: Parts, place: Place, step: Sequence[AskedCue], sent: Round, seconds: float) -> Round:
    """Send queries in one round trip, each with its time limit; tell if one of them exceeded it."""
    tenant_id = tenant_of(place.scope_id or 0)
    try:
        async with parts.database.reading(tenant_id, one_snapshot=len(step) > 1, seconds=seconds) as connection:
            for question in sent.questions:
                sent.asking, asked = question, step[question.cue]
                sending = question.channel.ask(connection, place, asked.reading, asked.depth_of(question.channel))
                sent.sent.append((question, await send_one(sending, seconds)))
    except OverdueError:
        sent.broken = True
    return sent


async def send_one(sending: Awaitable[Answer], seconds: float) -> Answer:
    """Send one query; a channel that takes too long before it sends is given up."""
    try:
        async with asyncio.timeout(seconds + GRACE_SECONDS):
            return await sending
    except TimeoutError:
        return skipped(describe_lateness(seconds))


async def read_all(sent: Round, seconds: float) -> dict[tuple[int, str], Proposal]:
    """Read every answer; those that wait for something else than the database do so in parallel."""
    read = await asyncio.gather(*(read_in_time(answer, seconds) for _, answer in sent.sent))
    return {question.key: proposal for (question, _), proposal in zip(sent.sent, read, strict=True)}


async def keep_answered(sent: Round, seconds: float) -> dict[tuple[int, str], Proposal]:
    """Read what was answered before a round broke off, and give up the channel at which it did, for every cue."""
    found: dict[tuple[int, str], Proposal] = {}
    stalled = sent.asking
    for question, answer in sent.sent:
        proposal = await read_in_time(partial(read_answered, answer), seconds)
        if proposal is None:
            stalled = question
            break
        found[question.key] = proposal
    late = give_up(describe_lateness(seconds))
    same = [each for each in sent.questions if stalled is None or each.channel.name == stalled.channel.name]
    return {each.key: late for each in same} | found


async def read_in_time(read: Callable[[], Awaitable[Outcome]], seconds: float) -> Outcome | Proposal:
    """Read an answer, or give it up."""
    try:
        async with asyncio.timeout(seconds):
            return await read()
    except TimeoutError:
        return give_up(describe_lateness(seconds))


def give_up(reason: str) -> Proposal:
    """Propose nothing in a channel's place, and say why."""
    return Proposal(Candidates(), SKIPPED + reason)


def describe_lateness(seconds: float) -> str:
    """Say how long a channel was waited for."""
    return f"it did not answer within {seconds:.3g} s"
