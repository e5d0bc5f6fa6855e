"""What tools answer with: values for programs, and the same in a few plain words for models."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from recollect.mind.conversations import show_history, show_memories
from recollect.models.agents import Association
from recollect.models.blocks import Block
from recollect.models.conversations import Context, History
from recollect.models.memories import Memory, Receipt, Revised
from recollect.models.recall import Hit, Recollection

NOTHING = "Nothing comes to mind."
OTHERS = "; users with memories"


class StoredMemory(BaseModel):
    """What was stored."""

    id: UUID = Field(description="By which it can be forgotten or read.")
    progress: str = Field(description="stored: found by words; embedded: found by meaning, too.")
    known: bool = Field(default=False, description="Whether it was known already: nothing was stored.")


class Recalled(BaseModel):
    """One memory that came to mind."""

    id: UUID
    content: str
    kind: str
    speaker: str
    importance: float
    trust: int = Field(description="0 to 100: how far it is believed.")
    occurred_at: datetime
    score: float = Field(description="Higher is better; comparable within one answer only.")
    relevance: float | None = Field(None, description="0 to 1: how likely it helps; comparable over all answers.")


class Recollected(BaseModel):
    """What came to mind, best first."""

    hits: list[Recalled]
    status: str
    message: str = Field(description="Why nothing was found, if nothing was.")


class Associated(BaseModel):
    """Which events and thoughts something perceived reminds of."""

    events: list[Recalled]
    thoughts: list[Recalled]


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
    complete: bool = Field(description="Whether it reaches back to the first message.")


class Prompted(BaseModel):
    """What to know before answering, as one text."""

    text: str
    tokens: int
    memory_ids: list[UUID] = Field(description="The memories that it shows.")


class ForgottenMemories(BaseModel):
    """What was deleted, or would be: the memories and all that was derived from them."""

    forgotten: list[UUID]


class PinnedMemories(BaseModel):
    """Which of the memories there are, as they are now."""

    pinned: list[UUID]


class RevisedMemory(BaseModel):
    """The version that was written, or the current one if nothing changed."""

    id: UUID
    version: int
    changed: bool
    contested: bool = Field(description="Kept beside the current version, because its writer is trusted less.")
    outdated: list[UUID] = Field(description="Derived memories that wait to be derived again.")


def tell_revised(revised: Revised) -> tuple[RevisedMemory, str]:
    """Say what a revision did."""
    if not revised.changed:
        said = f"Nothing changed: it is {revised.id} still."
    elif revised.contested:
        said = f"Kept as contested, {revised.id}: the memory is trusted more than you, and stays as it is."
    else:
        said = f"Revised: from now on it is {revised.id}."
    shown = RevisedMemory(
        id=revised.id,
        version=revised.version,
        changed=revised.changed,
        contested=revised.contested,
        outdated=list(revised.outdated),
    )
    return shown, said


def tell_receipt(receipt: Receipt) -> tuple[StoredMemory, str]:
    """Say what was stored."""
    said = f"Known already as {receipt.id}." if receipt.known else f"Remembered as {receipt.id}."
    return StoredMemory(id=receipt.id, progress=receipt.progress, known=receipt.known), said


def tell_memory(memory: Memory, score: float = 0.0, relevance: float | None = None) -> Recalled:
    """Say what a memory is."""
    return Recalled(
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


def tell_recollection(found: Recollection) -> tuple[Recollected, str]:
    """Say what came to mind."""
    hits = [tell_hit(hit) for hit in found.hits]
    # A model may be kept to one user by the command that started the server: it is told of no others.
    why = found.message.partition(OTHERS)[0]
    answer = Recollected(hits=hits, status=found.status, message=why)
    nothing = f"{NOTHING.rstrip('.')}: {why}." if why else NOTHING
    return answer, show_memories(map(tell_line, hits)) or nothing


def tell_hit(hit: Hit) -> Recalled:
    """Say what a hit is."""
    return tell_memory(hit.memory, round(hit.score, 6), None if hit.relevance is None else round(hit.relevance, 6))


def tell_line(memory: Recalled) -> str:
    """Say what a memory is in a line, with the id that it can be forgotten by."""
    said = f"{memory.speaker}: " if memory.speaker else ""
    return f"{said}{memory.content} ({memory.kind}, {memory.occurred_at:%F}, id {memory.id})"


def tell_association(found: Association) -> tuple[Associated, str]:
    """Say what something perceived reminds of."""
    events = [tell_memory(memory) for memory in found.events]
    thoughts = [tell_memory(memory) for memory in found.thoughts]
    lines = show_memories(map(tell_line, [*events, *thoughts]))
    return Associated(events=events, thoughts=thoughts), lines or NOTHING


def tell_history(found: History) -> tuple[HistoryAnswer, str]:
    """Say what was said."""
    said = [
        MessageAnswer(id=each.id, role=each.role, content=each.content, occurred_at=each.occurred_at)
        for each in found.messages
    ]
    conversation = HistoryAnswer(messages=said, text=found.text, tokens=found.tokens, complete=found.complete)
    return conversation, show_history(found) or "Nothing has been said in this conversation."


def tell_block(found: Block) -> tuple[Prompted, str]:
    """Say what is remembered, as one text."""
    ids = [line.memory_id for line in found.lines]
    return Prompted(text=found.text, tokens=found.tokens, memory_ids=ids), found.text or NOTHING


def tell_context(found: Context) -> tuple[Prompted, str]:
    """Say what to know before answering in a conversation: memories with the summary, and what was said last."""
    text = "\n\n".join(filter(None, [found.block, show_history(found.history)]))
    shown = [line.memory_id for line in found.lines] or [hit.memory.id for hit in found.hits]
    spent = found.spending.summary + found.spending.memories + found.spending.history
    return Prompted(text=text, tokens=spent, memory_ids=shown), text or NOTHING


def tell_forgotten(ids: list[UUID], *, dry_run: bool) -> tuple[ForgottenMemories, str]:
    """Say what was deleted, or would be."""
    said = "Would be forgotten" if dry_run else "Forgotten"
    return ForgottenMemories(forgotten=ids), f"{said}: {len(ids)}, with all that was derived from them."


def tell_pinned(ids: list[UUID], *, pinned: bool) -> tuple[PinnedMemories, str]:
    """Say what every context shows from now on, or no longer."""
    return PinnedMemories(pinned=ids), f"{'Pinned' if pinned else 'No longer pinned'}: {len(ids)}."
