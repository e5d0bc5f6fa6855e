"""What becomes of a memory that is revised, and what counts as a change."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.memories.revision import check_current, is_changed, revise, says_other, sounds_other
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.memories import Kind, Memory, Revision, Triple

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMORY = Memory(
    UUID(int=1), Kind.EVENT, "at four", "Ann", 7.300000190734863, Triple("Ann", "sees", "Bo"), False, 0, ("ann", "bo"),
    "library", 100, NOW, NOW, NOW, (UUID(int=9),), "", {"a": 1}, pinned=True,
)  # fmt: skip


def test_what_is_not_named_stays():
    new = revise(MEMORY, Revision("at five"))
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
        (Revision("at four"), False, False, False),
        (Revision(importance=7.3, keywords=("Ann", "Bo"), pinned=True), False, False, False),
        (Revision("at five"), True, True, True),
        (Revision(speaker="Bob"), True, True, True),
        (Revision(occurred_at=datetime(2025, 1, 1, tzinfo=UTC)), True, True, False),
        (Revision(importance=8), True, False, False),
        (Revision(metadata={}), True, False, False),
        (Revision(keywords=("tea",)), True, False, False),
        (Revision(topic="day"), True, False, False),
        (Revision(embedding_text="noon"), True, False, True),
        (Revision(embedding=[1.0]), True, False, True),
        (Revision(pinned=False), True, False, False),
    ],
)
def test_what_changes_what_it_says_and_its_vector(revision, changed, says, sounds):
    new = revise(MEMORY, revision)
    assert (is_changed(MEMORY, new, revision), says_other(MEMORY, new), sounds_other(MEMORY, new)) == (
        changed, says, sounds
    )  # fmt: skip


@pytest.mark.parametrize(
    "refused", [Revision(), Revision(""), Revision("  "), Revision(importance=0), Revision(related_topics=("a",))]
)
def test_what_cannot_be_remembered_cannot_be_revised_to(refused):
    with pytest.raises(InvalidInputError):
        revise(MEMORY, refused)


def test_the_refusal_names_the_current_version():
    check_current(UUID(int=1), UUID(int=1))
    with pytest.raises(ConflictError, match=str(UUID(int=2))):
        check_current(UUID(int=1), UUID(int=2))
