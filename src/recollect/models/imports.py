"""Values of imports from other systems: what is wanted, and what was imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON


class UserBy(StrEnum):
    """Which field of a Dify conversation names its user."""

    AUTO = "auto"
    """What a Dify workflow sees as `sys.user_id`: the end user's session, else its id, else the account's id."""
    SESSION = "session"
    END_USER = "end-user"
    ACCOUNT = "account"
    NOBODY = "nobody"
    """All conversations belong to the agent alone."""


@dataclass(frozen=True, slots=True)
class DifyImport:
    """Which conversations of which Dify database are wanted, and for whom."""

    dsn: str = field(repr=False)
    agent: str
    app: UUID | None = None
    """One app's conversations; all apps' if None."""
    user_by: UserBy = UserBy.AUTO
    since: datetime | None = None
    """Only conversations with a message since then, but those completely."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Brought:
    """How many of one sort were found, imported now, known before, and skipped."""

    thing: str
    found: int
    imported: int
    known: int
    skipped: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do."""

    brought: tuple[Brought, ...]
    remarks: Mapping[str, int]
    """How often something was skipped, cut or changed, by what it was."""
    messages: int
    """How many messages were appended: a question and an answer are two."""


class Format(StrEnum):
    """Which system a file was exported from."""

    MEM0 = "mem0"
    LETTA = "letta"
    ZEP = "zep"
    GRAPHITI = "graphiti"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


class UserField(StrEnum):
    """Which field of an entry of a file names its user."""

    USER_ID = "user-id"
    AGENT_ID = "agent-id"
    RUN_ID = "run-id"
    GROUP_ID = "group-id"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class FileImport:
    """Which system's export is wanted, and for whom."""

    format: Format
    agent: str
    user: str = ""
    """The user where the file names none."""
    user_by: UserField | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value of an export, and how much of its file is read by then."""

    value: JSON
    done: int = 0
    """How many bytes are read."""
    total: int = 0
