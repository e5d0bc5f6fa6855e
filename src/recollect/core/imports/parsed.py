"""The parsed data of another system's export: memories, conversations, facts, and counts of skipped entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from recollect.core.conversations.appends import check_message
from recollect.core.conversations.threads import NIL, ThreadNode, order_nodes
from recollect.core.imports.text import clean, hash_parts
from recollect.core.knowledge.new_facts import check_new_fact
from recollect.core.knowledge.new_facts import to_memory as word_fact
from recollect.core.memories.checks import MAX_CONTENT_LENGTH, check_new_memory
from recollect.core.text.checks import MAX_NAME_LENGTH
from recollect.core.text.names import CONTROL
from recollect.errors import InvalidInputError
from recollect.models.conversations import NewMessage
from recollect.models.imports import UserField
from recollect.models.knowledge import NewFact
from recollect.models.memories import JSON, NewMemory

CONVERSATIONS, MESSAGES, MEMORIES, FACTS = "conversations", "messages", "memories", "facts"
MALFORMED = "invalid entries: skipped"
TWICE = "duplicate entries: skipped"
SILENT = "conversations without messages to keep: skipped"
DIVIDED = f"texts longer than {MAX_CONTENT_LENGTH:,} characters: divided into several memories"
REFUSED = "entries that cannot be kept: skipped"
Owner = Mapping[UserField, str]


@dataclass(frozen=True, slots=True)
class ParsedMemory:
    """A memory, and its ID at the source."""

    key: str
    memory: NewMemory
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message and its parent, both with their IDs at the source."""

    key: str
    parent: str | None
    message: NewMessage


@dataclass(frozen=True, slots=True)
class ParsedConversation:
    """A conversation with its messages, parents before their children."""

    id: str
    name: str
    created_at: datetime | None
    metadata: Mapping[str, JSON]
    messages: tuple[ParsedMessage, ...]
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class ParsedFactEntry:
    """A fact, its evidence, and the memory to store if it is not a valid fact."""

    key: str
    fact: NewFact
    sources: tuple[str, ...]
    """Keys of the memories that it was learned from."""
    spare: NewMemory
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class ImportedData:
    """The parsed entries of one document, and counts of seen and skipped entries."""

    memories: list[ParsedMemory] = field(default_factory=list[ParsedMemory])
    conversations: list[ParsedConversation] = field(default_factory=list[ParsedConversation])
    facts: list[ParsedFactEntry] = field(default_factory=list[ParsedFactEntry])
    seen: Counter[str] = field(default_factory=Counter[str])
    """How many entries of each sort the document has, including skipped ones."""
    remarks: Counter[str] = field(default_factory=Counter[str])

    def count_skipped(self, thing: str, why: str) -> None:
        """Count a skipped entry."""
        self.seen[thing] += 1
        self.remarks[why] += 1

    def add_memory(self, found: ParsedMemory) -> None:
        """Add a memory if it can be stored; a long one is split."""
        content = clean(found.memory.content, self.remarks)
        pieces = [content[start : start + MAX_CONTENT_LENGTH] for start in range(0, len(content), MAX_CONTENT_LENGTH)]
        self.remarks[DIVIDED] += len(pieces) > 1
        for number, piece in enumerate(pieces):
            self.seen[MEMORIES] += 1
            memory = replace(found.memory, content=piece)
            try:
                check_new_memory(memory)
            except InvalidInputError:
                self.remarks[REFUSED] += 1
            else:
                key = f"{found.key}#{number + 1}" if number else found.key
                self.memories.append(replace(found, key=key, memory=memory))

    def add_fact(self, found: ParsedFactEntry) -> None:
        """Add a fact if it can be stored, else its memory."""
        try:
            check_new_fact(found.fact)
            check_new_memory(word_fact(found.fact, {}))
        except InvalidInputError:
            self.add_memory(ParsedMemory(found.key, found.spare, found.owner))
        else:
            self.seen[FACTS] += 1
            self.facts.append(found)


@dataclass(frozen=True, slots=True)
class TreeMessage:
    """A message as a node of a tree; None as message means that it is skipped."""

    key: str
    parent: str | None
    message: NewMessage | None


def order_messages(placed: Sequence[TreeMessage], data: ImportedData, current: str = "") -> tuple[ParsedMessage, ...]:
    """Assign every message its nearest kept ancestor as parent, and put parents first.

    Messages that are sorted oldest first stay so; the end of the current thread comes last.
    """
    once: dict[str, TreeMessage] = {}
    for each in placed:
        key = to_key(each.key)
        data.remarks[TWICE] += key in once
        once.setdefault(key, TreeMessage(key, to_key(each.parent) if each.parent else None, each.message))
    kept = {key: message for key, each in once.items() if (message := _keep(each.message, data)) is not None}
    nodes = [ThreadNode(each.key, None if each.parent == NIL else each.parent) for each in once.values()]
    ends: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    for node, parent in order_nodes(nodes):
        before[node.id] = ends[parent] if parent is not None else None
        ends[node.id] = node.id if node.id in kept else before[node.id]
    last = ends.get(to_key(current))
    keys = sorted(kept, key=lambda key: key == last)
    ordered = order_nodes([ThreadNode(key, before[key]) for key in keys])
    return tuple(
        ParsedMessage(node.id, parent, replace(kept[node.id], external_id=node.id)) for node, parent in ordered
    )


def to_key(text: str) -> str:
    """Return the ID of a source if it can be stored, else its hash."""
    return hash_parts(text) if len(text) > MAX_NAME_LENGTH or CONTROL.search(text) else text


def _keep(message: NewMessage | None, data: ImportedData) -> NewMessage | None:
    if message is None:
        return None
    try:
        check_message(message)
    except InvalidInputError:
        data.remarks[REFUSED] += 1
        return None
    return message


def add_conversation(conversation: ParsedConversation, data: ImportedData) -> None:
    """Add a conversation unless it has no messages."""
    data.seen[CONVERSATIONS] += 1
    if conversation.messages:
        data.conversations.append(conversation)
    else:
        data.remarks[SILENT] += 1


def hash_memory(memory: NewMemory) -> str:
    """Hash the content of a memory, to detect changes at the source."""
    return hash_parts(memory.content)


def hash_fact(fact: NewFact) -> str:
    """Hash the content of a fact and its valid time."""
    return hash_parts(fact.subject, fact.predicate, fact.object, fact.text, fact.valid_at, fact.invalid_at)
