"""Re-run: read history again with another model or prompt, without changes, then switch to the result."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias
from uuid import UUID

from recollect.core.knowledge.extractions import AnyExtraction
from recollect.core.knowledge.rerun import RunCosts, expect, list_statements
from recollect.core.knowledge.transcripts import fit_facts
from recollect.core.service.costs import price_of
from recollect.core.text.checks import check_line, check_moment
from recollect.core.text.tokens import estimate, find_tokenizer
from recollect.errors import BudgetError, InvalidInputError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import version_of
from recollect.models.knowledge import EnrichPlan, EnrichRequest, EnrichResult, ParsedExtraction
from recollect.models.service import Scope
from recollect.store.knowledge import reruns, segments
from recollect.store.knowledge.reruns import RerunSegment, RunIdentity
from recollect.store.knowledge.segments import ClosedSegment
from recollect.store.service.scopes import locate
from recollect.store.shards.tenants import Tenants
from recollect.verbs.dependencies import Dependencies, require_chat_model
from recollect.verbs.knowledge.enrich import (
    MAX_ATTEMPTS,
    EnrichJob,
    describe_enrich_error,
    is_everywhere,
    note_steps,
    run_steps,
    to_summary,
)
from recollect.verbs.knowledge.steps.draft import Draft, MessageRange, Stage, StepContext
from recollect.verbs.knowledge.steps.extraction import MAX_LISTED, PROMPT, ExtractOnce, find_shown, write_prompt
from recollect.verbs.knowledge.steps.link import find_moment
from recollect.verbs.knowledge.steps.staged import StagedStatements
from recollect.verbs.knowledge.switch import SegmentResult, SwitchReport, switch
from recollect.verbs.memories.rows import embed_missing, prepare
from recollect.verbs.recovery import recover

LOG = logging.getLogger("recollect.rerun")
RESUME_HINT = "Run the same command again to resume. Finished work is kept."
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the scope, the number of finished segments, and their total."""


def no_progress(_: str, __: int, ___: int) -> None:
    """Do not report progress."""


@dataclass(frozen=True, slots=True)
class EnrichRuns:
    """Estimates and runs new extractions of history, for operators."""

    parts: Dependencies
    tenants: Tenants
    build: Callable[[str], ChatModel | None]
    """Builds the configured endpoint with another model."""

    async def plan(self, wanted: EnrichRequest) -> list[EnrichPlan]:
        """Estimate the work of a re-run for each scope; change nothing."""
        async with self._opened(wanted) as works:
            past = RunCosts()
            if works:
                past = await reruns.read_past(works[0].parts.database, works[0].scope.tenant_id)
            planned = [await plan_scope(work, wanted, past) for work in works]
        return [each for each in planned if each.segments]

    async def run(self, wanted: EnrichRequest, report: Progress = no_progress) -> list[EnrichResult]:
        """Read history again scope by scope, and switch each when it is complete; resume an interrupted run."""
        done = []
        async with self._opened(wanted) as works:
            for work in works:
                try:
                    reread = await rerun_scope(work, wanted, report)
                except BudgetError as problem:
                    raise BudgetError(f"{problem} {RESUME_HINT}", problem.until) from None
                if reread is not None:
                    done.append(reread)
        return done

    @asynccontextmanager
    async def _opened(self, wanted: EnrichRequest) -> AsyncIterator[list[EnrichJob]]:
        """Find the selected scopes, and the model that will read them."""
        check_wanted(wanted)
        tenant_id = await self.tenants.find_tenant_number(wanted.tenant)
        own = self.parts.chat
        is_own = not wanted.model or (own is not None and own.model == wanted.model)
        other = None if is_own else self.build(wanted.model)
        parts = replace(self.parts, chat=own if is_own else other)
        require_chat_model(parts)
        try:
            databases = await parts.servers.each(tenant_id)
            found = [
                EnrichJob(replace(parts, database=own), Scope(tenant_id, each.agent, each.user), each.id)
                for own in databases
                for each in await reruns.list_scopes(own, tenant_id, wanted.agent, wanted.user)
            ]
            for work in found:
                await recover(parts.recoveries, tenant_id, partial(locate, work.parts.database, work.scope))
            yield found
        finally:
            if other is not None:
                await other.close()


def check_wanted(wanted: EnrichRequest) -> None:
    """Refuse options that match no history."""
    check_line("agent", wanted.agent)
    if wanted.user is not None:
        check_line("user", wanted.user)
        if not wanted.agent:
            raise InvalidInputError("user requires agent")
    check_line("model", wanted.model)
    if wanted.since is not None:
        check_moment("since", wanted.since)


async def plan_scope(work: EnrichJob, wanted: EnrichRequest, past: RunCosts) -> EnrichPlan:
    """Count the history of a scope, and write all prompts without sending them."""
    terms, context = find_terms(work, wanted), await work.open_context()
    run_id = await reruns.find_unfinished_run(work.parts.database, work.scope_id, terms)
    listed = await reruns.list_segments(work.parts.database, work.scope_id, wanted.since, run_id)
    stretches = [(to_stretch(each.closed), each.kept) for each in listed]
    prompts: list[int] = []
    counted = messages = 0
    for stretch, kept in stretches:
        draft = await read_draft(work, stretch)
        if draft.messages:
            counted, messages = counted + 1, messages + len(draft.messages)
            if not kept:
                prompts.append(await count_prompt(context, draft))
    cost = expect(past, prompts)
    price = price_of(work.parts.options.prices, terms.model, cost.prompt_tokens, cost.completion_tokens)
    return EnrichPlan(work.scope.agent, work.scope.user, counted, messages, replace(cost, price=price))


def find_terms(work: EnrichJob, wanted: EnrichRequest) -> RunIdentity:
    """Return the identity of the run."""
    return RunIdentity(require_chat_model(work.parts).model, version_of(PROMPT), wanted.since)


def to_stretch(closed: ClosedSegment) -> MessageRange:
    """Return the range of a segment's messages."""
    return MessageRange(closed.id, closed.conversation, closed.first_number, closed.last_number)


async def read_draft(work: EnrichJob, stretch: MessageRange, label: str = "") -> Draft:
    """Read the messages of a stretch."""
    numbers = (stretch.first_number, stretch.last_number)
    spoken = await segments.read_messages(work.parts.database, work.scope_id, stretch.conversation, *numbers)
    return Draft(stretch, spoken.messages, label=label)


async def count_prompt(context: StepContext, draft: Draft) -> int:
    """Count the tokens of a prompt that shows current facts instead of those that the run will state."""
    chat = require_chat_model(context.parts)
    shown = fit_facts(await find_shown(context, draft), chat.characters, MAX_LISTED)
    prompt = write_prompt(context, draft, shown, chat.characters)
    schema = json.dumps(AnyExtraction.model_json_schema(), ensure_ascii=False)
    return await asyncio.to_thread(find_counter(context.parts, chat.model), prompt + schema)


def find_counter(parts: Dependencies, model: str) -> Callable[[str], int]:
    """Return the model's tokenizer if it is known, else an upper estimate."""
    name = find_tokenizer(model, [each.name for each in parts.tokenizers])
    return next((each.count for each in parts.tokenizers if each.name == name), estimate)


async def rerun_scope(work: EnrichJob, wanted: EnrichRequest, report: Progress) -> EnrichResult | None:
    """Read one scope's history again and switch to it; None if there is none."""
    database, scope_id, begun = work.parts.database, work.scope_id, await reruns.read_clock(work.parts.database)
    terms = find_terms(work, wanted)
    run_id = await reruns.find_unfinished_run(database, scope_id, terms)
    listed = await reruns.list_segments(database, scope_id, wanted.since, run_id)
    if not listed:
        return None
    ids = [each.closed.id for each in listed]
    staged = await open_staged(work, run_id or await reruns.begin(database, scope_id, terms), ids)
    context = replace(await work.open_context(), staged=staged, budgeted=not wanted.ignore_budget)
    built = await build(work, context, listed, report)
    switched = await switch(work, context, staged, built) if built else SwitchReport(0, 0)
    cost = await reruns.read_spent(database, scope_id, terms.model, begun, ids)
    left = len(listed) - switched.segments
    return EnrichResult(work.scope.agent, work.scope.user, switched.segments, left, switched.replaced, cost)


async def open_staged(work: EnrichJob, run_id: UUID, ids: Sequence[UUID]) -> StagedStatements:
    """Collect the statements of a run, knowing which facts it will replace."""
    async with work.parts.database.reading(work.scope.tenant_id) as connection:
        found = await reruns.find_replaced(connection, work.scope_id, ids)
    return StagedStatements(run_id, ids, {each.lineage: each.span for each in found})


async def build(
    work: EnrichJob, context: StepContext, listed: Sequence[RerunSegment], report: Progress
) -> list[SegmentResult]:
    """Run the steps for all segments in order; stored answers are not requested again."""
    label = " and ".join(filter(None, (work.scope.agent, work.scope.user)))
    built: list[SegmentResult] = []
    report(label, 0, len(listed))
    for number, each in enumerate(listed, 1):
        one = await build_with_retries(work, replace(context, now=datetime.now(UTC)), each.closed)
        if one is not None:
            built.append(one)
        report(label, number, len(listed))
    return built


async def build_with_retries(work: EnrichJob, context: StepContext, closed: ClosedSegment) -> SegmentResult | None:
    """Build a segment; None if all attempts fail."""
    for _ in range(MAX_ATTEMPTS):
        try:
            return await build_one(work, context, closed)
        except Exception as problem:
            if is_everywhere(problem):
                raise
            LOG.warning("event segment_rerun_failed, error=%s", describe_enrich_error(problem))
    return None


async def build_one(work: EnrichJob, context: StepContext, closed: ClosedSegment) -> SegmentResult | None:
    """Run the steps for one segment and prepare their writes; None if its messages are gone."""
    draft = await read_draft(work, to_stretch(closed), closed.label)
    staged = context.staged
    if not draft.messages or staged is None:
        return None
    extractor = ExtractOnce(context)
    context = replace(context, extractor=extractor)
    draft, times = await run_steps(work, context, draft, Stage.SEGMENT)
    extraction = await context.extract(draft)
    parsed, shown = (extraction.parsed, extraction.shown) if extraction else (ParsedExtraction(), ())
    staged.add_segment(list_statements(closed.id, parsed, shown, find_moment(draft)), draft.mentions, draft.resolved)
    if extractor.asked:
        await note_steps(work, times, closed.id)
    new = [to_summary(draft)] if draft.summary else []
    vectors = await embed_missing(work.parts, new)
    return SegmentResult(
        closed,
        draft.label,
        prepare(new[0]) if new else None,
        vectors[0] if vectors is not None else None,
        draft.writes,
    )
