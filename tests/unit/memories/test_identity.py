"""Ids sort in the order of writing, and a moment cuts them exactly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories.ids import MAX_BATCH_BYTES, fingerprint, first_id_after, memory_id, space_id
from recollect.models.memories import Kind, NewMemory

moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 - bounds
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
entropy = st.binary(min_size=8, max_size=8)


@given(moments, st.integers(0, MAX_BATCH_BYTES - 1), entropy)
def test_ids_are_uuids_of_version_7_that_hold_their_time(moment, position, random):
    made = memory_id(moment, position, random)
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    milliseconds = made.int >> 80
    assert datetime.fromtimestamp(milliseconds // 1000, UTC) == moment.replace(microsecond=0)
    assert milliseconds % 1000 == moment.microsecond // 1000


@given(moments, st.integers(0, MAX_BATCH_BYTES - 2), entropy, entropy)
def test_ids_grow_within_a_write_and_from_one_to_the_next(moment, position, one, other):
    assert memory_id(moment, position, one) < memory_id(moment, position + 1, other)
    assert memory_id(moment, MAX_BATCH_BYTES - 1, one) < memory_id(moment + timedelta(milliseconds=1), 0, other)


@given(
    moments, st.timedeltas(timedelta(days=-9000), timedelta(days=9000)), st.integers(0, MAX_BATCH_BYTES - 1), entropy
)
def test_a_moment_cuts_ids_exactly(written_at, distance, position, random):
    moment = written_at + distance
    assert (memory_id(written_at, position, random) < first_id_after(moment)) == (written_at <= moment)


def test_a_batch_has_its_limit():
    with pytest.raises(ValueError, match="4,096"):
        memory_id(datetime.now(UTC), MAX_BATCH_BYTES, bytes(8))


def test_fingerprints_see_every_field():
    base = NewMemory("a", embedding=[1.0, 2.0], occurred_at=datetime(2024, 1, 1, tzinfo=UTC))
    others = [
        replace(base, content="b"),
        replace(base, kind=Kind.FACT),
        replace(base, speaker="Ann"),
        replace(base, importance=6.0),
        replace(base, keywords=("k",)),
        replace(base, occurred_at=None),
        replace(base, evidence=(uuid4(),)),
        replace(base, embedding=[1.0, 2.5]),
        replace(base, metadata={"a": 1}),
    ]
    assert len({fingerprint([each]) for each in [base, *others]}) == len(others) + 1
    assert fingerprint([base, base]) != fingerprint([base])


def test_fingerprints_do_not_depend_on_how_a_thing_is_written():
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    shifted = moment.astimezone(timezone(timedelta(hours=8)))
    one = NewMemory("a", occurred_at=moment, metadata={"x": 1, "y": 2})
    two = NewMemory("a", occurred_at=shifted, metadata={"y": 2, "x": 1})
    assert fingerprint([one]) == fingerprint([two])


def test_a_fingerprint_stays_what_it_was_in_every_version():
    occurred_at = datetime(2026, 1, 1, tzinfo=UTC)
    memory = NewMemory("我养了一只猫", metadata={"项目": "记忆", "b": 1}, occurred_at=occurred_at)
    assert fingerprint([memory]).hex() == "49f6caf54350a23c8065696ec69f3425707aa6b3c635d0309f85f2642cb478ba"


@pytest.mark.parametrize(
    ("model", "dimensions", "known"), [("bge-m3", 1024, 302477368), ("bge-m3", 1025, 1148945514), ("文", 3, 2046048662)]
)
def test_a_space_has_the_same_id_on_every_server(model, dimensions, known):
    assert space_id(model, dimensions) == known


@given(st.text(max_size=40), st.integers(1, 4096))
def test_ids_of_spaces_fit_an_integer(model, dimensions):
    assert 0 <= space_id(model, dimensions) < 2**31
