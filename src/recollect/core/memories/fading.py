"""Decide what may be forgotten: what has decayed, aged or expired, never what is protected, and always with reasons.

The formulas and numbers are those of Zereker/memory (MIT); importance is ours, 1 to 10, and counts as its tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import FadingRules, Grounds, Kind

DAY = timedelta(days=1)
PLACES = 9
"""Scores are rounded before they are compared, so that rounding errors do not matter at the threshold."""
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Policy:
    """When something may be forgotten."""

    threshold: float = 0.7
    """A score above it is forgotten; one that equals it is kept."""
    decay_days: float = 30.0
    """After so many days without access, the effect of time is complete."""
    fact_days: float = 90.0
    """How old facts may become; 0 means any age."""
    protected_importance: float = 9.0
    importance_weight: float = 0.5
    time_weight: float = 0.3
    rarity_weight: float = 0.2
    event_time_weight: float = 0.6
    event_rarity_weight: float = 0.4
    event_kinds: frozenset[Kind] = frozenset({Kind.EVENT})
    """Kinds that decay by time and rarity alone."""
    aging_kinds: frozenset[Kind] = frozenset({Kind.FACT})
    """Kinds that go by age alone; all others decay by importance, time and rarity."""


@dataclass(frozen=True, slots=True)
class FadingMemory:
    """What the policy needs of one memory."""

    kind: Kind
    importance: float
    created_at: datetime
    last_accessed_at: datetime
    access_count: int = 0
    expires_at: datetime | None = None
    held: bool = False
    """Whether it is part of a conversation, whose state decides about it."""


@dataclass(frozen=True, slots=True)
class FadingVerdict:
    """Whether to forget, how strongly time speaks for it, and why, in words that quote nothing remembered."""

    forget: bool
    score: float
    reason: str
    grounds: Grounds


USUAL = Policy()


def check_rules(rules: FadingRules) -> None:
    """Check a caller's rules of fading."""
    for field, days in (("days", rules.days), ("fact_days", rules.fact_days)):
        if days is not None and not 0 <= days <= MOST_DAYS:
            raise InvalidInputError(f"{field} must be between 0 and {MOST_DAYS}; 0 means never")
    if rules.threshold is not None and not 0 <= rules.threshold <= 1:
        raise InvalidInputError("threshold must be between 0 and 1")


def complete_rules(asked: FadingRules, profile: Profile, usual_days: float) -> FadingRules:
    """Let a call override the agent's profile, and that the service; facts have no age limit by default."""
    return FadingRules(
        first_of(asked.days, profile.fading_days, usual_days),
        first_of(asked.threshold, profile.fading_threshold, USUAL.threshold),
        first_of(asked.fact_days, profile.fading_fact_days, 0.0),
    )


def first_of(*values: float | None) -> float:
    """Return the first value that is set."""
    return next((value for value in values if value is not None), 0.0)


def policy_by(rules: FadingRules) -> Policy | None:
    """Make a policy of complete rules; None where nothing fades but what expires."""
    days, fact_days = first_of(rules.days), first_of(rules.fact_days)
    if days <= 0:
        return None
    return Policy(threshold=first_of(rules.threshold, USUAL.threshold), decay_days=days, fact_days=fact_days)


def judge(memory: FadingMemory, now: datetime, policy: Policy | None) -> FadingVerdict:
    """Decide on one memory by a policy; without one, only an expiry makes it fade."""
    verdict = decide(memory, now, policy or USUAL)
    if policy is not None or verdict.grounds in {Grounds.EXPIRED, Grounds.HELD}:
        return verdict
    return FadingVerdict(
        forget=False, score=verdict.score, reason="Nothing fades here by itself.", grounds=Grounds.KEPT
    )


def decide(memory: FadingMemory, now: datetime, policy: Policy = USUAL) -> FadingVerdict:
    """Decide on one memory: expiry comes first because its caller set it, then protection, then decay or age."""
    aging = memory.kind in policy.aging_kinds
    score = score_age(memory, now, policy) if aging else score_decay(memory, now, policy)
    if memory.expires_at is not None and memory.expires_at <= now:
        return FadingVerdict(
            forget=True, score=score, reason=f"It expired at {memory.expires_at.isoformat()}.", grounds=Grounds.EXPIRED
        )
    if memory.held:
        reason = "It is a part of a conversation, and goes with it."
        return FadingVerdict(forget=False, score=score, reason=reason, grounds=Grounds.HELD)
    if memory.importance >= policy.protected_importance:
        least = policy.protected_importance
        reason = f"Importance {memory.importance:g} is at least {least:g}: it is protected."
        return FadingVerdict(forget=False, score=score, reason=reason, grounds=Grounds.PROTECTED)
    return _judge_age(memory, now, policy, score) if aging else _judge_decay(memory, now, policy, score)


def score_decay(memory: FadingMemory, now: datetime, policy: Policy = USUAL) -> float:
    """Score how far a memory has decayed, by the formula of its kind."""
    days = idle_days(memory, now)
    if memory.kind in policy.event_kinds:
        return score_event(days, memory.access_count, policy)
    return score_working(memory.importance / 10, days, memory.access_count, policy)


def score_working(importance: float, days: float, access_count: int, policy: Policy = USUAL) -> float:
    """Score by unimportance (0 to 1), time since the last access, and rarity of access."""
    fading = policy.importance_weight * (1 - importance) + policy.time_weight * fade(days, policy)
    return round(fading + policy.rarity_weight * rarity(access_count), PLACES)


def score_event(days: float, access_count: int, policy: Policy = USUAL) -> float:
    """Score by time since the last access, and rarity of access."""
    fading = policy.event_time_weight * fade(days, policy)
    return round(fading + policy.event_rarity_weight * rarity(access_count), PLACES)


def score_age(memory: FadingMemory, now: datetime, policy: Policy = USUAL) -> float:
    """Score which share of its days something has used up; above 1 they are over."""
    return round((now - memory.created_at) / DAY / policy.fact_days, PLACES) if policy.fact_days > 0 else 0.0


def fade(days: float, policy: Policy = USUAL) -> float:
    """Say how far time has faded something: 0 when just accessed, 1 from the last day of its decay on."""
    return min(max(days, 0.0) / policy.decay_days, 1.0)


def rarity(access_count: int) -> float:
    """Say how rarely something is accessed: 1 for never and for once, falling slowly with every further access."""
    return 1.0 if access_count <= 1 else 1 / (1 + math.log(access_count))


def idle_days(memory: FadingMemory, now: datetime) -> float:
    """Count the days since the last access; an access in the future counts as one just now."""
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
    return FadingVerdict(forget, score, reason, Grounds.DECAYED if forget else Grounds.KEPT)


def _judge_age(memory: FadingMemory, now: datetime, policy: Policy, score: float) -> FadingVerdict:
    days = (now - memory.created_at) / DAY
    if policy.fact_days <= 0:
        return FadingVerdict(forget=False, score=score, reason="It may grow as old as it likes.", grounds=Grounds.KEPT)
    # Compared as dates, not as the rounded share: the last moment of the last day is still within it.
    forget = now - memory.created_at > timedelta(days=policy.fact_days)
    relation = "older" if forget else "not older"
    reason = f"It is {days:.1f} days old, {relation} than {policy.fact_days:g}."
    return FadingVerdict(forget, score, reason, Grounds.AGED if forget else Grounds.KEPT)
