"""The last value that is accepted, the first that is refused, and the field that the refusal names."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from recollect.core.memories import checks
from recollect.core.memories.conditions import read_condition
from recollect.core.memories.ids import MAX_BATCH_BYTES, fingerprint, first_id_after, first_ids_of_days, memory_id
from recollect.errors import InvalidInputError
from recollect.models.memories import NewMemory

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def nest(depth):
    """Make metadata of so many levels."""
    value = 0
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "memory",
    [
        NewMemory("x" * checks.MAX_CONTENT_LENGTH),
        NewMemory("x", importance=1),
        NewMemory("x", importance=10),
        NewMemory("x", keywords=("k",) * checks.MAX_KEYWORDS),
        NewMemory("x", evidence=(UUID(int=1),) * checks.MAX_EVIDENCE),
        NewMemory("x", occurred_at=NOW, expires_at=NOW + SECOND),
        NewMemory("x", metadata={"a": "x" * (16_384 - 9)}),
        NewMemory("x", metadata=nest(8)),
    ],
    ids=lambda memory: "",
)
def test_the_last_that_is_accepted(memory):
    checks.check_new_memory(memory)


@pytest.mark.parametrize(
    ("memory", "names"),
    [
        (NewMemory("x" * 32_001), r"^content must"),
        (NewMemory("x", speaker="a\nb"), r"^speaker must"),
        (NewMemory("x", embedding_text="a\0b"), r"^embedding_text must"),
        (NewMemory("x", keywords=("a\nb",)), r"^keywords must be one"),
        (NewMemory("x", keywords=("k",) * 65), r"^keywords must hold"),
        (NewMemory("x", evidence=(UUID(int=1),) * 257), r"^evidence must hold"),
        (NewMemory("x", occurred_at=NOW.replace(tzinfo=None)), r"^occurred_at must"),
        (NewMemory("x", expires_at=NOW.replace(tzinfo=None)), r"^expires_at must carry"),
        (NewMemory("x", occurred_at=NOW, expires_at=NOW), r"^expires_at must be after"),
        (NewMemory("x", metadata={"a": "x" * (16_384 - 8)}), r"^metadata must be at most 16384"),
        (NewMemory("x", metadata=nest(9)), r"^metadata must be at most 8"),
        (NewMemory("x", importance=0.99), r"^importance"),
        (NewMemory("x", importance=10.01), r"^importance"),
    ],
    ids=lambda value: "",
)
def test_the_first_that_is_refused_is_named(memory, names):
    with pytest.raises(InvalidInputError, match=names):
        checks.check_new_memory(memory)


def test_a_call_is_bounded_in_memories_and_in_characters():
    checks.check_new_memories([NewMemory("x")] * 1_000)
    many = [NewMemory("x" * 25_000)] * 10
    checks.check_new_memories(many)
    with pytest.raises(InvalidInputError, match="250000 characters"):
        checks.check_new_memories([*many, NewMemory("x")])
    with pytest.raises(InvalidInputError, match="1 to 1000"):
        checks.check_new_memories([NewMemory("x")] * 1_001)
    assert checks.MAX_DIMENSIONS == 4_096


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_every_order_needs_a_number_or_a_text(operator):
    assert read_condition(f"a {operator} 3").operand == 3
    for wrong in ("true", "[1]", "null"):
        with pytest.raises(InvalidInputError, match="where: <, <=, > and >= need"):
            read_condition(f"a {operator} {wrong}")


def test_a_condition_is_bounded_in_length_and_depth():
    assert len(read_condition("a == " + "x" * 1_995).operand) == 1_995
    assert read_condition("a == " + "[" * 16 + "]" * 16).field == "a"
    for wrong in ("a == " + "x" * 1_996, "a == " + "[" * 17 + "]" * 17, "a == \ud800", '"a\nb" == 1'):
        with pytest.raises(InvalidInputError, match=r"where"):
            read_condition(wrong)


def test_what_is_no_condition_is_told_how_one_is_written():
    with pytest.raises(InvalidInputError, match=r'tags contains "red", due exists$'):
        read_condition("no condition")


def test_the_parts_of_an_id_lie_in_their_bits():
    made = memory_id(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), MAX_BATCH_BYTES - 1, b"\xff" * 9)
    assert made.int >> 80 == 1_000
    assert made.int >> 64 & 0xFFFF == 0x7FFF
    assert made.int & 2**64 - 1 == 0b10 << 62 | 2**62 - 1
    assert memory_id(NOW, 1, bytes(8)).int & 2**62 - 1 == 0
    assert memory_id(NOW, 0, bytes(7) + b"\x01" + b"\xff").int & 2**62 - 1 == 1
    with pytest.raises(ValueError, match=r"4,096"):
        memory_id(NOW, 4_096, bytes(8))


def test_the_first_id_after_a_moment_is_of_the_next_millisecond():
    assert first_id_after(datetime(1970, 1, 1, tzinfo=UTC)).int == 1 << 80
    assert first_id_after(datetime(1, 1, 1, tzinfo=UTC)).int == 0
    latest = datetime(9999, 12, 31, tzinfo=UTC)
    assert (
        first_id_after(latest).int >> 80 == (latest - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) + 1
    )


def test_days_begin_at_midnight_where_somebody_lives():
    zone = ZoneInfo("Asia/Shanghai")
    days = first_ids_of_days(date(2026, 1, 2), 2, zone)
    assert [day for day, _ in days] == [date(2026, 1, 1), date(2026, 1, 2)]
    midnight = datetime(2026, 1, 2, tzinfo=zone)
    assert days[1][1].int >> 80 == int(midnight.timestamp() * 1_000)
    assert days[1][1].int & 2**80 - 1 == 0


def test_a_fingerprint_knows_the_order_of_memories_but_not_that_of_fields():
    one, other = NewMemory("a", metadata={"b": 1, "c": 2}), NewMemory("a", metadata={"c": 2, "b": 1})
    assert fingerprint([one]) == fingerprint([other])
    assert fingerprint([one, NewMemory("z")]) != fingerprint([NewMemory("z"), one])
