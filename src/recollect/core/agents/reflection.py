"""When an agent reflects, on which notes, and which thoughts follow; and what a triple is associated with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from recollect.core.memories.erasure import LONGEST_INSIGHT
from recollect.core.text.answers import AnswerSchema, counted, tidy
from recollect.core.text.checks import LONGEST_NAME
from recollect.core.text.keywords import file_under
from recollect.core.text.similar import fold_text, fold_width, is_same
from recollect.core.text.tags import defuse_signs
from recollect.core.text.terms import analyse
from recollect.models.memories import ImportanceFrom, Kind, Memory, NewMemory, Triple

DEFAULT_THRESHOLD = 150.0
MOST_QUESTIONS, MOST_INSIGHTS, MOST_SOURCES = 3, 5, 10
FEWEST_NOTES, MOST_NOTES = 1, 100
LONGEST_NOTE, LONGEST_QUESTION = 600, 500


def read_triple(triple: Triple) -> tuple[str, ...]:
    """Ask for all that a triple names, in the form memories are filed under."""
    return file_under((triple.subject, triple.predicate, triple.object))


def read_as_original(triple: Triple) -> tuple[str, ...]:
    """Ask only for what the original finds: it looks up names with capitals or places as written, and finds nothing."""
    named = (triple.subject, triple.predicate, triple.object)
    return file_under(tuple(name for name in named if name == name.lower() and ":" not in fold_width(name)))


def waits_for_reflection(memory: NewMemory) -> bool:
    """Tell whether a memory adds to what an agent reflects on once it is written: an event does, and a message.

    How important a message is that nobody has rated is known once its segment is enriched, and added then.
    """
    rated = memory.importance_from is not ImportanceFrom.RULE
    return memory.kind is Kind.EVENT or (memory.kind is Kind.MESSAGE and rated)


@dataclass(frozen=True, slots=True)
class Unreflected:
    """The importance and the number of the memories since the last reflection, and whether the next is due."""

    importance: float
    memories: int
    due: bool = False


def gather(importance: float, memories: int, added: Sequence[float], threshold: float | None = None) -> Unreflected:
    """Add the importance of new memories; once a reflection is due, counting starts again."""
    importance, memories = importance + sum(added), memories + len(added)
    if memories > 0 and is_due(importance, threshold):
        return Unreflected(0.0, 0, due=True)
    return Unreflected(importance, memories)


def is_due(importance: float, threshold: float | None) -> bool:
    """Tell whether enough importance has gathered for a reflection."""
    limit = DEFAULT_THRESHOLD if threshold is None else threshold
    return 0 < limit <= importance


class Questions(AnswerSchema):
    """Questions of a general kind that the notes can answer."""

    questions: list[str] = counted(1, MOST_QUESTIONS)


class Insight(AnswerSchema):
    """One thing that follows from several notes, and their numbers."""

    text: str
    subject: str
    predicate: str
    object: str
    importance: int = Field(ge=1, le=10)
    notes: list[int] = counted(1, MOST_SOURCES)


class Insights(AnswerSchema):
    """Insights that follow from the notes."""

    insights: list[Insight] = counted(1, MOST_INSIGHTS)


def bound_count(count: int) -> int:
    """Limit the number of memories that a reflection starts with."""
    return max(FEWEST_NOTES, min(MOST_NOTES, count))


def fit_notes(memories: Sequence[Memory], characters: int) -> list[Memory]:
    """Take as many memories from the front as their notes fit the prompt; one always does."""
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
    """Write one memory as one line that cannot be read as two, nor as the end of the notes."""
    said = f"{memory.speaker}: {memory.content}" if memory.speaker else memory.content
    return f"{number}. {defuse_signs(tidy(said, LONGEST_NOTE))}"


def choose_questions(answer: Questions) -> list[str]:
    """Take the first few questions that ask something."""
    asked = (tidy(question, LONGEST_QUESTION) for question in answer.questions)
    return list(dict.fromkeys(filter(None, asked)))[:MOST_QUESTIONS]


def to_thoughts(
    question: str, answer: Insights, shown: Sequence[Memory], occurred_at: datetime | None
) -> list[NewMemory]:
    """Turn insights into thoughts; an insight that names no note of the prompt is left out."""
    thoughts = []
    for insight in answer.insights:
        text = tidy(insight.text, LONGEST_INSIGHT)
        numbers = [number for number in dict.fromkeys(insight.notes) if 1 <= number <= len(shown)]
        if text and numbers:
            parts = (tidy(part, LONGEST_NAME) for part in (insight.subject, insight.predicate, insight.object))
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
    return thoughts[:MOST_INSIGHTS]


def leave_repeated(thoughts: Sequence[NewMemory], known: Sequence[Memory]) -> list[NewMemory]:
    """Leave out what was thought before, or twice: the same text, or nearly the same from the same evidence."""
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
