"""The log of erasures keeps ids alone, is read back as it was written, and tells what a backup does not know."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.service.erasures import (
    LoggedErasure,
    choose_newer,
    choose_since,
    find_position,
    read_entry,
    write_entry,
)
from recollect.errors import SetupError

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)
SCOPE = LoggedErasure(7, NOW)
FULL = LoggedErasure(7, NOW, ONE, "chat", (ONE, TWO))


def at(minutes: int) -> LoggedErasure:
    return LoggedErasure(minutes, NOW + timedelta(minutes=minutes))


def test_an_entry_is_one_line_with_only_what_it_has():
    assert write_entry(SCOPE) == '{"scope":7,"at":"2026-03-01T08:00:00+00:00"}'
    assert json.loads(write_entry(FULL)) == {
        "scope": 7,
        "at": "2026-03-01T08:00:00+00:00",
        "receipt": str(ONE),
        "conversation": "chat",
        "memories": [str(ONE), str(TWO)],
    }


@pytest.mark.parametrize(
    "entry",
    [
        SCOPE,
        FULL,
        LoggedErasure(7, NOW, ONE),
        LoggedErasure(7, NOW, conversation="chat"),
        LoggedErasure(7, NOW, ids=(TWO,)),
    ],
)
def test_an_entry_is_read_back_as_it_was(entry):
    assert read_entry(write_entry(entry), "log:1") == entry


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "1", '{"at":"2026-03-01"}', '{"scope":7}', '{"scope":"x","at":"2026-03-01"}',
     '{"scope":7,"at":"soon"}', '{"scope":7,"at":"2026-03-01","receipt":"x"}',
     '{"scope":7,"at":"2026-03-01","memories":["x"]}'],
)  # fmt: skip
def test_a_damaged_line_stops_whoever_relies_on_the_log(line):
    with pytest.raises(SetupError, match="log:3"):
        read_entry(line, "log:3")


def test_how_far_a_log_has_come_is_the_last_number_of_each_stream():
    assert find_position({"b": {1: at(1), 3: at(2), 2: at(3)}, "a": {5: at(4)}, "c": {}}) == {"a": 5, "b": 3}


def test_what_a_backup_does_not_know_is_listed_in_the_order_of_time():
    entries = {"a": {1: at(1), 2: at(6), 3: at(4)}, "b": {1: at(5), 2: at(3)}, "c": {1: at(2)}}
    assert [each.scope_id for each in choose_newer(entries, {"a": 1, "b": 1})] == [2, 3, 4, 6]
    assert [each.scope_id for each in choose_newer(entries, {})] == [1, 2, 3, 4, 5, 6]
    assert choose_newer(entries, find_position(entries)) == []


def test_what_was_erased_from_a_moment_on_is_listed_in_the_order_of_time():
    entries = {"a": {1: at(1), 2: at(6), 3: at(4)}, "b": {1: at(5), 2: at(3)}}
    assert [each.scope_id for each in choose_since(entries, NOW + timedelta(minutes=4))] == [4, 5, 6]
