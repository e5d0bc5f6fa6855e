"""Ask the channels: all queries are sent together, and a slow one does not delay the others.

The usual case costs one round trip. In a large scope two searches run in parallel, over two connections. If a statement
reaches its time limit, earlier answers are kept, its channel is skipped, and later channels are asked once more,
without it.
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
from recollect.core.recall.cues import ParsedCue
from recollect.core.service.numbers import tenant_of
from recollect.errors import StatementTimeoutError
from recollect.models.recall import Cue
from recollect.store.database.pool import Connection, read_answered
from recollect.store.service.scopes import ScopeHandle
from recollect.tracing import span
from recollect.verbs.dependencies import Dependencies

Outcome = TypeVar("Outcome")
MIN_CANDIDATES = 200
MIN_SECONDARY_CANDIDATES = 50
PRIMARY_CHANNELS = frozenset({"text", "vector", "date", "opensearch"})
"""Channels whose lower candidates are useful, too; of the others, the first are enough."""
ASKING_SHARE = 0.75
"""The share of the deadline for the channels: the rest is for fetching the hits."""
MAX_CHANNEL_TIME_SHARE = 0.5
"""Maximum share of that time for one of several channels: a slow one leaves time for the rest."""
MIN_CHANNEL_SECONDS = 0.01
"""Minimum remaining time in which another channel is asked."""
SIDE_BY_SIDE = 20_000
"""In a scope with this many memories, scans and word searches each take many milliseconds."""
SCANNING = frozenset({"vector", "stream", "graph"})
LATER = frozenset({"graph"})
"""Channels that are asked after the others of their query, because they start from their hits."""
GRACE_SECONDS = 0.25
"""We end a query ourselves this long after the server should: the connection is lost then."""


@dataclass(frozen=True, slots=True)
class PlannedCue:
    """A parsed query, with its channels."""

    cue: Cue
    reading: ParsedCue
    channels: Sequence[Channel]
    limit: int
    consulted: str = ""
    """The note on the chat model's parsing of the query; empty if it was not asked."""

    @property
    def depth(self) -> int:
        """Return how many candidates each channel returns: fusion needs more than are shown."""
        return self.limit if len(self.channels) == 1 else max(MIN_CANDIDATES, self.limit)

    def depth_of(self, channel: Channel) -> int:
        """Return how many candidates a channel returns."""
        return (
            self.depth
            if channel.name in PRIMARY_CHANNELS
            else min(self.depth, max(MIN_SECONDARY_CANDIDATES, self.limit))
        )


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """A query for one channel: the index of the parsed query, and the channel."""

    cue: int
    channel: Channel

    @property
    def key(self) -> tuple[int, str]:
        """Return the key of the query among all of a step."""
        return self.cue, self.channel.name


class AbandonedError(StatementTimeoutError):
    """The server did not end a query in time, so we closed the connection."""


@dataclass(slots=True)
class RoundTrip:
    """The queries of one round trip, and the last one asked; whether it broke off, and whether by our hand."""

    questions: Sequence[ChannelQuery]
    sent: list[tuple[ChannelQuery, Answer]] = field(default_factory=list[tuple[ChannelQuery, Answer]])
    asking: ChannelQuery | None = None
    broken: bool = False
    abandoned: bool = False


async def ask_channels(
    parts: Dependencies, place: ScopeHandle, step: Sequence[PlannedCue]
) -> list[dict[str, Proposal]]:
    """Ask all channels; a channel that does not answer in time is skipped, with the reason."""
    questions = [
        ChannelQuery(number, channel) for number, asked in enumerate(step) for channel in in_turn(asked.channels)
    ]
    # No other channel waits for a single one.
    alone = len({question.channel.name for question in questions}) <= 1
    # Several queries are answered from one snapshot, which needs one connection.
    apart = len(step) == 1 and not alone and place.memory_count >= SIDE_BY_SIDE
    lanes: tuple[list[ChannelQuery], list[ChannelQuery]] = ([], [])
    for question in questions:
        lanes[apart and question.channel.name in SCANNING].append(question)
    asking = [ask_in_turn(parts, place, step, lane, alone=alone) for lane in lanes if lane]
    answered = await asyncio.gather(*asking) if len(asking) > 1 else [await each for each in asking]
    found = {key: proposal for each in answered for key, proposal in each.items()}
    return [{each.name: found[number, each.name] for each in asked.channels} for number, asked in enumerate(step)]


def in_turn(channels: Sequence[Channel]) -> list[Channel]:
    """Sort the channels of a query into the order in which they are asked."""
    return sorted(channels, key=lambda channel: channel.name in LATER)


async def ask_in_turn(
    parts: Dependencies,
    place: ScopeHandle,
    step: Sequence[PlannedCue],
    questions: Sequence[ChannelQuery],
    *,
    alone: bool,
) -> dict[tuple[int, str], Proposal]:
    """Ask channels over one connection; those after a late one are asked again, without it."""
    found: dict[tuple[int, str], Proposal] = {}
    waiting = questions
    started = time.monotonic()
    whole = ASKING_SHARE * parts.database.deadline_seconds
    box = whole if alone else min(parts.options.channel_seconds, MAX_CHANNEL_TIME_SHARE * whole)
    while waiting:
        seconds = min(box, whole - (time.monotonic() - started))
        if seconds < MIN_CHANNEL_SECONDS:
            found |= {question.key: skip_channel("there was no time left to ask it") for question in waiting}
            break
        with span("channels") as traced:
            sent = await send(parts, place, step, RoundTrip(waiting), seconds)
            proposals = await (keep_answered if sent.broken else read_all)(sent, seconds)
            traced.note(asked=" ".join(dict.fromkeys(each.channel.name for each in waiting)), answered=len(proposals))
        waiting = [question for question in waiting if question.key not in proposals]
        found |= proposals
    return found


async def send(
    parts: Dependencies, place: ScopeHandle, step: Sequence[PlannedCue], sent: RoundTrip, seconds: float
) -> RoundTrip:
    """Send queries in one round trip, each with its time limit; mark whether one exceeded it."""
    tenant_id = tenant_of(place.scope_id or 0)
    try:
        async with parts.database.reading(tenant_id, one_snapshot=len(step) > 1, seconds=seconds) as connection:
            for question in sent.questions:
                sent.asking, asked = question, step[question.cue]
                sending = question.channel.send_query(
                    connection, place, asked.reading, asked.depth_of(question.channel)
                )
                sent.sent.append((question, await send_one(connection, sending, seconds)))
    except StatementTimeoutError as problem:
        sent.broken, sent.abandoned = True, isinstance(problem, AbandonedError)
    return sent


async def send_one(connection: Connection, sending: Awaitable[Answer], seconds: float) -> Answer:
    """Send one query; skip a channel that takes too long. If it waits for the server, the connection is closed."""
    try:
        async with asyncio.timeout(seconds + GRACE_SECONDS):
            return await sending
    except TimeoutError:
        late = describe_lateness(seconds)
        if connection.closed:
            raise AbandonedError(late) from None
        return skipped(late)


async def read_all(sent: RoundTrip, seconds: float) -> dict[tuple[int, str], Proposal]:
    """Read all answers; those that do not wait for the database are read in parallel."""
    read = await asyncio.gather(*(read_in_time(answer, seconds) for _, answer in sent.sent))
    return {question.key: proposal for (question, _), proposal in zip(sent.sent, read, strict=True)}


async def keep_answered(sent: RoundTrip, seconds: float) -> dict[tuple[int, str], Proposal]:
    """Read the answers before a round trip broke off, and skip the channel that broke it, for all queries."""
    found: dict[tuple[int, str], Proposal] = {}
    stalled = sent.asking
    for question, answer in sent.sent:
        proposal = await read_in_time(partial(read_answered, answer), seconds)
        if proposal is None:
            stalled = sent.asking if sent.abandoned else question
            break
        found[question.key] = proposal
    late = skip_channel(describe_lateness(seconds))
    same = [each for each in sent.questions if stalled is None or each.channel.name == stalled.channel.name]
    return {each.key: late for each in same} | found


async def read_in_time(read: Callable[[], Awaitable[Outcome]], seconds: float) -> Outcome | Proposal:
    """Read an answer, or skip it after a time limit."""
    try:
        async with asyncio.timeout(seconds):
            return await read()
    except TimeoutError:
        return skip_channel(describe_lateness(seconds))


def skip_channel(reason: str) -> Proposal:
    """Return an empty proposal of a channel, with the reason."""
    return Proposal(Candidates(), SKIPPED + reason)


def describe_lateness(seconds: float) -> str:
    """Describe how long a channel was waited for."""
    return f"it did not answer within {seconds:.3g} s"
