"""An agent's profile, the overview of a scope, feedback on recalls, and weights learned from it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from uuid import uuid4

from recollect.core.agents.default_tuning import UsualRecall, fit_default_weights, to_values
from recollect.core.agents.feedback import check_feedback
from recollect.core.agents.profiles import check_profile
from recollect.core.agents.tuning import MarkedRecall, apply_weights, learn
from recollect.core.dates.periods import find_zone
from recollect.core.memories.ids import first_ids_of_days
from recollect.core.recall.weights import default_weights
from recollect.errors import InvalidInputError
from recollect.models.agents import DailyCount, Feedback, Overview, Profile, Tuning, TuningTarget
from recollect.models.memories import JSON
from recollect.models.service import Scope
from recollect.store.agents import agents
from recollect.store.agents import feedback as marks
from recollect.store.agents import overview as counters
from recollect.verbs.dependencies import Dependencies

MAX_DAYS = 366
MAX_MARKS = 100_000
"""Only the newest marks count: the callers' needs may have changed."""


async def read_profile(parts: Dependencies, scope: Scope) -> Profile:
    """Read the profile of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).profile


async def set_profile(parts: Dependencies, scope: Scope, profile: Profile) -> None:
    """Replace a profile; fields that are not set get their defaults.

    Every server of the tenant has a copy, because maintenance joins profiles with scopes; its home is written first.
    """
    check_profile(profile, parts.channel_names)
    for database in await parts.servers.each(scope.tenant_id):
        await agents.write_profile(database, scope, profile)


async def read_metadata(parts: Dependencies, scope: Scope) -> Mapping[str, JSON]:
    """Read the metadata of a scope's agent."""
    return (await agents.fetch(parts.database, scope)).metadata


async def overview(parts: Dependencies, scope: Scope) -> Overview:
    """Count a scope's memories, name its strongest keywords, and show its agent's profile."""
    return await counters.fetch_overview(parts.database, scope)


async def count_activity(parts: Dependencies, scope: Scope, days: int, zone: str) -> list[DailyCount]:
    """Count memories by day and kind for the last `days` days, including today, in a time zone."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInputError(f"days must be between 1 and {MAX_DAYS}")
    place = find_zone(zone)
    starts = first_ids_of_days(datetime.now(place).date(), days, place)
    return await counters.count_days(parts.database, scope, starts)


async def feedback(parts: Dependencies, scope: Scope, given: Feedback, profile: Profile) -> int:
    """Store all marks of one recall, with a new ID if it has none; return their number."""
    check_feedback(given)
    weights = {**default_weights(given.script), **profile.weights}
    unweighed = [to_values(mark.shares, weights) for mark in given.marks]
    return await marks.store_feedback(parts.database, scope, given.recall_id or uuid4(), given, unweighed)


async def tune(parts: Dependencies, scope: Scope, *, apply: bool) -> list[Tuning]:
    """Fit the agent's weights to its feedback; weights that do worse on held-out feedback are never applied."""
    profile = (await agents.fetch(parts.database, scope)).profile
    tunings = await asyncio.to_thread(learn_all, *await marks.read_of_agent(parts.database, scope, MAX_MARKS), profile)
    if not (apply and any(tuning.recommended for tuning in tunings)):
        return tunings
    for tuning in tunings:
        profile = change(profile, tuning) if tuning.recommended else profile
    await set_profile(parts, scope, profile)
    return [replace(tuning, applied=tuning.recommended) for tuning in tunings]


def learn_all(streamed: Sequence[MarkedRecall], usual: Sequence[UsualRecall], profile: Profile) -> list[Tuning]:
    """Learn all weights with enough feedback; raise an error if there are none."""
    tunings: list[Tuning] = []
    problem: InvalidInputError | None = None
    attempts = [
        (len(streamed), partial(learn, streamed, profile.weighing)),
        (len(usual), partial(fit_default_weights, usual, profile.weights)),
    ]
    for _, attempt in sorted(attempts, key=lambda each: -each[0]):
        try:
            tunings.append(attempt())
        except InvalidInputError as refused:
            # The error about the more frequent kind of recall helps more.
            problem = problem or refused
    if problem is not None and not tunings:
        raise problem
    return tunings


def change(profile: Profile, tuning: Tuning) -> Profile:
    """Return a profile with the learned weights."""
    if tuning.of is TuningTarget.STREAM:
        return replace(profile, weighing=apply_weights(tuning.after, profile.weighing))
    return replace(profile, weights={**profile.weights, **tuning.after})
