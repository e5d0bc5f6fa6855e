"""Judge: ask the chat model about each hit, in parallel, whether it is useful; hits without an answer stay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from recollect.channels.channel import SKIPPED
from recollect.core.text.answers import AnswerSchema
from recollect.core.text.similarity import SourceText, excerpt
from recollect.errors import RecollectError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.memories import Kind, Memory
from recollect.models.recall import Cue, Hit
from recollect.store.memories.evidence import fetch_source_texts
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.service.costs import metered

STEP = PROMPT = "judge"
MAX_CONCURRENT = 32
"""Maximum number of concurrent questions; others wait for their turn, within the time limit."""
DEADLINE_SHARE = 0.8
"""Maximum share of a request's time for judging."""
LAST_WORDS_SECONDS = 0.5
"""How long cancelled questions may take to record their cost; later ones record it after the answer."""
MAX_CUE_LENGTH, MAX_NOTE_LENGTH, MAX_SOURCE_LENGTH = 2_000, 4_000, 600
NO_CHAT_MODEL = f"{SKIPPED}no chat model is configured"


class JudgeAnswer(AnswerSchema):
    """Whether a note is useful."""

    useful: bool


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The remaining hits, in their order, and a note on the judgment."""

    hits: tuple[Hit, ...]
    method: str


async def judge(parts: Dependencies, scope_id: int, cue: Cue, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Drop the hits that the chat model finds useless; all others stay, in their order."""
    return (await judge_hits(parts, scope_id, cue, hits)).hits


async def judge_hits(parts: Dependencies, scope_id: int, cue: Cue, hits: Sequence[Hit]) -> JudgeResult:
    """Judge hits, and note how many were judged and dropped; a failed or late model drops nothing."""
    if parts.chat is None:
        return JudgeResult(tuple(hits), NO_CHAT_MODEL)
    if not hits or not cue.text.strip():
        return JudgeResult(tuple(hits), f"{SKIPPED}there is nothing to judge")
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    # If the model parsed the query before, half of the time is used.
    share = DEADLINE_SHARE / 2 if cue.consult else DEADLINE_SHARE
    seconds = min(parts.options.judge_seconds, share * parts.database.deadline_seconds)
    verdicts = await ask_all(parts, scope_id, cue, hits, chat, seconds)
    kept = tuple(hit for hit in hits if verdicts.get(hit.memory.id, True))
    unjudged = len(hits) - len(verdicts)
    late = f", {unjudged} not judged" if unjudged else ""
    return JudgeResult(kept, f"judged {len(verdicts)}, dropped {len(hits) - len(kept)}{late}")


async def ask_all(
    parts: Dependencies, scope_id: int, cue: Cue, hits: Sequence[Hit], chat: ChatModel, seconds: float
) -> dict[UUID, bool]:
    """Ask about all hits in parallel; return the verdicts that came in time."""
    verdicts: dict[UUID, bool] = {}
    turns = asyncio.Semaphore(MAX_CONCURRENT)

    async def judge_hit(hit: Hit, source_texts: Mapping[UUID, SourceText]) -> None:
        with suppress(RecollectError):
            async with turns:
                verdicts[hit.memory.id] = (
                    await chat.ask(write_question(cue, hit.memory, source_texts), JudgeAnswer)
                ).useful

    tasks: list[asyncio.Task[None]] = []
    with suppress(RecollectError, TimeoutError):
        try:
            async with asyncio.timeout(seconds):
                source_texts = await read_source_texts(parts, scope_id, [hit.memory for hit in hits])
                tasks = [asyncio.create_task(judge_hit(hit, source_texts)) for hit in hits]
                await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
    in_time = dict(verdicts)
    if late := [task for task in tasks if not task.done()]:
        await asyncio.wait(late, timeout=LAST_WORDS_SECONDS)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()
    return in_time


async def read_source_texts(parts: Dependencies, scope_id: int, memories: Sequence[Memory]) -> dict[UUID, SourceText]:
    """Read some of the sources of summaries among memories; without summaries, send no query."""
    return await fetch_source_texts(parts.database, scope_id, choose_sources(memories))


def choose_sources(memories: Sequence[Memory]) -> list[UUID]:
    """List the sources to show with summaries: not all of a long one, and none of other kinds."""
    return [
        source
        for memory in memories
        if memory.kind is Kind.SUMMARY
        for source in excerpt(memory.evidence)
        if isinstance(source, UUID)
    ]


def write_question(cue: Cue, memory: Memory, source_texts: Mapping[UUID, SourceText]) -> str:
    """Write the question about one memory; as JSON, no text in it can be mistaken for the question."""
    note: dict[str, object] = {
        "kind": memory.kind.value,
        "date": memory.occurred_at.date().isoformat(),
        "speaker": memory.speaker,
        "content": memory.content[:MAX_NOTE_LENGTH],
    }
    if memory.kind is Kind.SUMMARY and memory.evidence:
        note["sources"] = [write_source(each, source_texts) for each in excerpt(memory.evidence)]
    material = json.dumps({"cue": cue.text.strip()[-MAX_CUE_LENGTH:], "memory": note}, ensure_ascii=False, indent=1)
    return fill_prompt(PROMPT, material=material)


def write_source(source: UUID | int, source_texts: Mapping[UUID, SourceText]) -> str:
    """Write the text of a source, or the number of omitted ones."""
    if isinstance(source, int):
        return f"({source} left out)"
    text = source_texts.get(source)
    return f"{text.speaker}: {text.content[:MAX_SOURCE_LENGTH]}" if text else "(out of sight)"
