"""Find messages whose external IDs a conversation already has, so that only new ones are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from recollect.core.conversations.messages import memory_text
from recollect.errors import ConflictError
from recollect.models.conversations import Message, NewMessage
from recollect.models.memories import MemoryProgress, Receipt

KNOWN = MemoryProgress.STORED, True
MAX_NAMED = 20
COMPARED = ("role", "name", "parts", "attachments", "status")
Follows: TypeAlias = tuple[UUID | int | None, bool]
"""The parent of a message, and whether the message is a root."""


@dataclass(frozen=True, slots=True)
class StoredMessages:
    """The messages of a conversation that have external IDs."""

    versions: Mapping[str, Sequence[Message]]
    """All versions of a message, the current one first."""
    forgotten: Mapping[str, UUID]
    """Messages that were forgotten themselves, or in one of their versions."""


def hash_external_id(external_id: str) -> bytes:
    """Hash an external ID, as it is stored for forgotten messages."""
    return hashlib.sha256(external_id.encode()).digest()


def find_differences(new: NewMessage, old: NewMessage | Message) -> list[str]:
    """List the fields in which two messages differ; times are compared only if both are set."""
    differ = [name for name in COMPARED if getattr(new, name) != getattr(old, name)]
    times = {new.occurred_at, old.occurred_at} - {None}
    return [
        *(["content"] if memory_text(new) != memory_text(old) else []),
        *differ,
        *(["occurred_at"] if len(times) > 1 else []),
    ]


def sort_out(
    messages: Sequence[NewMessage], stored: StoredMessages
) -> tuple[dict[int, NewMessage], dict[int, Receipt | int]]:
    """Separate new messages from known ones, by position; refuse messages that differ from the known ones.

    A new message follows the known message before it. If that one was forgotten, the new message gets its parent. A
    number refers to the same message earlier in the call.
    """
    met: dict[str, tuple[Receipt | int, Sequence[NewMessage | Message], Follows | None]] = {
        name: (Receipt(identity, *KNOWN), (), None) for name, identity in stored.forgotten.items()
    }
    for name, (current, *past) in stored.versions.items():
        comparable = () if name in stored.forgotten else (current, *past)
        met[name] = Receipt(current.id, *KNOWN), comparable, (current.id, False)
    new, known = dict[int, NewMessage](), dict[int, Receipt | int]()
    places, differing = list[Follows](), list[str]()
    for position, message in enumerate(messages):
        before = message.parent if isinstance(message.parent, int) else position - 1
        stated = message.root or isinstance(message.parent, UUID) or before < 0
        own = (message.parent, message.root) if stated else places[before]
        same, versions, place = met.get(message.external_id, (None, (), (len(new), False)))
        places.append(place or own)
        if same is not None:
            known[position] = same
            differences = [find_differences(message, version) for version in versions]
            if differences and [] not in differences:
                differing.append(f"{message.external_id} ({', '.join(differences[0])})")
            continue
        if message.external_id:
            met[message.external_id] = position, (message,), place
        new[position] = replace(message, parent=own[0], root=own[1])
    if differing:
        raise ConflictError(
            f"The conversation has other messages with these external_ids: {', '.join(differing[:MAX_NAMED])}. "
            "Nothing was stored. Leave these messages out, or give them other external_ids."
        )
    return new, known
