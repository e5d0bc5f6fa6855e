"""An agent's profile, the overview of a scope, feedback on recalls, and weights learned from it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from recollect.core.agents.feedback import check_feedback
from recollect.core.agents.profiles import check_profile
from recollect.core.agents.tuning import learn
from recollect.models.agents import Feedback, Overview, Profile, Tuning
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.agents import agents
from recollect.store.agents import feedback as marks
from recollect.store.agents import overview as counters
from recollect.verbs.parts import Parts

MOST_MARKS = 100_000
"""Only the newest count: callers may want other things than before."""


async def read_profile(parts: Parts, scope: Scope) -> Profile:
    """Read the profile of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).profile


async def set_profile(parts: Parts, scope: Scope, profile: Profile) -> None:
    """Replace a profile; fields that are not set return to their defaults."""
    check_profile(profile, parts.channel_names)
    await agents.write_profile(parts.database, scope, profile)


async def read_metadata(parts: Parts, scope: Scope) -> Mapping[str, JSON]:
    """Read the metadata of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).metadata


async def overview(parts: Parts, scope: Scope) -> Overview:
    """Count a scope's memories, name its strongest keywords, and show its agent's profile."""
    return await counters.read(parts.database, scope)


async def feedback(parts: Parts, scope: Scope, given: Feedback) -> int:
    """Store all marks of one recall, under a new id if it has none, and return how many there are."""
    check_feedback(given)
    return await marks.store(parts.database, scope, given.recall_id or uuid4(), given)


async def tune(parts: Parts, scope: Scope, *, apply: bool) -> Tuning:
    """Fit the agent's weighing to its feedback; what does worse on held-out feedback is never applied."""
    profile = (await agents.fetch(parts.database, scope)).profile
    judged = await marks.read_of_agent(parts.database, scope, MOST_MARKS)
    tuning = await asyncio.to_thread(learn, judged, profile.weighing)
    if not (apply and tuning.recommended):
        return tuning
    await set_profile(parts, scope, replace(profile, weighing=tuning.after))
    return replace(tuning, applied=True)
