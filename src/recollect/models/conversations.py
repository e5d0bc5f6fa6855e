"""Values of conversations: messages, the conversation they belong to, and what of it goes into a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from recollect.models.blocks import LeftOut, Line, PromptShares
from recollect.models.memories import JSON, Embedding, Memory, Role
from recollect.models.recall import Hit, Status

LEGACY = UUID(int=0)
"""The parent of messages from before there were branches: each follows the one before it of its sort."""
PromptMessage: TypeAlias = Mapping[str, JSON]
"""One element of an OpenAI-style `messages` array."""


class MessageStatus(StrEnum):
    """How far a message has come."""

    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


class ConversationState(StrEnum):
    """The state of a conversation."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    """Not recalled, still readable, and active again with the next message."""
    DELETED = "deleted"
    """Invisible, and restorable until it is purged."""
    PURGING = "purging"
    """Being erased for good."""


class PartType(StrEnum):
    """What a part of a message is."""

    TEXT = "text"
    IMAGE = "image"
    FILE = "file"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


class Oversized(StrEnum):
    """What to do with a last turn that alone is longer than the budget."""

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
    """Which tool call it is, or is the result of."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message: where it is stored, not its content."""

    type: str
    """The sender's word for it: image, document, audio, video, ..."""
    url: str = ""
    upload_id: str = ""
    """Set instead of the URL where the file was uploaded to the caller's own store."""
    side: Role | None = None
    """Whose file it is, user or assistant; the message's own side if None."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One message to append, before the service has given it id, order and token count."""

    role: Role
    content: str = ""
    name: str = ""
    parts: tuple[Part, ...] = ()
    """What is said in parts; the content is made from them where none is given."""
    attachments: tuple[Attachment, ...] = ()
    parent: UUID | int | None = None
    """What it answers or follows: an id, a position in the same call, or LEGACY.

    None = the message before it in the call; for the first one, the newest of the conversation."""
    root: bool = False
    """Whether it begins a new thread."""
    stated_parent: UUID | None = None
    """The parent that its source names, where that is not in the conversation."""
    status: MessageStatus = MessageStatus.DONE
    importance: float | None = None
    """1 (mundane) to 10 (life-changing); what the rules say if None."""
    occurred_at: datetime | None = None
    embedding: Embedding | None = None
    external_id: str = ""
    """Its id at the source; the same id twice in a conversation is refused."""
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; it is recalled as the memory of the same id."""

    id: UUID
    role: Role
    content: str
    name: str
    parts: tuple[Part, ...]
    attachments: tuple[Attachment, ...]
    parent: UUID | None
    turn: UUID
    """The message that began its turn: what a user said, with everything up to what a user says next."""
    number: int
    """Its number in the conversation, counted from 1 in the order of writing."""
    status: MessageStatus
    tokens: int
    """What it costs in a prompt, by the tokenizer that was asked for."""
    occurred_at: datetime
    external_id: str
    metadata: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    """Metadata of its sender; no prompt shows it."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append acknowledges for one message."""

    id: UUID
    number: int
    parent: UUID | None
    tokens: int
    position: str = ""
    """How far the server's log came by the append, where the server has replicas: one that has come so far has it."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A container of messages."""

    id: str
    name: str
    state: ConversationState
    message_count: int
    """How many messages were ever appended."""
    created_at: datetime
    updated_at: datetime
    changed_at: datetime
    """When it entered its state."""
    metadata: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class DeletedConversation(Conversation):
    """A conversation that is deleted, or that a dry run left as it was."""

    hidden: Mapping[str, int]
    """How many memories would go out of sight with it: its `messages`, and what was `derived` from them.

    Empty for a deletion, which does not wait until they are counted.
    """


@dataclass(frozen=True, slots=True)
class Conversations:
    """One page of conversations, the latest first, and where the next one begins."""

    conversations: tuple[Conversation, ...]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages of all branches of a conversation in the order of their numbers, and where to go on."""

    messages: tuple[Message, ...]
    next: int | None
    """The number of the last one, after which the next page begins; None on the last page."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of one thread."""

    id: UUID
    number: int
    role: Role
    content: str
    """The beginning of its content."""
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a conversation a caller wants to see, and how."""

    max_tokens: int = 2_000
    leaf: UUID | None = None
    """Where the thread ends; the newest message if None."""
    tokenizer: str = ""
    """A tokenizer's or a model's name; the service's first tokenizer if empty."""
    oversized: Oversized = Oversized.KEEP
    unanswered: bool = False
    """Whether a last turn without an answer is included."""
    images: bool = False
    """Whether images are passed on as image parts and not as `[image]`."""
    image_tokens: int = 765
    """What an image costs that is passed on: OpenAI's figure for 1024 x 1024 pixels in high detail."""
    user_prefix: str = "Human"
    """What the text form writes before a user's message."""
    assistant_prefix: str = "Assistant"
    """What the text form writes before an assistant's message."""
    upstream: bool = False
    """Whether to walk and to prune as Dify does, its mistakes included."""
    message_limit: int | None = None
    """How many turns are shown at most; with `upstream`, how many Dify would fetch."""
    as_of: datetime | None = None
    """Only what was stored by then; a context takes it from its cue."""
    at: datetime | None = None
    """Only what was said by then; a context takes it from its cue."""


@dataclass(frozen=True, slots=True)
class History:
    """The newest part of a thread that fits a budget, oldest first."""

    messages: tuple[Message, ...]
    prompt: tuple[PromptMessage, ...]
    """The same as an OpenAI-style `messages` array."""
    text: str
    """The same as text, a line or more for each message."""
    tokens: int
    tokenizer: str
    exact: bool
    """Whether every message was counted by a model's own tokens; if not, costs are upper estimates, some or all."""
    complete: bool
    """Whether it begins with the root of the thread."""
    cut: bool
    """Whether the last turn was shortened."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How a token budget is divided, in fractions of one; what one part does not use goes to the others."""

    history: float = 0.5
    memories: float = 0.35
    summary: float = 0.15


@dataclass(frozen=True, slots=True)
class Spending:
    """What each part of a prompt costs, in tokens."""

    system: int
    """The caller's own instructions."""
    summary: int
    memories: int
    history: int
    cue: int
    framing: int
    """What the form of the prompt costs in addition to its parts."""
    total: int
    budget: int


@dataclass(frozen=True, slots=True)
class Context:
    """One prompt, ready to be sent, and what it was made from."""

    messages: tuple[PromptMessage, ...]
    block: str
    """What is remembered, as the text that the prompt shows."""
    summary: Memory | None
    hits: tuple[Hit, ...]
    """The recalled memories that fitted, best first; none of them is in the history."""
    history: History
    spending: Spending
    methods: Mapping[str, str]
    """How each channel of the recall found its candidates."""
    asked: UUID | None = None
    """The message that is the cue, if the thread ends with it and it has no answer yet."""
    lines: tuple[Line, ...] = ()
    """The block's lines in their order: what each short id stands for, and how much of it is shown."""
    pinned_left_out: tuple[UUID, ...] = ()
    """The pinned memories that found no room, the newest first."""
    status: Status = Status.OK
    """How the recall went."""
    message: str = ""
    shares: PromptShares | None = None
    """What each part could have cost and costs, if the cue asks for an explanation; so for what is left out."""
    left_out: LeftOut | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model answered, from which prompt, and what was appended."""

    answer: str
    context: Context
    appended: tuple[Appended, ...]
    """The user's message, unless the thread had it already, and the assistant's."""


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """What a purge removed, or would remove, in numbers only, without content."""

    id: UUID | None
    """None for a dry run, which leaves no receipt."""
    conversation: str
    asked_by: str
    removed: Mapping[str, int]
    """How many rows went, by what they were."""
    begun_at: datetime | None
    finished_at: datetime | None
    """None while the purge is under way, here or in a mirror, and for a dry run."""
    erased_at: datetime | None = None
    """When the record had nothing of it any more; None while it has."""
    mirrors: Mapping[str, str] = field(default_factory=dict[str, str])
    """What became of it in each mirror, by its name; one that is awaited is absent."""


@dataclass(frozen=True, slots=True)
class ListedReceipt(PurgeReceipt):
    """A receipt among those of a tenant, which were all kept."""

    id: UUID
    begun_at: datetime
    agent: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class PurgeReceipts:
    """One page of receipts, the latest first, and where the next one begins."""

    receipts: tuple[ListedReceipt, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Due:
    """A conversation whose state the retention rules would change."""

    agent: str
    user: str
    conversation: str
    state: ConversationState
    becomes: ConversationState
    message_count: int
    idle_since: datetime
