"""Turn records, entries and the links between entries into items, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, TextContent, UserPromptPart

from recollect.models.items import Item, Path, PutItem

RECORD = TypeAdapter(ConversationRecord)
LONGEST_KEY = 400
LONGEST_TEXT = 32_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Link:
    """What remains of an entry where its message was forgotten: where it stood."""

    id: str
    parent_id: str | None
    conversation: str
    """The key of the conversation that it was first said in; forks share it."""


class Shelf(NamedTuple):
    """The paths of one store: of its records, the marks of current revisions, messages, and links between them."""

    records: Path
    revisions: Path
    entries: Path
    links: Path

    def put_record(self, record: ConversationRecord, *, new: bool) -> list[PutItem]:
        """Put a record, and the mark of its revision."""
        text = RECORD.dump_json(record).decode()
        scope = None if record.scope is None else to_key(record.scope)
        value = {"record": text, "scope": scope, "forked": record.forked_from is not None}
        return [
            PutItem(self.records, to_key(record.conversation_id), value, expected=0 if new else None),
            PutItem(self.revisions, to_key(record.revision), {}),
        ]

    def put_entry(self, entry: ConversationEntry, conversation: str) -> list[PutItem]:
        """Put an entry, with what was said as its text, and its link."""
        message = ModelMessagesTypeAdapter.dump_json([entry.message]).decode()
        link = {"id": entry.id, "parent_id": entry.parent_id, "conversation": to_key(conversation)}
        text = UNSTORABLE.sub("\ufffd", "\n".join(read_said(entry.message)))[:LONGEST_TEXT]
        put = PutItem(self.entries, to_key(entry.id), {**link, "message": message}, text if text.strip() else "")
        return [PutItem(self.links, put.key, link), put]


def to_record(item: Item) -> ConversationRecord:
    """Read a record out of its item."""
    return RECORD.validate_json(str(item.value["record"]))


def to_entry(item: Item) -> ConversationEntry:
    """Read an entry out of its item."""
    [message] = ModelMessagesTypeAdapter.validate_json(str(item.value["message"]))
    link = to_link(item)
    return ConversationEntry(id=link.id, parent_id=link.parent_id, message=message)


def to_link(item: Item) -> Link:
    """Read where an entry stands."""
    parent = item.value["parent_id"]
    return Link(str(item.value["id"]), None if parent is None else str(parent), str(item.value["conversation"]))


def to_key(name: str) -> str:
    """Name an item like what it holds, or where that is no name of an item, by its digest."""
    if 0 < len(name) <= LONGEST_KEY and name.isascii() and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}"


def read_said(message: ModelMessage) -> Iterator[str]:
    """List what the user or the model says in a message; tools and instructions are left out."""
    if not isinstance(message, ModelRequest):
        yield message.text or ""
        return
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            pieces = [part.content] if isinstance(part.content, str) else part.content
            yield from (piece if isinstance(piece, str) else piece.content for piece in pieces if is_text(piece))


def is_text(content: object) -> TypeGuard[str | TextContent]:
    """Tell texts from images and other files."""
    return isinstance(content, str | TextContent)
