"""The supported export formats: how each is parsed, and how to recognize the file of another system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recollect.core.imports import chatgpt, claude, graphiti, letta, mem0, zep
from recollect.core.imports.parsed import ImportedData
from recollect.core.imports.text import to_fields, to_list
from recollect.errors import InvalidInputError
from recollect.models.imports import FileImport, Format, UserField
from recollect.models.memories import JSON


@dataclass(frozen=True, slots=True)
class FormatReader:
    """How to parse one system's export."""

    read: Callable[[JSON], ImportedData]
    expected: str
    """The expected file, and how to get it."""
    named_by: tuple[UserField, ...] = ()
    """The fields of its entries that can name the user."""


READERS = {
    Format.MEM0: FormatReader(
        mem0.parse_mem0, mem0.EXPECTED, (UserField.USER_ID, UserField.AGENT_ID, UserField.RUN_ID)
    ),
    Format.LETTA: FormatReader(letta.parse_letta, letta.EXPECTED),
    Format.ZEP: FormatReader(zep.parse_zep, zep.EXPECTED, (UserField.USER_ID,)),
    Format.GRAPHITI: FormatReader(graphiti.parse_graphiti, graphiti.EXPECTED, (UserField.GROUP_ID,)),
    Format.CHATGPT: FormatReader(chatgpt.parse_chatgpt, chatgpt.EXPECTED),
    Format.CLAUDE: FormatReader(claude.parse_claude, claude.EXPECTED, (UserField.ACCOUNT,)),
}
SIGNS = {
    "mapping": Format.CHATGPT, "chat_messages": Format.CLAUDE, "core_memory": Format.LETTA, "agents": Format.LETTA,
    "threads": Format.ZEP, "sessions": Format.ZEP, "episodes": Format.GRAPHITI, "edges": Format.GRAPHITI,
    "results": Format.MEM0, "memory": Format.MEM0,
}  # fmt: skip


def check_order(wanted: FileImport) -> FormatReader:
    """Refuse to find users by a field that the entries of a format do not have."""
    reader = READERS[wanted.format]
    if wanted.user_by is not None and wanted.user_by not in reader.named_by:
        named = ", ".join(reader.named_by) or "nothing"
        raise InvalidInputError(
            f"--user-by: {wanted.format} entries have no such field (available: {named}). Use --user."
        )
    return reader


def refuse(wanted: FileImport, value: JSON) -> InvalidInputError:
    """Return an error that names the expected file, and the format that the file seems to have."""
    other = guess(value)
    hint = (
        f" It looks like one of {other}: `recollect mind import {other}`." if other not in {None, wanted.format} else ""
    )
    return InvalidInputError(READERS[wanted.format].expected + hint)


def guess(value: JSON) -> Format | None:
    """Return the format that a document seems to have, or None."""
    first = next(iter(to_list(value)), value)
    return next((found for sign, found in SIGNS.items() if sign in to_fields(first)), None)
