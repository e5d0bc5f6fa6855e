"""Values of imports and exports: the requests and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.models.memories import JSON


class DifyUserField(StrEnum):
    """The field of a Dify conversation that names its user."""

    AUTO = "auto"
    """`sys.user_id` of a Dify workflow: the end user's session, else the end user's ID, else the account's ID."""
    SESSION = "session"
    END_USER = "end-user"
    ACCOUNT = "account"
    NOBODY = "nobody"
    """No user: all conversations belong to the agent alone."""


@dataclass(frozen=True, slots=True)
class DifyImport:
    """The conversations to import from a Dify database, and their agent."""

    dsn: str = field(repr=False)
    agent: str
    app: UUID | None = None
    """Only conversations of this app; all apps if None."""
    user_by: DifyUserField = DifyUserField.AUTO
    since: datetime | None = None
    """Only conversations with a message since this time, but these completely."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ImportCount:
    """How many entries of one sort were found, imported now, already known, and skipped."""

    thing: str
    found: int
    imported: int
    known: int
    skipped: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import or a dry run."""

    brought: tuple[ImportCount, ...]
    remarks: Mapping[str, int]
    """Number of skipped, cut or changed things, by description."""
    messages: int
    """Number of appended messages: a question with its answer counts as two."""


class Format(StrEnum):
    """The system that exported a file."""

    MEM0 = "mem0"
    LETTA = "letta"
    ZEP = "zep"
    GRAPHITI = "graphiti"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


class UserField(StrEnum):
    """The field of an entry that names its user."""

    USER_ID = "user-id"
    AGENT_ID = "agent-id"
    RUN_ID = "run-id"
    GROUP_ID = "group-id"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class FileImport:
    """The format of a file to import, and the owner of its memories."""

    format: Format
    agent: str
    user: str = ""
    """The user if the file names none."""
    user_by: UserField | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value of an export, and the progress in its file."""

    value: JSON
    done: int = 0
    """Number of bytes read."""
    total: int = 0


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The scopes of a tenant to export, and the models whose vectors to include."""

    agent: str | None = None
    """Only scopes of this agent; all agents if None."""
    user: str | None = None
    """Only scopes of this user; without a user if empty; all users if None."""
    vectors: tuple[str, ...] = ()
    """Names of embedding models, or `all`; if empty, an import computes the vectors again."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The contents of an export."""

    scopes: int
    lines: Mapping[str, int]
    """Number of lines of each section, over all scopes."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of importing an export."""

    scopes: int
    lines: Mapping[str, int]
    """Number of stored lines of each section."""
    left_out: Mapping[str, int]
    """Number of omitted lines of each section."""
    waiting: int = 0
    """Number of memories that wait for a vector from a worker."""
    remarks: tuple[str, ...] = ()
    """Differences from the file, as sentences."""
    restored: bool = True
    """Whether IDs, origin, trust, times and receipts were restored; if not, its memories are new."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options for importing an export."""

    name: str
    """The name of the import: new memories have the origin `import:NAME`."""
    agent: str | None = None
    """The agent of the imported memory, if the export has one scope; the agent in the file if None."""
    user: str | None = None
    as_new: bool = False
    """Whether its memories become new, even if the caller may restore them."""


@dataclass(frozen=True, slots=True)
class UserErasure:
    """Numbers of rows that an erasure of a user or scope removed, or would remove."""

    id: UUID | None
    """ID of the receipt; None for a dry run, which stores none."""
    user: str
    asked_by: str
    scopes: int
    """Number of scopes, one for each agent."""
    removed: Mapping[str, int]
    """Number of rows of each table."""
    begun_at: datetime | None = None
    finished_at: datetime | None = None
    """None while it is running, here or in a mirror, and for a dry run."""
    erased_at: datetime | None = None
    """When the database had removed all data of the user."""
    mirrors: Mapping[str, str] = field(default_factory=dict[str, str])
    """The result in each mirror, by name; a mirror that is not done yet is missing."""
    agent: str = ""
    """The agent if only one scope was erased; empty if the user was erased for all agents."""
