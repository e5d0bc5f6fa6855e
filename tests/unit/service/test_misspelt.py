"""What a caller is told about a name that is not known."""

from __future__ import annotations

import pytest

from recollect.doors.http.bodies.memories import RecallBody, RecallEachBody, RememberBody
from recollect.doors.http.routes.items import ItemsBody
from recollect.misspelt import MAX_NAME_LENGTH, explain_name, find_nearest, known_fields, show_name


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("query", ("agent", "text", "limit"), "text"),
        ("query", ("agent", "search"), "search"),
        ("text", ("agent", "content"), "content"),
        ("k", ("agent", "limit"), "limit"),
        ("top-k", ("agent", "limit"), "limit"),
        ("user_id", ("agent", "user"), "user"),
        ("agentId", ("agent", "user"), "agent"),
        ("thread_id", ("agent", "conversation"), "conversation"),
        ("memory_id", ("agent", "ids"), "ids"),
        ("kind", ("agent", "kinds"), "kinds"),
        ("Limit", ("agent", "limit"), "limit"),
        ("query", ("agent", "user"), ""),
        ("zzz", ("agent", "user"), ""),
        ("zzz", (), ""),
    ],
)
def test_the_name_that_was_meant_is_found(name, known, meant):
    assert find_nearest(name, known) == meant


def test_where_nothing_is_near_a_few_known_names_are_listed():
    assert explain_name("zzz", ["agent", "user"]) == "`zzz` is not known here; known are `agent`, `user`"
    assert explain_name("zzz", [str(number) for number in range(15)]).endswith(" `10`, `11` and 3 more")
    assert explain_name("zzz", []) == "`zzz` is not known here; nothing is read from the query"


@pytest.mark.parametrize("name", ["x" * 10_000, "\ud800", "a\nb\x00", "\u202egnirts", "a`b", ""])
def test_a_name_is_shown_short_and_in_what_prints(name):
    shown = show_name(name)
    assert shown.isprintable()
    assert "`" not in shown
    assert len(shown) <= MAX_NAME_LENGTH + 3
    shown.encode()


@pytest.mark.parametrize(
    ("taken", "place", "among", "apart"),
    [
        (RecallBody, ("query",), "text", "content"),
        (RememberBody, ("memories", 0, "text"), "content", "memories"),
        (RecallEachBody, ("cues", 3, "query"), "text", "cues"),
        (ItemsBody, ("operations", 0, "put", "val"), "value", "limit"),
    ],
)
def test_the_fields_beside_an_unknown_one_are_known(taken, place, among, apart):
    fields = known_fields(taken, place)
    assert among in fields
    assert apart not in fields
