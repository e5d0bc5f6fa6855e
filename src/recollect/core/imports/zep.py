"""Parse Zep's data of users: threads or sessions with messages, facts as sentences, and a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import itemgetter

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH
from recollect.core.imports.chatgpt import EMPTY
from recollect.core.imports.graphiti import find_list, identify, once, read_episode, read_graph
from recollect.core.imports.parsed import (
    CONVERSATIONS,
    FACTS,
    MALFORMED,
    MEMORIES,
    MESSAGES,
    TWICE,
    ImportedData,
    Owner,
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
from recollect.models.conversations import NewMessage
from recollect.models.imports import UserField
from recollect.models.memories import JSON, Kind, NewMemory, Role

OURS = "zep"
EXPECTED = (
    'Not a Zep export. Zep has no export command: write {"threads": [{"thread_id": ..., "user_id": ..., '
    '"messages": [...]}], "nodes": [...], "edges": [...]}.'
)
SAID_TWICE = "episodes that repeat thread messages: skipped"
ROLES = {"user": Role.USER, "human": Role.USER, "norole": Role.USER, "assistant": Role.ASSISTANT, "ai": Role.ASSISTANT}
ROLES |= {"system": Role.SYSTEM, "tool": Role.TOOL, "function": Role.TOOL}
PARTS = ("threads", "sessions", "edges", "nodes", "episodes", "facts")


def parse_zep(document: JSON) -> ImportedData:
    """Parse the data of one or more users."""
    data = ImportedData()
    fields = to_fields(document)
    if not any(isinstance(fields.get(part), list) for part in PARTS):
        raise InvalidInputError(EXPECTED)
    said: set[str] = set()
    users = {identify(user): to_text(user.get("user_id")) for user in map(to_fields, to_list(fields.get("users")))}
    whose = partial(own, users=users, usual=to_text(fields.get("user_id")))
    for thread in join(find_list(fields, ("threads", "sessions")) or [], whose, data):
        read_thread(thread, whose(thread), said, data)
    for fact in to_list(fields.get("facts")):
        read_sentence(fact, "facts", whose(to_fields(fact)), data)
    for entry in once(find_list(fields, ("episodes",)), MEMORIES, data):
        if identify(entry) in said:
            data.count_skipped(MEMORIES, SAID_TWICE)
        else:
            read_episode(entry, OURS, whose(entry), data)
    read_graph(find_list(fields, ("nodes",)), find_list(fields, ("edges",)), OURS, whose, data)
    return data


def own(entry: Mapping[str, JSON], users: Mapping[str, str], usual: str = "") -> Owner:
    """Return the owner: the caller's own ID if known, else the file's user."""
    uuid = to_text(entry.get("user_uuid"))
    name = to_text(entry.get("user_id")) or users.get(uuid, "") or usual or uuid
    return {UserField.USER_ID: name} if name else {}


def join(
    entries: list[JSON], whose: Callable[[Mapping[str, JSON]], Owner], data: ImportedData
) -> Iterable[Mapping[str, JSON]]:
    """Merge all entries of a thread, such as pages of its messages, without duplicates."""
    threads: dict[tuple[str, str], dict[str, JSON]] = {}
    alone: list[Mapping[str, JSON]] = []
    for entry in map(to_fields, entries):
        name = (name_thread(entry), whose(entry).get(UserField.USER_ID, ""))
        if not name[0]:
            alone.append(entry)
        elif name not in threads:
            threads[name] = entry
        else:
            threads[name] = append_entry(threads[name], entry, data)
    return [*threads.values(), *alone]


def append_entry(thread: Mapping[str, JSON], page: Mapping[str, JSON], data: ImportedData) -> dict[str, JSON]:
    """Append an entry to its thread."""
    before, after = to_list(thread.get("messages")), to_list(page.get("messages"))
    told = {json.dumps(each, sort_keys=True) for each in before if is_distinct_message(to_fields(each))}
    more = [each for each in after if before != after and json.dumps(each, sort_keys=True) not in told]
    for _ in range(len(after) - len(more)):
        data.count_skipped(MESSAGES, TWICE)
    facts = [*to_list(thread.get("facts")), *to_list(page.get("facts"))]
    return {**thread, "messages": [*before, *more], "facts": facts}


def is_distinct_message(message: Mapping[str, JSON]) -> bool:
    """Return whether a message has an ID or a time, so that an equal one is a duplicate."""
    return bool(identify(message) or message.get("created_at"))


def name_thread(thread: Mapping[str, JSON]) -> str:
    """Return the ID of a thread or a session."""
    names = (to_text(thread.get(field)) for field in ("thread_id", "session_id", "uuid", "uuid_"))
    return next(filter(None, names), "")


def read_thread(thread: Mapping[str, JSON], owner: Owner, said: set[str], data: ImportedData) -> None:
    """Parse a thread or a session: its messages in order, and its facts."""
    remarks = data.remarks
    identity = name_thread(thread)
    if not identity:
        data.count_skipped(CONVERSATIONS, MALFORMED)
        return
    placed: list[TreeMessage] = []
    for entry in order(to_list(thread.get("messages")), data):
        before = placed[-1].key if placed else None
        key = identify(entry) or hash_parts(entry.get("created_at"), entry.get("content"), before)
        said.add(key)
        placed.append(TreeMessage(to_line(key, remarks), before, to_message(entry, data)))
    created_at = to_moment(thread.get("created_at"), remarks)
    metadata = note(OURS, {"id": to_line(identity, remarks)}, {"metadata": thread.get("metadata")}, remarks)
    messages = order_messages(placed, data)
    facts = to_list(thread.get("facts"))
    if messages or not facts:
        add_conversation(ParsedConversation(to_identifier(identity), "", created_at, metadata, messages, owner), data)
    for fact in facts:
        read_sentence(fact, identity, owner, data)


def order(messages: list[JSON], data: ImportedData) -> list[dict[str, JSON]]:
    """Sort messages oldest first if all have a time: pages may start with the newest message."""
    entries = [to_fields(entry) for entry in messages]
    dated = [(moment, entry) for entry in entries if (moment := to_moment(entry.get("created_at"), data.remarks))]
    return [entry for _, entry in sorted(dated, key=itemgetter(0))] if len(dated) == len(entries) else entries


def to_message(entry: Mapping[str, JSON], data: ImportedData) -> NewMessage | None:
    """Convert a message; if an entry has a role type, its role is a name."""
    data.seen[MESSAGES] += 1
    remarks = data.remarks
    typed = to_text(entry.get("role_type"))
    role = ROLES.get(typed or to_text(entry.get("role")), Role.USER)
    name = to_text(entry.get("name")) or (to_text(entry.get("role")) if typed else "")
    text = cut(to_text(entry.get("content")), MAX_MESSAGE_LENGTH, remarks)
    if not text.strip():
        remarks[EMPTY] += 1
        return None
    times = (entry.get("reference_time"), entry.get("created_at"))
    moment = next((found for value in times if (found := to_moment(value, remarks))), None)
    more = to_fields(entry.get("metadata"))
    noted = note(OURS, {}, {"metadata": more}, remarks) if more else {}
    return NewMessage(role, text, to_line(name, remarks), occurred_at=moment, metadata=noted)


def read_sentence(entry: JSON, place: str, owner: Owner, data: ImportedData) -> None:
    """Parse a fact that is a sentence without ends as a thought; its key is the place and a hash."""
    remarks = data.remarks
    fields = to_fields(entry)
    text = to_text(entry) or to_text(fields.get("fact"))
    if not text.strip():
        data.count_skipped(FACTS, MALFORMED)
        return
    told: dict[str, JSON] = {"rating": fields.get("rating") if isinstance(fields.get("rating"), float) else None}
    made = to_moment(fields.get("created_at"), remarks)
    memory = NewMemory(text, Kind.THOUGHT, occurred_at=made, metadata=note(OURS, told, {}, remarks))
    key = identify(fields) or f"{place}:{hash_parts(text)}"
    data.add_memory(ParsedMemory(to_line(key, remarks), memory, owner))
