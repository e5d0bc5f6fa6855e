"""Check messages that are to be appended, and give each its parent, its turn and its number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.conversations.messages import said
from recollect.core.memories.checks import MOST_CHARACTERS, MOST_MEMORIES, check_new_memory
from recollect.core.text.checks import UNSTORABLE, check_line, check_text
from recollect.core.text.terms import utterance_before
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.conversations import LEGACY, ConversationState, NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.service import IDENTIFIER

LONGEST_MESSAGE = 200_000
MOST_WITH_PARTS = 1_000_000
"""If there is a content, texts of parts are stored, but neither analysed nor embedded."""
MOST_PARTS = 64
LONGEST_URL = 8_000
ANYTHING = "-"
CLOSED = {
    ConversationState.DELETED: "Restore it first (`restore`), or use another id.",
    ConversationState.PURGING: "Use another id, or wait until it is gone.",
}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A message that others can follow, and the turn it belongs to."""

    id: UUID
    turn: UUID


@dataclass(frozen=True, slots=True)
class OpenConversation:
    """A conversation as an append finds it."""

    state: ConversationState
    last_number: int
    newest: Anchor | None
    unbranched: Anchor | None
    """The newest message from before there were branches."""
    named: Mapping[UUID, Anchor]
    """The messages that are named as parents."""


@dataclass(frozen=True, slots=True)
class EmbeddedWithContext:
    """Which messages' vectors were made with the utterance before, and which must be made again with it."""

    done: frozenset[UUID] = frozenset()
    again: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class Linked:
    """A message with its position among the others."""

    message: NewMessage
    id: UUID
    number: int
    parent: UUID | None
    turn: UUID
    stated_parent: UUID | None


def check_conversation(conversation: str) -> None:
    """Accept plain ASCII identifiers only, so that no two conversations look alike."""
    # A path that ends in dots would lead elsewhere.
    if not IDENTIFIER.fullmatch(conversation) or not conversation.strip("."):
        raise InvalidInputError("conversation must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -, and not dots alone")


def check_messages(messages: Sequence[NewMessage]) -> None:
    """Check everything one call wants appended."""
    if not 1 <= len(messages) <= MOST_MEMORIES:
        raise InvalidInputError(f"messages must hold 1 to {MOST_MEMORIES} items")
    if sum(len(said(message)) for message in messages) > MOST_CHARACTERS:
        raise InvalidInputError(f"messages must hold at most {MOST_CHARACTERS} characters together")
    if sum(map(count_characters, messages)) > MOST_WITH_PARTS:
        raise InvalidInputError(f"messages must hold at most {MOST_WITH_PARTS} characters with their parts")
    for position, message in enumerate(messages):
        check_message(message, f"messages.{position}")
        if isinstance(message.parent, int) and not 0 <= message.parent < position:
            raise InvalidInputError("parent must be an id, or the position of an earlier message in the same call")
        if message.root and message.parent is not None:
            raise InvalidInputError("a message that is a root has no parent")


def count_characters(message: NewMessage) -> int:
    """Count all characters of a message, its parts included."""
    return len(message.content) + sum(len(part.text) for part in message.parts)


def check_message(message: NewMessage, name: str = "message") -> None:
    """Check one message; only messages of an assistant or a tool may be empty."""
    text = said(message)
    check_text("content", message.content, LONGEST_MESSAGE)
    check_text("parts", text, LONGEST_MESSAGE)
    if not text.strip() and not message.attachments and message.role in {Role.USER, Role.SYSTEM}:
        raise InvalidInputError(f"{name} is empty: a user's or system's message needs content, parts or attachments")
    if max(len(message.parts), len(message.attachments)) > MOST_PARTS:
        raise InvalidInputError(f"parts and attachments must hold at most {MOST_PARTS} items each")
    for part in message.parts:
        check_text("parts.text", part.text, LONGEST_MESSAGE)
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
    """Check the short texts of a part or an attachment, and its URL."""
    for field, value in lines.items():
        check_line(f"{place}.{field}", value)
    if len(url) > LONGEST_URL or UNSTORABLE.search(url):
        raise InvalidInputError(
            f"{place}.url must be at most {LONGEST_URL} characters long, without NUL or lone surrogates"
        )


def to_memory(message: NewMessage, content: str | None = None) -> NewMemory:
    """Turn a message into the memory it is stored as, of what it says or of another content."""
    return NewMemory(
        content=said(message) if content is None else content,
        kind=Kind.MESSAGE,
        speaker=message.name,
        importance=message.importance,
        occurred_at=message.occurred_at,
        embedding=message.embedding,
        metadata=message.metadata,
    )


def find_before(messages: Sequence[NewMessage]) -> list[int | None]:
    """Tell which message of the same call each one follows; None for a root, and where the conversation decides."""
    before: list[int | None] = []
    for position, message in enumerate(messages):
        if isinstance(message.parent, int):
            before.append(message.parent)
        else:
            follows = position > 0 and message.parent is None and not message.root
            before.append(position - 1 if follows else None)
    return before


def texts_before(remembered: Sequence[NewMemory], before: Sequence[int | None]) -> list[str]:
    """Give for every message what is said before it in the same call."""
    earlier = [None if position is None else remembered[position] for position in before]
    return ["" if each is None else utterance_before(each.speaker, each.content) for each in earlier]


def compare_context(linked: Sequence[Linked], before: Sequence[int | None], said: Sequence[str]) -> EmbeddedWithContext:
    """Tell which messages were embedded with the message they follow, and which must be embedded again."""
    follows = [
        (each, each.parent == (None if position is None else linked[position].id))
        for each, position in zip(linked, before, strict=True)
    ]
    return EmbeddedWithContext(
        frozenset(each.id for (each, known), text in zip(follows, said, strict=True) if known and text),
        frozenset(each.id for each, known in follows if not known),
    )


def link(messages: Sequence[NewMessage], ids: Sequence[UUID], opened: OpenConversation) -> list[Linked]:
    """Let every message follow its parent, in the order of the call."""
    check_open(opened.state)
    linked: list[Linked] = []
    newest, unbranched = opened.newest, opened.unbranched
    for position, (message, identity) in enumerate(zip(messages, ids, strict=True)):
        if message.parent == LEGACY:
            parent = unbranched
        elif isinstance(message.parent, int):
            parent = Anchor(linked[message.parent].id, linked[message.parent].turn)
        else:
            parent = find_parent(message, newest, opened.named)
        follows = parent is not None and message.role not in {Role.USER, Role.SYSTEM}
        turn = parent.turn if parent is not None and follows else identity
        # An answer to a message from before there were branches is itself from before there were branches.
        legacy = message.parent == LEGACY or (follows and parent == unbranched)
        stated = LEGACY if legacy else message.stated_parent
        number = opened.last_number + position + 1
        linked.append(Linked(message, identity, number, parent.id if parent else None, turn, stated))
        newest = Anchor(identity, turn)
        if stated == LEGACY:
            unbranched = newest
    return linked


def follow(opened: OpenConversation, linked: Sequence[Linked]) -> OpenConversation:
    """Return a conversation as the next append finds it."""
    legacy = [each for each in linked if each.stated_parent == LEGACY]
    unbranched = Anchor(legacy[-1].id, legacy[-1].turn) if legacy else opened.unbranched
    newest = Anchor(linked[-1].id, linked[-1].turn)
    return OpenConversation(ConversationState.ACTIVE, linked[-1].number, newest, unbranched, {})


def check_open(state: ConversationState) -> None:
    """Refuse to append to a conversation that is being deleted."""
    if state in CLOSED:
        raise ConflictError(f"This conversation is {state}. {CLOSED[state]}")


def find_parent(message: NewMessage, newest: Anchor | None, named: Mapping[UUID, Anchor]) -> Anchor | None:
    """Look up what a message follows: the one it names, the newest one, or none."""
    if message.root:
        return None
    if not isinstance(message.parent, UUID):
        return newest
    if message.parent not in named:
        raise InvalidInputError("parent must name a message of the same conversation")
    return named[message.parent]


def fingerprint_messages(conversation: str, messages: Sequence[NewMessage]) -> bytes:
    """Hash what a caller asked to append, so that the same key with another body is noticed."""
    digest = hashlib.sha256(conversation.encode())
    for message in messages:
        line = json.dumps(asdict(message), ensure_ascii=True, sort_keys=True, default=plain)
        digest.update(line.encode() + b"\n")
    return digest.digest()


def plain(value: object) -> object:
    """Convert values that JSON cannot hold."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID) else [float(number) for number in value]  # type: ignore[attr-defined]
