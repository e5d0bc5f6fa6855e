"""The nouns of bringing over what another system holds: what is wanted of it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class UserBy(StrEnum):
    """What of a Dify conversation says whose it is."""

    AUTO = "auto"
    """What a Dify workflow sees as `sys.user_id`: the end user's session, else its id, else the account's id."""
    SESSION = "session"
    END_USER = "end-user"
    ACCOUNT = "account"
    NOBODY = "nobody"
    """All conversations are the agent's alone."""


@dataclass(frozen=True, slots=True)
class DifyImport:
    """Which conversations of which Dify database are wanted, and for whom."""

    dsn: str = field(repr=False)
    agent: str
    app: UUID | None = None
    """One app's conversations; all apps' if None."""
    user_by: UserBy = UserBy.AUTO
    since: datetime | None = None
    """Only conversations in which something was said since then, but those whole."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Brought:
    """How many of a thing were found, came over now, were here before, and were left."""

    thing: str
    found: int
    imported: int
    known: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """What an import did, or would do."""

    brought: tuple[Brought, ...]
    remarks: Mapping[str, int]
    """How often something was skipped, cut or changed, by what it was."""
    messages: int
    """How many messages were appended: a question and an answer are two."""
