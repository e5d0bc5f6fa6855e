"""The nouns of reading history anew: what is wanted, what it will cost, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Rerun:
    """Which history is to be read anew, and by which model."""

    agent: str = ""
    """Empty for all scopes of the tenant."""
    user: str | None = None
    """None for all scopes of the agent."""
    since: datetime | None = None
    """Only segments in which something was said at this moment or after it."""
    model: str = ""
    """Empty for the configured one; else another one of the same endpoint."""
    ignore_budget: bool = False
    """Whether to go on although the tokens of the day are used up."""
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class Cost:
    """How often a model is asked, and what that comes to."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float | None = None
    """None where the model has no price."""


@dataclass(frozen=True, slots=True)
class RerunPlan:
    """What it takes to read one scope's history anew, as far as that can be said before."""

    agent: str
    user: str
    segments: int
    messages: int
    cost: Cost
    """Of what is still to be asked: what an unfinished run has been answered is not asked again."""


@dataclass(frozen=True, slots=True)
class Reread:
    """What came of reading one scope's history anew."""

    agent: str
    user: str
    segments: int
    """How many go by the new reading now."""
    left: int
    """How many stay as they were: nothing could be made of them, or they were changed meanwhile."""
    replaced: int
    """How many believed facts gave place."""
    cost: Cost
    """As the ledger has it, since this reading was begun or resumed."""
