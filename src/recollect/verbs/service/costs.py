"""Ledger: record what every call of a model cost, and stop enrichment when a tenant's tokens of the day are used up."""

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
from recollect.core.service.rights import check_bounds, check_right
from recollect.core.text.checks import check_scope
from recollect.errors import BudgetError, ChatModelError, InvalidInputError, RecollectError
from recollect.llm.chat import Answer, ChatModel, ModelAnswer, Spent, Usage, spend_unseen
from recollect.llm.openai.chat import UnusableError, read_value
from recollect.models.service import Caller, DailyBudget, Ledger, Right
from recollect.store.database import ownership
from recollect.store.service import ledger
from recollect.store.service.ledger import Entry
from recollect.store.shards.servers import Servers
from recollect.store.shards.tenants import Tenants
from recollect.verbs.parts import Parts, require_chat_model
from recollect.verbs.service.moved import following

ANSWERED, PARTIAL, UNUSABLE = "answered", "partial", "failed: UnusableError"
LAST_WORDS_SECONDS = 5.0
"""How long it may take to record a call that failed or was cancelled: its error matters more."""
MOST_DAYS = 366
MOST_TOKENS = 1_000_000_000_000


def metered(
    parts: Parts,
    scope_id: int,
    step: str,
    *,
    prompt_version: str = "",
    source_id: UUID | None = None,
    budgeted: bool = False,
) -> ChatModel:
    """Return the chat model with every question recorded in the ledger, and within the budget if asked for."""
    chat = require_chat_model(parts)
    entry = Entry(scope_id, step, 0.0, "", chat.model, prompt_version, source_id=source_id)
    return Metered(parts, chat, entry, budgeted)


async def note_step(
    parts: Parts, scope_id: int, step: str, milliseconds: float, *, outcome: str, source_id: UUID | None = None
) -> None:
    """Record a step that asked no model."""
    await ledger.enter(parts.database, [Entry(scope_id, step, milliseconds, outcome, source_id=source_id)])


@dataclass(frozen=True, slots=True)
class Metered:
    """A chat model whose every question is recorded in the ledger, each repetition on a line of its own."""

    parts: Parts
    chat: ChatModel
    entry: Entry
    budgeted: bool

    @property
    def model(self) -> str:
        """Name the model."""
        return self.chat.model

    @property
    def characters(self) -> int:
        """Say how many characters of notes a prompt may hold."""
        return self.chat.characters

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = spend_unseen) -> Answer:
        """Return the model's answer as a valid value of the asked type."""
        await self._allow()
        meter = Meter(self.entry)

        def note(usage: Usage) -> None:
            meter.note(usage)
            spent(usage)

        try:
            value = await self.chat.ask(prompt, answer, note)
        except BaseException as problem:
            # The last noted answer was of no use; all other failures were not answered.
            answered = isinstance(problem, ChatModelError) and problem.answered
            await self._enter_failure(meter.finish(tell(problem), answered=answered))
            raise
        await self._enter(meter.finish(ANSWERED, answered=True))
        return value

    async def say(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return what the model said when asked for such a value, once."""
        await self._allow()
        meter = Meter(self.entry)
        try:
            said = await self.chat.say(prompt, answer)
        except BaseException as problem:
            await self._enter_failure(meter.finish(tell(problem), answered=False))
            raise
        meter.note(said.usage)
        await self._enter(meter.finish(judge(said, answer), answered=True))
        return said

    async def close(self) -> None:
        """Do nothing: the owner of the model closes it."""

    async def _allow(self) -> None:
        if self.budgeted:
            await heed_budget(self.parts, tenant_of(self.entry.scope_id))

    async def _enter(self, entries: list[Entry]) -> None:
        """Record the cost; an answer that cannot be recorded is not returned either."""
        priced = [
            replace(entry, price=price_of(self.parts.prices, entry.model, entry.prompt_tokens, entry.completion_tokens))
            for entry in entries
        ]
        await ledger.enter(self.parts.database, priced)

    async def _enter_failure(self, entries: list[Entry]) -> None:
        with suppress(RecollectError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self._enter(entries)


class Meter:
    """The questions of one call, as they are answered."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._began = perf_counter()
        self._answers: list[Entry] = []

    def note(self, usage: Usage) -> None:
        """Note an answer; until another one comes or the call succeeds, it counts as of no use."""
        self._answers.append(self._line(UNUSABLE, usage))

    def finish(self, outcome: str, *, answered: bool) -> list[Entry]:
        """Note how the last question ended, answered or not; return a line for each."""
        if not answered or not self._answers:
            return [*self._answers, self._line(outcome, Usage())]
        *earlier, last = self._answers
        return [*earlier, replace(last, outcome=outcome)]

    def _line(self, outcome: str, usage: Usage) -> Entry:
        now = perf_counter()
        milliseconds, self._began = (now - self._began) * 1000, now
        line = replace(self._entry, outcome=outcome, milliseconds=milliseconds)
        return replace(line, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def tell(problem: BaseException) -> str:
    """Name the type of a failure, not its text."""
    return f"failed: {type(problem).__name__}"


def judge(said: ModelAnswer, answer: type[BaseModel]) -> str:
    """Tell whether an answer is valid, or usable in part at best."""
    try:
        read_value(said, answer)
    except UnusableError:
        return PARTIAL if said.text.strip() else UNUSABLE
    return ANSWERED


async def heed_budget(parts: Parts, tenant_id: int) -> None:
    """Raise BudgetError if a tenant's tokens of the day are used up; concurrent calls may exceed them."""
    budget = await read_budget(parts, tenant_id)
    if budget.waits_until is not None:
        used_up = f"All {budget.limit} tokens of today are used up;"
        message = f"{used_up} enrichment goes on at {budget.waits_until.astimezone(UTC):%F %R} UTC."
        raise BudgetError(message, budget.waits_until)


async def read_budget(parts: Parts, tenant_id: int) -> DailyBudget:
    """Read a tenant's limit per day, what is used of today's, and until when it waits."""
    servers = await parts.servers.each(tenant_id)
    home, *others = await asyncio.gather(*(ledger.read_today(each, tenant_id) for each in servers))
    used = home.used + sum(each.used for each in others)
    limit = choose_limit(parts.tokens_per_day, home.own_limit)
    waits = limit is not None and used >= limit
    return DailyBudget(limit, used, home.ends_at if waits else None)


@dataclass(frozen=True, slots=True)
class Costs:
    """Where a tenant sees what its models cost, and an operator sets the limit."""

    parts: Parts
    tenants: Tenants

    @property
    def servers(self) -> Servers:
        """Return where the tenant's rows are."""
        return self.parts.servers

    @following
    async def read(self, caller: Caller, agent: str = "", user: str = "", *, days: int = 30) -> Ledger:
        """Sum up the last days by day, step and model: of one scope, or of the whole tenant if no agent is named.

        A bound key sees its own scope, and no budget, which is the tenant's.
        """
        check_right(caller, Right.READ)
        bound = caller.bounds.agent is not None
        if bound:
            agent, user = agent or caller.bounds.agent or "", user or caller.bounds.user or ""
            check_bounds(caller, agent, user)
        if not 1 <= days <= MOST_DAYS:
            raise InvalidInputError(f"days must be between 1 and {MOST_DAYS}")
        if agent:
            check_scope(agent, user)
        elif user:
            raise InvalidInputError("name the agent, too: a user alone is no scope")
        servers = await self.parts.servers.each(caller.tenant_id)
        found = [await ledger.read_sums(each, caller.tenant_id, days, agent or None, user) for each in servers]
        return Ledger(tuple(add_sums(found)), None if bound else await read_budget(self.parts, caller.tenant_id))

    async def __call__(self, agent: str = "", user: str = "", *, days: int = 30, tenant: str = "default") -> Ledger:
        """Sum up the last days of any tenant, for an operator."""
        tenant_id = await self.tenants.find(tenant)
        return await self.read(Caller(tenant_id, frozenset({Right.READ}), "operator", 0), agent, user, days=days)

    async def allow(self, tenant: str, tokens: int | None) -> DailyBudget:
        """Set a tenant's tokens a day, 0 for no limit, None for the default; what waits is retried now."""
        if tokens is not None and not 0 <= tokens <= MOST_TOKENS:
            raise InvalidInputError(f"tokens must be between 0 and {MOST_TOKENS}")
        tenant_id = await self.tenants.find(tenant)
        for owner in await self.tenants.owners_of(tenant):
            await ownership.set_budget(owner, tenant, tokens)
        return await read_budget(self.parts, tenant_id)
