"""Tenants, keys and scopes; jobs, costs and readers."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

LONGEST_SCOPE_NAME = 128
IDENTIFIER = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
BLANK_LETTER = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd\U000e0100-\U000e01ef]"
)
"""What Unicode counts as visible and shows nothing, and what stands for text that could not be read."""


class Right(StrEnum):
    """What an API key may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    DELEGATE = "delegate"
    """To make keys that are bound to one scope and expire within a day, and end with the key that made them."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is: the unit of isolation, order and placement."""

    tenant_id: int
    agent: str
    user: str = ""


class ScopeOrder(StrEnum):
    """In which order scopes are listed."""

    RECENT = "recent"
    """The one that was written to last comes first."""
    SIZE = "size"
    """The one with the most memories comes first."""
    NAME = "name"
    """By agent, then by user."""


@dataclass(frozen=True, slots=True)
class ScopeQuery:
    """Which scopes of a tenant are listed, and in which order."""

    agent: str = ""
    """Only those of this agent; of all if empty."""
    search: str = ""
    """Only those with this in a name, in letters of either case."""
    order: ScopeOrder = ScopeOrder.RECENT


@dataclass(frozen=True, slots=True)
class ListedScope:
    """A scope in a list."""

    agent: str
    user: str
    memories: int
    """How many take part in recall."""
    last_written_at: datetime


@dataclass(frozen=True, slots=True)
class Scopes:
    """One page of scopes, and where the next one begins."""

    scopes: tuple[ListedScope, ...]
    next_cursor: str | None


def is_scope_name(value: str) -> bool:
    """Tell whether an agent or a user can have this name: nothing in it is invisible or can be written otherwise."""
    if value.isascii() and IDENTIFIER.fullmatch(value):
        return True
    return (
        1 <= len(value) <= LONGEST_SCOPE_NAME
        and value.isprintable()
        and "/" not in value
        and value == " ".join(value.split())
        and not BLANK_LETTER.search(value)
        and unicodedata.is_normalized("NFC", value)
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which scopes a key may name: those of one agent, or of one agent and one user; None means any."""

    agent: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a key, or all keys of a tenant together, may ask of one process; None is without a limit."""

    requests_per_second: float | None = None
    burst: int | None = None
    """How many requests may come at once; as many as in a second if None."""
    bytes_per_minute: int | None = None
    """Of the bodies of all requests."""
    largest_body: int | None = None
    """In bytes."""
    change_streams: int | None = None
    """How many streams of changes may be open; they do not count as requests."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Limits, and as what their use is counted: a key with those that it made, or a tenant."""

    name: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, as the service established it from the key and the door."""

    tenant_id: int
    rights: frozenset[Right]
    origin: str
    trust: int
    bounds: Bounds = Bounds()
    key_id: UUID | None = None
    """The key that was shown; None for a library, a job or an operator."""
    counted: tuple[Counted, ...] = ()
    """The limits of the key and of the tenant, if there are any."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret, as it can be shown after its creation."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    created_at: datetime
    revoked_at: datetime | None
    agent: str | None = None
    """The only agent that it may name; any if None."""
    user: str | None = None
    """The only user of that agent that it may name; any if None, the agent alone if empty."""
    expires_at: datetime | None = None
    """From when on it is refused; never if None."""
    parent: UUID | None = None
    """The key that it was made by and ends with, if there is one."""
    last_used_at: datetime | None = None
    """The beginning of the day, by UTC, on which it was used last."""
    limits: Limits = Limits()
    """What it may ask of one process, together with the keys that it made."""


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """What a key is to be."""

    name: str
    rights: frozenset[Right]
    trust: int
    bounds: Bounds = Bounds()
    expires_at: datetime | None = None
    parent: UUID | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key; the secret is shown only now."""

    key: ApiKey
    secret: str


@dataclass(frozen=True, slots=True)
class OwnKey:
    """What a key may do, as shown to its holder."""

    id: UUID
    name: str
    rights: frozenset[Right]
    trust: int
    tenant: int
    """The number of its tenant."""
    agent: str | None
    """The only agent that it may name; any if None."""
    user: str | None
    """The only user of that agent that it may name; any if None, the agent alone if empty."""
    created_at: datetime
    expires_at: datetime | None
    """From when on it is refused; never if None."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a scope, as its log has it; it holds no content."""

    cursor: str
    """From where to follow on: give it as `since`."""
    number: int
    """Of this scope, counted without gaps in the order of the commits."""
    at: datetime
    operation: str
    """What happened: `stored`, `changed`, `revised`, `forgotten`, `state`, `embedded`, `pinned`, `fact`, `entity`,
    `topic`, `item` or `conversation`; `began` is no change, but says where following begins."""
    ids: tuple[UUID, ...]
    """Of memories, or of the entities or topics that the operation names; items and conversations have none."""


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The vectors of one embedding model: their table, and whether recall reads them."""

    id: int
    model: str
    dimensions: int
    state: str
    precision: str = "half"
    """The precision of its numbers: `half` (2 bytes) or `single` (4 bytes)."""


class JobState(StrEnum):
    """The state of a job; a failed one stays until somebody has it retried."""

    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work that was enqueued."""

    id: str
    """For asking about it; what it says is up to the server."""
    task: str
    agent: str
    user: str
    state: JobState
    attempts: int
    """How many attempts failed."""
    reason: str
    """Why it failed the last time, if it did."""
    deferred_at: datetime
    scheduled_at: datetime | None
    """When it is retried, if not at once."""
    started_at: datetime | None
    lag_seconds: float | None
    """How long it has been waiting."""
    done: int | None
    """Its progress, if it takes more than a moment."""
    total: int | None


@dataclass(frozen=True, slots=True)
class Jobs:
    """One page of jobs, the newest first, and where the next one begins."""

    jobs: tuple[Job, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """What one step cost on one day with one model."""

    day: date
    """By UTC."""
    step: str
    """What it was done for, such as `reflect` or `extract`."""
    model: str
    """Empty where no model was asked."""
    calls: int
    """How often the model was asked, or the step was taken without one."""
    failed: int
    """How many of these failed."""
    partial: int
    """How many of these were used in part."""
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    """Of those calls whose model had a price; None if none had."""
    milliseconds: float
    """All of them together."""


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """How many tokens a tenant may use on a day, by UTC, before its enrichment waits."""

    limit: int | None
    """None where there is no limit."""
    used: int
    """By all of the tenant's scopes and for any purpose, since the day began."""
    waits_until: datetime | None
    """When enrichment goes on, if it waits."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What calls of models cost, the latest day first, and what is left of today's budget."""

    sums: tuple[LedgerSum, ...]
    budget: DailyBudget | None
    """None for a key that is bound: the budget is the tenant's."""


@dataclass(frozen=True, slots=True)
class EmbedderStatus:
    """The embedder of a process, and whether recall goes by its vectors."""

    model: str
    """Empty where none is configured."""
    active: bool
    """Whether the active space is this model's; if not, `by_words` of the status says why."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The unfinished jobs of one task."""

    task: str
    waiting: int
    running: int
    failed: int
    oldest_seconds: float | None
    """For how long the one has been waiting that waits longest; None if none does."""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How the service is set up, and what it still has to do for a tenant."""

    version: str
    embedder: EmbedderStatus
    by_words: str
    """Why recall goes by words alone; empty if it does not."""
    chat_model: str
    """Empty where none is configured."""
    keep_recalls: str
    """Which recalls are kept where their cue does not say: `off`, `sampled` or `on`."""
    jobs: tuple[TaskStatus, ...]
    """Those of the tenant, or of the scopes that a key is bound to."""
    budget: DailyBudget | None
    """The tenant's; None for a bound key."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A role of the database server that may read one tenant's views, and nothing else."""

    name: str
    tenant: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewReader:
    """A new reader, with the DSN that it logs in by; its password is shown only now."""

    reader: Reader
    dsn: str = field(repr=False)
