"""Ledger: record the cost of every model call, and stop enrichment when a tenant's daily tokens are used up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from time import perf_counter
from uuid import UUID

from pydantic import BaseModel

from recollect.core.service.costs import add_sums, choose_limit, price_of
from recollect.core.service.numbers import tenant_of
from recollect.core.service.permissions import check_bounds, check_right
from recollect.core.text.checks import check_scope
from recollect.errors import BudgetError, ChatModelError, InvalidInputError, RecollectError
from recollect.llm.chat import Answer, ChatModel, ModelAnswer, Spent, Usage, ignore_cost
from recollect.llm.openai.chat import UnusableReplyError, read_value
from recollect.models.service import Caller, CostReport, DailyBudget, Right
from recollect.store.database import ownership
from recollect.store.service import ledger
from recollect.store.service.ledger import LedgerEntry
from recollect.store.shards.tenants import Tenants
from recollect.verbs.dependencies import Dependencies, require_chat_model
from recollect.verbs.recovery import recovered

ANSWERED, PARTIAL, UNUSABLE = "answered", "partial", "failed: UnusableReplyError"
LAST_WORDS_SECONDS = 5.0
"""Time limit for recording a call that failed or was cancelled: its error matters more."""
MAX_DAYS = 366
MAX_TOKENS = 1_000_000_000_000


def metered(
    parts: Dependencies,
    scope_id: int,
    step: str,
    *,
    prompt_version: str = "",
    source_id: UUID | None = None,
    budgeted: bool = False,
) -> ChatModel:
    """Return the chat model with all questions recorded in the ledger, and within the budget if requested."""
    chat = require_chat_model(parts)
    entry = LedgerEntry(scope_id, step, 0.0, "", chat.model, prompt_version, source_id=source_id)
    return MeteredChatModel(parts, chat, entry, budgeted)


async def record_step(
    parts: Dependencies, scope_id: int, step: str, milliseconds: float, *, outcome: str, source_id: UUID | None = None
) -> None:
    """Record a step that asked no model."""
    await ledger.enter(parts.database, [LedgerEntry(scope_id, step, milliseconds, outcome, source_id=source_id)])


@dataclass(frozen=True, slots=True)
class MeteredChatModel:
    """A chat model that records each question in the ledger, each repetition in a separate row."""

    parts: Dependencies
    chat: ChatModel
    entry: LedgerEntry
    budgeted: bool

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self.chat.model

    @property
    def characters(self) -> int:
        """Return how many characters of notes a prompt may have."""
        return self.chat.characters

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = ignore_cost) -> Answer:
        """Return the model's answer as a valid value of the given type."""
        await self._allow()
        meter = CallMeter(self.entry)

        def note(usage: Usage) -> None:
            meter.note(usage)
            spent(usage)

        try:
            value = await self.chat.ask(prompt, answer, note)
        except BaseException as problem:
            # The last answer was unusable; all other failures were not answered.
            answered = isinstance(problem, ChatModelError) and problem.answered
            await self._enter_failure(meter.finish(error_name(problem), answered=answered))
            raise
        await self._enter(meter.finish(ANSWERED, answered=True))
        return value

    async def complete(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return the model's answer to one request for such a value."""
        await self._allow()
        meter = CallMeter(self.entry)
        try:
            said = await self.chat.complete(prompt, answer)
        except BaseException as problem:
            await self._enter_failure(meter.finish(error_name(problem), answered=False))
            raise
        meter.note(said.usage)
        await self._enter(meter.finish(judge(said, answer), answered=True))
        return said

    async def close(self) -> None:
        """Do nothing: the owner of the model closes it."""

    async def _allow(self) -> None:
        if self.budgeted:
            await check_token_budget(self.parts, tenant_of(self.entry.scope_id))

    async def _enter(self, entries: list[LedgerEntry]) -> None:
        """Record the cost; an answer that cannot be recorded is not returned either."""
        priced = [
            replace(
                entry,
                price=price_of(self.parts.options.prices, entry.model, entry.prompt_tokens, entry.completion_tokens),
            )
            for entry in entries
        ]
        await ledger.enter(self.parts.database, priced)

    async def _enter_failure(self, entries: list[LedgerEntry]) -> None:
        with suppress(RecollectError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self._enter(entries)


class CallMeter:
    """The questions of one call, as they are answered."""

    def __init__(self, entry: LedgerEntry) -> None:
        self._entry = entry
        self._began = perf_counter()
        self._answers: list[LedgerEntry] = []

    def note(self, usage: Usage) -> None:
        """Add an answer; it counts as unusable unless it is the last one and the call succeeds."""
        self._answers.append(self._line(UNUSABLE, usage))

    def finish(self, outcome: str, *, answered: bool) -> list[LedgerEntry]:
        """Set the outcome of the last question, answered or not; return a row for each."""
        if not answered or not self._answers:
            return [*self._answers, self._line(outcome, Usage())]
        *earlier, last = self._answers
        return [*earlier, replace(last, outcome=outcome)]

    def _line(self, outcome: str, usage: Usage) -> LedgerEntry:
        now = perf_counter()
        milliseconds, self._began = (now - self._began) * 1000, now
        line = replace(self._entry, outcome=outcome, milliseconds=milliseconds)
        return replace(line, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def error_name(problem: BaseException) -> str:
    """Return the type of an error, without its text."""
    return f"failed: {type(problem).__name__}"


def judge(said: ModelAnswer, answer: type[BaseModel]) -> str:
    """Return whether an answer is valid, partly usable or unusable."""
    try:
        read_value(said, answer)
    except UnusableReplyError:
        return PARTIAL if said.text.strip() else UNUSABLE
    return ANSWERED


async def check_token_budget(parts: Dependencies, tenant_id: int) -> None:
    """Raise BudgetError if a tenant's daily tokens are used up; concurrent calls may exceed them."""
    budget = await read_budget(parts, tenant_id)
    if budget.waits_until is not None:
        used_up = f"All {budget.limit} tokens of today are used up;"
        message = f"{used_up} enrichment resumes at {budget.waits_until.astimezone(UTC):%F %R} UTC."
        raise BudgetError(message, budget.waits_until)


async def read_budget(parts: Dependencies, tenant_id: int) -> DailyBudget:
    """Read a tenant's daily limit, its usage of today, and until when it waits."""
    servers = await parts.servers.each(tenant_id)
    home, *others = await asyncio.gather(*(ledger.read_today(each, tenant_id) for each in servers))
    used = home.used + sum(each.used for each in others)
    limit = choose_limit(parts.options.tokens_per_day, home.own_limit)
    waits = limit is not None and used >= limit
    return DailyBudget(limit, used, home.ends_at if waits else None)


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a tenant's models, and its limit, which an operator sets."""

    parts: Dependencies
    tenants: Tenants

    @recovered
    async def read_costs(self, caller: Caller, agent: str = "", user: str = "", *, days: int = 30) -> CostReport:
        """Sum up the last days by day, step and model: of one scope, or of the whole tenant if no agent is named.

        A bound key sees only its scope, and not the budget, which is the tenant's.
        """
        check_right(caller, Right.READ)
        bound = caller.bounds.agent is not None
        if bound:
            agent, user = agent or caller.bounds.agent or "", user or caller.bounds.user or ""
            check_bounds(caller, agent, user)
        if not 1 <= days <= MAX_DAYS:
            raise InvalidInputError(f"days must be between 1 and {MAX_DAYS}")
        if agent:
            check_scope(agent, user)
        elif user:
            raise InvalidInputError("user requires agent")
        servers = await self.parts.servers.each(caller.tenant_id)
        found = [await ledger.read_sums(each, caller.tenant_id, days, agent or None, user) for each in servers]
        return CostReport(tuple(add_sums(found)), None if bound else await read_budget(self.parts, caller.tenant_id))

    async def __call__(self, agent: str = "", user: str = "", *, days: int = 30, tenant: str = "default") -> CostReport:
        """Sum up the last days of a tenant, for an operator."""
        tenant_id = await self.tenants.find_tenant_number(tenant)
        return await self.read_costs(Caller(tenant_id, frozenset({Right.READ}), "operator", 0), agent, user, days=days)

    async def allow(self, tenant: str, tokens: int | None) -> DailyBudget:
        """Set a tenant's daily tokens, 0 for no limit, None for the default; waiting jobs are retried now."""
        if tokens is not None and not 0 <= tokens <= MAX_TOKENS:
            raise InvalidInputError(f"tokens must be between 0 and {MAX_TOKENS}")
        tenant_id = await self.tenants.find_tenant_number(tenant)
        for owner in await self.tenants.owners_of(tenant):
            await ownership.set_budget(owner, tenant, tokens)
        return await read_budget(self.parts, tenant_id)
