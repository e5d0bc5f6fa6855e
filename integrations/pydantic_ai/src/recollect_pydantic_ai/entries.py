"""Turn records, entries and the links between entries into items, and back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, TextContent, UserPromptPart

from recollect.errors import InvalidInputError
from recollect.models.items import Item, Path, PutItem

RECORD = TypeAdapter(ConversationRecord)
MAX_KEY = 400
MAX_TEXT = 32_000
MAX_VALUE = 1_000_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Link:
    """What remains of an entry where its message was forgotten: where it stood, and the key of its conversation."""

    id: str
    parent_id: str | None
    conversation: str


class Shelf(NamedTuple):
    """The paths of one store: of its records, the marks of current revisions, messages, and links between them."""

    records: Path
    revisions: Path
    entries: Path
    links: Path

    def put_record(self, record: ConversationRecord, *, new: bool) -> tuple[PutItem, PutItem]:
        """Put a record, and the mark of its revision, which never comes twice."""
        scope = None if record.scope is None else to_key(record.scope)
        value = {"record": RECORD.dump_json(record).decode(), "scope": scope, "forked": record.forked_from is not None}
        put = PutItem(self.records, to_key(record.conversation_id), value, expected=0 if new else None)
        return put, PutItem(self.revisions, to_key(record.revision), {}, expected=0)

    def put_entry(self, entry: ConversationEntry, conversation: str) -> list[PutItem]:
        """Put an entry, with what was said as its text, and its link."""
        message = ModelMessagesTypeAdapter.dump_json([entry.message]).decode()
        link = {"id": entry.id, "parent_id": entry.parent_id, "conversation": to_key(conversation)}
        text = UNSTORABLE.sub("\ufffd", "\n".join(read_said(entry.message)))[:MAX_TEXT]
        put = PutItem(self.entries, to_key(entry.id), {**link, "message": message}, text if text.strip() else "")
        return [PutItem(self.links, put.key, link), put]


def check_size(puts: Sequence[PutItem]) -> None:
    """Refuse what no item can hold, before anything is written."""
    if any(len(json.dumps(put.value, ensure_ascii=False).encode()) > MAX_VALUE for put in puts):
        raise InvalidInputError(f"a message or record is over {MAX_VALUE} bytes of JSON: send large files by URL")


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
    """Name an item like what it holds, or where that is no name of an item, by its hash."""
    if 0 < len(name) <= MAX_KEY and name.isascii() and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}"


def read_said(message: ModelMessage) -> Iterator[str]:
    """List what the user or the model says in a message; tools and instructions are left out."""
    if not isinstance(message, ModelRequest):
        yield message.text or ""
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            pieces = [part.content] if isinstance(part.content, str) else part.content
            said = (piece.content if isinstance(piece, TextContent) else piece for piece in pieces)
            yield from (each for each in said if isinstance(each, str))
