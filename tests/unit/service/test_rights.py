"""What a key may do and which keys it may make, at the bounds of every rule; and numbers and cursors of scopes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.recall import checks as cues
from recollect.core.service import numbers, permissions
from recollect.core.text import checks as texts
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.filters import Filter
from recollect.models.recall import Cue
from recollect.models.service import Caller, KeyBinding, KeyRequest, Right

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
MAKER = Caller(1, frozenset(Right), "test", 50)
BOUND = replace(MAKER, bounds=KeyBinding("ada", "li"))
READ, WRITE, ADMIN, DELEGATE = Right.READ, Right.WRITE, Right.ADMIN, Right.DELEGATE


def test_a_right_is_there_or_not():
    permissions.check_right(MAKER, ADMIN)
    with pytest.raises(ForbiddenError):
        permissions.check_right(replace(MAKER, rights=frozenset({READ})), WRITE)


def test_a_bound_key_keeps_to_its_names():
    permissions.check_unbound(MAKER)
    permissions.check_all_users(MAKER)
    permissions.check_bounds(MAKER, "bob", "zoe")
    permissions.check_bounds(BOUND, "ada", "li")
    permissions.check_all_users(replace(MAKER, bounds=KeyBinding("ada")))
    for refused in (
        lambda: permissions.check_unbound(BOUND),
        lambda: permissions.check_all_users(BOUND),
        lambda: permissions.check_bounds(BOUND, "bob", "li"),
        lambda: permissions.check_bounds(BOUND, "ada", None),
    ):
        with pytest.raises(ForbiddenError, match="This API key is bound"):
            refused()
    with pytest.raises(ForbiddenError, match="bound to another agent or user"):
        permissions.check_bounds(BOUND, "ada", "zoe")


def test_a_new_key_is_bound_as_its_maker_is():
    for bounds in (KeyBinding(), KeyBinding("ada"), KeyBinding("ada", ""), KeyBinding("ada", "li")):
        permissions.check_new_bounds(MAKER, bounds)
    permissions.check_new_bounds(BOUND, KeyBinding("ada", "li"))
    for bounds in (KeyBinding(None, "li"), KeyBinding("a/b"), KeyBinding("ada", "l/i")):
        with pytest.raises(InvalidInputError):
            permissions.check_new_bounds(MAKER, bounds)
    for bounds in (KeyBinding("ada"), KeyBinding("bob", "li"), KeyBinding("ada", "zoe")):
        with pytest.raises(ForbiddenError):
            permissions.check_new_bounds(BOUND, bounds)


@pytest.mark.parametrize(
    ("held", "bounds", "child"),
    [
        ({DELEGATE}, KeyBinding(), True),
        ({DELEGATE, ADMIN}, KeyBinding(), False),
        ({DELEGATE, ADMIN}, KeyBinding("ada"), True),
        ({ADMIN}, KeyBinding(), False),
    ],
)
def test_keys_of_those_who_delegate_are_children(held, bounds, child):
    assert permissions.makes_children(replace(MAKER, rights=frozenset(held), bounds=bounds)) is child


@pytest.mark.parametrize(("held", "bounds"), [({READ}, KeyBinding()), ({ADMIN}, KeyBinding("ada"))])
def test_others_make_no_keys(held, bounds):
    with pytest.raises(ForbiddenError):
        permissions.makes_children(replace(MAKER, rights=frozenset(held), bounds=bounds))


def test_a_new_key_has_no_more_than_its_maker():
    maker = replace(MAKER, rights=frozenset({READ, WRITE}))
    for trust in (0, 50):
        permissions.check_new_rights(maker, {READ, WRITE}, trust)
    for held, trust in (((), 1), ({ADMIN}, 1), ({READ}, -1), ({READ}, 51)):
        with pytest.raises(InvalidInputError):
            permissions.check_new_rights(maker, held, trust)


def test_a_key_ends_later_than_now_and_no_later_than_its_maker():
    permissions.check_expiry(None, NOW, None)
    permissions.check_expiry(NOW + SECOND, NOW, None)
    permissions.check_expiry(NOW + HOUR, NOW, NOW + HOUR)
    for expires_at, latest in ((NOW, None), (None, NOW + HOUR), (NOW + HOUR + SECOND, NOW + HOUR)):
        with pytest.raises(InvalidInputError, match="expires_at"):
            permissions.check_expiry(expires_at, NOW, latest)


def test_a_delegated_key_is_for_one_scope_and_a_day():
    wanted = KeyRequest("phone", frozenset({READ, WRITE}), 10, KeyBinding("ada", ""), NOW + 24 * HOUR)
    permissions.check_delegated(wanted, NOW)
    permissions.check_delegated(replace(wanted, rights=frozenset({READ})), NOW)
    for changes in (
        {"bounds": KeyBinding()}, {"bounds": KeyBinding("ada")}, {"rights": frozenset({READ, ADMIN})},
        {"expires_at": None}, {"expires_at": NOW + 24 * HOUR + SECOND},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="without `admin`"):
            permissions.check_delegated(replace(wanted, **changes), NOW)
    with pytest.raises(InvalidInputError, match="24 hours"):
        permissions.check_delegated(replace(wanted, expires_at=None), NOW)


def test_only_an_unbound_admin_restores():
    assert permissions.may_restore(MAKER) is True
    assert permissions.may_restore(BOUND) is False
    assert permissions.may_restore(replace(MAKER, rights=frozenset({READ}))) is False


def test_a_range_of_buckets_is_a_range_of_numbers():
    first, last = numbers.number_range(5, 7, 9)
    assert (first, last) == (numbers.number_scope(5, 7, 0), numbers.number_scope(5, 9, 2**28 - 1))
    assert numbers.bucket_of_number(numbers.number_scope(5, 4_095, 3)) == 4_095
    assert numbers.bucket_of_number(numbers.number_scope(5, 1, 2**28 - 1)) == 1
    assert numbers.tenant_of(last) == 5


def test_a_cursor_of_changes_is_read_as_it_was_written():
    incarnation = UUID(int=7)
    for number in (0, 9, 10**17):
        assert numbers.read_cursor(numbers.write_cursor(incarnation, number)) == (incarnation, number)
    for other in ("", f"{incarnation.hex}.", f"{incarnation.hex}.01", f"{incarnation.hex}.1XX", f"{incarnation}.1"):
        with pytest.raises(InvalidInputError):
            numbers.read_cursor(other)


def test_the_bounds_of_a_cue():
    topic = {"topics": ("a",), "topics_only": True}
    for cue in (
        Cue(text="x" * 8_000, limit=200), Cue(text="x", limit=1), Cue(text="x", min_relevance=0.0),
        Cue(text="x", min_relevance=1.0), Cue(text="x", **topic), Cue(text="x", min_relevance=0.0, channels=("text",)),
        Cue(text="x", min_relevance=0.5, channels=("text",), topics=("a",)), Cue(min_relevance=0.0),
        Cue(text="x", min_relevance=0.5, channels=("text", "vector")),
    ):  # fmt: skip
        cues.check_cue(cue)
    for cue, told in (
        (Cue(text="x" * 8_001), r"^text must"), (Cue(text="x", now=NOW.replace(tzinfo=None)), r"^now must"),
        (Cue(text="x", limit=0), "limit"), (Cue(text="x", limit=201), "limit"),
        (Cue(text="x", topics_only=True), "topics_only req"), (Cue(text="x", min_relevance=1.01), "between 0 and 1"),
        (Cue(text="x", min_relevance=-0.01), "between 0 and 1"), (Cue(min_relevance=0.5), "requires a query"),
        (Cue(text="x", min_relevance=0.5, channels=("text",)), "requires a query"),
        (Cue(text="x", min_relevance=0.5, channels=("text",), **topic), "requires a query"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=told):
            cues.check_cue(cue)


def test_the_bounds_of_a_filter():
    for only in (
        Filter(min_trust=100), Filter(min_importance=10), Filter(where=("a == 1",) * 16),
        Filter(speakers=("Ann",) * 64),
    ):  # fmt: skip
        cues.check_filter(only)
    for only in (
        Filter(min_trust=101), Filter(min_importance=10.5), Filter(where=("a == 1",) * 17), Filter(where=("no",)),
        Filter(speakers=("Ann",) * 65), Filter(speakers=("a\nb",)), Filter(topics=("",)),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            cues.check_filter(only)


def test_channels_are_known():
    cues.check_channels(("text",), ("text", "vector"))
    with pytest.raises(InvalidInputError):
        cues.check_channels(("text", "smell"), ("text", "vector"))


def test_the_bounds_of_texts():
    texts.check_limit(1)
    texts.check_limit(200)
    texts.check_line("name", "x" * 200)
    texts.check_line("name", "a\u00adb")
    texts.check_idempotency_key("x" * 255)
    for moment in (texts.EARLIEST, texts.LATEST):
        texts.check_moment("at", moment)
    assert texts.check_json("a", {}, 9, 9) == 2
    assert texts.check_json("a", {"é": "é"}, 13, 1) == 12
    for refused in (
        lambda: texts.check_limit(0), lambda: texts.check_limit(201), lambda: texts.check_line("name", "x" * 201),
        lambda: texts.check_idempotency_key("x" * 256), lambda: texts.check_json("a", {"b": [[1]]}, 99, 2),
        lambda: texts.check_moment("at", texts.LATEST + SECOND),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            refused()
    with pytest.raises(InvalidInputError, match=r"^agent must"):
        texts.check_scope("", "")
