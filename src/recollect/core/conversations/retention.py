"""Say which states a conversation can change to, and when it is due to change by itself."""

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
MEND = {DELETED: "Restore it first.", PURGING: "It cannot be called back."}


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """After how many days a conversation changes its state; 0 means never."""

    archive_after_days: float = 0.0
    delete_after_days: float = 0.0
    purge_after_days: float = 30.0
    recall_days: float = 30.0
    """After how many days a kept recall is deleted."""
    ledger_days: float = 400.0
    """After how many days the sums of the ledger are deleted."""
    change_days: float = 7.0
    """After how many days rows of the change log are deleted."""
    unread_change_days: float = 30.0
    """After how many days they are deleted even if a reader has not read them."""


@dataclass(frozen=True, slots=True)
class ConversationAge:
    """What retention looks at: the state, since when it holds, and since when nobody used the conversation."""

    state: ConversationState
    idle_since: datetime
    changed_at: datetime


def move(state: ConversationState, wanted: ConversationState) -> bool:
    """Tell whether a conversation must change to be in a state; refuse where it cannot."""
    if state is wanted:
        return False
    if state not in REACHED_FROM[wanted]:
        raise ConflictError(f"This conversation is {state}. {MEND[state]}")
    return True


def usual_rules(settings: Settings) -> RetentionRules:
    """Return the rules for every agent whose profile sets no others."""
    days = settings.archive_after_days, settings.delete_after_days, settings.purge_after_days
    return RetentionRules(
        *days,
        recall_days=settings.recall_days,
        ledger_days=settings.ledger_days,
        change_days=settings.change_days,
        unread_change_days=settings.unread_change_days,
    )


def share_kept(settings: Settings) -> float:
    """Say which share of the recalls is kept whose cues do not decide it: from 0 for none to 1 for all."""
    return {"off": 0.0, "sampled": settings.keep_share, "on": 1.0}[settings.keep_recalls]


def rules_for(profile: Profile, usual: RetentionRules) -> RetentionRules:
    """Let an agent's profile override the settings."""
    return RetentionRules(
        usual.archive_after_days if profile.archive_after_days is None else profile.archive_after_days,
        usual.delete_after_days if profile.delete_after_days is None else profile.delete_after_days,
        usual.purge_after_days if profile.purge_after_days is None else profile.purge_after_days,
    )


def find_due(standing: ConversationAge, rules: RetentionRules, now: datetime) -> ConversationState | None:
    """Say which state a conversation is due to change to, the last if several are; None if it stays."""
    if standing.state is DELETED and is_over(standing.changed_at, rules.purge_after_days, now):
        return PURGING
    if standing.state in {ACTIVE, ARCHIVED} and is_over(standing.idle_since, rules.delete_after_days, now):
        return DELETED
    if standing.state is ACTIVE and is_over(standing.idle_since, rules.archive_after_days, now):
        return ARCHIVED
    return None


def is_over(since: datetime, days: float, now: datetime) -> bool:
    """Tell whether so many days have passed; never if they are 0."""
    return days > 0 and now - since >= timedelta(days=days)
