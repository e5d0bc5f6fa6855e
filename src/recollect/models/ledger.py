"""The nouns of what models cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """What one step cost on one day with one model."""

    day: date
    """By UTC."""
    step: str
    """What it was done for, such as `reflect` or `extract`."""
    model: str
    """Empty where no model was asked."""
    calls: int
    """How often the model was asked, or the step was taken without one."""
    failed: int
    """How many of these came to nothing."""
    salvaged: int
    """Of how many only some could be used."""
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    """Of those calls whose model had a price; None if none had."""
    milliseconds: float
    """All of them together."""


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """How many tokens a tenant may use on a day, by UTC, before its enrichment waits."""

    limit: int | None
    """None where there is no limit."""
    used: int
    """By all of the tenant's scopes and for any purpose, since the day began."""
    waits_until: datetime | None
    """When enrichment goes on, if it waits."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What calls of models cost, the latest day first, and what is left of today's budget."""

    sums: tuple[LedgerSum, ...]
    budget: DailyBudget
