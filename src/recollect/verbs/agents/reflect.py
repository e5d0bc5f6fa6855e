"""Reflect: ask which questions the newest memories raise, recall for each, and store the answers as thoughts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.core.agents.reflection import (
    MAX_INSIGHTS,
    MAX_QUESTIONS,
    Insights,
    Questions,
    bound_count,
    choose_questions,
    drop_repeated,
    fit_notes,
    number_notes,
    to_thoughts,
)
from recollect.core.agents.scoring import STREAM_KINDS
from recollect.core.text.checks import check_moment
from recollect.core.text.tags import escape_angle_brackets
from recollect.errors import ChatModelError, ConflictError, NotFoundError, UnavailableError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.agents import NOTHING_NEW, NOTHING_THERE, Reflection, ReflectionProgress
from recollect.models.memories import Kind, Memory, NewMemory, Receipt
from recollect.models.recall import Cue
from recollect.models.service import Caller, JobState, Scope
from recollect.store.agents import reflections
from recollect.store.service.jobs import JobQuery, find_jobs
from recollect.store.service.scopes import ScopeHandle, locate
from recollect.verbs.dependencies import Dependencies, require_chat_model
from recollect.verbs.memories.remember import remember
from recollect.verbs.recall.recall import explain_absence, recall_each
from recollect.verbs.service.costs import metered

STREAM = "stream"
STEP = "reflect"
"""The name of the step in the ledger, and of the job."""
MAX_HITS = 30
PLAIN_WORD = "memory"
EVIDENCE = (*STREAM_KINDS, Kind.CHAT)
"""The kinds of memories that can be evidence of a thought."""


@dataclass(frozen=True, slots=True)
class ReflectOptions:
    """Options of a reflection; by default it covers the backlog, as of now."""

    count: int | None = None
    """Number of newest memories to start with; None means the backlog's."""
    now: datetime | None = None
    key: str = ""
    """A repeated reflection with the same key writes nothing."""
    report: Callable[[str], None] | None = None

    def report_step(self, step: str) -> None:
        """Report the current step."""
        if self.report is not None:
            self.report(step)


async def reflect(parts: Dependencies, caller: Caller, scope: Scope, occasion: ReflectOptions) -> Reflection:
    """Reflect on the newest memories; write all thoughts with their evidence, or none."""
    require_chat_model(parts)
    if occasion.now is not None:
        check_moment("now", occasion.now)
    if occasion.key and (written := await reflections.find_written(parts.database, scope, occasion.key)) is not None:
        return written
    gathered = await reflections.read_gathered(parts.database, scope)
    count = bound_count(gathered.memories if occasion.count is None else occasion.count)
    newest = await reflections.fetch_newest(parts.database, scope, count)
    if not newest:
        return await record_empty_reflection(parts, scope, occasion, (), NOTHING_THERE)
    place = await locate(parts.database, scope)
    await check_embedder(parts, place, newest[0])
    questions, shown, thoughts = await derive_insights(parts, scope, place, newest, occasion)
    new = drop_repeated(thoughts, [*await reflections.fetch_thoughts(parts.database, scope), *shown])
    receipts: list[Receipt] = []
    if new:
        occasion.report_step("remembering")
        # A note of the prompt can have influenced a thought that does not name it.
        least = min(memory.trust for memory in (*newest, *shown))
        receipts = await remember_thoughts(
            parts, replace(caller, trust=min(caller.trust, least)), scope, new, occasion.key
        )
    if occasion.count is None:
        await reflections.mark_reflected(parts.database, scope, gathered)
    if not new:
        return await record_empty_reflection(parts, scope, occasion, questions, NOTHING_NEW)
    return Reflection(questions, tuple(receipts))


async def derive_insights(
    parts: Dependencies, scope: Scope, place: ScopeHandle, newest: Sequence[Memory], occasion: ReflectOptions
) -> tuple[tuple[str, ...], list[Memory], list[NewMemory]]:
    """Ask which questions the newest memories raise, and which insights follow from the memories recalled for each.

    Returns the questions, all recalled memories, and the insights.
    """
    occasion.report_step("asking what matters")
    questions = await find_questions(ask_for(parts, place, "questions"), scope, newest)
    recalled = await recall_for(parts, scope, place, questions, occasion.now)
    thoughts, chat = [], ask_for(parts, place, "insights")
    for question, memories in zip(questions, recalled, strict=True):
        occasion.report_step(question)
        thoughts += await find_insights(chat, scope, question, memories, occasion.now)
    if not thoughts:
        raise ChatModelError("the chat model returned no insights", answered=True)
    return tuple(questions), [memory for each in recalled for memory in each], thoughts


async def record_empty_reflection(
    parts: Dependencies, scope: Scope, occasion: ReflectOptions, questions: tuple[str, ...], reason: str
) -> Reflection:
    """Return a reflection without thoughts, with the reason; store under its key that there were none."""
    if occasion.key:
        await reflections.record_no_reflection(parts.database, scope, occasion.key)
    return Reflection(questions, (), reason)


async def defer_reflection(parts: Dependencies, scope: Scope, now: datetime | None = None) -> str:
    """Queue a reflection, or find the one that waits; return its ID."""
    require_chat_model(parts)
    if now is not None:
        check_moment("now", now)
    return await reflections.defer(parts.database, scope, now)


async def follow_reflection(parts: Dependencies, scope: Scope, job_id: str) -> ReflectionProgress:
    """Return the progress of a reflection's job, with its result if it has succeeded."""
    found = await find_jobs(parts.database, scope.tenant_id, JobQuery(job_id, STEP))
    if found and (found[0].agent, found[0].user) == (scope.agent, scope.user):
        return ReflectionProgress(job_id, found[0].state, found[0].attempts, found[0].reason)
    # A successful job is deleted. Its result was written before, under its key.
    written = await reflections.find_written(parts.database, scope, reflections.key_of(job_id))
    if written is None:
        raise NotFoundError("No such reflection in this scope. Results are kept for two days.")
    return ReflectionProgress(job_id, JobState.SUCCEEDED, 0, "", written)


def ask_for(parts: Dependencies, place: ScopeHandle, prompt: str) -> ChatModel:
    """Return the metered chat model for a scope; raise an error if the scope does not exist."""
    return metered(parts, place.scope_id or 0, STEP, prompt_version=version_of(prompt))


async def find_questions(chat: ChatModel, scope: Scope, newest: Sequence[Memory]) -> list[str]:
    """Ask which questions the newest memories raise."""
    notes = number_notes(fit_notes(newest, chat.characters))
    prompt = fill_prompt("questions", agent=scope.agent, notes=notes, count=MAX_QUESTIONS)
    questions = choose_questions(await chat.ask(prompt, Questions))
    if not questions:
        raise ChatModelError("the chat model asked no question", answered=True)
    return questions


async def check_embedder(parts: Dependencies, place: ScopeHandle, newest: Memory) -> None:
    """Raise an error unless the embedder can answer: an error later would waste a model's answer."""
    if not explain_absence(parts, Cue(newest.content), place) and await parts.embed_in_time([PLAIN_WORD]) is None:
        raise UnavailableError("The embedder did not answer in time; reflect later.")


async def recall_for(
    parts: Dependencies, scope: Scope, place: ScopeHandle, questions: Sequence[str], now: datetime | None
) -> list[list[Memory]]:
    """Recall memories relevant to each question; memories recalled for one count as fresh for the next."""
    cues = [to_cue(parts, place, question, now) for question in questions]
    recollections = await recall_each(parts, scope, cues, place)
    if not any(recollection.hits for recollection in recollections):
        raise UnavailableError(f"Nothing was recalled. {recollections[0].message}".rstrip())
    return [[hit.memory for hit in recollection.hits] for recollection in recollections]


def to_cue(parts: Dependencies, place: ScopeHandle, question: str, now: datetime | None) -> Cue:
    """Build a query for the stream; without an embedder, for words."""
    # A question is derived from memories, and a saved recall would outlive them.
    cue = Cue(question, limit=MAX_HITS, now=now, keep=False, consult=False, judge=False)
    if explain_absence(parts, cue, place):
        return replace(cue, kinds=EVIDENCE)
    return replace(cue, channels=(STREAM,), kinds=() if place.profile.kinds else EVIDENCE)


async def find_insights(
    chat: ChatModel, scope: Scope, question: str, memories: Sequence[Memory], now: datetime | None
) -> list[NewMemory]:
    """Ask which insights follow from the memories that are relevant to a question."""
    shown = fit_notes(memories, chat.characters)
    if not shown:
        return []
    notes = number_notes(shown)
    asked = escape_angle_brackets(question)
    prompt = fill_prompt("insights", agent=scope.agent, notes=notes, question=asked, count=MAX_INSIGHTS)
    return to_thoughts(question, await chat.ask(prompt, Insights), shown, now)


async def remember_thoughts(
    parts: Dependencies, caller: Caller, scope: Scope, thoughts: Sequence[NewMemory], key: str
) -> list[Receipt]:
    """Store all thoughts in one transaction; another run with the same key may have stored them."""
    try:
        return await remember(parts, caller, scope, thoughts, key)
    except ConflictError:
        written = await reflections.find_written(parts.database, scope, key)
        return list(written.thoughts) if written else []
