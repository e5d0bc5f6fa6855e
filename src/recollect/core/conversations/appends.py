"""Check messages to append, and assign each its parent, turn and number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.conversations.messages import memory_text
from recollect.core.memories.checks import MAX_CHARACTERS, MAX_MEMORIES, check_new_memory
from recollect.core.text.checks import UNSTORABLE, check_line, check_text
from recollect.core.text.terms import utterance_before
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.conversations import LEGACY, ConversationState, NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.service import IDENTIFIER

MAX_MESSAGE_LENGTH = 200_000
MAX_CHARACTERS_WITH_PARTS = 1_000_000
"""If a message has content, the texts of its parts are stored, but neither analyzed nor embedded."""
MAX_PARTS = 64
MAX_URL_LENGTH = 8_000
ANYTHING = "-"
CLOSED = {
    ConversationState.DELETED: "Restore it first (`restore`), or use another id.",
    ConversationState.PURGING: "Use another id, or wait until it is gone.",
}


@dataclass(frozen=True, slots=True)
class ParentMessage:
    """A message that others can follow, and its turn."""

    id: UUID
    turn: UUID


@dataclass(frozen=True, slots=True)
class OpenConversation:
    """The state of a conversation when an append starts."""

    state: ConversationState
    last_number: int
    newest: ParentMessage | None
    unbranched: ParentMessage | None
    """The newest message from before there were branches."""
    named: Mapping[UUID, ParentMessage]
    """The messages that the request names as parents."""


@dataclass(frozen=True, slots=True)
class EmbeddedWithContext:
    """Messages embedded with the utterance before them, and messages to embed again with it."""

    done: frozenset[UUID] = frozenset()
    again: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class PositionedMessage:
    """A message with its place in the conversation."""

    message: NewMessage
    id: UUID
    number: int
    parent: UUID | None
    turn: UUID
    stated_parent: UUID | None


def check_conversation(conversation: str) -> None:
    """Accept plain ASCII identifiers only, so that no two conversations look alike."""
    # A path segment that consists of dots would be resolved to another path.
    if not IDENTIFIER.fullmatch(conversation) or not conversation.strip("."):
        raise InvalidInputError("conversation must be 1 to 128 characters (A-Z a-z 0-9 . _ : @ -) and not only dots")


def check_messages(messages: Sequence[NewMessage]) -> None:
    """Check all messages of one append."""
    if not 1 <= len(messages) <= MAX_MEMORIES:
        raise InvalidInputError(f"messages must have 1 to {MAX_MEMORIES} items")
    if sum(len(memory_text(message)) for message in messages) > MAX_CHARACTERS:
        raise InvalidInputError(f"messages must hold at most {MAX_CHARACTERS} characters together")
    if sum(map(count_characters, messages)) > MAX_CHARACTERS_WITH_PARTS:
        raise InvalidInputError(f"messages must hold at most {MAX_CHARACTERS_WITH_PARTS} characters with their parts")
    for position, message in enumerate(messages):
        check_message(message, f"messages.{position}")
        if isinstance(message.parent, int) and not 0 <= message.parent < position:
            raise InvalidInputError("parent must be an ID or the position of an earlier message in this request")
        if message.root and message.parent is not None:
            raise InvalidInputError("a root message cannot have a parent")


def count_characters(message: NewMessage) -> int:
    """Count the characters of a message and its parts."""
    return len(message.content) + sum(len(part.text) for part in message.parts)


def check_message(message: NewMessage, name: str = "message") -> None:
    """Check one message; only messages of an assistant or a tool may be empty."""
    text = memory_text(message)
    check_text("content", message.content, MAX_MESSAGE_LENGTH)
    check_text("parts", text, MAX_MESSAGE_LENGTH)
    if not text.strip() and not message.attachments and message.role in {Role.USER, Role.SYSTEM}:
        raise InvalidInputError(f"{name} is empty: user and system messages need content, parts or attachments")
    if max(len(message.parts), len(message.attachments)) > MAX_PARTS:
        raise InvalidInputError(f"parts and attachments must have at most {MAX_PARTS} items each")
    for part in message.parts:
        check_text("parts.text", part.text, MAX_MESSAGE_LENGTH)
        check_lines("parts", {"name": part.name, "call_id": part.call_id}, part.url)
    for file in message.attachments:
        check_lines("attachments", {"type": file.type, "name": file.name, "upload_id": file.upload_id}, file.url)
        if not file.type.strip():
            raise InvalidInputError("attachments.type must not be blank")
        if file.side not in {None, Role.USER, Role.ASSISTANT}:
            raise InvalidInputError("attachments.side must be user or assistant")
    check_line("name", message.name)
    check_line("external_id", message.external_id)
    check_new_memory(to_memory(message, ANYTHING))


def check_lines(place: str, lines: Mapping[str, str], url: str) -> None:
    """Check the short texts and the URL of a part or attachment."""
    for field, value in lines.items():
        check_line(f"{place}.{field}", value)
    if len(url) > MAX_URL_LENGTH or UNSTORABLE.search(url):
        raise InvalidInputError(
            f"{place}.url must be at most {MAX_URL_LENGTH} characters long, without NUL or lone surrogates"
        )


def to_memory(message: NewMessage, content: str | None = None) -> NewMemory:
    """Convert a message to its memory, with its own text or a given content."""
    return NewMemory(
        content=memory_text(message) if content is None else content,
        kind=Kind.MESSAGE,
        speaker=message.name,
        importance=message.importance,
        occurred_at=message.occurred_at,
        embedding=message.embedding,
        metadata=message.metadata,
    )


def find_before(messages: Sequence[NewMessage]) -> list[int | None]:
    """Return for each message the position of the message of the same call that it follows.

    None for a root, or if the parent is a stored message.
    """
    before: list[int | None] = []
    for position, message in enumerate(messages):
        if isinstance(message.parent, int):
            before.append(message.parent)
        else:
            follows = position > 0 and message.parent is None and not message.root
            before.append(position - 1 if follows else None)
    return before


def texts_before(remembered: Sequence[NewMemory], before: Sequence[int | None]) -> list[str]:
    """Return for every message the text before it in the same call."""
    earlier = [None if position is None else remembered[position] for position in before]
    return ["" if each is None else utterance_before(each.speaker, each.content) for each in earlier]


def compare_context(
    linked: Sequence[PositionedMessage], before: Sequence[int | None], said: Sequence[str]
) -> EmbeddedWithContext:
    """Find the messages that were embedded with the message they follow, and those to embed again."""
    follows = [
        (each, each.parent == (None if position is None else linked[position].id))
        for each, position in zip(linked, before, strict=True)
    ]
    return EmbeddedWithContext(
        frozenset(each.id for (each, known), text in zip(follows, said, strict=True) if known and text),
        frozenset(each.id for each, known in follows if not known),
    )


def link(messages: Sequence[NewMessage], ids: Sequence[UUID], opened: OpenConversation) -> list[PositionedMessage]:
    """Assign every message its parent, turn and number, in the order of the call."""
    check_open(opened.state)
    linked: list[PositionedMessage] = []
    newest, unbranched = opened.newest, opened.unbranched
    for position, (message, identity) in enumerate(zip(messages, ids, strict=True)):
        if message.parent == LEGACY:
            parent = unbranched
        elif isinstance(message.parent, int):
            parent = ParentMessage(linked[message.parent].id, linked[message.parent].turn)
        else:
            parent = find_parent(message, newest, opened.named)
        follows = parent is not None and message.role not in {Role.USER, Role.SYSTEM}
        turn = parent.turn if parent is not None and follows else identity
        # An answer to a message from before branches existed also counts as from before branches.
        legacy = message.parent == LEGACY or (follows and parent == unbranched)
        stated = LEGACY if legacy else message.stated_parent
        number = opened.last_number + position + 1
        linked.append(PositionedMessage(message, identity, number, parent.id if parent else None, turn, stated))
        newest = ParentMessage(identity, turn)
        if stated == LEGACY:
            unbranched = newest
    return linked


def advance_conversation(opened: OpenConversation, linked: Sequence[PositionedMessage]) -> OpenConversation:
    """Return the state of a conversation after an append."""
    legacy = [each for each in linked if each.stated_parent == LEGACY]
    unbranched = ParentMessage(legacy[-1].id, legacy[-1].turn) if legacy else opened.unbranched
    newest = ParentMessage(linked[-1].id, linked[-1].turn)
    return OpenConversation(ConversationState.ACTIVE, linked[-1].number, newest, unbranched, {})


def check_open(state: ConversationState) -> None:
    """Refuse to append to a conversation that is being deleted."""
    if state in CLOSED:
        raise ConflictError(f"This conversation is {state}. {CLOSED[state]}")


def find_parent(
    message: NewMessage, newest: ParentMessage | None, named: Mapping[UUID, ParentMessage]
) -> ParentMessage | None:
    """Find the parent of a message: the one it names, the newest message, or none."""
    if message.root:
        return None
    if not isinstance(message.parent, UUID):
        return newest
    if message.parent not in named:
        raise InvalidInputError("parent must be a message of the same conversation")
    return named[message.parent]


def fingerprint_messages(conversation: str, messages: Sequence[NewMessage]) -> bytes:
    """Hash the messages of an append request, to detect an idempotency key that is reused with another body."""
    digest = hashlib.sha256(conversation.encode())
    for message in messages:
        line = json.dumps(asdict(message), ensure_ascii=True, sort_keys=True, default=plain)
        digest.update(line.encode() + b"\n")
    return digest.digest()


def plain(value: object) -> object:
    """Convert values that JSON does not support."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID) else [float(number) for number in value]  # type: ignore[attr-defined]
