"""What becomes of a memory that is revised, and what counts as a change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.memories.revision import check_current, content_changed, embedding_text_changed, is_changed, revise
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.memories import ImportanceFrom, Kind, Memory, MemoryUpdate, Triple

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMORY = Memory(
    UUID(int=1), Kind.EVENT, "at four", "Ann", 7.300000190734863, Triple("Ann", "sees", "Bo"), False, 0, ("ann", "bo"),
    "library", 100, NOW, NOW, NOW, (UUID(int=9),), "", {"a": 1}, pinned=True,
)  # fmt: skip


def test_what_is_not_named_stays():
    new = revise(MEMORY, MemoryUpdate("at five"))
    for name in (
        "kind",
        "speaker",
        "importance",
        "triple",
        "keywords",
        "occurred_at",
        "evidence",
        "metadata",
        "pinned",
    ):
        assert getattr(new, name) == getattr(MEMORY, name), name


@pytest.mark.parametrize(
    ("revision", "changed", "says", "sounds"),
    [
        (MemoryUpdate("at four"), False, False, False),
        (MemoryUpdate(importance=7.3, keywords=("Ann", "Bo"), pinned=True), False, False, False),
        (MemoryUpdate("at five"), True, True, True),
        (MemoryUpdate(speaker="Bob"), True, True, True),
        (MemoryUpdate(occurred_at=datetime(2025, 1, 1, tzinfo=UTC)), True, True, False),
        (MemoryUpdate(importance=8), True, False, False),
        (MemoryUpdate(metadata={}), True, False, False),
        (MemoryUpdate(keywords=("tea",)), True, False, False),
        (MemoryUpdate(topic="day"), True, False, False),
        (MemoryUpdate(embedding_text="noon"), True, False, True),
        (MemoryUpdate(embedding=[1.0]), True, False, True),
        (MemoryUpdate(pinned=False), True, False, False),
    ],
)
def test_what_changes_what_it_says_and_its_vector(revision, changed, says, sounds):
    new = revise(MEMORY, revision)
    assert (is_changed(MEMORY, new, revision), content_changed(MEMORY, new), embedding_text_changed(MEMORY, new)) == (
        changed, says, sounds
    )  # fmt: skip


@pytest.mark.parametrize(
    "refused",
    [
        MemoryUpdate(),
        MemoryUpdate(""),
        MemoryUpdate("  "),
        MemoryUpdate(importance=0),
        MemoryUpdate(related_topics=("a",)),
    ],
)
def test_what_cannot_be_remembered_cannot_be_revised_to(refused):
    with pytest.raises(InvalidInputError):
        revise(MEMORY, refused)


def test_the_refusal_names_the_current_version():
    check_current(UUID(int=1), UUID(int=1))
    with pytest.raises(ConflictError, match=str(UUID(int=2))):
        check_current(UUID(int=1), UUID(int=2))
    with pytest.raises(ConflictError, match="no version"):
        check_current(UUID(int=1), None)


RULED = replace(MEMORY, importance_from=ImportanceFrom.RULE)


@pytest.mark.parametrize(
    ("memory", "revision", "importance", "rated_by"),
    [
        (RULED, MemoryUpdate("at five"), None, ImportanceFrom.RULE),
        (RULED, MemoryUpdate("at four"), MEMORY.importance, ImportanceFrom.RULE),
        (RULED, MemoryUpdate(speaker="Bob"), MEMORY.importance, ImportanceFrom.RULE),
        (RULED, MemoryUpdate("at five", importance=3), 3, ImportanceFrom.CALLER),
        (MEMORY, MemoryUpdate("at five"), MEMORY.importance, ImportanceFrom.CALLER),
        (replace(MEMORY, importance_from=ImportanceFrom.MODEL), MemoryUpdate("at five"), MEMORY.importance, "model"),
    ],
)
def test_the_rules_rate_new_words_where_nobody_else_has_rated(memory, revision, importance, rated_by):
    new = revise(memory, revision)
    assert (new.importance, new.importance_from) == (importance, rated_by)
    assert is_changed(memory, new, revision) is (revision != MemoryUpdate("at four"))


def test_what_is_named_takes_the_place_of_what_was():
    later = NOW + timedelta(days=9)
    named = {
        "speaker": "Bob",
        "importance": 2.0,
        "occurred_at": later,
        "expires_at": later + timedelta(days=1),
        "embedding_text": "noon",
        "metadata": {"b": 2},
        "pinned": False,
        "keywords": ("tea",),
        "embedding": [1.0],
        "topic": "day->noon",
        "related_topics": ("night",),
    }
    new = revise(MEMORY, MemoryUpdate("at five", **named))
    assert {name: getattr(new, name) for name in named} == named
    assert (new.content, new.idle, new.triple) == ("at five", False, MEMORY.triple)


def test_without_a_topic_a_version_is_filed_nowhere_else():
    new = revise(MEMORY, MemoryUpdate("at five"))
    assert (new.topic, new.related_topics, new.embedding) == ("", (), None)


def test_a_message_without_text_may_stay_so():
    shown = replace(MEMORY, content=" ")
    assert revise(shown, MemoryUpdate(pinned=False)).content == " "
    with pytest.raises(InvalidInputError):
        revise(shown, MemoryUpdate(" ", pinned=False))
    with pytest.raises(InvalidInputError):
        revise(shown, MemoryUpdate(importance=0))


@pytest.mark.parametrize(("more", "changed"), [(0.00005, False), (-0.00005, False), (0.001, True), (-0.001, True)])
def test_importances_that_are_stored_alike_are_the_same(more, changed):
    revision = MemoryUpdate(importance=MEMORY.importance + more)
    assert is_changed(MEMORY, revise(MEMORY, revision), revision) is changed
