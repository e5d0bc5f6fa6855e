"""Turn an item of a run into a message that can be read and recalled, and back into exactly the same item."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agents import TResponseInputItem

from recollect.models import JSON, Message, NewMessage, Part, PartType, Role

EXACT = "openai_item"
"""Where a message keeps its item as JSON text: in the metadata, or where that has no room in parts of this name."""
MAX_METADATA = 16_384
MAX_TEXT = 200_000
MAX_LINE = 200
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
SAID = ("content", "text", "refusal", "transcript", "summary", "output", "query", "queries", "result", "action")
"""The fields of items, and of what they hold, that say something to a reader."""


def fold(item: TResponseInputItem) -> NewMessage:
    """Make the message that says what an item says, and carries the item itself."""
    fields = cast("Mapping[str, Any]", item)
    role, content, parts = show(fields)
    exact = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    if UNSTORABLE.search(exact):
        exact = json.dumps(item, separators=(",", ":"))
    metadata: dict[str, JSON] = {EXACT: exact}
    if len(json.dumps(metadata, ensure_ascii=False).encode()) <= MAX_METADATA:
        return NewMessage(role, content, parts=parts, metadata=metadata)
    pieces = [exact[start : start + MAX_TEXT] for start in range(0, len(exact), MAX_TEXT)]
    # Beside a content the texts of parts are neither remembered nor shown again.
    content = content or f"[{read_line(fields, 'type')} {read_line(fields, 'name')}]"
    return NewMessage(role, content, parts=(*parts, *(Part(PartType.TEXT, piece, EXACT) for piece in pieces)))


def unfold(message: Message) -> TResponseInputItem:
    """Give back the item that a message carries; what others said in the conversation becomes a plain message."""
    exact = message.metadata.get(EXACT) or "".join(part.text for part in message.parts if part.name == EXACT)
    if isinstance(exact, str) and exact:
        return cast("TResponseInputItem", json.loads(exact))
    role = message.role.value if message.role in {Role.USER, Role.SYSTEM} else "assistant"
    return cast("TResponseInputItem", {"role": role, "content": message.content})


def show(fields: Mapping[str, Any]) -> tuple[Role, str, tuple[Part, ...]]:
    """Say who speaks in an item, what a reader sees of it, and which call it makes or answers."""
    kind, call = read_line(fields, "type"), read_line(fields, "call_id")
    if kind == "function_call":
        arguments = clean(str(fields.get("arguments", "")))
        return Role.ASSISTANT, "", (Part(PartType.TOOL_CALL, arguments, read_line(fields, "name"), call_id=call),)
    said = clean("\n".join(filter(None, read_said(fields))))
    if kind.endswith("_output"):
        return Role.TOOL, said, (Part(PartType.TOOL_RESULT, call_id=call),)
    if role := ROLES.get(str(fields.get("role"))):
        return role, said if said.strip() else "[message without text]", ()
    return Role.ASSISTANT, f"[{kind}] {said}".strip(), ()


def read_said(fields: Mapping[str, Any]) -> list[str]:
    """List what is said in the fields of an item, or of a part of one."""
    return [each for name in SAID if name in fields for each in walk(fields[name])]


def walk(value: object) -> Iterator[str]:
    """List what is said in a value, in its order; of a part that says nothing, what it is."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from walk(each)
    elif isinstance(value, Mapping):
        yield from read_said(value) or [f"[{read_line(value, 'type')}]"]


def read_line(fields: Mapping[str, Any], name: str) -> str:
    """Read a short text of an item as one line."""
    return CONTROL.sub(" ", str(fields.get(name) or ""))[:MAX_LINE]


def clean(text: str) -> str:
    """Make a text storable: what has no place in it is replaced, and what is too long is cut."""
    return UNSTORABLE.sub("\ufffd", text)[:MAX_TEXT]
