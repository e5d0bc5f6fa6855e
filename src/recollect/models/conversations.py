"""Values of conversations: messages, conversations, and their parts in a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.blocks import BlockLine, BudgetReport, Omitted
from recollect.models.memories import JSON, Embedding, Memory, Role
from recollect.models.recall import Hit, Status

LEGACY = UUID(int=0)
"""The parent of messages from before branches existed: each follows the previous such message."""
PromptMessage: TypeAlias = Mapping[str, JSON]
"""One element of an OpenAI-style `messages` array."""


class MessageStatus(StrEnum):
    """Processing state of a message."""

    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


class ConversationState(StrEnum):
    """The state of a conversation."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    """Not recalled, but readable; the next message makes it active again."""
    DELETED = "deleted"
    """Invisible; it can be restored until it is purged."""
    PURGING = "purging"
    """Being erased permanently."""


class PartType(StrEnum):
    """Type of a part of a message."""

    TEXT = "text"
    IMAGE = "image"
    FILE = "file"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


class OversizedTurn(StrEnum):
    """The handling of a last turn that alone is longer than the budget."""

    KEEP = "keep"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message that is more than plain text."""

    type: PartType
    text: str = ""
    """The text, a tool's result, or a tool call's arguments as JSON."""
    name: str = ""
    """The file's or the tool's name."""
    url: str = ""
    call_id: str = ""
    """ID of the tool call."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message: its location, not its content."""

    type: str
    """The type as the sender names it: image, document, audio, video, ..."""
    url: str = ""
    upload_id: str = ""
    """Used instead of the URL if the file is in the caller's storage."""
    side: Role | None = None
    """The side that the file belongs to, user or assistant; the side of the message if None."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message to append, without ID, order and token count."""

    role: Role
    content: str = ""
    name: str = ""
    parts: tuple[Part, ...] = ()
    """The parts of the message; the content is made from them if it is empty."""
    attachments: tuple[Attachment, ...] = ()
    parent: UUID | int | None = None
    """The message that it follows: an ID, a position in the same call, or LEGACY. None = the message before it in the
    call; for the first one, the newest of the conversation."""
    root: bool = False
    """Whether it starts a new thread."""
    stated_parent: UUID | None = None
    """The parent that its source names, if that is not in the conversation."""
    status: MessageStatus = MessageStatus.DONE
    importance: float | None = None
    """1 (mundane) to 10 (life-changing). None = rated by rules."""
    occurred_at: datetime | None = None
    embedding: Embedding | None = None
    external_id: str = ""
    """Its ID at the source. An equal message is stored once; a different one with this ID is refused."""
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; the memory with the same ID makes it searchable."""

    id: UUID
    role: Role
    content: str
    name: str
    parts: tuple[Part, ...]
    attachments: tuple[Attachment, ...]
    parent: UUID | None
    turn: UUID
    """The first message of its turn: a user message, with everything up to the next user message."""
    number: int
    """Its number in the conversation, counted from 1 in the order of writing."""
    status: MessageStatus
    tokens: int
    """Its tokens in a prompt, by the requested tokenizer."""
    occurred_at: datetime
    external_id: str
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """Metadata of its sender; not part of any prompt."""


@dataclass(frozen=True, slots=True)
class MessageReceipt:
    """Receipt of one message."""

    id: UUID
    number: int
    parent: UUID | None
    tokens: int
    known: bool = False
    """Whether the conversation already had the message, by its `external_id`, so that nothing was stored."""
    forgotten: bool = False
    """Whether the message was forgotten, and is not stored again; then `number` is 0."""


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A container of messages."""

    id: str
    name: str
    state: ConversationState
    message_count: int
    """Number of messages that were ever appended."""
    created_at: datetime
    updated_at: datetime
    changed_at: datetime
    """When it entered its state."""
    metadata: Mapping[str, JSON]
    threads: tuple[ThreadEnd, ...] = field(default=(), kw_only=True)
    """The ends of its threads, newest first; empty unless one conversation was read."""


@dataclass(frozen=True, slots=True)
class DeletedConversation(ConversationInfo):
    """A deleted conversation, or the result of a dry run."""

    hidden: Mapping[str, int]
    """Number of memories that would be hidden: its `messages`, and memories `derived` from them. Empty after a
    deletion, which does not wait for the count."""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """One page of conversations, the latest first, and the cursor of the next page."""

    conversations: tuple[ConversationInfo, ...]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages of all branches of a conversation by number, and the start of the next page."""

    messages: tuple[Message, ...]
    next: int | None
    """The number of the last message, after which the next page begins; None on the last page."""


@dataclass(frozen=True, slots=True)
class ThreadEnd:
    """The end of one thread."""

    id: UUID
    number: int
    role: Role
    content: str
    """The beginning of its content."""
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Options of a history: which part of a conversation to return, and in which form."""

    max_tokens: int = 2_000
    leaf: UUID | None = None
    """The last message of the thread; the newest message if None."""
    tokenizer: str = ""
    """Name of a tokenizer or model; the service's first tokenizer if empty."""
    oversized: OversizedTurn = OversizedTurn.KEEP
    unanswered: bool = False
    """Whether a last turn without an answer is included."""
    images: bool = False
    """Whether images are passed on as image parts and not as `[image]`."""
    image_tokens: int = 765
    """Tokens of an image that is passed on: OpenAI's figure for 1024 x 1024 pixels in high detail."""
    user_prefix: str = "Human"
    """Text before a user's message in the text form."""
    assistant_prefix: str = "Assistant"
    """Text before an assistant's message in the text form."""
    upstream: bool = False
    """Select and trim messages exactly as Dify does."""
    message_limit: int | None = None
    """Maximum number of turns; with `upstream`, the number that Dify would fetch."""
    as_of: datetime | None = None
    """Only messages stored up to this time; a context uses the time of its cue."""
    at: datetime | None = None
    """Only messages that occurred up to this time; a context uses the time of its cue."""


@dataclass(frozen=True, slots=True)
class History:
    """The newest part of a thread that fits a budget, oldest first."""

    messages: tuple[Message, ...]
    prompt: tuple[PromptMessage, ...]
    """The messages as an OpenAI-style `messages` array."""
    text: str
    """The messages as text, at least one line each."""
    tokens: int
    tokenizer: str
    exact: bool
    """Whether every message was counted with the model's tokenizer; if not, some tokens are upper estimates."""
    complete: bool
    """Whether it begins with the root of the thread."""
    cut: bool
    """Whether the last turn was cut."""


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Shares of a token budget, which add up to 1; unused tokens of one part go to the others."""

    history: float = 0.5
    memories: float = 0.35
    summary: float = 0.15


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens per part of the prompt."""

    system: int
    """The caller's own instructions."""
    summary: int
    memories: int
    history: int
    cue: int
    framing: int
    """Tokens of the prompt's format in addition to its parts."""
    total: int
    budget: int


@dataclass(frozen=True, slots=True)
class Context:
    """One complete prompt, and the data that it was made from."""

    messages: tuple[PromptMessage, ...]
    block: str
    """The memories as the text in the prompt."""
    summary: Memory | None
    hits: tuple[Hit, ...]
    """The recalled memories that fit, best first; none of them is in the history."""
    history: History
    spending: TokenUsage
    methods: Mapping[str, str]
    """How each channel of the recall searched."""
    asked: UUID | None = None
    """The message that is the cue, if it ends the thread and has no answer yet."""
    lines: tuple[BlockLine, ...] = ()
    """The block's lines in order: the memory of each short ID, and its level of detail."""
    pinned_left_out: tuple[UUID, ...] = ()
    """Pinned memories that did not fit, the newest first."""
    status: Status = Status.OK
    """Status of the recall."""
    message: str = ""
    shares: BudgetReport | None = None
    """Granted and used tokens of each part, if the cue requests an explanation; `left_out` as well."""
    left_out: Omitted | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The chat model's answer, the prompt, and the stored messages."""

    answer: str
    context: Context
    appended: tuple[MessageReceipt, ...]
    """The user's message, unless the thread already had it, and the assistant's message."""


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """Number of rows that a purge removed, or would remove."""

    id: UUID | None
    """None for a dry run, which stores no receipt."""
    conversation: str
    asked_by: str
    removed: Mapping[str, int]
    """Number of removed rows, by sort."""
    begun_at: datetime | None
    finished_at: datetime | None
    """None while the purge is running, here or in a mirror, and for a dry run."""
    erased_at: datetime | None = None
    """When the database had removed all of it; None before that."""
    mirrors: Mapping[str, str] = field(default_factory=dict[str, str])
    """The result in each mirror, by name; a mirror that is not done yet is missing."""


@dataclass(frozen=True, slots=True)
class ListedReceipt(PurgeReceipt):
    """A receipt in the list of a tenant, which contains only stored receipts."""

    id: UUID
    begun_at: datetime
    agent: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class PurgeReceiptPage:
    """One page of receipts, the latest first, and the cursor of the next page."""

    receipts: tuple[ListedReceipt, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class DueConversation:
    """A conversation whose state the retention rules would change."""

    agent: str
    user: str
    conversation: str
    state: ConversationState
    becomes: ConversationState
    message_count: int
    idle_since: datetime
