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


@dataclass(frozen=True, slots=True)
class ExportOrder:
    """Which scopes of a tenant are to be exported, and the vectors of which models."""

    agent: str | None = None
    """One agent's; those of all agents if None."""
    user: str | None = None
    """One user's, the agent's own without a user if empty; those of all users if None."""
    vectors: tuple[str, ...] = ()
    """Names of embedding models, or `all`; without any, an import makes the vectors again."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export holds."""

    scopes: int
    lines: Mapping[str, int]
    """How many lines each section has, over all scopes."""


@dataclass(frozen=True, slots=True)
class ExportImport:
    """What became of an export that was imported."""

    scopes: int
    lines: Mapping[str, int]
    """How many lines of each section were stored."""
    left_out: Mapping[str, int]
    """How many lines of each section were not."""
    waiting: int = 0
    """How many memories wait for a vector, which a worker makes."""
    remarks: tuple[str, ...] = ()
    """What is other than in the file, in sentences."""
    restored: bool = True
    """Whether ids, origin, trust, times and receipts are as they were; if not, its memories are new ones."""


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """How an export is to be imported."""

    name: str
    """What the import is called: new memories have the origin `import:NAME`."""
    agent: str | None = None
    """Whose memory it becomes, if the export holds one scope; as in the file if None."""
    user: str | None = None
    as_new: bool = False
    """Whether its memories become new ones, although the caller might restore them."""


@dataclass(frozen=True, slots=True)
class UserErasure:
    """What the erasure of a user removed, or would remove, in numbers only."""

    id: UUID | None
    """Of the receipt; None for a dry run, which leaves none."""
    user: str
    asked_by: str
    scopes: int
    """In how many scopes, one for each agent."""
    removed: Mapping[str, int]
    """How many rows of each table."""
    begun_at: datetime | None = None
    finished_at: datetime | None = None
    """None while it is under way, here or in a mirror, and for a dry run."""
    erased_at: datetime | None = None
    """When the record had nothing of the user any more."""
    mirrors: Mapping[str, str] = field(default_factory=dict[str, str])
    """What became of it in each mirror, by its name; one that is awaited is absent."""
