"""Cursors: what is read is what was written, and all else is refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

from attacks.fuzz.edits import Choices, to_text
from recollect.core.service import numbers
from recollect.errors import InvalidInputError
from recollect.models.service import ScopeOrder
from recollect.verbs.conversations import lifecycle, receipts
from recollect.verbs.service import jobs, tenants

WATCHED = "recollect.core.service recollect.verbs.conversations recollect.verbs.service"
IDENTITY = "0197f1c2-0000-7000-8000-000000000001"
WRITTEN = (
    *(f"{UUID(IDENTITY).hex}.17", f"2026-01-31T12:00:00Z_{IDENTITY}", f"_{IDENTITY}"),
    *("2026-01-31T12:00:00.5+05:45_dinner", "2026-01-31T12:00:00Z/42", "17/42", "ada/li", "ada/", "1.17", "0.", "99.1"),
    *("2026-W05-6_x", "20260131T12Z_x", "9999-12-31T23:59:59-14:00_x", "0001-01-01T00:00:00+14:00_x", "٣.1", "1_0/1"),
)


def list_seeds() -> Iterator[bytes]:
    for number in range(len(TRIED)):
        yield from (bytes([number, 0]) + text.encode() for text in WRITTEN)


def check(data: bytes) -> None:
    choices = Choices(data)
    attempt = choices.one_of(TRIED)
    try:
        attempt(to_text(choices.rest()))
    except InvalidInputError as problem:
        assert len(str(problem)) < 200


def of_changes(text: str) -> None:
    read = numbers.read_cursor(text)
    assert numbers.write_cursor(*read) == text


def of_conversations(text: str) -> None:
    read = lifecycle.read_cursor(text)
    if read is not None:
        assert read[0].tzinfo is UTC
        assert lifecycle.read_cursor(lifecycle.write_cursor(SimpleNamespace(updated_at=read[0], id=read[1]))) == read


def of_receipts(text: str) -> None:
    moment, identity = receipts.read_place(text)
    begun = datetime.fromisoformat(moment)
    if begun.tzinfo is not None and 2 < begun.year < 9998:
        written = receipts.write_place(SimpleNamespace(begun_at=begun, id=identity))
        assert datetime.fromisoformat(receipts.read_place(written)[0]) == begun
        assert receipts.read_place(written)[1] == identity


def of_jobs(text: str) -> None:
    place, before = jobs.read_place(text, 3)
    assert 0 <= place < 3
    assert jobs.read_place(f"{place}{jobs.BETWEEN}{before}", 3) == (place, before)


def of_scopes(order: ScopeOrder):
    def attempt(text: str) -> None:
        read = tenants.read_place(order, text)
        assert tenants.read_place(order, tenants.write_place(order, read)) == read

    return attempt


TRIED = (
    *(of_changes, of_conversations, of_receipts, of_jobs),
    *(of_scopes(order) for order in ScopeOrder),
)


def plant() -> None:
    """Take the day for the beginning of a page."""
    lifecycle.write_cursor = lambda last: f"{last.updated_at.date()}_{last.id}"
