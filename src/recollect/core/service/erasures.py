"""Erasures in a log outside the database: only IDs, one line each, and the entries that a backup includes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias
from uuid import UUID

from recollect.errors import SetupError


@dataclass(frozen=True, slots=True)
class LoggedErasure:
    """The erasures of one transaction: memories by ID, a conversation, or without both a whole scope."""

    scope_id: int
    at: datetime
    receipt: UUID | None = None
    """The receipt of a purge or of a user's erasure; forgetting has none."""
    conversation: str = ""
    ids: tuple[UUID, ...] = ()


LogPosition: TypeAlias = Mapping[str, int]
"""The number of the last entry in each stream of the log; every process writes its own stream."""
Entries: TypeAlias = Mapping[str, Mapping[int, LoggedErasure]]
"""All entries of a log by stream and number."""


class ErasureLog(Protocol):
    """A log of erasures outside the database; several processes can append to it."""

    @property
    def place(self) -> str:
        """Return the location of the log."""
        ...

    async def append(self, erasure: LoggedErasure) -> None:
        """Append an entry, durable on return. Raise ErasureLogError if that is impossible."""
        ...

    async def read_erasures(self) -> Entries:
        """Return all entries."""
        ...


def write_entry(erasure: LoggedErasure) -> str:
    """Format an entry as one line, without the line end."""
    fields: dict[str, object] = {"scope": erasure.scope_id, "at": erasure.at.isoformat()}
    if erasure.receipt is not None:
        fields["receipt"] = str(erasure.receipt)
    if erasure.conversation:
        fields["conversation"] = erasure.conversation
    if erasure.ids:
        fields["memories"] = [str(each) for each in erasure.ids]
    return json.dumps(fields, separators=(",", ":"))


def read_entry(line: str, place: str) -> LoggedErasure:
    """Parse an entry, or raise SetupError: callers must not rely on a damaged log."""
    try:
        fields = json.loads(line)
        receipt = fields.get("receipt")
        return LoggedErasure(
            int(fields["scope"]),
            datetime.fromisoformat(fields["at"]),
            UUID(receipt) if receipt else None,
            str(fields.get("conversation", "")),
            tuple(UUID(each) for each in fields.get("memories", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SetupError(f"The erasure log is damaged at {place}. Restore it from a copy.") from None


def find_position(entries: Entries) -> dict[str, int]:
    """Return the position of a log."""
    return {stream: max(numbered) for stream, numbered in sorted(entries.items()) if numbered}


def choose_newer(entries: Entries, position: LogPosition) -> list[LoggedErasure]:
    """List the entries after a position, in order of time."""
    return in_order(
        each
        for stream, numbered in entries.items()
        for number, each in numbered.items()
        if number > position.get(stream, 0)
    )


def choose_since(entries: Entries, moment: datetime) -> list[LoggedErasure]:
    """List the entries since a time, in order of time."""
    return in_order(each for numbered in entries.values() for each in numbered.values() if each.at >= moment)


def in_order(erasures: Iterable[LoggedErasure]) -> list[LoggedErasure]:
    """Sort entries by time."""
    return sorted(erasures, key=lambda each: each.at)
