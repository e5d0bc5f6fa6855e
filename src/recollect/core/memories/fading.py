"""Decide which memories may fade: decayed, aged or expired ones, never protected ones, always with reasons.

Formulas and numbers are those of Zereker/memory (MIT); our importance is 1 to 10, and counts as a tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import FadeReason, FadingRules, Kind

DAY = timedelta(days=1)
PLACES = 9
"""Scores are rounded before comparisons, so that rounding errors have no effect at the threshold."""
MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for fading."""

    threshold: float = 0.7
    """A memory with a higher score fades; with an equal score it is kept."""
    decay_days: float = 30.0
    """After this number of days without access, the effect of time is complete."""
    fact_days: float = 90.0
    """Maximum age of facts; 0 = any age."""
    protected_importance: float = 9.0
    importance_weight: float = 0.5
    time_weight: float = 0.3
    rarity_weight: float = 0.2
    event_time_weight: float = 0.6
    event_rarity_weight: float = 0.4
    event_kinds: frozenset[Kind] = frozenset({Kind.EVENT})
    """Kinds that decay only by time and rarity."""
    aging_kinds: frozenset[Kind] = frozenset({Kind.FACT})
    """Kinds that fade only by age; all others decay by importance, time and rarity."""


@dataclass(frozen=True, slots=True)
class FadingMemory:
    """The values of one memory that the policy needs."""

    kind: Kind
    importance: float
    created_at: datetime
    last_accessed_at: datetime
    access_count: int = 0
    expires_at: datetime | None = None
    held: bool = False
    """Whether it belongs to a conversation, whose state decides about it."""


@dataclass(frozen=True, slots=True)
class FadingVerdict:
    """Whether to forget, the score, and the reason, without remembered content."""

    forget: bool
    score: float
    reason: str
    grounds: FadeReason


DEFAULT = Policy()


def check_rules(rules: FadingRules) -> None:
    """Check a caller's rules for fading."""
    for field, days in (("days", rules.days), ("fact_days", rules.fact_days)):
        if days is not None and not 0 <= days <= MAX_DAYS:
            raise InvalidInputError(f"{field} must be between 0 and {MAX_DAYS}; 0 means never")
    if rules.threshold is not None and not 0 <= rules.threshold <= 1:
        raise InvalidInputError("threshold must be between 0 and 1")


def complete_rules(asked: FadingRules, profile: Profile, usual_days: float) -> FadingRules:
    """Complete the rules of a call from the agent's profile, then from the service.

    Facts have no age limit by default.
    """
    return FadingRules(
        first_of(asked.days, profile.fading_days, usual_days),
        first_of(asked.threshold, profile.fading_threshold, DEFAULT.threshold),
        first_of(asked.fact_days, profile.fading_fact_days, 0.0),
    )


def first_of(*values: float | None) -> float:
    """Return the first value that is set."""
    return next((value for value in values if value is not None), 0.0)


def policy_by(rules: FadingRules) -> Policy | None:
    """Return the policy of complete rules; None if only expired memories fade."""
    days, fact_days = first_of(rules.days), first_of(rules.fact_days)
    if days <= 0:
        return None
    return Policy(threshold=first_of(rules.threshold, DEFAULT.threshold), decay_days=days, fact_days=fact_days)


def judge(memory: FadingMemory, now: datetime, policy: Policy | None) -> FadingVerdict:
    """Decide on one memory by a policy; without a policy, only expired memories fade."""
    verdict = decide(memory, now, policy or DEFAULT)
    if policy is not None or verdict.grounds in {FadeReason.EXPIRED, FadeReason.HELD}:
        return verdict
    return FadingVerdict(
        forget=False, score=verdict.score, reason="Nothing fades here by itself.", grounds=FadeReason.KEPT
    )


def decide(memory: FadingMemory, now: datetime, policy: Policy = DEFAULT) -> FadingVerdict:
    """Decide on one memory: first by expiry, because the caller set it, then protection, then decay or age."""
    aging = memory.kind in policy.aging_kinds
    score = score_age(memory, now, policy) if aging else score_decay(memory, now, policy)
    if memory.expires_at is not None and memory.expires_at <= now:
        return FadingVerdict(
            forget=True,
            score=score,
            reason=f"It expired at {memory.expires_at.isoformat()}.",
            grounds=FadeReason.EXPIRED,
        )
    if memory.held:
        reason = "It is a part of a conversation, and goes with it."
        return FadingVerdict(forget=False, score=score, reason=reason, grounds=FadeReason.HELD)
    if memory.importance >= policy.protected_importance:
        least = policy.protected_importance
        reason = f"Importance {memory.importance:g} is at least {least:g}: it is protected."
        return FadingVerdict(forget=False, score=score, reason=reason, grounds=FadeReason.PROTECTED)
    return _judge_age(memory, now, policy, score) if aging else _judge_decay(memory, now, policy, score)


def score_decay(memory: FadingMemory, now: datetime, policy: Policy = DEFAULT) -> float:
    """Return how far a memory has decayed, by the formula of its kind."""
    days = idle_days(memory, now)
    if memory.kind in policy.event_kinds:
        return score_event(days, memory.access_count, policy)
    return score_working(memory.importance / 10, days, memory.access_count, policy)


def score_working(importance: float, days: float, access_count: int, policy: Policy = DEFAULT) -> float:
    """Return a score from unimportance (0 to 1), time since the last access, and rarity of access."""
    fading = policy.importance_weight * (1 - importance) + policy.time_weight * fade(days, policy)
    return round(fading + policy.rarity_weight * rarity(access_count), PLACES)


def score_event(days: float, access_count: int, policy: Policy = DEFAULT) -> float:
    """Return a score from time since the last access and rarity of access."""
    fading = policy.event_time_weight * fade(days, policy)
    return round(fading + policy.event_rarity_weight * rarity(access_count), PLACES)


def score_age(memory: FadingMemory, now: datetime, policy: Policy = DEFAULT) -> float:
    """Return the age as a share of the maximum age; above 1 the memory is too old."""
    return round((now - memory.created_at) / DAY / policy.fact_days, PLACES) if policy.fact_days > 0 else 0.0


def fade(days: float, policy: Policy = DEFAULT) -> float:
    """Return the effect of time: 0 right after an access, 1 after the days of decay."""
    return min(max(days, 0.0) / policy.decay_days, 1.0)


def rarity(access_count: int) -> float:
    """Return how rare accesses are: 1 for 0 or 1 access, slowly falling with each further one."""
    return 1.0 if access_count <= 1 else 1 / (1 + math.log(access_count))


def idle_days(memory: FadingMemory, now: datetime) -> float:
    """Return the days since the last access; an access in the future counts as now."""
    return max((now - memory.last_accessed_at) / DAY, 0.0)


def _judge_decay(memory: FadingMemory, now: datetime, policy: Policy, score: float) -> FadingVerdict:
    forget = score > policy.threshold
    relation = "above" if forget else "not above"
    weighed = "" if memory.kind in policy.event_kinds else f"importance {memory.importance:g}, "
    accesses = "1 access" if memory.access_count == 1 else f"{max(memory.access_count, 0)} accesses"
    reason = (
        f"Score {score:g} is {relation} {policy.threshold:g}: {weighed}{accesses}, "
        f"the last {idle_days(memory, now):.1f} days ago."
    )
    return FadingVerdict(forget, score, reason, FadeReason.DECAYED if forget else FadeReason.KEPT)


def _judge_age(memory: FadingMemory, now: datetime, policy: Policy, score: float) -> FadingVerdict:
    days = (now - memory.created_at) / DAY
    if policy.fact_days <= 0:
        return FadingVerdict(
            forget=False, score=score, reason="It may grow as old as it likes.", grounds=FadeReason.KEPT
        )
    # Compared as dates, not as rounded shares: the whole last day is within the limit.
    forget = now - memory.created_at > timedelta(days=policy.fact_days)
    relation = "older" if forget else "not older"
    reason = f"It is {days:.1f} days old, {relation} than {policy.fact_days:g}."
    return FadingVerdict(forget, score, reason, FadeReason.AGED if forget else FadeReason.KEPT)
