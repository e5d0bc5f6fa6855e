"""Rules of reflection: when an agent reflects, on which notes, and which thoughts result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from recollect.core.memories.erasure import MAX_INSIGHT_LENGTH
from recollect.core.text.answers import AnswerSchema, counted, tidy
from recollect.core.text.checks import MAX_NAME_LENGTH
from recollect.core.text.keywords import file_under
from recollect.core.text.similarity import fold_text, fold_width, is_same
from recollect.core.text.tags import escape_angle_brackets
from recollect.core.text.terms import analyse
from recollect.models.memories import ImportanceFrom, Kind, Memory, NewMemory, Triple

DEFAULT_THRESHOLD = 150.0
MAX_QUESTIONS, MAX_INSIGHTS, MAX_SOURCES = 3, 5, 10
MIN_NOTES, MAX_NOTES = 1, 100
MAX_NOTE_LENGTH, MAX_QUESTION_LENGTH = 600, 500


def read_triple(triple: Triple) -> tuple[str, ...]:
    """Return all parts of a triple in the form that memories are filed under."""
    return file_under((triple.subject, triple.predicate, triple.object))


def read_as_original(triple: Triple) -> tuple[str, ...]:
    """Return the parts of a triple that the original system finds.

    It looks up names with capitals or places as written, and finds nothing for them.
    """
    named = (triple.subject, triple.predicate, triple.object)
    return file_under(tuple(name for name in named if name == name.lower() and ":" not in fold_width(name)))


def waits_for_reflection(memory: NewMemory) -> bool:
    """Return whether a new memory counts for reflection when it is written: events and rated messages do.

    Unrated messages count later, when the enrichment of their segment rates them.
    """
    rated = memory.importance_from is not ImportanceFrom.RULE
    return memory.kind is Kind.EVENT or (memory.kind is Kind.MESSAGE and rated)


@dataclass(frozen=True, slots=True)
class ReflectionBacklog:
    """Importance and number of the memories since the last reflection, and whether the next one is due."""

    importance: float
    memories: int
    due: bool = False


def add_importance(
    importance: float, memories: int, added: Sequence[float], threshold: float | None = None
) -> ReflectionBacklog:
    """Add the importance of new memories; if a reflection is due, the counters start again at 0."""
    importance, memories = importance + sum(added), memories + len(added)
    if memories > 0 and is_due(importance, threshold):
        return ReflectionBacklog(0.0, 0, due=True)
    return ReflectionBacklog(importance, memories)


def is_due(importance: float, threshold: float | None) -> bool:
    """Return whether the collected importance is enough for a reflection."""
    limit = DEFAULT_THRESHOLD if threshold is None else threshold
    return 0 < limit <= importance


class Questions(AnswerSchema):
    """General questions that the notes can answer."""

    questions: list[str] = counted(1, MAX_QUESTIONS)


class Insight(AnswerSchema):
    """One conclusion from several notes, and the numbers of these notes."""

    text: str
    subject: str
    predicate: str
    object: str
    importance: int = Field(ge=1, le=10)
    notes: list[int] = counted(1, MAX_SOURCES)


class Insights(AnswerSchema):
    """Insights that follow from the notes."""

    insights: list[Insight] = counted(1, MAX_INSIGHTS)


def bound_count(count: int) -> int:
    """Limit the number of memories that a reflection starts with."""
    return max(MIN_NOTES, min(MAX_NOTES, count))


def fit_notes(memories: Sequence[Memory], characters: int) -> list[Memory]:
    """Return the first memories whose notes fit the prompt, at least one."""
    fitting: list[Memory] = []
    length = 0
    for number, memory in enumerate(memories, 1):
        length += len(write_note(number, memory)) + 1
        if fitting and length > characters:
            break
        fitting.append(memory)
    return fitting


def number_notes(memories: Sequence[Memory]) -> str:
    """Write memories as numbered lines, counted from 1."""
    return "\n".join(write_note(number, memory) for number, memory in enumerate(memories, 1))


def write_note(number: int, memory: Memory) -> str:
    """Format a memory as one line that can be neither two lines nor the end of the notes."""
    said = f"{memory.speaker}: {memory.content}" if memory.speaker else memory.content
    return f"{number}. {escape_angle_brackets(tidy(said, MAX_NOTE_LENGTH))}"


def choose_questions(answer: Questions) -> list[str]:
    """Return the first questions that are not empty."""
    asked = (tidy(question, MAX_QUESTION_LENGTH) for question in answer.questions)
    return list(dict.fromkeys(filter(None, asked)))[:MAX_QUESTIONS]


def to_thoughts(
    question: str, answer: Insights, shown: Sequence[Memory], occurred_at: datetime | None
) -> list[NewMemory]:
    """Convert insights to thoughts; skip insights that name no note of the prompt."""
    thoughts = []
    for insight in answer.insights:
        text = tidy(insight.text, MAX_INSIGHT_LENGTH)
        numbers = [number for number in dict.fromkeys(insight.notes) if 1 <= number <= len(shown)]
        if text and numbers:
            parts = (tidy(part, MAX_NAME_LENGTH) for part in (insight.subject, insight.predicate, insight.object))
            thought = NewMemory(
                text,
                Kind.THOUGHT,
                importance=float(insight.importance),
                importance_from=ImportanceFrom.MODEL,
                triple=Triple(*parts),
                occurred_at=occurred_at,
                evidence=tuple(shown[number - 1].id for number in numbers),
                metadata={"question": question},
            )
            thoughts.append(thought)
    return thoughts[:MAX_INSIGHTS]


def drop_repeated(thoughts: Sequence[NewMemory], known: Sequence[Memory]) -> list[NewMemory]:
    """Drop thoughts that are known or repeated.

    A thought repeats another if it has the same text, or nearly the same text from the same evidence.
    """
    texts = {fold_text(memory.content) for memory in known}
    drawn = [(frozenset[object](memory.evidence), frozenset(analyse(memory.content))) for memory in known]
    new: list[NewMemory] = []
    for thought in thoughts:
        text, evidence = fold_text(thought.content), frozenset[object](thought.evidence)
        terms = frozenset(analyse(thought.content))
        again = any(evidence == other and is_same(terms, said) for other, said in drawn)
        if text not in texts and not again:
            new.append(thought)
        texts.add(text)
        drawn.append((evidence, terms))
    return new
