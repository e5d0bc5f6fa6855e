"""Tune: learn an agent's weights from the feedback in all its scopes, and apply them where asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from recollect.core.agents.tuning import learn
from recollect.models.agents import Tuning
from recollect.models.service import Scope
from recollect.store.agents import agents, feedback
from recollect.verbs.parts import Parts
from recollect.verbs.profile import set_profile

MOST_MARKS = 100_000
"""The newest count: an agent's callers may want other things than they did."""


async def tune(parts: Parts, scope: Scope, *, apply: bool) -> Tuning:
    """Fit the agent's weighing to its feedback; what would do worse on feedback held out is never applied."""
    profile = (await agents.fetch(parts.database, scope)).profile
    judged = await feedback.read_of_agent(parts.database, scope, MOST_MARKS)
    tuning = await asyncio.to_thread(learn, judged, profile.weighing)
    if not (apply and tuning.recommended):
        return tuning
    await set_profile(parts, scope, replace(profile, weighing=tuning.after))
    return replace(tuning, applied=True)
