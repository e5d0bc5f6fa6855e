"""Import a saved persona into an agent's mind and export it again, and compare the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.doors.imports.generative_agents.folder import Folder, SavedNode, read_folder, write_folder
from recollect.doors.imports.generative_agents.nodes import (
    KINDS,
    OURS,
    count_strengths,
    kept_of,
    to_memories,
    to_nodes,
    to_profile,
    to_scratch,
)
from recollect.errors import EmbedderError, InvalidInputError
from recollect.mind.mind import Mind
from recollect.mind.service import Operator, Recollect
from recollect.models.agents import KeywordCount, MindSnapshot
from recollect.models.memories import JSON, Kind, Memory, NewMemory

MODEL = "text-embedding-ada-002"
PAGE = 200
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a step, how far it is, and how far it goes."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of a report: how many of a thing the folder has, were stored, and would read back different."""

    thing: str
    in_folder: int
    stored: int
    differ: int


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What an import did: the report, and why there are no vectors of the configured model, if so."""

    lines: list[ReportLine]
    unembedded: str


@dataclass(frozen=True, slots=True)
class FolderExport:
    """A mind as it reads back: its memories of the three kinds, the folder they make, the strengths on record."""

    memories: list[Memory]
    folder: Folder
    strengths: tuple[KeywordCount, ...]
    left_out: int
    """How many memories are of kinds that the original does not know."""

    @property
    def unembedded(self) -> int:
        """Count the texts without a vector of the original's model."""
        return len({node.embedding_key for node in self.folder.nodes} - self.folder.vectors.keys())


async def import_folder(recollect: Recollect, mind: Mind, path: Path, progress: Progress) -> FolderReport:
    """Read a folder into an empty scope, all of it or nothing, then embed it and check what arrived."""
    folder = read_folder(path)
    saved = await pack(recollect.operator, folder)
    progress("loading", 0, len(folder.nodes))
    await recollect.operator.restore(mind, saved)
    progress("loading", len(folder.nodes), len(folder.nodes))
    unembedded = await embed(recollect, mind, len(folder.nodes), progress)
    arrived = await gather(recollect.operator, mind, len(folder.nodes), progress)
    return FolderReport(compare(folder, arrived), unembedded)


async def pack(operator: Operator, folder: Folder) -> MindSnapshot:
    """Translate a folder, with a separate space for vectors that only their own model can query."""
    dimensions = next((len(row) for row in folder.vectors.values()), 0)
    scratch = folder.scratch
    kept: dict[str, JSON] = {"scratch": scratch.model_dump()}
    if folder.spatial is not None:
        kept["spatial_memory"] = folder.spatial
    return MindSnapshot(
        memories=translate(folder),
        space=await operator.spaces.ensure(MODEL, dimensions) if dimensions else None,
        profile=replace(to_profile(scratch), metadata={OURS: kept}),
        unreflected_importance=scratch.importance_trigger_max - scratch.importance_trigger_curr,
        unreflected_memories=scratch.importance_ele_n,
    )


def translate(folder: Folder) -> list[NewMemory]:
    """Turn nodes into memories, or say that one of them exceeds the limits."""
    try:
        return to_memories(folder.nodes, folder.vectors)
    except OverflowError as problem:
        raise InvalidInputError(f"nodes.json holds a number or a time that is too large: {problem}") from None


async def embed(recollect: Recollect, mind: Mind, total: int, progress: Progress) -> str:
    """Embed with the configured model; if that is not possible now, return the reason."""
    try:
        await recollect.operator.embed_waiting(mind, lambda count: progress("embedding", count, total))
    except EmbedderError as problem:
        return str(problem)
    # A worker may have done some of it.
    progress("embedding", total, total)
    return ""


async def export_folder(operator: Operator, mind: Mind, path: Path, progress: Progress) -> FolderExport:
    """Write a mind to a folder that `import_folder` and the original read."""
    total = (await mind.overview()).memories
    gathered = await gather(operator, mind, total, progress)
    write_folder(path, gathered.folder)
    return gathered


async def gather(operator: Operator, mind: Mind, total: int, progress: Progress) -> FolderExport:
    """Read a whole mind back as a folder."""
    spaces = [space for space, _ in await operator.spaces.list() if space.model == MODEL]
    memories: list[Memory] = []
    rows: dict[UUID, NDArray[np.float32]] = {}
    cursor: UUID | None = None
    while True:
        page = await mind.list(cursor=cursor, limit=PAGE)
        for space in spaces:
            rows |= await operator.read_vectors(mind, space, [memory.id for memory in page.memories])
        memories += page.memories
        progress("reading back", len(memories), total)
        cursor = page.next_cursor
        if cursor is None:
            break
    (overview, _), kept = await operator.read_inventory(mind), kept_of((await mind.profile()).metadata)
    known = [memory for memory in memories if memory.kind in KINDS]
    nodes = to_nodes(known)
    vectors = {
        node.embedding_key: rows[memory.id] for memory, node in zip(known, nodes, strict=True) if memory.id in rows
    }
    scratch = to_scratch(kept.get("scratch"), overview)
    folder = Folder(nodes, count_strengths(nodes), scratch, vectors, kept.get("spatial_memory"))
    return FolderExport(known, folder, overview.strengths, len(memories) - len(known))


def compare(sent: Folder, arrived: FolderExport) -> list[ReportLine]:
    """Count the sent and the stored records, and those that would be written differently."""
    back = arrived.folder
    pairs = list(zip(sent.nodes, back.nodes, strict=False))
    lines = [compare_kind(kind, sent.nodes, pairs) for kind in KINDS]
    links = sum(len(memory.evidence) for memory in arrived.memories)
    expected = sum(len(memory.evidence) for memory in to_memories(sent.nodes, {}))
    lines.append(ReportLine("evidence links", expected, links, abs(expected - links)))
    same = [key for key, row in sent.vectors.items() if np.array_equal(row, back.vectors.get(key, row[:0]))]
    lines.append(ReportLine("vectors", len(sent.vectors), len(back.vectors), len(sent.vectors) - len(same)))
    lines.append(compare_strengths(sent, arrived))
    old, new = sent.scratch.model_dump(), back.scratch.model_dump()
    lines.append(
        ReportLine("scratch values", len(old), len(new), sum(new.get(key) != value for key, value in old.items()))
    )
    return lines


def compare_kind(kind: Kind, sent: list[SavedNode], pairs: list[tuple[SavedNode, SavedNode]]) -> ReportLine:
    """Compare the nodes of one kind."""
    total = sum(node.type == kind for node in sent)
    arrived = [(before, after) for before, after in pairs if before.type == kind]
    return ReportLine(f"{kind}s", total, len(arrived), total - sum(before == after for before, after in arrived))


def compare_strengths(sent: Folder, arrived: FolderExport) -> ReportLine:
    """Compare the strengths on record with those of the folder, with keywords normalised as here.

    The original counts the empty word, too; here nothing is filed under it.
    """
    forms = find_forms(sent.nodes, arrived.memories)
    expected = Counter[tuple[str, str]]()
    counted = {"event": sent.strengths.kw_strength_event, "thought": sent.strengths.kw_strength_thought}
    for kind, strengths in counted.items():
        for keyword, strength in strengths.items():
            if form := forms.get(keyword, keyword.strip()):
                expected[kind, form] += strength
    found = {(line.kind.value, line.keyword): line.strength for line in arrived.strengths}
    differ = sum(expected.get(key) != found.get(key) for key in expected.keys() | found.keys())
    return ReportLine("keyword strengths", len(expected), len(found), differ)


def find_forms(nodes: list[SavedNode], memories: list[Memory]) -> Mapping[str, str]:
    """Learn from memories how their keywords were normalised."""
    forms: dict[str, str] = {}
    for node, memory in zip(nodes, memories, strict=False):
        written = [keyword.lower() for keyword in node.keywords if keyword.strip()]
        if len(written) == len(memory.keywords):
            forms |= zip(written, memory.keywords, strict=True)
    return forms
