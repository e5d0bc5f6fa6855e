"""What tools answer with: values for programs, and the same in a few plain words for models."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from recollect.mind.conversations import show_history, show_memories
from recollect.models.agents import Association
from recollect.models.blocks import MemoryBlock
from recollect.models.conversations import Context, History
from recollect.models.memories import Memory, Receipt, UpdateResult
from recollect.models.recall import Hit, RecallResult

NO_MEMORIES = "No memories found."
OTHERS = "; users with memories"


class StoredMemory(BaseModel):
    """The stored memory."""

    id: UUID = Field(description="ID of the memory.")
    progress: str = Field(description="stored: found by words; embedded: also found by meaning.")
    known: bool = Field(default=False, description="true if it was already known and nothing was stored.")


class RecalledMemory(BaseModel):
    """One recalled memory."""

    id: UUID
    content: str
    kind: str
    speaker: str
    importance: float
    trust: int = Field(description="Trust, 0 to 100.")
    occurred_at: datetime
    score: float = Field(description="Ranking score; only comparable within this result.")
    relevance: float | None = Field(None, description="Relevance, 0 to 1; comparable across results.")


class RecallToolResult(BaseModel):
    """The recalled memories, best first."""

    hits: list[RecalledMemory]
    status: str
    message: str = Field(description="Why nothing was found.")


class AssociateResult(BaseModel):
    """Events and thoughts that match an observation."""

    events: list[RecalledMemory]
    thoughts: list[RecalledMemory]


class MessageAnswer(BaseModel):
    """One message of a conversation."""

    id: UUID
    role: str
    content: str
    occurred_at: datetime


class HistoryAnswer(BaseModel):
    """The newest whole turns of a conversation, oldest first."""

    messages: list[MessageAnswer]
    text: str
    tokens: int
    complete: bool = Field(description="true if it includes the first message.")


class ContextResult(BaseModel):
    """The context of an answer, as one text."""

    text: str
    tokens: int
    memory_ids: list[UUID] = Field(description="IDs of the memories in the text.")


class ForgetToolResult(BaseModel):
    """The memories that were or would be deleted, with all that was derived from them."""

    forgotten: list[UUID]


class UpdatedMemory(BaseModel):
    """The version that was written, or the current one if nothing changed."""

    id: UUID
    version: int
    changed: bool
    contested: bool = Field(description="true if stored without taking effect because the writer is less trusted.")
    outdated: list[UUID] = Field(description="Derived memories waiting to be derived again.")


def format_update(updated: UpdateResult) -> tuple[UpdatedMemory, str]:
    """Return the result of an update, and its text."""
    if not updated.changed:
        said = f"Nothing changed: it is {updated.id} still."
    elif updated.contested:
        said = f"Kept as contested, {updated.id}: the memory is trusted more than you, and stays as it is."
    else:
        said = f"Updated: it is {updated.id} now."
    shown = UpdatedMemory(
        id=updated.id,
        version=updated.version,
        changed=updated.changed,
        contested=updated.contested,
        outdated=list(updated.outdated),
    )
    return shown, said


def format_receipt(receipt: Receipt) -> tuple[StoredMemory, str]:
    """Return the stored memory, and its text."""
    said = f"Known already as {receipt.id}." if receipt.known else f"Remembered as {receipt.id}."
    return StoredMemory(id=receipt.id, progress=receipt.progress, known=receipt.known), said


def format_memory(memory: Memory, score: float = 0.0, relevance: float | None = None) -> RecalledMemory:
    """Return a memory as a tool shows it."""
    return RecalledMemory(
        id=memory.id,
        content=memory.content,
        kind=memory.kind,
        speaker=memory.speaker,
        importance=memory.importance,
        trust=memory.trust,
        occurred_at=memory.occurred_at,
        score=score,
        relevance=relevance,
    )


def format_recall_result(found: RecallResult) -> tuple[RecallToolResult, str]:
    """Return the recalled memories, and their text."""
    hits = [format_hit(hit) for hit in found.hits]
    # The command that started the server may bind the model to one user: do not name the others.
    why = found.message.partition(OTHERS)[0]
    answer = RecallToolResult(hits=hits, status=found.status, message=why)
    nothing = f"{NO_MEMORIES.rstrip('.')}: {why}." if why else NO_MEMORIES
    return answer, show_memories(map(format_memory_line, hits)) or nothing


def format_hit(hit: Hit) -> RecalledMemory:
    """Return a hit as a tool shows it."""
    return format_memory(hit.memory, round(hit.score, 6), None if hit.relevance is None else round(hit.relevance, 6))


def format_memory_line(memory: RecalledMemory) -> str:
    """Return a memory in one line, with its ID."""
    said = f"{memory.speaker}: " if memory.speaker else ""
    return f"{said}{memory.content} ({memory.kind}, {memory.occurred_at:%F}, id {memory.id})"


def format_association(found: Association) -> tuple[AssociateResult, str]:
    """Return the events and thoughts that match an observation, and their text."""
    events = [format_memory(memory) for memory in found.events]
    thoughts = [format_memory(memory) for memory in found.thoughts]
    lines = show_memories(map(format_memory_line, [*events, *thoughts]))
    return AssociateResult(events=events, thoughts=thoughts), lines or NO_MEMORIES


def format_history(found: History) -> tuple[HistoryAnswer, str]:
    """Return the messages of a conversation, and their text."""
    said = [
        MessageAnswer(id=each.id, role=each.role, content=each.content, occurred_at=each.occurred_at)
        for each in found.messages
    ]
    conversation = HistoryAnswer(messages=said, text=found.text, tokens=found.tokens, complete=found.complete)
    return conversation, show_history(found) or "Nothing has been said in this conversation."


def format_block(found: MemoryBlock) -> tuple[ContextResult, str]:
    """Return the text of a block with the IDs of its memories, and the text for the model."""
    ids = [line.memory_id for line in found.lines]
    return ContextResult(text=found.text, tokens=found.tokens, memory_ids=ids), found.text or NO_MEMORIES


def format_context(found: Context) -> tuple[ContextResult, str]:
    """Return the context of an answer: memories with the summary, and the latest messages."""
    text = "\n\n".join(filter(None, [found.block, show_history(found.history)]))
    shown = [line.memory_id for line in found.lines] or [hit.memory.id for hit in found.hits]
    spent = found.spending.summary + found.spending.memories + found.spending.history
    return ContextResult(text=text, tokens=spent, memory_ids=shown), text or NO_MEMORIES


def format_forgotten(ids: list[UUID], *, dry_run: bool) -> tuple[ForgetToolResult, str]:
    """Return the IDs that were or would be deleted, and their text."""
    said = "Would be forgotten" if dry_run else "Forgotten"
    return ForgetToolResult(forgotten=ids), f"{said}: {len(ids)}, with all that was derived from them."
