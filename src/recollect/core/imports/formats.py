"""Which systems' exports can be read, by what, and how the file of another system is recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recollect.core.imports import chatgpt, claude, graphiti, letta, mem0, zep
from recollect.core.imports.found import ImportedData
from recollect.core.imports.text import to_fields, to_list
from recollect.errors import InvalidInputError
from recollect.models.imports import FileImport, Format, UserField
from recollect.models.memories import JSON


@dataclass(frozen=True, slots=True)
class FormatReader:
    """How one system's export is read."""

    read: Callable[[JSON], ImportedData]
    expected: str
    """What the file should be, and how to get one."""
    named_by: tuple[UserField, ...] = ()
    """Which fields of its entries name the user."""


READERS = {
    Format.MEM0: FormatReader(mem0.read, mem0.EXPECTED, (UserField.USER_ID, UserField.AGENT_ID, UserField.RUN_ID)),
    Format.LETTA: FormatReader(letta.read, letta.EXPECTED),
    Format.ZEP: FormatReader(zep.read, zep.EXPECTED, (UserField.USER_ID,)),
    Format.GRAPHITI: FormatReader(graphiti.read, graphiti.EXPECTED, (UserField.GROUP_ID,)),
    Format.CHATGPT: FormatReader(chatgpt.read, chatgpt.EXPECTED),
    Format.CLAUDE: FormatReader(claude.read, claude.EXPECTED, (UserField.ACCOUNT,)),
}
SIGNS = {
    "mapping": Format.CHATGPT, "chat_messages": Format.CLAUDE, "core_memory": Format.LETTA, "agents": Format.LETTA,
    "threads": Format.ZEP, "sessions": Format.ZEP, "episodes": Format.GRAPHITI, "edges": Format.GRAPHITI,
    "results": Format.MEM0, "memory": Format.MEM0,
}  # fmt: skip


def check_order(wanted: FileImport) -> FormatReader:
    """Refuse to find users by a field that the entries of a file do not have."""
    reader = READERS[wanted.format]
    if wanted.user_by is not None and wanted.user_by not in reader.named_by:
        named = ", ".join(reader.named_by) or "nothing"
        raise InvalidInputError(f"--user-by: entries of {wanted.format} say whose they are by {named}; give --user")
    return reader


def refuse(wanted: FileImport, value: JSON) -> InvalidInputError:
    """Say what was expected, and which system's export it looks like."""
    other = guess(value)
    hint = f" It looks like one of {other}: `recollect import {other}`." if other not in {None, wanted.format} else ""
    return InvalidInputError(READERS[wanted.format].expected + hint)


def guess(value: JSON) -> Format | None:
    """Tell which system's export a document looks like."""
    first = next(iter(to_list(value)), value)
    return next((found for sign, found in SIGNS.items() if sign in to_fields(first)), None)
