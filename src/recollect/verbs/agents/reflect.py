"""Reflect: ask which questions the newest memories raise, recall for each, and remember what follows as thoughts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.core.agents.reflection import (
    MOST_INSIGHTS,
    MOST_QUESTIONS,
    Insights,
    Questions,
    bound_count,
    choose_questions,
    fit_notes,
    leave_repeated,
    number_notes,
    to_thoughts,
)
from recollect.core.agents.scoring import STREAM_KINDS
from recollect.core.text.checks import check_moment
from recollect.core.text.tags import defuse_signs
from recollect.errors import ChatModelError, ConflictError, NotFoundError, UnavailableError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.agents import NOTHING_NEW, NOTHING_THERE, Reflection, ReflectionProgress
from recollect.models.memories import Kind, Memory, NewMemory, Receipt
from recollect.models.recall import Cue
from recollect.models.service import Caller, JobState, Scope
from recollect.store.agents import reflections
from recollect.store.service.jobs import JobQuery, find_jobs
from recollect.store.service.scopes import Place, locate
from recollect.verbs.memories.remember import remember
from recollect.verbs.parts import Parts, require_chat_model
from recollect.verbs.recall.recall import explain_absence, recall_each
from recollect.verbs.service.costs import metered

STREAM = "stream"
STEP = "reflect"
"""The name of the step in the ledger, and of the job."""
MOST_HITS = 30
PLAIN_WORD = "memory"
EVIDENCE = (*STREAM_KINDS, Kind.CHAT)
"""What a thought may rest on."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """Options of a reflection; by default it takes what has gathered, and the present moment."""

    count: int | None = None
    """How many of the newest memories to begin with; as many as have gathered if None."""
    now: datetime | None = None
    key: str = ""
    """What is reflected under the same key is written once."""
    report: Callable[[str], None] | None = None

    def tell(self, step: str) -> None:
        """Report the present step."""
        if self.report is not None:
            self.report(step)


async def reflect(parts: Parts, caller: Caller, scope: Scope, occasion: Occasion) -> Reflection:
    """Reflect on what has gathered; all thoughts are written, with their evidence, or none."""
    require_chat_model(parts)
    if occasion.now is not None:
        check_moment("now", occasion.now)
    if occasion.key and (written := await reflections.find_written(parts.database, scope, occasion.key)) is not None:
        return written
    gathered = await reflections.read_gathered(parts.database, scope)
    count = bound_count(gathered.memories if occasion.count is None else occasion.count)
    newest = await reflections.fetch_newest(parts.database, scope, count)
    if not newest:
        return await conclude_nothing(parts, scope, occasion, (), NOTHING_THERE)
    place = await locate(parts.database, scope)
    await check_embedder(parts, place, newest[0])
    questions, shown, thoughts = await think(parts, scope, place, newest, occasion)
    new = leave_repeated(thoughts, [*await reflections.fetch_thoughts(parts.database, scope), *shown])
    receipts: list[Receipt] = []
    if new:
        occasion.tell("remembering")
        # A note of the prompt can have shaped a thought that does not name it.
        least = min(memory.trust for memory in (*newest, *shown))
        receipts = await write(parts, replace(caller, trust=min(caller.trust, least)), scope, new, occasion.key)
    if occasion.count is None:
        await reflections.mark_reflected(parts.database, scope, gathered)
    if not new:
        return await conclude_nothing(parts, scope, occasion, questions, NOTHING_NEW)
    return Reflection(questions, tuple(receipts))


async def think(
    parts: Parts, scope: Scope, place: Place, newest: Sequence[Memory], occasion: Occasion
) -> tuple[tuple[str, ...], list[Memory], list[NewMemory]]:
    """Ask which questions the newest memories raise, and what follows from what is recalled for each.

    Return the questions, all that was recalled, and what follows.
    """
    occasion.tell("asking what matters")
    questions = await find_questions(ask_for(parts, place, "questions"), scope, newest)
    recalled = await recall_for(parts, scope, place, questions, occasion.now)
    thoughts, chat = [], ask_for(parts, place, "insights")
    for question, memories in zip(questions, recalled, strict=True):
        occasion.tell(question)
        thoughts += await find_insights(chat, scope, question, memories, occasion.now)
    if not thoughts:
        raise ChatModelError("the chat model drew no insight from any memory that it was shown", answered=True)
    return tuple(questions), [memory for each in recalled for memory in each], thoughts


async def conclude_nothing(
    parts: Parts, scope: Scope, occasion: Occasion, questions: tuple[str, ...], reason: str
) -> Reflection:
    """Say why no thought was written; under a key it is kept that there was none."""
    if occasion.key:
        await reflections.note_nothing(parts.database, scope, occasion.key)
    return Reflection(questions, (), reason)


async def defer_reflection(parts: Parts, scope: Scope, now: datetime | None = None) -> str:
    """Queue a reflection, or find the one that waits; return its id."""
    require_chat_model(parts)
    if now is not None:
        check_moment("now", now)
    return await reflections.defer(parts.database, scope, now)


async def follow_reflection(parts: Parts, scope: Scope, job_id: str) -> ReflectionProgress:
    """Say how far a scope's reflection by a job is, and what came of it once it has succeeded."""
    found = await find_jobs(parts.database, scope.tenant_id, JobQuery(job_id, STEP))
    if found and (found[0].agent, found[0].user) == (scope.agent, scope.user):
        return ReflectionProgress(job_id, found[0].state, found[0].attempts, found[0].reason)
    # A job that has succeeded is deleted. What it wrote was written before, under its key.
    written = await reflections.find_written(parts.database, scope, reflections.key_of(job_id))
    if written is None:
        raise NotFoundError("There is no such reflection in this scope; what has succeeded is kept for two days.")
    return ReflectionProgress(job_id, JobState.SUCCEEDED, 0, "", written)


def ask_for(parts: Parts, place: Place, prompt: str) -> ChatModel:
    """Return the metered chat model for a scope; a scope that does not exist has nothing to reflect on."""
    return metered(parts, place.scope_id or 0, STEP, prompt_version=version_of(prompt))


async def find_questions(chat: ChatModel, scope: Scope, newest: Sequence[Memory]) -> list[str]:
    """Ask which questions the newest memories raise."""
    notes = number_notes(fit_notes(newest, chat.characters))
    prompt = fill_prompt("questions", agent=scope.agent, notes=notes, count=MOST_QUESTIONS)
    questions = choose_questions(await chat.ask(prompt, Questions))
    if not questions:
        raise ChatModelError("the chat model asked no question", answered=True)
    return questions


async def check_embedder(parts: Parts, place: Place, newest: Memory) -> None:
    """Raise unless the embedder can answer: to find out later would waste a model's answer."""
    if not explain_absence(parts, Cue(newest.content), place) and await parts.embed_in_time([PLAIN_WORD]) is None:
        raise UnavailableError("The embedder did not answer in time; reflect later.")


async def recall_for(
    parts: Parts, scope: Scope, place: Place, questions: Sequence[str], now: datetime | None
) -> list[list[Memory]]:
    """Recall what is relevant to each question; what one found is fresh for the next."""
    cues = [to_cue(parts, place, question, now) for question in questions]
    recollections = await recall_each(parts, scope, cues, place)
    if not any(recollection.hits for recollection in recollections):
        raise UnavailableError(f"Nothing was recalled. {recollections[0].message}".rstrip())
    return [[hit.memory for hit in recollection.hits] for recollection in recollections]


def to_cue(parts: Parts, place: Place, question: str, now: datetime | None) -> Cue:
    """Ask the stream; without an embedder, by words."""
    # A question is made from memories, and a kept recall would outlive them.
    cue = Cue(question, limit=MOST_HITS, now=now, keep=False, consult=False, judge=False)
    if explain_absence(parts, cue, place):
        return replace(cue, kinds=EVIDENCE)
    return replace(cue, channels=(STREAM,), kinds=() if place.profile.kinds else EVIDENCE)


async def find_insights(
    chat: ChatModel, scope: Scope, question: str, memories: Sequence[Memory], now: datetime | None
) -> list[NewMemory]:
    """Ask what follows from the memories that are relevant to a question."""
    shown = fit_notes(memories, chat.characters)
    if not shown:
        return []
    notes = number_notes(shown)
    asked = defuse_signs(question)
    prompt = fill_prompt("insights", agent=scope.agent, notes=notes, question=asked, count=MOST_INSIGHTS)
    return to_thoughts(question, await chat.ask(prompt, Insights), shown, now)


async def write(parts: Parts, caller: Caller, scope: Scope, thoughts: Sequence[NewMemory], key: str) -> list[Receipt]:
    """Remember all thoughts in one transaction; another run under the same key may have come first."""
    try:
        return await remember(parts, caller, scope, thoughts, key)
    except ConflictError:
        written = await reflections.find_written(parts.database, scope, key)
        return list(written.thoughts) if written else []
