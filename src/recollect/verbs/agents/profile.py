"""An agent's profile, the overview of a scope, feedback on recalls, and weights learned from it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
from recollect.core.service.permissions import check_all_users, check_bounds, check_right
from recollect.core.text.checks import check_scope
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback, Overview, Profile, Tuning, TuningTarget
from recollect.models.service import Caller, Right, Scope
from recollect.store.agents import agents
from recollect.store.agents import feedback as marks
from recollect.store.agents import overview as counters
from recollect.verbs.dependencies import Dependencies

MAX_DAYS = 366
MAX_MARKS = 100_000
"""Only the newest marks count: the callers' needs may have changed."""


async def read_profile(parts: Dependencies, scope: Scope) -> Profile:
    """Read the profile of a scope's agent."""
    return await agents.fetch(parts.database, scope)


async def set_profile(parts: Dependencies, scope: Scope, profile: Profile) -> Profile:
    """Replace a profile except its metadata; fields that are not set get their defaults.

    Every server of the tenant has a copy, because maintenance joins profiles with scopes; its home is written first.
    """
    check_profile(profile, parts.channel_names)
    home, *others = await parts.servers.each(scope.tenant_id)
    stored = await agents.write_profile(home, scope, profile)
    for database in others:
        await agents.write_profile(database, scope, profile)
    return stored


async def overview(parts: Dependencies, scope: Scope, days: int, zone: str) -> Overview:
    """Count a scope's memories, also by the last `days` days, including today, in a time zone."""
    if not 0 <= days <= MAX_DAYS:
        raise InvalidInputError(f"days must be between 0 and {MAX_DAYS}")
    place = find_zone(zone)
    starts = first_ids_of_days(datetime.now(place).date(), days, place) if days else ()
    return await counters.fetch_overview(parts.database, scope, starts=starts)


async def feedback(parts: Dependencies, scope: Scope, given: Feedback, profile: Profile) -> int:
    """Store all marks of one recall, with a new ID if it has none; return their number."""
    check_feedback(given)
    weights = {**default_weights(given.script), **profile.weights}
    unweighed = [to_values(mark.shares, weights) for mark in given.marks]
    return await marks.store_feedback(parts.database, scope, given.recall_id or uuid4(), given, unweighed)


async def tune(parts: Dependencies, caller: Caller, agent: str, *, apply: bool) -> list[Tuning]:
    """Fit an agent's weights to its feedback; weights that do worse on held-out feedback are never applied."""
    check_all_users(caller)
    check_right(caller, Right.ADMIN if apply else Right.READ)
    scope = Scope(caller.tenant_id, agent or caller.bounds.agent or "")
    check_scope(scope.agent, scope.user)
    check_bounds(caller, scope.agent, None)
    parts = await parts.at(scope)
    profile = await agents.fetch(parts.database, scope)
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
