"""Rules for the states of a conversation: allowed changes, and automatic changes that are due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import ConflictError
from recollect.models.agents import Profile
from recollect.models.conversations import ConversationState
from recollect.settings import Settings

ACTIVE, ARCHIVED, DELETED, PURGING = (
    ConversationState.ACTIVE,
    ConversationState.ARCHIVED,
    ConversationState.DELETED,
    ConversationState.PURGING,
)
REACHED_FROM = {
    ACTIVE: frozenset({ARCHIVED, DELETED}),
    ARCHIVED: frozenset({ACTIVE}),
    DELETED: frozenset({ACTIVE, ARCHIVED}),
    PURGING: frozenset({ACTIVE, ARCHIVED, DELETED}),
}
STATE_HINTS = {DELETED: "Restore it first.", PURGING: "It cannot be called back."}


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """After how many days a conversation changes its state; 0 = never."""

    archive_after_days: float = 0.0
    delete_after_days: float = 0.0
    purge_after_days: float = 30.0
    recall_days: float = 30.0
    """After how many days a saved recall is deleted."""
    ledger_days: float = 400.0
    """After how many days the totals of the ledger are deleted."""
    change_days: float = 7.0
    """After how many days rows of the change log are deleted."""
    unread_change_days: float = 30.0
    """After how many days rows of the change log are deleted even if a reader has not read them."""


@dataclass(frozen=True, slots=True)
class ConversationAge:
    """The state of a conversation, when it was entered, and when the conversation was last used."""

    state: ConversationState
    idle_since: datetime
    changed_at: datetime


def move(state: ConversationState, wanted: ConversationState) -> bool:
    """Return whether a state change is necessary; refuse changes that are not allowed."""
    if state is wanted:
        return False
    if state not in REACHED_FROM[wanted]:
        raise ConflictError(f"This conversation is {state}. {STATE_HINTS[state]}")
    return True


def default_rules(settings: Settings) -> RetentionRules:
    """Return the rules for agents whose profiles set no others."""
    given = settings.retention
    return RetentionRules(
        *(given.archive_after_days, given.delete_after_days, given.purge_after_days),
        recall_days=settings.recall.save_days,
        ledger_days=given.cost_days,
        change_days=given.change_days,
        unread_change_days=given.unread_change_days,
    )


def save_ratio(settings: Settings) -> float:
    """Return the share of recalls to save if the cue does not decide it: 0 = none, 1 = all."""
    return {"off": 0.0, "sampled": settings.recall.save_ratio, "on": 1.0}[settings.recall.save]


def rules_for(profile: Profile, usual: RetentionRules) -> RetentionRules:
    """Return the rules with the overrides of an agent's profile."""
    return RetentionRules(
        usual.archive_after_days if profile.archive_after_days is None else profile.archive_after_days,
        usual.delete_after_days if profile.delete_after_days is None else profile.delete_after_days,
        usual.purge_after_days if profile.purge_after_days is None else profile.purge_after_days,
    )


def find_due(standing: ConversationAge, rules: RetentionRules, now: datetime) -> ConversationState | None:
    """Return the state that a conversation is due to change to (the last of several), or None."""
    if standing.state is DELETED and is_over(standing.changed_at, rules.purge_after_days, now):
        return PURGING
    if standing.state in {ACTIVE, ARCHIVED} and is_over(standing.idle_since, rules.delete_after_days, now):
        return DELETED
    if standing.state is ACTIVE and is_over(standing.idle_since, rules.archive_after_days, now):
        return ARCHIVED
    return None


def is_over(since: datetime, days: float, now: datetime) -> bool:
    """Return whether this number of days has passed; never if it is 0."""
    return days > 0 and now - since >= timedelta(days=days)
