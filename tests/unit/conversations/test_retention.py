"""When a conversation is due to move on, and which state it can come into."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.agents.profiles import check_profile
from recollect.core.conversations.retention import (
    ConversationAge,
    RetentionRules,
    default_rules,
    find_due,
    move,
    rules_for,
    save_ratio,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.agents import Profile
from recollect.models.conversations import ConversationState
from recollect.settings import Settings

ACTIVE, ARCHIVED, DELETED, PURGING = ConversationState
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def standing(state, idle, changed=0.0):
    return ConversationAge(state, NOW - timedelta(days=idle), NOW - timedelta(days=changed))


@pytest.mark.parametrize(
    ("state", "idle", "changed", "due"),
    [
        (ACTIVE, 9.99, 100, None),
        (ACTIVE, 10, 0, ARCHIVED),
        (ACTIVE, 20, 0, DELETED),
        (ARCHIVED, 19, 100, None),
        (ARCHIVED, 20, 0, DELETED),
        (DELETED, 100, 29, None),
        (DELETED, 0, 30, PURGING),
        (PURGING, 100, 100, None),
    ],
)
def test_days_without_use_and_days_since_deletion(state, idle, changed, due):
    assert find_due(standing(state, idle, changed), RetentionRules(10, 20, 30), NOW) is due


def test_zero_means_never():
    for state in ConversationState:
        assert find_due(standing(state, 10_000, 10_000), RetentionRules(0, 0, 0), NOW) is None
    assert find_due(standing(ACTIVE, 50), RetentionRules(0, 40, 0), NOW) is DELETED


def test_nothing_is_archived_or_deleted_by_itself_unless_somebody_says_so():
    usual = default_rules(Settings(_env_file=None))
    assert usual == RetentionRules() == RetentionRules(0, 0, 30)
    assert find_due(standing(ACTIVE, 10_000, 10_000), usual, NOW) is None


def test_every_number_of_days_comes_from_its_setting():
    days = {"archive_after_days": 1, "delete_after_days": 2, "purge_after_days": 3, "cost_days": 5}
    days |= {"change_days": 6, "unread_change_days": 7}
    found = default_rules(Settings(_env_file=None, retention=days, recall={"save_days": 4}))
    assert found == RetentionRules(1, 2, 3, recall_days=4, ledger_days=5, change_days=6, unread_change_days=7)


@pytest.mark.parametrize(("kept", "share"), [("off", 0.0), ("sampled", 0.25), ("on", 1.0)])
def test_recalls_are_kept_not_at_all_or_some_or_all(kept, share):
    assert save_ratio(Settings(_env_file=None, recall={"save": kept, "save_ratio": 0.25})) == share


def test_a_profile_speaks_before_the_settings():
    assert rules_for(Profile(), RetentionRules(1, 2, 3)) == RetentionRules(1, 2, 3)
    assert rules_for(Profile(archive_after_days=0, purge_after_days=9.5), RetentionRules(1, 2, 3)) == RetentionRules(
        0, 2, 9.5
    )


@pytest.mark.parametrize("days", [-1, 36_501, float("nan")])
def test_days_have_bounds(days):
    for field in ("archive_after_days", "delete_after_days", "purge_after_days"):
        with pytest.raises(InvalidInputError, match=field):
            check_profile(Profile(**{field: days}))


def test_which_states_can_be_reached():
    ways = {(before, after) for before in ConversationState for after in ConversationState}
    open_ways = {
        *((ACTIVE, ARCHIVED), (ACTIVE, DELETED), (ARCHIVED, ACTIVE), (ARCHIVED, DELETED), (DELETED, ACTIVE)),
        *((ACTIVE, PURGING), (ARCHIVED, PURGING), (DELETED, PURGING)),
    }
    for before, after in ways:
        if before is after:
            assert not move(before, after)
        elif (before, after) in open_ways:
            assert move(before, after)
        else:
            with pytest.raises(ConflictError, match=str(before)):
                move(before, after)
