"""Import and export memories as JSON Lines: one memory a line, evidence kept by id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from recollect.doors.http.bodies.fields import build
from recollect.doors.http.bodies.memories import MemoryBody
from recollect.errors import InvalidInputError
from recollect.mind.mind import Mind
from recollect.misspelt import UNKNOWN, explain_name, known_fields
from recollect.models.filters import NO_FILTER, Filter
from recollect.models.memories import Memory, NewMemory, Triple

CHUNK = 20_000
LEFT_OUT = {
    "entities": ("entity of facts", "entities of facts"),
    "topic_links": ("topic link", "topic links"),
    "conversations": ("conversation", "conversations"),
    "items": ("item", "items"),
    "past_versions": ("past version", "past versions"),
}
"""Data that no line can hold, in the singular and the plural."""


class ExportLine(MemoryBody):
    """One line of a file."""

    id: UUID | None = Field(default=None, description="The id it had where it came from; evidence may name it.")

    @field_validator("evidence")
    @classmethod
    def check_evidence(cls, evidence: list[UUID | int]) -> list[UUID | int]:
        """Accept ids only: a position would change with every edit of the file."""
        if not all(isinstance(source, UUID) for source in evidence):
            raise ValueError("must name memories by their ids")
        return evidence


async def import_lines(mind: Mind, path: Path, report: Callable[[int], None]) -> int:
    """Load a file chunk by chunk; every chunk is one transaction, and evidence follows the new ids."""
    renamed: dict[UUID, UUID] = {}
    waiting: list[ExportLine] = []
    total = 0

    async def flush() -> None:
        nonlocal total
        if waiting:
            ids = await mind.load([to_value(line, renamed) for line in waiting])
            renamed.update({line.id: new for line, new in zip(waiting, ids, strict=True) if line.id})
            total += len(waiting)
            waiting.clear()

    for line, size in read_lines(path):
        if len(waiting) == CHUNK or any(source not in renamed for source in line.evidence):
            await flush()
        waiting.append(line)
        report(size)
    await flush()
    return total


def read_lines(path: Path) -> Iterator[tuple[ExportLine, int]]:
    """Read and check the lines of a file, each with its size in bytes."""
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                yield ExportLine.model_validate_json(text), len(text)
            except ValidationError as problem:
                # A misspelt field is also a missing one: it is reported first.
                first = min(problem.errors(include_input=False), key=lambda error: error["type"] != UNKNOWN)
                raise InvalidInputError(f"{path.name}, line {number}: {explain_invalid_line(first)}") from None


def explain_invalid_line(error: ErrorDetails) -> str:
    """Describe the fault of a line."""
    place = error["loc"]
    if error["type"] == UNKNOWN:
        return explain_name(str(place[-1]), known_fields(ExportLine, place))
    return f"{'.'.join(map(str, place))} {error['msg']}"


def to_value(line: ExportLine, renamed: dict[UUID, UUID]) -> NewMemory:
    """Turn a line into a value whose evidence has the ids of this scope."""
    sources = [renamed.get(source, source) for source in line.evidence if isinstance(source, UUID)]
    return build(NewMemory, line.model_copy(update={"evidence": sources}))


async def export_lines(mind: Mind, path: Path, report: Callable[[int], None], only: Filter = NO_FILTER) -> int:
    """Write the memories of a scope that a filter admits to a file that `import_lines` reads."""
    written: set[UUID] = set()
    cursor = None
    with path.open("w", encoding="utf-8") as file:
        while True:
            page = await mind.list(cursor=cursor, limit=200, filter=only)
            for memory in page.memories:
                file.write(to_line(memory, written) + "\n")
                written.add(memory.id)
            report(len(page.memories))
            cursor = page.next_cursor
            if cursor is None:
                return len(written)


def explain_omitted(counted: Mapping[str, int]) -> str:
    """Describe the data of a scope that no line can hold; empty if there is none."""
    found = [f"{count} {LEFT_OUT[name][count != 1]}" for name, count in counted.items() if count]
    return f"Left out: {', '.join(found)}." if found else ""


def to_line(memory: Memory, written: Collection[UUID]) -> str:
    """Write one memory as a line that names as evidence only what the lines before it hold.

    Past versions stay out of the file, and no import could find them.
    """
    values: dict[str, Any] = {
        **{field.name: getattr(memory, field.name) for field in fields(memory)},
        **asdict(memory.triple),
        "idle": memory.idle if memory.triple != Triple() else memory.idle or None,
        "evidence": [source for source in memory.evidence if source in written],
    }
    line = ExportLine(**{name: value for name, value in values.items() if name in ExportLine.model_fields})
    return line.model_dump_json(exclude_defaults=True)
