"""What a key may do and which keys it may make, at the bounds of every rule; and numbers and cursors of scopes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.recall import checks as cues
from recollect.core.service import numbers, rights
from recollect.core.service.positions import MOST_POSITIONS, read_positions
from recollect.core.text import checks as texts
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.recall import Cue, Filter
from recollect.models.service import Bounds, Caller, KeyRequest, Right

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
MAKER = Caller(1, frozenset(Right), "test", 50)
BOUND = replace(MAKER, bounds=Bounds("ada", "li"))
READ, WRITE, ADMIN, DELEGATE = Right.READ, Right.WRITE, Right.ADMIN, Right.DELEGATE


def test_a_right_is_there_or_not():
    rights.check_right(MAKER, ADMIN)
    with pytest.raises(ForbiddenError):
        rights.check_right(replace(MAKER, rights=frozenset({READ})), WRITE)


def test_a_bound_key_keeps_to_its_names():
    rights.check_unbound(MAKER)
    rights.check_all_users(MAKER)
    rights.check_bounds(MAKER, "bob", "zoe")
    rights.check_bounds(BOUND, "ada", "li")
    rights.check_all_users(replace(MAKER, bounds=Bounds("ada")))
    for refused in (
        lambda: rights.check_unbound(BOUND),
        lambda: rights.check_all_users(BOUND),
        lambda: rights.check_bounds(BOUND, "bob", "li"),
        lambda: rights.check_bounds(BOUND, "ada", None),
    ):
        with pytest.raises(ForbiddenError, match="This API key is bound"):
            refused()
    with pytest.raises(ForbiddenError, match=r"made for\.$"):
        rights.check_bounds(BOUND, "ada", "zoe")


def test_a_new_key_is_bound_as_its_maker_is():
    for bounds in (Bounds(), Bounds("ada"), Bounds("ada", ""), Bounds("ada", "li")):
        rights.check_new_bounds(MAKER, bounds)
    rights.check_new_bounds(BOUND, Bounds("ada", "li"))
    for bounds in (Bounds(None, "li"), Bounds("a/b"), Bounds("ada", "l/i")):
        with pytest.raises(InvalidInputError):
            rights.check_new_bounds(MAKER, bounds)
    for bounds in (Bounds("ada"), Bounds("bob", "li"), Bounds("ada", "zoe")):
        with pytest.raises(ForbiddenError):
            rights.check_new_bounds(BOUND, bounds)


@pytest.mark.parametrize(
    ("held", "bounds", "child"),
    [
        ({DELEGATE}, Bounds(), True),
        ({DELEGATE, ADMIN}, Bounds(), False),
        ({DELEGATE, ADMIN}, Bounds("ada"), True),
        ({ADMIN}, Bounds(), False),
    ],
)
def test_keys_of_those_who_delegate_are_children(held, bounds, child):
    assert rights.makes_children(replace(MAKER, rights=frozenset(held), bounds=bounds)) is child


@pytest.mark.parametrize(("held", "bounds"), [({READ}, Bounds()), ({ADMIN}, Bounds("ada"))])
def test_others_make_no_keys(held, bounds):
    with pytest.raises(ForbiddenError):
        rights.makes_children(replace(MAKER, rights=frozenset(held), bounds=bounds))


def test_a_new_key_has_no_more_than_its_maker():
    maker = replace(MAKER, rights=frozenset({READ, WRITE}))
    for trust in (0, 50):
        rights.check_new_rights(maker, {READ, WRITE}, trust)
    for held, trust in (((), 1), ({ADMIN}, 1), ({READ}, -1), ({READ}, 51)):
        with pytest.raises(InvalidInputError):
            rights.check_new_rights(maker, held, trust)


def test_a_key_ends_later_than_now_and_no_later_than_its_maker():
    rights.check_expiry(None, NOW, None)
    rights.check_expiry(NOW + SECOND, NOW, None)
    rights.check_expiry(NOW + HOUR, NOW, NOW + HOUR)
    for expires_at, latest in ((NOW, None), (None, NOW + HOUR), (NOW + HOUR + SECOND, NOW + HOUR)):
        with pytest.raises(InvalidInputError, match="expires_at"):
            rights.check_expiry(expires_at, NOW, latest)


def test_a_delegated_key_is_for_one_scope_and_a_day():
    wanted = KeyRequest("phone", frozenset({READ, WRITE}), 10, Bounds("ada", ""), NOW + 24 * HOUR)
    rights.check_delegated(wanted, NOW)
    rights.check_delegated(replace(wanted, rights=frozenset({READ})), NOW)
    for changes in (
        {"bounds": Bounds()}, {"bounds": Bounds("ada")}, {"rights": frozenset({READ, ADMIN})}, {"expires_at": None},
        {"expires_at": NOW + 24 * HOUR + SECOND},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="without the right `admin`"):
            rights.check_delegated(replace(wanted, **changes), NOW)
    with pytest.raises(InvalidInputError, match="24 hours"):
        rights.check_delegated(replace(wanted, expires_at=None), NOW)


def test_only_an_unbound_admin_restores():
    assert rights.may_restore(MAKER) is True
    assert rights.may_restore(BOUND) is False
    assert rights.may_restore(replace(MAKER, rights=frozenset({READ}))) is False


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


def test_positions_are_at_most_a_thousand():
    written = [f"{number}.1.0/1" for number in range(MOST_POSITIONS + 1)]
    assert MOST_POSITIONS == 1_000
    assert len(read_positions(",".join(written[:-1]))) == 1_000
    for other in (",".join(written), "x"):
        with pytest.raises(InvalidInputError, match=r"commas between them\.$"):
            read_positions(other)


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
        (Cue(text="x", topics_only=True), "topics_only needs"), (Cue(text="x", min_relevance=1.01), "between 0 and 1"),
        (Cue(text="x", min_relevance=-0.01), "between 0 and 1"), (Cue(min_relevance=0.5), "needs a text"),
        (Cue(text="x", min_relevance=0.5, channels=("text",)), "needs a text"),
        (Cue(text="x", min_relevance=0.5, channels=("text",), **topic), "needs a text"),
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
