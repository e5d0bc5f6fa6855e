"""Re-run: read history again with another model or prompt, without changing anything, then switch to the result."""

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
from recollect.core.knowledge.rerun import Past, expect, tell
from recollect.core.knowledge.transcripts import fit_facts
from recollect.core.service.costs import price_of
from recollect.core.text.checks import check_line, check_moment
from recollect.core.text.tokens import estimate, find_tokenizer
from recollect.core.text.variants import choose_version
from recollect.errors import BudgetError, InvalidInputError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import version_of
from recollect.models.knowledge import Ending, ParsedExtraction, Reread, Rerun, RerunPlan
from recollect.models.service import Scope
from recollect.store.knowledge import reruns, segments
from recollect.store.knowledge.reruns import Listed, Terms
from recollect.store.knowledge.segments import Closed, Unsegmented
from recollect.store.service.scopes import locate, read_text_version
from recollect.store.shards.tenants import Tenants
from recollect.verbs.knowledge.enrich import (
    MOST_ATTEMPTS,
    Work,
    describe,
    find_closings,
    is_everywhere,
    note_steps,
    take_steps,
    to_summary,
)
from recollect.verbs.knowledge.steps.draft import RUNNING, Draft, Stage, StepContext, Stretch
from recollect.verbs.knowledge.steps.extraction import MOST_SHOWN, PROMPT, ExtractOnce, find_shown, write_prompt
from recollect.verbs.knowledge.steps.link import find_moment
from recollect.verbs.knowledge.steps.staged import Staged
from recollect.verbs.knowledge.switch import Built, Switched, switch
from recollect.verbs.memories.rows import embed_missing, prepare
from recollect.verbs.parts import Parts, awake, require_chat_model

LOG = logging.getLogger("recollect.rerun")
GO_ON = "Give the same command again then: what was answered is kept and not asked again, and nothing else has changed."
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the scope, how many segments are done, and of how many."""


def say_nothing(_: str, __: int, ___: int) -> None:
    """Do not report progress."""


@dataclass(frozen=True, slots=True)
class Reruns:
    """Where an operator sees what it would cost to read history again, and starts it."""

    parts: Parts
    tenants: Tenants
    build: Callable[[str], ChatModel | None]
    """Builds the configured endpoint with another model."""

    async def plan(self, wanted: Rerun) -> list[RerunPlan]:
        """Estimate for every scope what a re-run would take; change nothing."""
        async with self._opened(wanted) as works:
            past = Past()
            if works:
                past = await reruns.read_past(works[0].parts.database, works[0].scope.tenant_id)
            planned = [await plan_scope(work, wanted, past) for work in works]
        return [each for each in planned if each.segments]

    async def run(self, wanted: Rerun, report: Progress = say_nothing) -> list[Reread]:
        """Read history again scope by scope, and switch each when it is complete; resume a run that has stopped."""
        done = []
        async with self._opened(wanted) as works:
            for work in works:
                try:
                    reread = await rerun_scope(work, wanted, report)
                except BudgetError as problem:
                    raise BudgetError(f"{problem} {GO_ON}", problem.until) from None
                if reread is not None:
                    done.append(reread)
        return done

    @asynccontextmanager
    async def _opened(self, wanted: Rerun) -> AsyncIterator[list[Work]]:
        """Find the scopes that are meant, and the model that is to read them."""
        check_wanted(wanted)
        tenant_id = await self.tenants.find(wanted.tenant)
        own = self.parts.chat
        is_own = not wanted.model or (own is not None and own.model == wanted.model)
        other = None if is_own else self.build(wanted.model)
        parts = replace(self.parts, chat=own if is_own else other)
        require_chat_model(parts)
        try:
            databases = await parts.servers.each(tenant_id)
            found = [
                Work(replace(parts, database=own), Scope(tenant_id, each.agent, each.user), each.id)
                for own in databases
                for each in await reruns.list_scopes(own, tenant_id, wanted.agent, wanted.user)
            ]
            for work in found:
                await awake(work.parts, partial(locate, work.parts.database, work.scope))
            yield found
        finally:
            if other is not None:
                await other.close()


def check_wanted(wanted: Rerun) -> None:
    """Refuse options that match no history."""
    check_line("agent", wanted.agent)
    if wanted.user is not None:
        check_line("user", wanted.user)
        if not wanted.agent:
            raise InvalidInputError("name the agent, too: a user alone is no scope")
    check_line("model", wanted.model)
    if wanted.since is not None:
        check_moment("since", wanted.since)


async def plan_scope(work: Work, wanted: Rerun, past: Past) -> RerunPlan:
    """Count what a scope's history holds and write every prompt, as far as it is known, without sending it."""
    terms, context = find_terms(work, wanted), await work.open_context()
    run_id = await reruns.find(work.parts.database, work.scope_id, terms)
    listed = await reruns.list_segments(work.parts.database, work.scope_id, wanted.since, run_id)
    stretches = [(to_stretch(each.closed), each.kept) for each in listed]
    for conversation in await reruns.list_unsegmented(work.parts.database, work.scope_id, wanted.since):
        stretches += [(stretch, False) for stretch in await cut_early(work, conversation, wanted.since, keep=False)]
    prompts: list[int] = []
    counted = messages = 0
    for stretch, kept in stretches:
        draft = await read_draft(work, stretch)
        if draft.messages:
            counted, messages = counted + 1, messages + len(draft.messages)
            if not kept:
                prompts.append(await count_prompt(context, draft))
    cost = expect(past, prompts)
    price = price_of(work.parts.prices, terms.model, cost.prompt_tokens, cost.completion_tokens)
    return RerunPlan(work.scope.agent, work.scope.user, counted, messages, replace(cost, price=price))


def find_terms(work: Work, wanted: Rerun) -> Terms:
    """Return what identifies the run."""
    return Terms(require_chat_model(work.parts).model, version_of(PROMPT), wanted.since)


def to_stretch(closed: Closed) -> Stretch:
    """Say which messages a segment holds."""
    return Stretch(closed.id, closed.conversation, closed.first_number, closed.last_number)


async def read_draft(work: Work, stretch: Stretch, label: str = "") -> Draft:
    """Read the messages of a stretch."""
    numbers = (stretch.first_number, stretch.last_number)
    spoken = await segments.read_messages(work.parts.database, work.scope_id, stretch.conversation, *numbers)
    return Draft(stretch, spoken.messages, label=label)


async def count_prompt(context: StepContext, draft: Draft) -> int:
    """Count the tokens of a prompt that shows what is believed now, in place of what the run will state."""
    chat = require_chat_model(context.parts)
    shown = fit_facts(await find_shown(context, draft), chat.characters, MOST_SHOWN)
    prompt = write_prompt(context, draft, shown, chat.characters)
    schema = json.dumps(AnyExtraction.model_json_schema(), ensure_ascii=False)
    return await asyncio.to_thread(find_counter(context.parts, chat.model), prompt + schema)


def find_counter(parts: Parts, model: str) -> Callable[[str], int]:
    """Choose the tokenizer of the model, if it is known, else an upper estimate."""
    name = find_tokenizer(model, [each.name for each in parts.tokenizers])
    return next((each.count for each in parts.tokenizers if each.name == name), estimate)


async def cut_early(work: Work, conversation: Unsegmented, since: datetime | None, *, keep: bool) -> list[Stretch]:
    """Cut messages from before there were segments, by the usual steps; list what lies after a moment."""
    found: list[Stretch] = []
    while conversation.segmented_number < conversation.last_number:
        first = conversation.segmented_number + 1
        spoken = await segments.read_messages(
            work.parts.database, work.scope_id, conversation.id, first, conversation.last_number
        )
        closings, times = await find_closings(work, conversation, spoken, Ending.ASKED) if spoken.messages else ([], [])
        if keep and closings:
            if not await reruns.cut(work.parts.database, work.scope_id, conversation, spoken, closings):
                break
            await note_steps(work, times, None)
        for closing in closings:
            said = [each for each in spoken.messages if first <= each.number <= closing.last_number]
            if since is None or any(each.occurred_at >= since for each in said):
                found.append(Stretch(RUNNING, conversation.id, first, closing.last_number))
            first = closing.last_number + 1
        if spoken.messages and not closings:
            break
        conversation = replace(
            conversation, segmented_number=closings[-1].last_number if closings else spoken.last_number
        )
    return found


async def rerun_scope(work: Work, wanted: Rerun, report: Progress) -> Reread | None:
    """Read one scope's history again and switch to it; None where there is none."""
    choose_version(await read_text_version(work.parts.database, work.scope_id))
    database, scope_id, begun = work.parts.database, work.scope_id, await reruns.read_clock(work.parts.database)
    for conversation in await reruns.list_unsegmented(database, scope_id, wanted.since):
        await cut_early(work, conversation, wanted.since, keep=True)
    terms = find_terms(work, wanted)
    run_id = await reruns.find(database, scope_id, terms)
    listed = await reruns.list_segments(database, scope_id, wanted.since, run_id)
    if not listed:
        return None
    ids = [each.closed.id for each in listed]
    staged = await open_staged(work, run_id or await reruns.begin(database, scope_id, terms), ids)
    context = replace(await work.open_context(), staged=staged, budgeted=not wanted.ignore_budget)
    built = await build(work, context, listed, report)
    switched = await switch(work, context, staged, built) if built else Switched(0, 0)
    cost = await reruns.read_spent(database, scope_id, terms.model, begun, ids)
    left = len(listed) - switched.segments
    return Reread(work.scope.agent, work.scope.user, switched.segments, left, switched.replaced, cost)


async def open_staged(work: Work, run_id: UUID, ids: Sequence[UUID]) -> Staged:
    """Begin to build, knowing which facts the run will replace."""
    async with work.parts.database.reading(work.scope.tenant_id) as connection:
        found = await reruns.find_replaced(connection, work.scope_id, ids)
    return Staged(run_id, ids, {each.lineage: each.span for each in found})


async def build(work: Work, context: StepContext, listed: Sequence[Listed], report: Progress) -> list[Built]:
    """Run the steps for every segment in order; what was answered before is not asked again."""
    label = " and ".join(filter(None, (work.scope.agent, work.scope.user)))
    built: list[Built] = []
    report(label, 0, len(listed))
    for number, each in enumerate(listed, 1):
        one = await build_with_retries(work, replace(context, now=datetime.now(UTC)), each.closed)
        if one is not None:
            built.append(one)
        report(label, number, len(listed))
    return built


async def build_with_retries(work: Work, context: StepContext, closed: Closed) -> Built | None:
    """Build a segment; None if it fails however often it is tried."""
    for _ in range(MOST_ATTEMPTS):
        try:
            return await build_one(work, context, closed)
        except Exception as problem:
            if is_everywhere(problem):
                raise
            LOG.warning("A segment could not be read again: %s", describe(problem))
    return None


async def build_one(work: Work, context: StepContext, closed: Closed) -> Built | None:
    """Run the steps for one segment and prepare their writes; None if it has no messages any more."""
    draft = await read_draft(work, to_stretch(closed), closed.label)
    staged = context.staged
    if not draft.messages or staged is None:
        return None
    extractor = ExtractOnce(context)
    context = replace(context, extractor=extractor)
    draft, times = await take_steps(work, context, draft, Stage.SEGMENT)
    extraction = await context.extract(draft)
    parsed, shown = (extraction.parsed, extraction.shown) if extraction else (ParsedExtraction(), ())
    staged.add(tell(closed.id, parsed, shown, find_moment(draft)), draft.mentions, draft.resolved)
    if extractor.asked:
        await note_steps(work, times, closed.id)
    new = [to_summary(draft)] if draft.summary else []
    vectors = await embed_missing(work.parts, new)
    return Built(
        closed,
        draft.label,
        prepare(new[0]) if new else None,
        vectors[0] if vectors is not None else None,
        draft.writes,
    )
