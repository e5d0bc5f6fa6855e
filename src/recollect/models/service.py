"""Tenants, keys and scopes; jobs, costs and readers."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

MAX_SCOPE_NAME_LENGTH = 128
DEFAULT_STREAMS = 10
"""Streams of changes of one key: one change may wake all of them, and a process has 10 connections by default."""
IDENTIFIER = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
BLANK_LETTER = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd\U000e0100-\U000e01ef]"
)
"""Characters that Unicode counts as visible although they are blank, and the replacement for unreadable text."""


class Right(StrEnum):
    """Permission of an API key."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    DELEGATE = "delegate"
    """May create keys that are bound to one scope, expire within a day, and end together with their creator."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of a memory: the unit of isolation, order and placement."""

    tenant_id: int
    agent: str
    user: str = ""


class ScopeOrder(StrEnum):
    """Order of listed scopes."""

    RECENT = "recent"
    """The scope with the latest write first."""
    SIZE = "size"
    """The scope with the most memories first."""
    NAME = "name"
    """By agent, then by user."""


@dataclass(frozen=True, slots=True)
class ScopeQuery:
    """Which scopes of a tenant to list, and their order."""

    agent: str = ""
    """Only scopes of this agent; all agents if empty."""
    search: str = ""
    """Only scopes with this text in a name, case-insensitive."""
    order: ScopeOrder = ScopeOrder.RECENT


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """A scope in a list."""

    agent: str
    user: str
    memories: int
    """Number of memories in recall."""
    last_written_at: datetime


@dataclass(frozen=True, slots=True)
class ScopePage:
    """One page of scopes, and the cursor of the next page."""

    scopes: tuple[ScopeInfo, ...]
    next_cursor: str | None


def is_scope_name(value: str) -> bool:
    """Return whether an agent or user can have this name: visible, and in a unique form."""
    if value.isascii() and IDENTIFIER.fullmatch(value):
        return True
    return (
        1 <= len(value) <= MAX_SCOPE_NAME_LENGTH
        and value.isprintable()
        and "/" not in value
        and value == " ".join(value.split())
        and not BLANK_LETTER.search(value)
        and unicodedata.is_normalized("NFC", value)
    )


@dataclass(frozen=True, slots=True)
class KeyBinding:
    """The scopes that a key may use: those of one agent, or of one agent and user; None means any."""

    agent: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Rate limits of a key or a tenant, per process. null = unlimited."""

    requests_per_second: float | None = None
    burst: int | None = None
    """Maximum number of requests at once; None = the number per second."""
    bytes_per_minute: int | None = None
    """Total size of all request bodies."""
    largest_body: int | None = None
    """In bytes."""
    change_streams: int | None = None
    """Maximum number of open change streams, which do not count as requests. None here and for the tenant =
    DEFAULT_STREAMS for each key."""


@dataclass(frozen=True, slots=True)
class CountedLimits:
    """Limits, and the name under which their use is counted: a key with its children, or a tenant."""

    name: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, as determined from the API key and the entry point."""

    tenant_id: int
    rights: frozenset[Right]
    origin: str
    trust: int
    bounds: KeyBinding = KeyBinding()
    key_id: UUID | None = None
    """The API key that was used; None for a library, a job or an operator."""
    counted: tuple[CountedLimits, ...] = ()
    """The limits of the key and of the tenant, if there are any."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret, as shown after its creation."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    created_at: datetime
    revoked_at: datetime | None
    agent: str | None = None
    """The only agent that it can use; any if None."""
    user: str | None = None
    """The only user of that agent that it can use; any if None, the agent alone if empty."""
    expires_at: datetime | None = None
    """When it expires; never if None."""
    parent: UUID | None = None
    """The key that created it, and with which it ends, if there is one."""
    last_used_at: datetime | None = None
    """The start of the UTC day on which it was last used."""
    limits: Limits = Limits()
    """Its limits in one process, together with the keys that it created."""


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """The properties of a new key."""

    name: str
    rights: frozenset[Right]
    trust: int
    bounds: KeyBinding = KeyBinding()
    expires_at: datetime | None = None
    parent: UUID | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key; the secret is shown only now."""

    key: ApiKey
    secret: str


@dataclass(frozen=True, slots=True)
class CurrentKey:
    """The properties and permissions of your API key."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    tenant: int
    """The number of its tenant."""
    agent: str | None
    """The only agent that it can use; any if None."""
    user: str | None
    """The only user of that agent that it can use; any if None, the agent alone if empty."""
    created_at: datetime
    expires_at: datetime | None
    """When it expires; never if None."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a scope from its log, without content."""

    cursor: str
    """The position after this change: pass it as `since` to continue."""
    number: int
    """The number of the change in this scope, without gaps, in the order of the commits."""
    at: datetime
    operation: str
    """The type of change: `stored`, `changed`, `revised`, `forgotten`, `state`, `embedded`, `pinned`, `fact`, `entity`,
    `topic`, `item` or `conversation`; `began` is not a change, but the start position of a stream."""
    ids: tuple[UUID, ...]
    """IDs of memories, or of the entities or topics of the operation; items and conversations have none."""


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The vectors of one embedding model: their table, and whether recall uses them."""

    id: int
    model: str
    dimensions: int
    state: str
    precision: str = "half"
    """The precision of its numbers: `half` (2 bytes) or `single` (4 bytes)."""


class JobState(StrEnum):
    """State of a job. Failed jobs stay until they are retried."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Job:
    """One unit of queued work."""

    id: str
    """ID for queries about the job; its format depends on the server."""
    task: str
    agent: str
    user: str
    state: JobState
    attempts: int
    """Number of failed attempts."""
    reason: str
    """The reason of the last failure, if any."""
    deferred_at: datetime
    scheduled_at: datetime | None
    """When it will be retried, if not immediately."""
    started_at: datetime | None
    lag_seconds: float | None
    """How long it has been waiting."""
    done: int | None
    """Its progress, if it is a longer job."""
    total: int | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of jobs, the newest first, and the cursor of the next page."""

    jobs: tuple[Job, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class CostRow:
    """The cost of one step on one day with one model."""

    day: date
    """In UTC."""
    step: str
    """The purpose of the calls, such as `reflect` or `extract`."""
    model: str
    """Empty if no model was called."""
    calls: int
    """Number of model calls, or of steps without a model."""
    failed: int
    """Number of failed calls."""
    partial: int
    """Number of calls whose answer was used in part."""
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    """The price of calls whose model has one; None if none has."""
    milliseconds: float
    """The total duration."""


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """Daily token budget of a tenant."""

    limit: int | None
    """None if there is no limit."""
    used: int
    """Tokens used by all of the tenant's scopes, for any purpose, since the start of the day."""
    waits_until: datetime | None
    """When enrichment continues, if it waits."""


@dataclass(frozen=True, slots=True)
class CostReport:
    """Model costs, latest day first, and today's remaining budget."""

    sums: tuple[CostRow, ...]
    budget: DailyBudget | None
    """None for a bound key, because the budget belongs to the tenant."""


@dataclass(frozen=True, slots=True)
class EmbedderStatus:
    """The embedder of a process, and whether recall uses its vectors."""

    model: str
    """Empty if none is configured."""
    active: bool
    """Whether the active space belongs to this model; if not, `by_words` of the status gives the reason."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The unfinished jobs of one task."""

    task: str
    waiting: int
    running: int
    failed: int
    oldest_seconds: float | None
    """How long the oldest job has been waiting; None if none waits."""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The configuration of the service, and the unfinished work for a tenant."""

    version: str
    embedder: EmbedderStatus
    by_words: str
    """Why recall searches only by words; empty if it does not."""
    chat_model: str
    """Empty if none is configured."""
    keep_recalls: str
    """Which recalls are saved if their cue does not decide it: `off`, `sampled` or `on`."""
    jobs: tuple[TaskStatus, ...]
    """The jobs of the tenant, or of the scopes that a key is bound to."""
    budget: DailyBudget | None
    """The tenant's budget; None for a bound key."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A role of the database server that can only read one tenant's views."""

    name: str
    tenant: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewReader:
    """A new reader, with the DSN for its login; the password is shown only now."""

    reader: Reader
    dsn: str = field(repr=False)
