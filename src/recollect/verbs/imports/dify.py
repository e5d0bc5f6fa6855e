"""Import the conversations of a Dify database, turn by turn: known ones stay unchanged, new ones are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from uuid import UUID

from recollect.core.conversations.appends import CLOSED, check_conversation, check_messages
from recollect.core.imports import dify
from recollect.core.imports.dify import DifyConversation, DifyTurn, answer_of, question_of
from recollect.core.service.batches import divide
from recollect.core.text.checks import check_scope
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.imports import DifyImport, ImportCount, ImportReport
from recollect.models.service import Caller, Scope
from recollect.store.imports.dify import DifyDatabase, Totals, mark_answered, open_source
from recollect.store.imports.progress import Label, keep, read_standing
from recollect.verbs.conversations.append import append
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.progress import SIDE_BY_SIDE, ImportCounts, Progress, run_concurrently

MAX_TURNS = 250
MAX_BATCH_BYTES = 1_000_000
"""Maximum size of one append in bytes: far below the limit of one call, to stay within its deadline."""


@dataclass(frozen=True, slots=True)
class DifyRun:
    """One import: its source, its target, and its progress."""

    parts: Dependencies
    caller: Caller
    wanted: DifyImport
    source: DifyDatabase
    totals: Totals
    report: Progress
    ledger: ImportCounts = field(default_factory=ImportCounts)


@dataclass(frozen=True, slots=True)
class ConversationPlace:
    """The stored conversation for one of Dify's."""

    scope: Scope
    conversation: str
    known: dict[str, UUID]
    """Its messages by their external ID."""
    ends: dict[str, UUID | int]
    """The end of each turn: the message that the next one follows, or its position in this append."""


async def run_import(parts: Dependencies, caller: Caller, wanted: DifyImport, report: Progress) -> ImportReport:
    """Import the requested new data; a job adds the vectors."""
    check_scope(wanted.agent, "")
    async with open_source(wanted.dsn) as source:
        totals = await source.count(wanted)
        run = DifyRun(replace(parts, embedder=None), caller, wanted, source, totals, report)
        report_counts(run)
        async for conversations in source.conversations(wanted):
            for first in range(0, len(conversations), SIDE_BY_SIDE):
                await run_concurrently(
                    import_conversation(run, conversation)
                    for conversation in conversations[first : first + SIDE_BY_SIDE]
                )
                report_counts(run)
        return conclude(run)


def report_counts(run: DifyRun) -> None:
    """Report progress; messages of skipped conversations count when the last conversation is done."""
    over = run.ledger.passed("conversations") == run.totals.conversations
    for thing, total in found_in(run.totals):
        run.report(thing, total if over else run.ledger.passed(thing), total)


def conclude(run: DifyRun) -> ImportReport:
    """Report the numbers of imported, known and skipped entries."""
    ledger = run.ledger
    brought = tuple(
        ImportCount(
            thing,
            total,
            ledger.imported[thing],
            ledger.known[thing],
            total - ledger.imported[thing] - ledger.known[thing],
        )
        for thing, total in found_in(run.totals)
    )
    return ImportReport(brought, dict(+ledger.remarks), ledger.imported["said"])


def found_in(totals: Totals) -> tuple[tuple[str, int], ...]:
    """Pair the names of imported things with their numbers, in Dify's words."""
    return ("conversations", totals.conversations), ("messages", totals.turns), ("files", totals.files)


async def import_conversation(run: DifyRun, conversation: DifyConversation) -> None:
    """Import one conversation, or record why not."""
    ledger = run.ledger
    user, renamed = dify.find_user(conversation, run.wanted.user_by)
    if conversation.deleted or user is None:
        skip(ledger, dify.DELETED if conversation.deleted else dify.USER_NOT_NAMED)
        return
    scope = Scope(run.caller.tenant_id, run.wanted.agent, user)
    found = await read_standing((await run.parts.at(scope)).database, scope, [conversation.id], dify.OURS)
    standing = found[conversation.id]
    outlines = await run.source.outlines(conversation.id)
    if standing.state in CLOSED or not outlines:
        skip(ledger, dify.CLOSED_HERE if outlines else dify.SILENT)
        return
    turns, adrift = dify.order_turns(outlines)
    place = ConversationPlace(scope, conversation.id, standing.known, {})
    for turn in turns:
        if end := place.known.get(answer_of(turn.id)) or place.known.get(question_of(turn.id)):
            place.ends[turn.id] = end
    said = await import_turns(run, place, turns)
    ledger.remarks[dify.RENAMED] += renamed and bool(said)
    ledger.remarks[dify.MISSING_PARENT] += adrift if standing.state is None else 0
    (ledger.imported if said else ledger.known)["conversations"] += 1
    if not standing.kept:
        name, metadata = dify.describe_conversation(conversation, ledger.remarks)
        if not run.wanted.dry_run:
            # Dify's times have no zone and mean UTC.
            label = Label(dify.OURS, name, metadata, conversation.created_at.replace(tzinfo=UTC))
            await keep((await run.parts.at(scope)).database, scope, {conversation.id: label})


def skip(ledger: ImportCounts, why: str) -> None:
    """Count a conversation as skipped."""
    ledger.skipped["conversations"] += 1
    ledger.remarks[why] += 1


async def import_turns(run: DifyRun, place: ConversationPlace, turns: Sequence[DifyTurn]) -> int:
    """Import the new turns of a conversation; return the number of their messages."""
    whole = [turn for turn in turns if {question_of(turn.id), answer_of(turn.id)} <= place.known.keys()]
    passed = {turn.id for turn in whole}
    fresh = [turn for turn in turns if turn.id not in passed]
    said = 0
    for batch in divide(fresh, lambda turn: turn.octets, MAX_TURNS, MAX_BATCH_BYTES):
        said += await import_batch(run, place, batch)
        report_counts(run)
    for batch in divide(whole, lambda turn: turn.octets, MAX_TURNS, MAX_BATCH_BYTES):
        files = await run.source.files([turn.id for turn in batch])
        run.ledger.known["files"] += sum(map(len, files.values()))
        run.ledger.known["messages"] += len(batch)
    return said


async def import_batch(run: DifyRun, place: ConversationPlace, batch: Sequence[DifyTurn]) -> int:
    """Append turns in one transaction, each after the one it follows."""
    ids = [turn.id for turn in batch]
    exchanges, files = await run.source.exchanges(ids), await run.source.files(ids)
    new: list[NewMessage] = []
    late: list[UUID] = []
    for turn in batch:
        attached = files.get(turn.id, [])
        said = dify.to_messages(exchanges[turn.id], attached)
        fresh = [message for message in said.messages if message.external_id not in place.known]
        question = place.known.get(question_of(turn.id))
        if question and fresh:
            late.append(question)
        record(run.ledger, said, asked_before=question is not None, fresh=bool(fresh), files=len(attached))
        for message in fresh:
            if message.external_id == question_of(turn.id):
                parent = place.ends.get(turn.parent) if turn.parent else None
                new.append(dify.set_parent(message, turn, parent))
            else:
                new.append(replace(message, parent=place.ends[turn.id]))
            place.ends[turn.id] = len(new) - 1
    if new:
        appended = await append_new_messages(run, place, new, late)
        for turn in batch:
            if isinstance(end := place.ends.get(turn.id), int):
                place.ends[turn.id] = appended[end]
    return len(new)


def record(ledger: ImportCounts, said: dify.DifyMessages, *, asked_before: bool, fresh: bool, files: int) -> None:
    """Count one turn as imported or known."""
    side = ledger.imported if fresh else ledger.known
    side["messages"] += 1
    side["files"] += files
    if fresh:
        ledger.remarks.update(said.remarks)
    ledger.remarks[dify.LATE] += asked_before and fresh


async def append_new_messages(
    run: DifyRun, place: ConversationPlace, new: list[NewMessage], late: Sequence[UUID]
) -> list[UUID]:
    """Append messages and return their IDs; in a dry run, only check them."""
    run.ledger.imported["said"] += len(new)
    if run.wanted.dry_run:
        check_conversation(place.conversation)
        check_messages(new)
        return [LEGACY] * len(new)
    if late:
        # Before their answers: if the import stops here, the next one finds them unanswered and retries.
        await mark_answered((await run.parts.at(place.scope)).database, place.scope, place.conversation, late)
    return [
        each.id
        for each in await append(await run.parts.at(place.scope), run.caller, place.scope, place.conversation, new)
    ]
