"""What an import finds in another system's export: memories, conversations, facts, and what is left out."""

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
from recollect.core.memories.checks import LONGEST_CONTENT, check_new_memory
from recollect.core.text.checks import LONGEST_NAME
from recollect.core.text.names import CONTROL
from recollect.errors import InvalidInputError
from recollect.models.conversations import NewMessage
from recollect.models.imports import UserField
from recollect.models.knowledge import NewFact
from recollect.models.memories import JSON, NewMemory

CONVERSATIONS, MESSAGES, MEMORIES, FACTS = "conversations", "messages", "memories", "facts"
MALFORMED = "entries that are not of the format: skipped"
TWICE = "entries that are in the file twice: skipped"
SILENT = "conversations without messages to keep: skipped"
DIVIDED = f"texts longer than {LONGEST_CONTENT:,} characters: divided into several memories"
REFUSED = "entries that cannot be kept: skipped"
Owner = Mapping[UserField, str]


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory, and its id at the source."""

    key: str
    memory: NewMemory
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message and the one it follows; both by their ids at the source."""

    key: str
    parent: str | None
    message: NewMessage


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation with its messages, each after its parent."""

    id: str
    name: str
    created_at: datetime | None
    metadata: Mapping[str, JSON]
    messages: tuple[FoundMessage, ...]
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact, its evidence, and the memory to store where it cannot be a fact."""

    key: str
    fact: NewFact
    sources: tuple[str, ...]
    """Keys of the memories that it was learned from."""
    spare: NewMemory
    owner: Owner = field(default_factory=dict[UserField, str])


@dataclass(frozen=True, slots=True)
class ImportedData:
    """What was found in one document, and counts of what was seen and left out."""

    memories: list[FoundMemory] = field(default_factory=list[FoundMemory])
    conversations: list[FoundConversation] = field(default_factory=list[FoundConversation])
    facts: list[FoundFact] = field(default_factory=list[FoundFact])
    seen: Counter[str] = field(default_factory=Counter[str])
    """How many of each thing the document holds, including what is left out."""
    remarks: Counter[str] = field(default_factory=Counter[str])

    def leave(self, thing: str, why: str) -> None:
        """Count something that is left out."""
        self.seen[thing] += 1
        self.remarks[why] += 1

    def take_memory(self, found: FoundMemory) -> None:
        """Add a memory if it can be stored, as several if it is too long for one."""
        content = clean(found.memory.content, self.remarks)
        pieces = [content[start : start + LONGEST_CONTENT] for start in range(0, len(content), LONGEST_CONTENT)]
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

    def take_fact(self, found: FoundFact) -> None:
        """Add a fact if it can be stored, as a memory if it has no two ends."""
        try:
            check_new_fact(found.fact)
            check_new_memory(word_fact(found.fact, {}))
        except InvalidInputError:
            self.take_memory(FoundMemory(found.key, found.spare, found.owner))
        else:
            self.seen[FACTS] += 1
            self.facts.append(found)


@dataclass(frozen=True, slots=True)
class Placed:
    """A message as a node of a tree; one that is left out only passes its parent on."""

    key: str
    parent: str | None
    message: NewMessage | None


def arrange(placed: Sequence[Placed], data: ImportedData, current: str = "") -> tuple[FoundMessage, ...]:
    """Let every message follow the nearest one before it that is kept, and give an order in which none precedes it.

    What is given oldest first stays so; the end of the thread that was looked at last comes last.
    """
    once: dict[str, Placed] = {}
    for each in placed:
        key = to_key(each.key)
        data.remarks[TWICE] += key in once
        once.setdefault(key, Placed(key, to_key(each.parent) if each.parent else None, each.message))
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
    return tuple(FoundMessage(node.id, parent, replace(kept[node.id], external_id=node.id)) for node, parent in ordered)


def to_key(text: str) -> str:
    """Return a source's id as it is if it can be stored, else a hash of it."""
    return hash_parts(text) if len(text) > LONGEST_NAME or CONTROL.search(text) else text


def _keep(message: NewMessage | None, data: ImportedData) -> NewMessage | None:
    if message is None:
        return None
    try:
        check_message(message)
    except InvalidInputError:
        data.remarks[REFUSED] += 1
        return None
    return message


def take_conversation(conversation: FoundConversation, data: ImportedData) -> None:
    """Add a conversation, unless it has no messages."""
    data.seen[CONVERSATIONS] += 1
    if conversation.messages:
        data.conversations.append(conversation)
    else:
        data.remarks[SILENT] += 1


def hash_memory(memory: NewMemory) -> str:
    """Hash what a memory says, to notice a change at the source."""
    return hash_parts(memory.content)


def hash_fact(fact: NewFact) -> str:
    """Hash what a fact says, and when it is true."""
    return hash_parts(fact.subject, fact.predicate, fact.object, fact.text, fact.valid_at, fact.invalid_at)
