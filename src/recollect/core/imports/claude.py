"""Parse Claude's data export: conversations whose messages have blocks, and Claude's notes about the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH, MAX_PARTS
from recollect.core.imports.chatgpt import EMPTY, OTHER, TOO_MANY_FILES, sort_file
from recollect.core.imports.parsed import (
    CONVERSATIONS,
    MALFORMED,
    MESSAGES,
    ImportedData,
    Owner,
    ParsedConversation,
    ParsedMemory,
    TreeMessage,
    add_conversation,
    order_messages,
)
from recollect.core.imports.text import cut, note, to_fields, to_identifier, to_line, to_list, to_moment, to_text
from recollect.models.conversations import Attachment, NewMessage
from recollect.models.imports import UserField
from recollect.models.memories import JSON, Kind, NewMemory, Role

OURS = "claude"
EXPECTED = (
    "This is no Claude export. Export it at Settings > Privacy > Export data, "
    "and give the zip file that arrives by mail, or the conversations.json in it."
)
THINKING = "thinking blocks: skipped"
TOOLS = "tool calls and results: skipped"
FOREIGN = "blocks of a type that is not known here, without text: left out of their messages"
ROLES = {"human": Role.USER, "user": Role.USER, "assistant": Role.ASSISTANT}


def parse_claude(document: JSON) -> ImportedData:
    """Parse one conversation, or the memory of one account."""
    data = ImportedData()
    fields = to_fields(document)
    if "conversations_memory" in fields or "project_memories" in fields:
        read_memories(fields, data)
    elif isinstance(fields.get("chat_messages"), list) and to_text(fields.get("uuid")):
        read_conversation(fields, data)
    else:
        data.count_skipped(CONVERSATIONS, MALFORMED)
    return data


def read_conversation(conversation: Mapping[str, JSON], data: ImportedData) -> None:
    """Parse a conversation; if messages have no parents, each follows the previous one."""
    remarks = data.remarks
    placed: list[TreeMessage] = []
    before: str | None = None
    entries = [to_fields(entry) for entry in to_list(conversation.get("chat_messages"))]
    branched = any("parent_message_uuid" in entry for entry in entries)
    for entry in entries:
        key = to_line(to_text(entry.get("uuid")), remarks)
        if not key:
            data.count_skipped(MESSAGES, MALFORMED)
            continue
        parent = to_line(to_text(entry.get("parent_message_uuid")), remarks) or None if branched else before
        placed.append(TreeMessage(key, parent, to_message(entry, data)))
        before = key
    more: dict[str, JSON] = {
        field: conversation.get(field) for field in ("summary", "model", "project_uuid", "is_starred")
    }
    identity = to_text(conversation.get("uuid"))
    add_conversation(
        ParsedConversation(
            to_identifier(identity),
            to_line(to_text(conversation.get("name")), remarks),
            to_moment(conversation.get("created_at"), remarks),
            note(OURS, {"id": to_line(identity, remarks)}, more, remarks),
            order_messages(placed, data),
            own(to_text(to_fields(conversation.get("account")).get("uuid"))),
        ),
        data,
    )


def own(account: str) -> Owner:
    """Return the owner."""
    return {UserField.ACCOUNT: account} if account else {}


def to_message(entry: Mapping[str, JSON], data: ImportedData) -> NewMessage | None:
    """Convert a message: its text, pasted texts, and files."""
    data.seen[MESSAGES] += 1
    remarks = data.remarks
    role = ROLES.get(to_text(entry.get("sender")))
    pasted = [to_fields(each) for each in to_list(entry.get("attachments"))]
    said = [read_blocks(entry, remarks), *(attached_text(each) for each in pasted)]
    text = cut("\n\n".join(filter(None, said)), MAX_MESSAGE_LENGTH, remarks)
    files = read_files([*pasted, *map(to_fields, to_list(entry.get("files")))], remarks)
    if role is None or (not text.strip() and not files):
        remarks[OTHER if role is None else EMPTY] += 1
        return None
    return NewMessage(role, text, attachments=files, occurred_at=to_moment(entry.get("created_at"), remarks))


def read_blocks(entry: Mapping[str, JSON], remarks: Counter[str]) -> str:
    """Join the text blocks; old messages without blocks have their text in another field."""
    texts: list[str] = []
    for block in map(to_fields, to_list(entry.get("content"))):
        match to_text(block.get("type")):
            case "text":
                texts.append(to_text(block.get("text")))
            case "thinking" | "redacted_thinking":
                remarks[THINKING] += 1
            case "tool_use" | "tool_result":
                remarks[TOOLS] += 1
            case "token_budget":
                pass
            case _ if to_text(block.get("text")).strip():
                texts.append(to_text(block.get("text")))
            case _:
                remarks[FOREIGN] += 1
    return "\n\n".join(filter(str.strip, texts)) or to_text(entry.get("text"))


def attached_text(attachment: Mapping[str, JSON]) -> str:
    """Return the text that was pasted or extracted from a file, after the file's name."""
    text = to_text(attachment.get("extracted_content"))
    name = to_text(attachment.get("file_name"))
    return f"[{name}]\n{text}" if text and name else text


def read_files(files: Sequence[Mapping[str, JSON]], remarks: Counter[str]) -> tuple[Attachment, ...]:
    """List the files of a message."""
    remarks[TOO_MANY_FILES] += max(0, len(files) - MAX_PARTS)
    return tuple(
        Attachment(
            sort_file(to_text(each.get("file_kind")) or to_text(each.get("file_type"))),
            upload_id=to_line(to_text(each.get("file_uuid")) or to_text(each.get("id")), remarks),
            name=name,
        )
        for each in files[:MAX_PARTS]
        if (name := to_line(to_text(each.get("file_name")), remarks)) or each.get("file_uuid")
    )


def read_memories(fields: Mapping[str, JSON], data: ImportedData) -> None:
    """Parse Claude's notes on all conversations and on each project."""
    account = to_text(fields.get("account_uuid"))
    texts = {"": fields.get("conversations_memory"), **to_fields(fields.get("project_memories"))}
    for project, text in texts.items():
        if not to_text(text).strip():
            continue
        name = to_line(project, data.remarks)
        key = f"memory:{name}" if name else f"memory:{account}"
        noted = note(OURS, {"project": name}, {}, data.remarks)
        data.add_memory(ParsedMemory(key, NewMemory(to_text(text), Kind.THOUGHT, metadata=noted), own(account)))
