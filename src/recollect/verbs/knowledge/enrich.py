"""Enrich: cut a scope's conversations into segments, and learn from each that has closed, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic, perf_counter
from typing import TypeAlias
from uuid import UUID

from recollect.core.agents.reflection import is_due
from recollect.core.conversations.appends import check_conversation
from recollect.core.text import phrases
from recollect.core.topics.paths import choose_paths, parse_topic
from recollect.core.topics.rating import steady
from recollect.errors import NotFoundError, RecollectError, UnavailableError
from recollect.models.knowledge import Ending, SegmentState, StoredSegment
from recollect.models.memories import JSON, ImportanceFrom, Kind, NewMemory
from recollect.models.service import Caller, Right, Scope
from recollect.models.topics import Filing, Reach
from recollect.store.agents import reflections
from recollect.store.conversations import conversations
from recollect.store.database.pool import Connection
from recollect.store.knowledge import segments
from recollect.store.knowledge.segments import Closed, ClosingSegment, SegmentOutcome, Spoken, Unsegmented
from recollect.store.service import jobs, scopes
from recollect.store.service.jobs import Lease
from recollect.store.topics import topics
from recollect.verbs.knowledge.steps.draft import RUNNING, SPEAKING, Draft, Stage, StepContext, Stretch
from recollect.verbs.knowledge.steps.extraction import ExtractOnce
from recollect.verbs.memories.perform import perform
from recollect.verbs.memories.rows import Write, embed_missing, prepare_all
from recollect.verbs.parts import Parts
from recollect.verbs.service.costs import note_step

ORIGIN = "enrich"
FULL_TRUST = 100
"""Lowered by the evidence: what is learned has the least trust of its sources."""
MOST_ATTEMPTS = 3
"""How often a segment is tried before it gets a summary without a model."""
MOST_AT_ONCE, LONGEST_SECONDS = 20, 60.0
"""After so many segments or seconds a job makes room for other scopes, and another one goes on."""
PAGE, MOST_SEGMENTS = 50, 200
CUTTING = "segment"
"""Without this step there are no segments, and so nothing to learn from."""
DONE = "done"
LOG = logging.getLogger("recollect.enrich")
Times: TypeAlias = list[tuple[str, float]]
"""How many milliseconds each step took, by its name."""


@dataclass(frozen=True, slots=True)
class Work:
    """Which scope is enriched, and for which run of a job."""

    parts: Parts
    scope: Scope
    scope_id: int
    lease: Lease | None = None
    """None where a caller waits for it, and no job."""

    async def open_context(self) -> StepContext:
        """Build the context of the steps."""
        caller = Caller(self.scope.tenant_id, frozenset({Right.READ, Right.WRITE}), ORIGIN, FULL_TRUST)
        place = await scopes.locate(self.parts.database, self.scope)
        return StepContext(self.parts, caller, self.scope, self.scope_id, place, datetime.now(UTC))


async def enrich(
    parts: Parts, scope_id: int, lease: Lease | None = None, report: Callable[[int], None] = lambda _: None
) -> int:
    """Close what has come to its end in a scope and enrich it, first come first served; return how many segments.

    What is too much for once is left to another job.
    """
    scope = await reflections.find_scope(parts.database, scope_id)
    if scope is None or CUTTING not in parts.steps:
        return 0
    work = Work(parts, scope, scope_id, lease)
    for conversation in await segments.list_running(parts.database, scope_id):
        await cut_alone(work, conversation)
    began, done = monotonic(), 0
    while closed := await segments.find_next(parts.database, scope_id):
        if done >= MOST_AT_ONCE or monotonic() - began >= LONGEST_SECONDS:
            await segments.enqueue(parts.database, scope_id)
            break
        await learn(work, closed)
        done += 1
        report(done)
    return done


async def cut_alone(work: Work, conversation: Unsegmented) -> None:
    """Cut a conversation; a failure does not block the others, and is retried when it falls silent."""
    try:
        await cut(work, conversation)
    except Exception as problem:
        if is_elsewhere(problem):
            raise
        LOG.warning("A conversation could not be cut into segments: %s", type(problem).__name__)


async def cut(work: Work, conversation: Unsegmented, asked: Ending | None = None) -> int:
    """Close the segments of a conversation that have come to their end; return how many.

    A longer stretch is read piece by piece, and ends where a piece does if no topic does before. `asked` is why what
    is left closes, too.
    """
    closed = 0
    while conversation.segmented_number < conversation.last_number:
        first = conversation.segmented_number + 1
        spoken = await segments.read_messages(
            work.parts.database, work.scope_id, conversation.id, first, conversation.last_number
        )
        if not spoken.messages:
            await segments.pass_by(work.parts.database, work.scope_id, conversation, spoken.last_number)
            conversation = replace(conversation, segmented_number=spoken.last_number)
            continue
        closings, times = await find_closings(work, conversation, spoken, asked)
        if not closings:
            break
        if not await segments.close(work.parts.database, work.scope_id, conversation, spoken, closings):
            # What has changed is read again.
            await segments.enqueue(work.parts.database, work.scope_id)
            break
        await note_steps(work, times, None)
        closed += len(closings)
        conversation = replace(conversation, segmented_number=closings[-1].last_number)
        if spoken.whole:
            break
    return closed


async def find_closings(
    work: Work, conversation: Unsegmented, spoken: Spoken, asked: Ending | None
) -> tuple[list[ClosingSegment], Times]:
    """Let the steps say where segments end, and make sure that a piece of a longer stretch ends in any case."""
    context = replace(
        await work.open_context(),
        now=conversation.now,
        since=conversation.idle_since if spoken.whole else None,
        asked=asked if spoken.whole else None,
    )
    stretch = Stretch(RUNNING, conversation.id, conversation.segmented_number + 1, spoken.last_number)
    draft = Draft(stretch, spoken.messages)
    draft, times = await take_steps(work, context, draft, Stage.CONVERSATION)
    closings = to_closings(draft, spoken.last_number)
    reaches = bool(closings) and closings[-1].last_number == spoken.last_number
    ending = asked if spoken.whole else (None if closings else Ending.LENGTH)
    if ending and not reaches and CUTTING in work.parts.steps:
        first = closings[-1].last_number + 1 if closings else 0
        closings.append(ClosingSegment(spoken.last_number, ending, label=name_topic(draft, first, spoken.last_number)))
    return closings, times


def to_closings(draft: Draft, last_number: int) -> list[ClosingSegment]:
    """Turn closed segments into numbers: each reaches to the message before the next one's first turn."""
    spoken = [message for message in draft.messages if message.role in SPEAKING]
    closings, first, passed = list[ClosingSegment](), 0, 0
    for segment in draft.closed:
        passed += len(segment.turns)
        last = spoken[passed].number - 1 if passed < len(spoken) else last_number
        closings.append(ClosingSegment(last, segment.ending, segment.similarity, name_topic(draft, first, last)))
        first = last + 1
    return closings


def name_topic(draft: Draft, first: int, last: int) -> str:
    """Label a run of messages by the labels of each."""
    run = [message.id for message in draft.messages if first <= message.number <= last]
    return phrases.label([draft.labels[each] for each in run if draft.labels.get(each)])


async def learn(work: Work, closed: Closed) -> None:
    """Enrich one segment; one that fails gets a summary of its own sentences, and does not block the others."""
    database = work.parts.database
    failed = closed.attempts >= MOST_ATTEMPTS
    reason = "Its workers died over it, one after the other." if failed else ""
    if not failed:
        await segments.count_attempt(database, work.scope_id, closed.id)
        try:
            await learn_by(work, closed, "")
        except asyncio.CancelledError:
            # A worker that is told to stop did not fail because of the segment.
            await take_back(work, closed)
            raise
        except Exception as problem:
            if is_elsewhere(problem):
                await take_back(work, closed)
                raise
            if closed.attempts + 1 < MOST_ATTEMPTS:
                raise
            failed, reason = True, describe(problem)
    if failed:
        await give_up(work, closed, reason)


async def take_back(work: Work, closed: Closed) -> None:
    """Do not count an attempt whose failure is not the segment's; an error in this must not hide the first one."""
    with suppress(RecollectError):
        await segments.count_attempt(work.parts.database, work.scope_id, closed.id, -1)


async def give_up(work: Work, closed: Closed, reason: str) -> None:
    """Leave a segment with what can be said without a model, or with nothing if that fails as well."""
    try:
        await learn_by(replace(work, parts=replace(work.parts, chat=None)), closed, reason)
    except Exception as problem:
        if is_elsewhere(problem):
            raise
        await learn_by(replace(work, parts=replace(work.parts, chat=None, steps={})), closed, reason)


def is_elsewhere(problem: Exception) -> bool:
    """Tell whether a failure has nothing to do with the messages; a database error may be caused by them."""
    return is_everywhere(problem) and not isinstance(problem, UnavailableError)


def is_everywhere(problem: Exception) -> bool:
    """Tell whether every other segment would fail as well: something is unavailable, or misconfigured."""
    return isinstance(problem, RecollectError) and (problem.unavailable or getattr(problem, "lasting", False))


def describe(problem: Exception) -> str:
    """Say why a segment failed, in words that quote nothing said."""
    return str(problem).partition("\n")[0] if isinstance(problem, RecollectError) else type(problem).__name__


async def learn_by(work: Work, closed: Closed, reason: str) -> None:
    """Run every step for a segment, then write the result."""
    stretch = Stretch(closed.id, closed.conversation, closed.first_number, closed.last_number)
    database, numbers = work.parts.database, (closed.first_number, closed.last_number)
    spoken = await segments.read_messages(database, work.scope_id, closed.conversation, *numbers)
    context = await work.open_context()
    draft = Draft(stretch, spoken.messages, label=closed.label)
    times: Times = []
    if draft.messages:
        # What a model said of a failed segment may be the cause of the failure.
        context = context if reason else replace(context, extractor=ExtractOnce(context))
        draft, times = await take_steps(work, context, draft, Stage.SEGMENT)
    await apply(work, context, closed, draft, reason)
    await note_steps(work, times, closed.id)


async def take_steps(work: Work, context: StepContext, draft: Draft, stage: Stage) -> tuple[Draft, Times]:
    """Run the steps of a stage in order; return how long each took that asked no model for an extraction."""
    times: Times = []
    extractor = context.extractor
    for step in work.parts.steps.values():
        if step.stage is stage:
            asked, began = count_asked(extractor), perf_counter()
            draft = await step.run(context, draft)
            if count_asked(extractor) == asked:
                times.append((step.name, (perf_counter() - began) * 1000))
    return draft, times


def count_asked(extractor: object) -> int:
    """Count how often the model was asked, which is in the ledger already."""
    return extractor.asked if isinstance(extractor, ExtractOnce) else 0


async def note_steps(work: Work, times: Times, source_id: UUID | None) -> None:
    """Enter the steps that were run in the ledger."""
    for name, milliseconds in times:
        await note_step(work.parts, work.scope_id, name, milliseconds, outcome=DONE, source_id=source_id)


async def apply(work: Work, context: StepContext, closed: Closed, draft: Draft, reason: str) -> None:
    """Write everything that was learned from a segment in one transaction.

    Nothing is written if another run did before, or if some of what was read is gone: then it is read again.
    """
    new = [to_summary(draft)] if draft.summary else []
    write = Write(context.caller, context.scope, prepare_all(new), await embed_missing(work.parts, new), "", b"")
    state = SegmentState.FAILED if reason else SegmentState.ENRICHED
    async with work.parts.database.transaction(work.scope.tenant_id) as connection:
        # The scope is locked first, as in every write, and the lease checked before anything is written.
        await segments.hold_scope(connection, work.scope_id)
        if work.lease is not None:
            await jobs.hold_lease(connection, work.lease)
        if not await segments.hold_closed(connection, work.scope_id, closed, draft.messages):
            return
        summary_id = None
        if new:
            summary_id = (await perform(work.parts, connection, write))[0].id
            await segments.supersede_summary(connection, work.scope_id, closed.id, summary_id)
        else:
            await file_messages(connection, work.scope_id, draft)
        for each in draft.writes:
            await each(connection, work.scope_id)
        await weigh_messages(connection, work, context, closed, draft)
        outcome = SegmentOutcome(state, draft.label, reason, summary_id)
        await segments.note_outcome(connection, work.scope_id, closed, outcome)


async def weigh_messages(
    connection: Connection, work: Work, context: StepContext, closed: Closed, draft: Draft
) -> None:
    """Note how important the messages are, and queue a reflection once enough importance has gathered."""
    await segments.rate(connection, work.scope_id, draft.ratings)
    gathered = await segments.gather(connection, work.scope_id, closed.id, [message.id for message in draft.messages])
    if gathered and work.parts.chat and is_due(gathered.importance, context.place.profile.reflection_threshold):
        await scopes.defer_reflection(connection, work.scope_id, gathered.memories)


def to_summary(draft: Draft) -> NewMemory:
    """Make the summary memory of a segment."""
    paths: list[JSON] = [list(path) for path in draft.paths]
    topic, related = choose_paths(draft.paths, draft.label)
    return NewMemory(
        draft.summary,
        kind=Kind.SUMMARY,
        keywords=draft.keywords,
        importance=draft.importance,
        importance_from=ImportanceFrom.MODEL,
        evidence=tuple(message.id for message in draft.messages),
        occurred_at=max(message.occurred_at for message in draft.messages),
        metadata={"conversation": draft.segment.conversation, "label": draft.label, "paths": paths},
        topic=topic,
        related_topics=related,
        reach=steady(Reach(), len(related), len(draft.messages)),
    )


async def file_messages(connection: Connection, scope_id: int, draft: Draft) -> None:
    """File the messages of a segment under its topic if there is no summary to file."""
    topic, related = choose_paths(draft.paths, draft.label)
    if topic and draft.messages:
        reach = steady(Reach(), len(related), len(draft.messages))
        filings = [Filing(message.id, reach, related) for message in draft.messages]
        await topics.file(connection, scope_id, [topics.file_as(parse_topic(topic), each) for each in filings])


async def list_segments(
    parts: Parts, scope: Scope, conversation: str, after: int = 0, limit: int = PAGE
) -> list[StoredSegment]:
    """List the segments of a conversation in order, after a message number."""
    check_conversation(conversation)
    if await conversations.find(parts.database, scope, conversation) is None:
        raise NotFoundError("There is no such conversation in this scope.")
    return await segments.page(parts.database, scope, conversation, after, limit)


async def close_segment(parts: Parts, scope: Scope, conversation: str) -> list[StoredSegment]:
    """Close what is still running in a conversation, because a caller says that it is over; list all its segments."""
    await list_segments(parts, scope, conversation, limit=1)
    place = await scopes.locate(parts.database, scope)
    scope_id = place.scope_id or 0
    for _ in range(MOST_ATTEMPTS):
        running = await segments.find_running(parts.database, scope_id, conversation)
        # An append meanwhile changes its end.
        if running is None or await cut(Work(parts, scope, scope_id), running, Ending.ASKED):
            break
    if CUTTING in parts.steps:
        await segments.enqueue(parts.database, scope_id)
    return await list_segments(parts, scope, conversation, limit=MOST_SEGMENTS)
