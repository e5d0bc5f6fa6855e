"""Compute what calls of a model cost, and whether a day's tokens are used up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from recollect.errors import SetupError

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens of a model, in any currency."""

    prompt: float
    completion: float


def read_prices(text: str) -> dict[str, Price]:
    """Read prices as they are configured: `model=prompt/completion` for each model, blanks or commas between."""
    return dict(_read_price(entry) for entry in text.replace(",", " ").split())


def _read_price(entry: str) -> tuple[str, Price]:
    model, _, price = entry.rpartition("=")
    prompt, _, completion = price.partition("/")
    try:
        numbers = float(prompt), float(completion)
    except ValueError:
        numbers = math.nan, math.nan
    if not model or not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise SetupError("RECOLLECT_CHAT_PRICES takes `model=prompt/completion`, such as `qwen3-8b=0.05/0.40`.")
    return model, Price(*numbers)


def price_of(prices: Mapping[str, Price], model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return what a call cost; None where the model has no price."""
    price = prices.get(model)
    if price is None:
        return None
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / MILLION


def choose_limit(usual: int, own: int | None) -> int | None:
    """Return how many tokens a day a tenant may use, its own limit before the default; None, for 0, is no limit."""
    return (usual if own is None else own) or None
