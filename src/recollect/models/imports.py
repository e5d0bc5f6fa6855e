"""The nouns of bringing over what another system holds: what is wanted of it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON


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
class ImportReport:
    """What an import did, or would do."""

    brought: tuple[Brought, ...]
    remarks: Mapping[str, int]
    """How often something was skipped, cut or changed, by what it was."""
    messages: int
    """How many messages were appended: a question and an answer are two."""


class Format(StrEnum):
    """Whose export a file is."""

    MEM0 = "mem0"
    LETTA = "letta"
    ZEP = "zep"
    GRAPHITI = "graphiti"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


class UserField(StrEnum):
    """What of an entry of a file says whose it is."""

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
    """Whose it is, where nothing in the file says it."""
    user_by: UserField | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value of an export, and how far its file is read with it."""

    value: JSON
    done: int = 0
    """How many bytes are read."""
    total: int = 0
