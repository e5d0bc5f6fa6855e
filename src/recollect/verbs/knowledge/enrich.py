"""Enrich: cut a scope's conversations into segments, and extract knowledge from each closed one, in order."""

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
from recollect.core.topics.rating import damp_link
from recollect.errors import NotFoundError, RecollectError, UnavailableError
from recollect.models.knowledge import SegmentEnd, SegmentRecord, SegmentState
from recollect.models.memories import JSON, ImportanceFrom, Kind, NewMemory
from recollect.models.service import Caller, Right, Scope
from recollect.models.topics import LinkStrength, NewTopicLink
from recollect.store.agents import reflections
from recollect.store.conversations import conversations
from recollect.store.database.pool import Connection
from recollect.store.knowledge import segments
from recollect.store.knowledge.segments import (
    ClosedSegment,
    ClosingSegment,
    MessageRun,
    SegmentOutcome,
    UnsegmentedConversation,
)
from recollect.store.service import jobs, scopes
from recollect.store.service.jobs import Lease
from recollect.store.topics import topics
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.knowledge.steps.draft import RUNNING, SPEAKING, Draft, MessageRange, Stage, StepContext
from recollect.verbs.knowledge.steps.extraction import ExtractOnce
from recollect.verbs.memories.perform import execute_write
from recollect.verbs.memories.rows import Write, embed_missing, prepare_all
from recollect.verbs.service.costs import record_step

ORIGIN = "enrich"
FULL_TRUST = 100
"""The maximum; evidence lowers it: an extracted memory has the lowest trust of its sources."""
MAX_ATTEMPTS = 3
"""Maximum number of attempts before a segment gets a summary without a model."""
MAX_SEGMENTS_PER_JOB, MAX_JOB_SECONDS = 20, 60.0
"""Maximum number of segments, and of seconds, before a job makes room for other scopes and queues another."""
PAGE = 50
CUTTING = "segment"
"""Without this step there are no segments, and so nothing to extract."""
DONE = "done"
LOG = logging.getLogger("recollect.enrich")
Times: TypeAlias = list[tuple[str, float]]
"""The duration of each step in milliseconds, with its name."""


@dataclass(frozen=True, slots=True)
class EnrichJob:
    """The scope to enrich, and the run of the job."""

    parts: Dependencies
    scope: Scope
    scope_id: int
    lease: Lease | None = None
    """None if a caller waits for it instead of a job."""

    async def open_context(self) -> StepContext:
        """Build the context of the steps."""
        caller = Caller(self.scope.tenant_id, frozenset({Right.READ, Right.WRITE}), ORIGIN, FULL_TRUST)
        place = await scopes.locate(self.parts.database, self.scope)
        return StepContext(self.parts, caller, self.scope, self.scope_id, place, datetime.now(UTC))


async def enrich(
    parts: Dependencies, scope_id: int, lease: Lease | None = None, report: Callable[[int], None] = lambda _: None
) -> int:
    """Close finished segments of a scope, and enrich closed ones in order; return how many.

    Another job does the rest if there are too many.
    """
    scope = await reflections.find_scope(parts.database, scope_id)
    if scope is None or CUTTING not in parts.steps:
        return 0
    work = EnrichJob(parts, scope, scope_id, lease)
    for conversation in await segments.list_running(parts.database, scope_id):
        await cut_alone(work, conversation)
    began, done = monotonic(), 0
    while closed := await segments.find_next(parts.database, scope_id):
        if done >= MAX_SEGMENTS_PER_JOB or monotonic() - began >= MAX_JOB_SECONDS:
            await segments.enqueue(parts.database, scope_id)
            break
        await learn(work, closed)
        done += 1
        report(done)
    return done


async def cut_alone(work: EnrichJob, conversation: UnsegmentedConversation) -> None:
    """Cut a conversation; a failure does not block the others, and is retried when the conversation is silent."""
    try:
        await cut(work, conversation)
    except Exception as problem:
        if is_elsewhere(problem):
            raise
        LOG.warning("event segmentation_failed, error=%s", type(problem).__name__)


async def cut(work: EnrichJob, conversation: UnsegmentedConversation, asked: SegmentEnd | None = None) -> int:
    """Close the finished segments of a conversation; return how many.

    A longer stretch is read piece by piece. A piece ends a segment if no topic ends before. `asked` is the reason to
    close the remaining messages, too.
    """
    closed = 0
    while conversation.segmented_number < conversation.last_number:
        first = conversation.segmented_number + 1
        spoken = await segments.read_messages(
            work.parts.database, work.scope_id, conversation.id, first, conversation.last_number
        )
        if not spoken.messages:
            await segments.skip_missing(work.parts.database, work.scope_id, conversation, spoken.last_number)
            conversation = replace(conversation, segmented_number=spoken.last_number)
            continue
        closings, times = await find_closings(work, conversation, spoken, asked)
        if not closings:
            break
        if not await segments.close_segments(work.parts.database, work.scope_id, conversation, spoken, closings):
            # A changed segment is read again.
            await segments.enqueue(work.parts.database, work.scope_id)
            break
        await note_steps(work, times, None)
        closed += len(closings)
        conversation = replace(conversation, segmented_number=closings[-1].last_number)
        if spoken.whole:
            break
    return closed


async def find_closings(
    work: EnrichJob, conversation: UnsegmentedConversation, spoken: MessageRun, asked: SegmentEnd | None
) -> tuple[list[ClosingSegment], Times]:
    """Run the steps that find the ends of segments; a piece of a longer stretch always ends one."""
    context = replace(
        await work.open_context(),
        now=conversation.now,
        since=conversation.idle_since if spoken.whole else None,
        asked=asked if spoken.whole else None,
    )
    stretch = MessageRange(RUNNING, conversation.id, conversation.segmented_number + 1, spoken.last_number)
    draft = Draft(stretch, spoken.messages)
    draft, times = await run_steps(work, context, draft, Stage.CONVERSATION)
    closings = to_closings(draft, spoken.last_number)
    reaches = bool(closings) and closings[-1].last_number == spoken.last_number
    ending = asked if spoken.whole else (None if closings else SegmentEnd.LENGTH)
    if ending and not reaches and CUTTING in work.parts.steps:
        first = closings[-1].last_number + 1 if closings else 0
        closings.append(ClosingSegment(spoken.last_number, ending, label=name_topic(draft, first, spoken.last_number)))
    return closings, times


def to_closings(draft: Draft, last_number: int) -> list[ClosingSegment]:
    """Convert closed segments to numbers: each ends before the first turn of the next one."""
    spoken = [message for message in draft.messages if message.role in SPEAKING]
    closings, first, passed = list[ClosingSegment](), 0, 0
    for segment in draft.closed:
        passed += len(segment.turns)
        last = spoken[passed].number - 1 if passed < len(spoken) else last_number
        closings.append(ClosingSegment(last, segment.ending, segment.similarity, name_topic(draft, first, last)))
        first = last + 1
    return closings


def name_topic(draft: Draft, first: int, last: int) -> str:
    """Label a run of messages by the labels of its messages."""
    run = [message.id for message in draft.messages if first <= message.number <= last]
    return phrases.label([draft.labels[each] for each in run if draft.labels.get(each)])


async def learn(work: EnrichJob, closed: ClosedSegment) -> None:
    """Enrich one segment; a failed one gets a summary from its own sentences, and does not block others."""
    database = work.parts.database
    failed = closed.attempts >= MAX_ATTEMPTS
    reason = "Every worker that enriched it crashed." if failed else ""
    if not failed:
        await segments.count_attempt(database, work.scope_id, closed.id)
        try:
            await enrich_segment(work, closed, "")
        except asyncio.CancelledError:
            # The worker is stopping: the segment did not cause this failure.
            await undo_attempt(work, closed)
            raise
        except Exception as problem:
            if is_elsewhere(problem):
                await undo_attempt(work, closed)
                raise
            if closed.attempts + 1 < MAX_ATTEMPTS:
                raise
            failed, reason = True, describe_enrich_error(problem)
    if failed:
        await finish_without_model(work, closed, reason)


async def undo_attempt(work: EnrichJob, closed: ClosedSegment) -> None:
    """Undo the count of an attempt that failed for another reason; an error here must not hide the first one."""
    with suppress(RecollectError):
        await segments.count_attempt(work.parts.database, work.scope_id, closed.id, -1)


async def finish_without_model(work: EnrichJob, closed: ClosedSegment, reason: str) -> None:
    """Enrich a segment without a model, or without any step if that fails, too."""
    try:
        await enrich_segment(replace(work, parts=replace(work.parts, chat=None)), closed, reason)
    except Exception as problem:
        if is_elsewhere(problem):
            raise
        await enrich_segment(replace(work, parts=replace(work.parts, chat=None, steps={})), closed, reason)


def is_elsewhere(problem: Exception) -> bool:
    """Return whether a failure is unrelated to the messages; a database error may be caused by them."""
    return is_everywhere(problem) and not isinstance(problem, UnavailableError)


def is_everywhere(problem: Exception) -> bool:
    """Return whether all other segments would fail, too: something is unavailable or misconfigured."""
    return isinstance(problem, RecollectError) and (problem.unavailable or getattr(problem, "lasting", False))


def describe_enrich_error(problem: Exception) -> str:
    """Return why a segment failed, without quoting messages."""
    return str(problem).partition("\n")[0] if isinstance(problem, RecollectError) else type(problem).__name__


async def enrich_segment(work: EnrichJob, closed: ClosedSegment, reason: str) -> None:
    """Run all steps for a segment, then write the result."""
    stretch = MessageRange(closed.id, closed.conversation, closed.first_number, closed.last_number)
    database, numbers = work.parts.database, (closed.first_number, closed.last_number)
    spoken = await segments.read_messages(database, work.scope_id, closed.conversation, *numbers)
    context = await work.open_context()
    draft = Draft(stretch, spoken.messages, label=closed.label)
    times: Times = []
    if draft.messages:
        # A model's answer about a failed segment may be the cause of the failure.
        context = context if reason else replace(context, extractor=ExtractOnce(context))
        draft, times = await run_steps(work, context, draft, Stage.SEGMENT)
    await apply(work, context, closed, draft, reason)
    await note_steps(work, times, closed.id)


async def run_steps(work: EnrichJob, context: StepContext, draft: Draft, stage: Stage) -> tuple[Draft, Times]:
    """Run the steps of a stage in order; return their durations, except of those that asked a model."""
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
    """Count the questions to the model, which are in the ledger already."""
    return extractor.asked if isinstance(extractor, ExtractOnce) else 0


async def note_steps(work: EnrichJob, times: Times, source_id: UUID | None) -> None:
    """Record the steps in the ledger."""
    for name, milliseconds in times:
        await record_step(work.parts, work.scope_id, name, milliseconds, outcome=DONE, source_id=source_id)


async def apply(work: EnrichJob, context: StepContext, closed: ClosedSegment, draft: Draft, reason: str) -> None:
    """Write all results of a segment in one transaction.

    Nothing is written if another run has done it, or if a message was removed: then the segment is read again.
    """
    new = [to_summary(draft)] if draft.summary else []
    write = Write(context.caller, context.scope, prepare_all(new), await embed_missing(work.parts, new), "", b"")
    state = SegmentState.FAILED if reason else SegmentState.ENRICHED
    async with work.parts.database.transaction(work.scope.tenant_id) as connection:
        # The scope is locked first, as in every write, and the lease checked before anything is written.
        await segments.lock_scope(connection, work.scope_id)
        if work.lease is not None:
            await jobs.check_lease(connection, work.lease)
        if not await segments.lock_closed_segment(connection, work.scope_id, closed, draft.messages):
            return
        summary_id = None
        if new:
            summary_id = (await execute_write(work.parts, connection, write))[0].id
            await segments.supersede_summary(connection, work.scope_id, closed.id, summary_id)
        else:
            await file_messages(connection, work.scope_id, draft)
        for each in draft.writes:
            await each(connection, work.scope_id)
        await weigh_messages(connection, work, context, closed, draft)
        outcome = SegmentOutcome(state, draft.label, reason, summary_id)
        await segments.record_outcome(connection, work.scope_id, closed, outcome)


async def weigh_messages(
    connection: Connection, work: EnrichJob, context: StepContext, closed: ClosedSegment, draft: Draft
) -> None:
    """Store the importance of messages, and queue a reflection when the backlog is large enough."""
    await segments.rate(connection, work.scope_id, draft.ratings)
    gathered = await segments.gather(connection, work.scope_id, closed.id, [message.id for message in draft.messages])
    if gathered and work.parts.chat and is_due(gathered.importance, context.place.profile.reflection_threshold):
        await scopes.defer_reflection(connection, work.scope_id, gathered.memories)


def to_summary(draft: Draft) -> NewMemory:
    """Create the summary memory of a segment."""
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
        reach=damp_link(LinkStrength(), len(related), len(draft.messages)),
    )


async def file_messages(connection: Connection, scope_id: int, draft: Draft) -> None:
    """File the messages of a segment under its topic if there is no summary to file."""
    topic, related = choose_paths(draft.paths, draft.label)
    if topic and draft.messages:
        reach = damp_link(LinkStrength(), len(related), len(draft.messages))
        filings = [NewTopicLink(message.id, reach, related) for message in draft.messages]
        await topics.file(connection, scope_id, [topics.file_as(parse_topic(topic), each) for each in filings])


async def list_segments(
    parts: Dependencies, scope: Scope, conversation: str, after: int = 0, limit: int = PAGE
) -> list[SegmentRecord]:
    """List the segments of a conversation in order, after a message number."""
    check_conversation(conversation)
    if await conversations.find_conversation(parts.database, scope, conversation) is None:
        raise NotFoundError("No such conversation in this scope.")
    return await segments.page(parts.database, scope, conversation, after, limit)


async def close_segment(parts: Dependencies, scope: Scope, conversation: str) -> None:
    """Close the open messages of a conversation at a caller's request."""
    await list_segments(parts, scope, conversation, limit=1)
    place = await scopes.locate(parts.database, scope)
    scope_id = place.scope_id or 0
    for _ in range(MAX_ATTEMPTS):
        running = await segments.find_running(parts.database, scope_id, conversation)
        # An append at the same time changes its end.
        if running is None or await cut(EnrichJob(parts, scope, scope_id), running, SegmentEnd.ASKED):
            break
    if CUTTING in parts.steps:
        await segments.enqueue(parts.database, scope_id)
