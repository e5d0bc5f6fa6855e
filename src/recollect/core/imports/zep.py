"""Read Zep's data of its users: threads or sessions of messages, facts as sentences, and a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import itemgetter

from recollect.core.conversations.appends import LONGEST_MESSAGE
from recollect.core.imports.chatgpt import EMPTY
from recollect.core.imports.found import (
    CONVERSATIONS,
    FACTS,
    MALFORMED,
    MEMORIES,
    MESSAGES,
    TWICE,
    FoundConversation,
    FoundMemory,
    ImportedData,
    Owner,
    Placed,
    arrange,
    take_conversation,
)
from recollect.core.imports.graphiti import find, identify, once, read_graph, read_told
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
from recollect.models.conversations import NewMessage
from recollect.models.imports import UserField
from recollect.models.memories import JSON, Kind, NewMemory, Role

OURS = "zep"
EXPECTED = (
    "This is no export of Zep. It has no export of its own: write "
    '{"threads": [{"thread_id": ..., "user_id": ..., "messages": [...]}], "nodes": [...], "edges": [...]}, '
    "or `sessions` with their `session_id`, `messages` and `facts`."
)
SAID_TWICE = "episodes that are messages of a thread: the messages stand for them"
ROLES = {"user": Role.USER, "human": Role.USER, "norole": Role.USER, "assistant": Role.ASSISTANT, "ai": Role.ASSISTANT}
ROLES |= {"system": Role.SYSTEM, "tool": Role.TOOL, "function": Role.TOOL}
PARTS = ("threads", "sessions", "edges", "nodes", "episodes", "facts")


def read(document: JSON) -> ImportedData:
    """Read the data of one user or of many."""
    data = ImportedData()
    fields = to_fields(document)
    if not any(isinstance(fields.get(part), list) for part in PARTS):
        raise InvalidInputError(EXPECTED)
    said: set[str] = set()
    users = {identify(user): to_text(user.get("user_id")) for user in map(to_fields, to_list(fields.get("users")))}
    whose = partial(own, users=users, usual=to_text(fields.get("user_id")))
    for thread in join(find(fields, ("threads", "sessions")) or [], whose, data):
        read_thread(thread, whose(thread), said, data)
    for fact in to_list(fields.get("facts")):
        read_sentence(fact, "facts", whose(to_fields(fact)), data)
    for entry in once(find(fields, ("episodes",)), MEMORIES, data):
        if identify(entry) in said:
            data.leave(MEMORIES, SAID_TWICE)
        else:
            read_told(entry, OURS, whose(entry), data)
    read_graph(find(fields, ("nodes",)), find(fields, ("edges",)), OURS, whose, data)
    return data


def own(entry: Mapping[str, JSON], users: Mapping[str, str], usual: str = "") -> Owner:
    """Return the owner, by the caller's own id where it is known; a file of one user names it once."""
    uuid = to_text(entry.get("user_uuid"))
    name = to_text(entry.get("user_id")) or users.get(uuid, "") or usual or uuid
    return {UserField.USER_ID: name} if name else {}


def join(
    entries: list[JSON], whose: Callable[[Mapping[str, JSON]], Owner], data: ImportedData
) -> Iterable[Mapping[str, JSON]]:
    """Join all entries of a thread, such as pages of its messages; what is in two comes once."""
    threads: dict[tuple[str, str], dict[str, JSON]] = {}
    alone: list[Mapping[str, JSON]] = []
    for entry in map(to_fields, entries):
        name = (name_thread(entry), whose(entry).get(UserField.USER_ID, ""))
        if not name[0]:
            alone.append(entry)
        elif name not in threads:
            threads[name] = entry
        else:
            threads[name] = go_on(threads[name], entry, data)
    return [*threads.values(), *alone]


def go_on(thread: Mapping[str, JSON], page: Mapping[str, JSON], data: ImportedData) -> dict[str, JSON]:
    """Add another entry to its thread."""
    before, after = to_list(thread.get("messages")), to_list(page.get("messages"))
    told = {json.dumps(each, sort_keys=True) for each in before if is_told_apart(to_fields(each))}
    more = [each for each in after if before != after and json.dumps(each, sort_keys=True) not in told]
    for _ in range(len(after) - len(more)):
        data.leave(MESSAGES, TWICE)
    facts = [*to_list(thread.get("facts")), *to_list(page.get("facts"))]
    return {**thread, "messages": [*before, *more], "facts": facts}


def is_told_apart(message: Mapping[str, JSON]) -> bool:
    """Tell whether a message that says the same is the same one: without an id or a time, it may be another."""
    return bool(identify(message) or message.get("created_at"))


def name_thread(thread: Mapping[str, JSON]) -> str:
    """Return the id of a thread or a session."""
    names = (to_text(thread.get(field)) for field in ("thread_id", "session_id", "uuid", "uuid_"))
    return next(filter(None, names), "")


def read_thread(thread: Mapping[str, JSON], owner: Owner, said: set[str], data: ImportedData) -> None:
    """Read a thread or a session: its messages in their order, and its facts."""
    remarks = data.remarks
    identity = name_thread(thread)
    if not identity:
        data.leave(CONVERSATIONS, MALFORMED)
        return
    placed: list[Placed] = []
    for entry in order(to_list(thread.get("messages")), data):
        before = placed[-1].key if placed else None
        key = identify(entry) or hash_parts(entry.get("created_at"), entry.get("content"), before)
        said.add(key)
        placed.append(Placed(to_line(key, remarks), before, to_message(entry, data)))
    created_at = to_moment(thread.get("created_at"), remarks)
    metadata = note(OURS, {"id": to_line(identity, remarks)}, {"metadata": thread.get("metadata")}, remarks)
    messages = arrange(placed, data)
    facts = to_list(thread.get("facts"))
    if messages or not facts:
        take_conversation(FoundConversation(to_identifier(identity), "", created_at, metadata, messages, owner), data)
    for fact in facts:
        read_sentence(fact, identity, owner, data)


def order(messages: list[JSON], data: ImportedData) -> list[dict[str, JSON]]:
    """Sort messages oldest first where all have a time: pages of them may begin with the newest."""
    entries = [to_fields(entry) for entry in messages]
    dated = [(moment, entry) for entry in entries if (moment := to_moment(entry.get("created_at"), data.remarks))]
    return [entry for _, entry in sorted(dated, key=itemgetter(0))] if len(dated) == len(entries) else entries


def to_message(entry: Mapping[str, JSON], data: ImportedData) -> NewMessage | None:
    """Turn a message into one of ours; where a role has a type, the role itself is a name."""
    data.seen[MESSAGES] += 1
    remarks = data.remarks
    typed = to_text(entry.get("role_type"))
    role = ROLES.get(typed or to_text(entry.get("role")), Role.USER)
    name = to_text(entry.get("name")) or (to_text(entry.get("role")) if typed else "")
    text = cut(to_text(entry.get("content")), LONGEST_MESSAGE, remarks)
    if not text.strip():
        remarks[EMPTY] += 1
        return None
    times = (entry.get("reference_time"), entry.get("created_at"))
    moment = next((found for value in times if (found := to_moment(value, remarks))), None)
    more = to_fields(entry.get("metadata"))
    noted = note(OURS, {}, {"metadata": more}, remarks) if more else {}
    return NewMessage(role, text, to_line(name, remarks), occurred_at=moment, metadata=noted)


def read_sentence(entry: JSON, place: str, owner: Owner, data: ImportedData) -> None:
    """Read a fact that is a sentence without ends: it is a thought, named by its place and what it says."""
    remarks = data.remarks
    fields = to_fields(entry)
    text = to_text(entry) or to_text(fields.get("fact"))
    if not text.strip():
        data.leave(FACTS, MALFORMED)
        return
    told: dict[str, JSON] = {"rating": fields.get("rating") if isinstance(fields.get("rating"), float) else None}
    made = to_moment(fields.get("created_at"), remarks)
    memory = NewMemory(text, Kind.THOUGHT, occurred_at=made, metadata=note(OURS, told, {}, remarks))
    key = identify(fields) or f"{place}:{hash_parts(text)}"
    data.take_memory(FoundMemory(to_line(key, remarks), memory, owner))
