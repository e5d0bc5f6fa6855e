"""Parse a conversation of a ChatGPT data export: a tree of nodes, some of them hidden, empty or internal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH, MAX_PARTS
from recollect.core.imports.parsed import (
    CONVERSATIONS,
    MALFORMED,
    MESSAGES,
    ImportedData,
    ParsedConversation,
    TreeMessage,
    add_conversation,
    order_messages,
)
from recollect.core.imports.text import cut, note, to_fields, to_identifier, to_line, to_list, to_moment, to_text
from recollect.models.conversations import Attachment, NewMessage, Part, PartType
from recollect.models.memories import JSON, Role

OURS = "chatgpt"
EXPECTED = (
    "This is no ChatGPT export. Export it at Settings > Data controls > Export data, "
    "and give the zip file that arrives by mail, or the conversations.json in it."
)
HIDDEN = "messages that ChatGPT hides, such as its system prompts: skipped"
REASONING = "messages with a model's reasoning: skipped"
INSTRUCTIONS = "messages with custom instructions: skipped"
EMPTY = "messages without text or files: skipped"
OTHER = "messages with an unknown role: skipped"
TOO_MANY_FILES = f"files beyond {MAX_PARTS} of one message: skipped"
BRANCHED = "conversations with branches: all of them are kept"

REASONS = {"thoughts": REASONING, "reasoning_recap": REASONING}
REASONS |= {"user_editable_context": INSTRUCTIONS, "model_editable_context": INSTRUCTIONS}
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}
EVERYBODY = "all"


@dataclass(frozen=True, slots=True)
class TreeCursor:
    """The state at a node on the way from the root: the latest known time, and the last tool call."""

    moment: datetime | None
    call: str


def parse_chatgpt(document: JSON) -> ImportedData:
    """Parse one conversation."""
    data = ImportedData()
    conversation = to_fields(document)
    mapping = conversation.get("mapping")
    identity = to_text(conversation.get("conversation_id")) or to_text(conversation.get("id"))
    if not isinstance(mapping, dict) or not identity:
        data.count_skipped(CONVERSATIONS, MALFORMED)
        return data
    remarks = data.remarks
    created_at = to_moment(conversation.get("create_time"), remarks)
    messages = order_messages(place_all(mapping, created_at, data), data, to_text(conversation.get("current_node")))
    followed = Counter(each.parent for each in messages)
    remarks[BRANCHED] += max(followed.values(), default=0) > 1
    kept: dict[str, JSON] = {
        field: conversation.get(field) for field in ("default_model_slug", "gizmo_id", "is_archived")
    }
    add_conversation(
        ParsedConversation(
            to_identifier(identity),
            to_line(to_text(conversation.get("title")), remarks),
            created_at,
            note(OURS, {"id": to_line(identity, remarks)}, kept, remarks),
            messages,
        ),
        data,
    )
    return data


def place_all(mapping: Mapping[str, JSON], begun: datetime | None, data: ImportedData) -> list[TreeMessage]:
    """Return every node with its message and its time, oldest first."""
    spots: dict[str, TreeCursor] = {}
    dated: list[tuple[float, TreeMessage]] = []
    for key in mapping:
        spot = find_spot(key, mapping, spots, TreeCursor(begun, ""), data)
        node = to_fields(mapping[key])
        parent = to_text(node.get("parent")) or None
        message = to_message(key, to_fields(node.get("message")), spot, data) if node.get("message") else None
        dated.append((spot.moment.timestamp() if spot.moment else 0.0, TreeMessage(key, parent, message)))
    return [each for _, each in sorted(dated, key=lambda entry: entry[0])]


def find_spot(
    key: str, mapping: Mapping[str, JSON], spots: dict[str, TreeCursor], first: TreeCursor, data: ImportedData
) -> TreeCursor:
    """Go up to a node with a known cursor, and set the cursors of all nodes below it.

    A cycle ends the walk.
    """
    way: list[str] = []
    seen: set[str] = set()
    each = key
    while each in mapping and each not in spots and each not in seen:
        seen.add(each)
        way.append(each)
        each = to_text(to_fields(mapping[each]).get("parent"))
    spot = spots.get(each, first)
    for name in reversed(way):
        message = to_fields(to_fields(mapping[name]).get("message"))
        moment = to_moment(message.get("create_time"), data.remarks) or spot.moment
        spot = TreeCursor(moment, name if calls_tool(message) else spot.call)
        spots[name] = spot
    return spot


def calls_tool(message: Mapping[str, JSON]) -> bool:
    """Return whether an assistant message calls a tool."""
    role = to_fields(message.get("author")).get("role")
    return role == Role.ASSISTANT and (to_text(message.get("recipient")) or EVERYBODY) != EVERYBODY


def to_message(key: str, message: Mapping[str, JSON], spot: TreeCursor, data: ImportedData) -> NewMessage | None:
    """Convert a node's message, or return None and count the reason for skipping it."""
    data.seen[MESSAGES] += 1
    remarks = data.remarks
    content = to_fields(message.get("content"))
    metadata = to_fields(message.get("metadata"))
    author = to_fields(message.get("author"))
    role = ROLES.get(to_text(author.get("role")))
    why = REASONS.get(to_text(content.get("content_type")))
    if role is None or role is Role.SYSTEM or metadata.get("is_visually_hidden_from_conversation"):
        why = why or (OTHER if role is None else HIDDEN)
    text = cut(read_text(content), MAX_MESSAGE_LENGTH, remarks)
    files = read_files(content, metadata, remarks)
    if why is None and not text.strip() and not files:
        why = EMPTY
    if why is not None or role is None:
        remarks[why or OTHER] += 1
        return None
    name = to_line(to_text(author.get("name")), remarks)
    kept: dict[str, JSON] = {"model": metadata.get("model_slug")} if role is Role.ASSISTANT else {}
    own, parts = text, tuple[Part, ...]()
    if calls_tool(message):
        tool = to_line(to_text(message.get("recipient")), remarks)
        own, parts = "", (Part(PartType.TOOL_CALL, text, tool, call_id=to_line(key, remarks)),)
    elif role is Role.TOOL:
        own, parts = "", (Part(PartType.TOOL_RESULT, text, name, call_id=to_line(spot.call, remarks)),)
    noted = note(OURS, {}, kept, remarks) if any(kept.values()) else {}
    return NewMessage(role, own, name, parts, files, occurred_at=spot.moment, metadata=noted)


def read_text(content: Mapping[str, JSON]) -> str:
    """Return the text of a content of any type."""
    parts = [text for part in to_list(content.get("parts")) if (text := read_part(part))]
    plain = [to_text(content.get(field)) for field in ("title", "url", "text", "result")]
    return "\n".join(parts or filter(None, plain))


def read_part(part: JSON) -> str:
    """Return the text of a part; other data of a part is a file."""
    return part if isinstance(part, str) else to_text(to_fields(part).get("text"))


def read_files(
    content: Mapping[str, JSON], metadata: Mapping[str, JSON], remarks: Counter[str]
) -> tuple[Attachment, ...]:
    """List the files of a message without duplicates, from attachments and parts."""
    files: dict[str, Attachment] = {}
    for each in map(to_fields, to_list(metadata.get("attachments"))):
        identity = to_line(to_text(each.get("id")), remarks)
        name = to_line(to_text(each.get("name")), remarks)
        files[identity or name] = Attachment(
            sort_file(to_text(each.get("mime_type")) or to_text(each.get("mimeType"))), upload_id=identity, name=name
        )
    for part in map(to_fields, to_list(content.get("parts"))):
        if pointer := to_text(part.get("asset_pointer")):
            identity = to_line(pointer.rpartition("://")[2], remarks)
            kind = to_text(part.get("content_type")).partition("_")[0]
            files.setdefault(identity, Attachment(sort_file(kind), upload_id=identity))
    remarks[TOO_MANY_FILES] += max(0, len(files) - MAX_PARTS)
    return tuple(files.values())[:MAX_PARTS]


def sort_file(mime: str) -> str:
    """Return the type of a file."""
    family = mime.partition("/")[0].lower()
    return family if family in {"image", "audio", "video"} else "document"
