"""Compute the cost of model calls, and the limit of tokens per day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from recollect.errors import SetupError
from recollect.models.service import CostRow

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens of a model, in any currency."""

    prompt: float
    completion: float


def read_prices(text: str) -> dict[str, Price]:
    """Parse configured prices: `model=prompt/completion`, separated by blanks or commas."""
    return dict(_read_price(entry) for entry in text.replace(",", " ").split())


def _read_price(entry: str) -> tuple[str, Price]:
    model, _, price = entry.rpartition("=")
    prompt, _, completion = price.partition("/")
    try:
        numbers = float(prompt), float(completion)
    except ValueError:
        numbers = math.nan, math.nan
    if not model or not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise SetupError("RECOLLECT_CHAT_PRICES must look like `qwen3-8b=0.05/0.40` (model=prompt/completion).")
    return model, Price(*numbers)


def price_of(prices: Mapping[str, Price], model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return the cost of a call; None if the model has no price."""
    price = prices.get(model)
    if price is None:
        return None
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / MILLION


def add_sums(found: Sequence[Sequence[CostRow]]) -> list[CostRow]:
    """Add up the sums of several servers, sorted by day (latest first), step and model."""
    if len(found) == 1:
        return list(found[0])
    added: dict[tuple[date, str, str], CostRow] = {}
    for each in chain.from_iterable(found):
        key = (each.day, each.step, each.model)
        added[key] = join_sums(added[key], each) if key in added else each
    return sorted(added.values(), key=lambda each: (-each.day.toordinal(), each.step, each.model))


def join_sums(one: CostRow, other: CostRow) -> CostRow:
    """Add two sums of the same day, step and model."""
    prices = [each for each in (one.price, other.price) if each is not None]
    return replace(
        one,
        calls=one.calls + other.calls,
        failed=one.failed + other.failed,
        partial=one.partial + other.partial,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        price=sum(prices) if prices else None,
        milliseconds=one.milliseconds + other.milliseconds,
    )


def choose_limit(usual: int, own: int | None) -> int | None:
    """Return a tenant's limit of tokens per day, or the default; 0 becomes None, no limit."""
    return (usual if own is None else own) or None
