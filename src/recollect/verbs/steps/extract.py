"""Extract: take the entities and facts that the model found in a segment; without a model there are none."""

from __future__ import annotations

from dataclasses import replace

from recollect.verbs.steps.draft import Desk, Draft


async def extract(desk: Desk, draft: Draft) -> Draft:
    """Fill in mentions and statements, and the facts that the statements may replace."""
    digested = await desk.digest(draft)
    if digested is None:
        return draft
    found = digested.salvaged
    return replace(draft, mentions=found.mentions, statements=found.statements, shown=digested.shown)
