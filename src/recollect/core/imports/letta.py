"""Parse a Letta agent file: memory blocks, messages in the packaging of the agent's loop, and archival passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH, MAX_PARTS
from recollect.core.imports.chatgpt import EMPTY, OTHER
from recollect.core.imports.mem0 import to_keywords
from recollect.core.imports.parsed import (
    MALFORMED,
    MEMORIES,
    MESSAGES,
    ImportedData,
    ParsedConversation,
    ParsedMemory,
    TreeMessage,
    add_conversation,
    order_messages,
)
from recollect.core.imports.text import (
    cut,
    hash_parts,
    note,
    to_fields,
    to_identifier,
    to_line,
    to_list,
    to_moment,
    to_text,
)
from recollect.errors import InvalidInputError
from recollect.models.conversations import NewMessage, Part, PartType
from recollect.models.memories import JSON, Kind, NewMemory, Role

OURS = "letta"
EXPECTED = (
    "Not a Letta agent file. Export one with `client.agents.export_file(agent_id)`; archival passages are the list "
    "returned by `client.agents.passages.list(agent_id)`."
)
PROMPTS = "system prompts: skipped"
EVENTS = "events of the agent's loop, such as heartbeats and alerts: skipped"
REASONING = "parts with a model's reasoning: left out of their messages"
RECEIPTS = "receipts of messages sent by a tool: skipped"
BLANK = "memory blocks without a value: skipped"
FILES = "files and their passages: skipped"
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
SAY = "send_message"
"""The tool that older agents use to answer; its argument is the answer."""


def parse_letta(document: JSON) -> ImportedData:
    """Parse an agent file of either version, or a list of passages."""
    data = ImportedData()
    fields = to_fields(document)
    passages = document if isinstance(document, list) else to_list(fields.get("passages"))
    agents = [fields] if "core_memory" in fields else [to_fields(each) for each in to_list(fields.get("agents"))]
    if not agents and not any("text" in to_fields(each) for each in passages):
        raise InvalidInputError(EXPECTED)
    blocks = {to_text(block.get("id")): block for block in map(to_fields, to_list(fields.get("blocks")))}
    for agent, called in zip(agents, unique_agent_names(agents, data), strict=True):
        read_agent(agent, called, blocks, data)
    for passage in map(to_fields, passages):
        read_passage(passage, data)
    data.remarks[FILES] += len(to_list(fields.get("files")))
    return data


def unique_agent_names(agents: Sequence[Mapping[str, JSON]], data: ImportedData) -> list[str]:
    """Return a unique name for every agent: its name, with its ID or position added if repeated.

    IDs count from 0 in every file, so the ID is used only if the name is not enough.
    """
    names: dict[str, str] = {}
    called: list[str] = []
    for place, agent in enumerate(agents):
        name = to_line(to_text(agent.get("name")), data.remarks) or "agent"
        identity = to_line(to_text(agent.get("id")), data.remarks) or str(place)
        first = names.setdefault(name, identity)
        called.append(name if identity == first else f"{name}:{identity}")
    return called


def read_agent(
    agent: Mapping[str, JSON], name: str, blocks: Mapping[str, Mapping[str, JSON]], data: ImportedData
) -> None:
    """Parse one agent under its name."""
    own = [each for field in ("core_memory", "memory_blocks") for each in to_list(agent.get(field))]
    named = [blocks[key] for each in to_list(agent.get("block_ids")) if (key := to_text(each)) in blocks]
    for block in [*map(to_fields, own), *named]:
        read_block(block, name, data)
    for passage in to_list(agent.get("passages")):
        read_passage(to_fields(passage), data)
    read_conversation(agent, name, data)


def read_block(block: Mapping[str, JSON], agent: str, data: ImportedData) -> None:
    """Parse a memory block as a thought."""
    value = to_text(block.get("value"))
    label = to_line(to_text(block.get("label")), data.remarks)
    if not value.strip():
        data.count_skipped(MEMORIES, BLANK)
        return
    told: dict[str, JSON] = {"agent": agent, "label": label}
    noted = note(OURS, told, {"description": block.get("description"), "metadata": block.get("metadata")}, data.remarks)
    made = to_moment(block.get("updated_at") or block.get("created_at"), data.remarks)
    keywords = (label,) if label else ()
    memory = NewMemory(value, Kind.THOUGHT, importance=8.0, keywords=keywords, occurred_at=made, metadata=noted)
    data.add_memory(ParsedMemory(to_line(f"block:{agent}:{label}", data.remarks), memory))


def read_passage(passage: Mapping[str, JSON], data: ImportedData) -> None:
    """Parse a passage of archival memory, with its tags as keywords."""
    text = to_text(passage.get("text"))
    if not text.strip():
        data.count_skipped(MEMORIES, MALFORMED)
        return
    key = to_text(passage.get("id")) or f"passage:{hash_parts(text)}"
    memory = NewMemory(
        text,
        Kind.EVENT,
        keywords=to_keywords(to_list(passage.get("tags")), data.remarks),
        occurred_at=to_moment(passage.get("created_at"), data.remarks),
        metadata=note(OURS, {}, {"metadata": passage.get("metadata")}, data.remarks),
    )
    data.add_memory(ParsedMemory(to_line(key, data.remarks), memory))


def read_conversation(agent: Mapping[str, JSON], name: str, data: ImportedData) -> None:
    """Parse an agent's messages as one conversation, each after the previous one."""
    placed: list[TreeMessage] = []
    sent: set[str] = set()
    times: dict[str, int] = {}
    for entry in map(to_fields, to_list(agent.get("messages"))):
        message = to_message(entry, sent, data)
        told = json.dumps([entry.get(field) for field in ("role", "content", "tool_calls", "created_at")])
        times[told] = times.get(told, 0) + 1
        # IDs in the file only count messages, and the same text may occur twice at the same time.
        placed.append(TreeMessage(hash_parts(told, times[told]), placed[-1].key if placed else None, message))
    if not placed:
        return
    made = to_moment(agent.get("created_at"), data.remarks)
    kept: dict[str, JSON] = {"agent": name}
    noted = note(OURS, kept, {"description": agent.get("description")}, data.remarks)
    messages = order_messages(placed, data)
    add_conversation(ParsedConversation(to_identifier(f"letta:{name}"), name, made, noted, messages), data)


def to_message(entry: Mapping[str, JSON], sent: set[str], data: ImportedData) -> NewMessage | None:
    """Convert a message, or return None and count the reason for skipping it."""
    data.seen[MESSAGES] += 1
    remarks = data.remarks
    role = ROLES.get(to_text(entry.get("role")))
    text = read_content(entry, data)
    calls = [to_fields(each) for each in to_list(entry.get("tool_calls"))]
    why = find_reason(role, entry, sent, text)
    if role is Role.USER and why is None:
        text = unpack(text)
    said, parts = read_calls(calls, sent, data) if role is Role.ASSISTANT else ("", ())
    if role is Role.TOOL:
        parts = (Part(PartType.TOOL_RESULT, cut(text, MAX_MESSAGE_LENGTH, remarks), call_id=name_call(entry, data)),)
    elif said and text:
        # The content next to a message sent to the user is the agent's reasoning.
        remarks[REASONING] += 1
    own = "" if role is Role.TOOL else cut(said or text, MAX_MESSAGE_LENGTH, remarks)
    if why is None and not own.strip() and not parts:
        why = EMPTY
    if why is not None or role is None:
        remarks[why or OTHER] += 1
        return None
    name = to_line(to_text(entry.get("name")), remarks)
    moment = to_moment(entry.get("created_at"), remarks)
    return NewMessage(role, own, name, parts[:MAX_PARTS], occurred_at=moment)


def find_reason(role: Role | None, entry: Mapping[str, JSON], sent: set[str], text: str) -> str | None:
    """Return why an entry is not a message: a prompt, a loop event or a receipt; else None."""
    if role is None:
        return PROMPTS if entry.get("role") == "system" else OTHER
    if role is Role.TOOL and to_text(entry.get("tool_call_id")) in sent:
        return RECEIPTS
    packed = load(text) if role is Role.USER else {}
    return EVENTS if packed.get("type") not in (None, "user_message") else None


def read_content(entry: Mapping[str, JSON], data: ImportedData) -> str:
    """Join the text parts of a content, and count the reasoning parts."""
    if isinstance(entry.get("content"), str):
        return to_text(entry.get("content"))
    texts: list[str] = []
    for part in map(to_fields, to_list(entry.get("content"))):
        kind = to_text(part.get("type"))
        data.remarks[REASONING] += kind.endswith("reasoning")
        texts += [to_text(part.get("text"))] if kind == "text" else []
        texts += [to_text(part.get("content"))] if kind == "tool_return" else []
    return "\n".join(filter(None, texts)) or to_text(entry.get("text"))


def load(text: str) -> Mapping[str, JSON]:
    """Parse a text as the JSON object of the agent's loop; empty if it is none."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        return to_fields(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def unpack(text: str) -> str:
    """Return the user's text without the packaging of the agent's loop."""
    packed = load(text)
    return to_text(packed.get("message")) if packed.get("type") == "user_message" else text


def read_calls(calls: Sequence[Mapping[str, JSON]], sent: set[str], data: ImportedData) -> tuple[str, tuple[Part, ...]]:
    """Return the text sent to the user, and all other calls as tool call parts."""
    said: list[str] = []
    parts: list[Part] = []
    for call in calls:
        function = to_fields(call.get("function"))
        name, arguments = to_text(function.get("name")), to_text(function.get("arguments"))
        identity = to_line(to_text(call.get("id")), data.remarks)
        if name == SAY:
            sent.add(identity)
            said.append(to_text(load(arguments).get("message")))
        else:
            text = cut(arguments, MAX_MESSAGE_LENGTH, data.remarks)
            parts.append(Part(PartType.TOOL_CALL, text, to_line(name, data.remarks), call_id=identity))
    return "\n".join(filter(None, said)), tuple(parts)


def name_call(entry: Mapping[str, JSON], data: ImportedData) -> str:
    """Return the ID of the call that a tool message answers."""
    return to_line(to_text(entry.get("tool_call_id")), data.remarks)
