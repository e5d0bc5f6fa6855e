"""Read what Zep holds of its users: threads or sessions of messages, facts as sentences, and a graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import itemgetter

from recollect.core.appends import LONGEST_MESSAGE
from recollect.core.import_chatgpt import EMPTY
from recollect.core.import_graphiti import find, identify, once, read_graph, read_told
from recollect.core.import_harvest import (
    CONVERSATIONS,
    FACTS,
    MALFORMED,
    MEMORIES,
    MESSAGES,
    FoundMemory,
    FoundTalk,
    Harvest,
    Owner,
    Placed,
    arrange,
    take_talk,
)
from recollect.core.import_text import cut, digest, note, to_fields, to_identifier, to_line, to_list, to_moment, to_text
from recollect.errors import InvalidInputError
from recollect.models import JSON, Kind, NewMemory, NewMessage, Role
from recollect.models.imports import UserField

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


def read(document: JSON) -> Harvest:
    """Read what was written down of one user or of many."""
    harvest = Harvest()
    fields = to_fields(document)
    if not any(isinstance(fields.get(part), list) for part in PARTS):
        raise InvalidInputError(EXPECTED)
    said: set[str] = set()
    users = {identify(user): to_text(user.get("user_id")) for user in map(to_fields, to_list(fields.get("users")))}
    whose = partial(own, users=users, usual=to_text(fields.get("user_id")))
    for thread in map(to_fields, find(fields, ("threads", "sessions")) or ()):
        read_thread(thread, whose(thread), said, harvest)
    for fact in to_list(fields.get("facts")):
        read_sentence(fact, f"facts:{digest(to_text(fact))}", whose(to_fields(fact)), harvest)
    for entry in once(find(fields, ("episodes",)), MEMORIES, harvest):
        if identify(entry) in said:
            harvest.leave(MEMORIES, SAID_TWICE)
        else:
            read_told(entry, OURS, whose(entry), harvest)
    read_graph(find(fields, ("nodes",)), find(fields, ("edges",)), OURS, whose, harvest)
    return harvest


def own(entry: Mapping[str, JSON], users: Mapping[str, str], usual: str = "") -> Owner:
    """Say whose it is, by the caller's own id where it is known; a file of one user names it once."""
    uuid = to_text(entry.get("user_uuid"))
    name = to_text(entry.get("user_id")) or users.get(uuid, "") or usual or uuid
    return {UserField.USER_ID: name} if name else {}


def read_thread(thread: Mapping[str, JSON], owner: Owner, said: set[str], harvest: Harvest) -> None:
    """Read a thread or a session: its messages in their order, and its facts."""
    remarks = harvest.remarks
    names = (to_text(thread.get(field)) for field in ("thread_id", "session_id", "uuid", "uuid_"))
    identity = next(filter(None, names), "")
    if not identity:
        harvest.leave(CONVERSATIONS, MALFORMED)
        return
    placed: list[Placed] = []
    for entry in order(to_list(thread.get("messages")), harvest):
        before = placed[-1].key if placed else None
        key = identify(entry) or digest(entry.get("created_at"), entry.get("content"), before)
        said.add(key)
        placed.append(Placed(to_line(key, remarks), before, to_message(entry, harvest)))
    created_at = to_moment(thread.get("created_at"), remarks)
    metadata = note(OURS, {"id": to_line(identity, remarks)}, {"metadata": thread.get("metadata")}, remarks)
    messages = arrange(placed, harvest)
    facts = to_list(thread.get("facts"))
    if messages or not facts:
        take_talk(FoundTalk(to_identifier(identity), "", created_at, metadata, messages, owner), harvest)
    for fact in facts:
        read_sentence(fact, f"{identity}:{digest(to_text(fact))}", owner, harvest)


def order(messages: list[JSON], harvest: Harvest) -> list[dict[str, JSON]]:
    """Put messages oldest first where all say when they came: pages of them may begin with the newest."""
    entries = [to_fields(entry) for entry in messages]
    dated = [(moment, entry) for entry in entries if (moment := to_moment(entry.get("created_at"), harvest.remarks))]
    return [entry for _, entry in sorted(dated, key=itemgetter(0))] if len(dated) == len(entries) else entries


def to_message(entry: Mapping[str, JSON], harvest: Harvest) -> NewMessage | None:
    """Turn a message into one of ours; where a role has a type, the role itself is a name."""
    harvest.seen[MESSAGES] += 1
    remarks = harvest.remarks
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


def read_sentence(entry: JSON, key: str, owner: Owner, harvest: Harvest) -> None:
    """Read a fact that is a sentence and joins nothing: it is a thought."""
    remarks = harvest.remarks
    fields = to_fields(entry)
    text = to_text(entry) or to_text(fields.get("fact"))
    if not text.strip():
        harvest.leave(FACTS, MALFORMED)
        return
    told: dict[str, JSON] = {"rating": fields.get("rating") if isinstance(fields.get("rating"), float) else None}
    made = to_moment(fields.get("created_at"), remarks)
    memory = NewMemory(text, Kind.THOUGHT, occurred_at=made, metadata=note(OURS, told, {}, remarks))
    harvest.take_memory(FoundMemory(to_line(identify(fields) or key, remarks), memory, owner))
