"""Exports of other systems in miniature, of the shape their own programs write.

The shapes were taken from what these programs wrote: mem0ai 2.2.1 (`Memory.get_all`, a Qdrant scroll), letta 0.16.8
(`AgentFileSchema`, `Passage`), graphiti-core 0.31.1 (`model_dump` of nodes and edges), zep-cloud 3.30 and 4.0 and
zep-python 2.0.2 (`json()` of their types). ChatGPT's and Claude's exports follow what public parsers of them read.
"""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

BEGINNING = datetime(2024, 3, 1, 9, tzinfo=UTC)
ROOT = "00000000-0000-4000-8000-000000000000"
"""The parent that Claude gives first messages."""


def name(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, text))


def moment(minutes: float = 0) -> str:
    return (BEGINNING + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def mem0_memory(text: str, key: str = "", **more: Any) -> dict[str, Any]:
    made = moment()
    return {
        "id": name(key or text), "memory": text, "hash": "f371fa1ab6b5fc0eb3a8644e19a11b9e", "metadata": None,
        "created_at": made, "updated_at": made, "user_id": "li", "role": "user",
    } | more  # fmt: skip


def mem0_point(text: str, **payload: Any) -> dict[str, Any]:
    made = {"data": text, "hash": "810b", "created_at": moment(), "updated_at": moment(), "text_lemmatized": text}
    return {
        "id": name(text), "payload": {"user_id": "li", **made, **payload}, "vector": None, "shard_key": None,
        "order_value": None,
    }  # fmt: skip


def letta_message(role: str, text: str | None, minutes: float = 0, **more: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "text", "text": text, "signature": None}]
    return {
        "type": "message", "otid": None, "group_id": None, "role": role, "content": content, "name": None,
        "sender_id": None, "batch_item_id": None, "model": None, "agent_id": None, "tool_calls": None,
        "tool_call_id": None, "tool_returns": None, "created_at": moment(minutes), "approve": None,
        "approval_request_id": None, "denial_reason": None, "approvals": None,
    } | more  # fmt: skip


def letta_call(tool: str, arguments: dict[str, Any], key: str = "call-1") -> dict[str, Any]:
    return {"id": key, "function": {"arguments": json.dumps(arguments), "name": tool}, "type": "function"}


def letta_user(text: str, minutes: float = 0) -> dict[str, Any]:
    packed = {"type": "user_message", "message": text, "time": "2024-03-01 09:00:00 AM UTC+0000"}
    return letta_message("user", json.dumps(packed), minutes)


def letta_block(label: str, value: str, number: int = 0) -> dict[str, Any]:
    return {
        "value": value, "limit": 100_000, "project_id": None, "template_name": None, "is_template": False,
        "template_id": None, "base_template_id": None, "deployment_id": None, "entity_id": None,
        "preserve_on_migration": False, "label": label, "read_only": False, "description": f"The {label} block",
        "metadata": {}, "hidden": None, "tags": None, "id": f"block-{number}",
    }  # fmt: skip


def letta_file(messages: list[dict[str, Any]], blocks: list[dict[str, Any]], agent: str = "ada") -> dict[str, Any]:
    numbered = [{**message, "id": f"message-{number}"} for number, message in enumerate(messages)]
    described = {"name": agent, "memory_blocks": [], "tools": [], "tool_ids": [], "source_ids": [], "tags": []}
    held = {
        **described, "block_ids": [block["id"] for block in blocks], "system": "You are Ada.", "timezone": "UTC",
        "agent_type": "memgpt_v2_agent", "id": "agent-0", "messages": numbered, "files_agents": [], "group_ids": [],
        "in_context_message_ids": [message["id"] for message in numbered],
    }  # fmt: skip
    rest: dict[str, Any] = {part: [] for part in ("groups", "files", "sources", "tools", "mcp_servers", "skills")}
    return {"agents": [held], "blocks": blocks, **rest, "metadata": {}, "created_at": moment()}


def letta_passage(text: str, *tags: str) -> dict[str, Any]:
    return {
        "created_by_id": None, "created_at": moment(), "updated_at": None, "is_deleted": False, "archive_id": None,
        "source_id": None, "file_id": None, "file_name": None, "metadata": {}, "tags": list(tags),
        "id": f"passage-{name(text)}", "text": text, "embedding": None, "embedding_config": None,
    }  # fmt: skip


def graphiti_node(title: str, summary: str = "", *labels: str, group: str = "li") -> dict[str, Any]:
    return {
        "uuid": name(title), "name": title, "group_id": group, "labels": ["Entity", *labels], "created_at": moment(),
        "summary": summary, "attributes": {},
    }  # fmt: skip


def graphiti_edge(subject: str, predicate: str, object_: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name(text), "group_id": "li", "source_node_uuid": name(subject), "target_node_uuid": name(object_),
        "created_at": moment(), "name": predicate, "fact": text, "episodes": [], "expired_at": None, "valid_at": None,
        "invalid_at": None, "reference_time": None, "attributes": {},
    } | more  # fmt: skip


def graphiti_episode(text: str, minutes: float = 0, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name(text), "name": "talk", "group_id": "li", "labels": [], "created_at": moment(minutes),
        "source": "message", "source_description": "chat", "content": text, "valid_at": moment(minutes),
        "entity_edges": [], "episode_metadata": None,
    } | more  # fmt: skip


def zep_message(text: str, role: str, speaker: str, minutes: float = 0) -> dict[str, Any]:
    return {
        "content": text, "created_at": moment(minutes), "metadata": None, "name": speaker, "processed": None,
        "role": role, "uuid_": None, "uuid": name(text),
    }  # fmt: skip


def zep_thread(key: str, messages: list[dict[str, Any]], user: str = "li") -> dict[str, Any]:
    return {"created_at": moment(), "thread_id": key, "user_id": user, "uuid": name(key), "messages": messages}


def chatgpt_node(
    key: str, parent: str | None, role: str = "", text: str | None = None, minutes: float | None = 0, **more: Any
) -> dict[str, Any]:
    """Make a node; without a role it is one without a message, as roots are."""
    if not role:
        return {"id": key, "message": None, "parent": parent, "children": []}
    stamp = None if minutes is None else (BEGINNING + timedelta(minutes=minutes)).timestamp()
    message = {
        "id": key, "author": {"role": role, "name": None, "metadata": {}}, "create_time": stamp, "update_time": None,
        "content": {"content_type": "text", "parts": [text or ""]}, "status": "finished_successfully",
        "end_turn": None, "weight": 1.0, "metadata": {}, "recipient": "all", "channel": None,
    } | more  # fmt: skip
    return {"id": key, "message": message, "parent": parent, "children": []}


def chatgpt_conversation(
    key: str, nodes: list[dict[str, Any]], current: str = "", title: str = "Tea"
) -> dict[str, Any]:
    mapping = {node["id"]: node for node in nodes}
    for node in nodes:
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": title, "create_time": BEGINNING.timestamp(), "update_time": BEGINNING.timestamp() + 60,
        "mapping": mapping, "moderation_results": [], "current_node": current or (nodes[-1]["id"] if nodes else None),
        "plugin_ids": None, "conversation_id": name(key), "conversation_template_id": None, "gizmo_id": None,
        "is_archived": False, "safe_urls": [], "default_model_slug": "gpt-4o", "id": name(key),
    }  # fmt: skip


def chatgpt_line(key: str, texts: list[str], title: str = "Tea") -> dict[str, Any]:
    """Make a conversation without branches, behind the nodes that every export begins with."""
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    nodes = [
        chatgpt_node("client-created-root", None),
        chatgpt_node(f"{key}-system", "client-created-root", "system", "", None, **hidden),
    ]
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        nodes.append(chatgpt_node(f"{key}-{number}", nodes[-1]["id"], role, text, number))
    return chatgpt_conversation(key, nodes, title=title)


def claude_message(
    text: str, sender: str = "human", minutes: float = 0, blocks: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    said = {"start_timestamp": moment(minutes), "stop_timestamp": moment(minutes), "type": "text", "text": text}
    return {
        "uuid": name(text), "text": text, "content": [said | {"citations": []}] if blocks is None else blocks,
        "sender": sender, "created_at": moment(minutes), "updated_at": moment(minutes), "attachments": [], "files": [],
    } | more  # fmt: skip


def claude_conversation(key: str, messages: list[dict[str, Any]], title: str = "Tea") -> dict[str, Any]:
    return {
        "uuid": name(key), "name": title, "summary": "", "created_at": moment(), "updated_at": moment(9),
        "account": {"uuid": name("account")}, "chat_messages": messages,
    }  # fmt: skip


def zip_up(files: dict[str, Any]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, value in files.items():
            archive.writestr(path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return written.getvalue()
