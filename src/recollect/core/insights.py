"""From memories to numbered notes in a prompt, and from a model's insights back to thoughts with evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recollect.core.checks import LONGEST_NAME
from recollect.core.names import CONTROL
from recollect.models.memories import Kind, Memory, NewMemory, Triple

MOST_QUESTIONS, MOST_INSIGHTS, MOST_SOURCES = 3, 5, 10
FEWEST_NOTES, MOST_NOTES = 1, 100
LONGEST_NOTE, LONGEST_QUESTION, LONGEST_INSIGHT = 600, 500, 2_000
BRACKETS = str.maketrans({"<": "‹", ">": "›"})
"""Notes lie between tags: no note may end them."""


def counted(least: int, most: int) -> Any:  # noqa: ANN401 - what pydantic itself calls a field
    """Describe a list whose length is asked of the model, and not held against it."""
    return Field(json_schema_extra={"minItems": least, "maxItems": most})


class Shape(BaseModel):
    """An answer: its schema asks for more than is needed to use it. The model reads the words of its kinds."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"additionalProperties": False})


class Questions(Shape):
    """Questions of a general kind that the notes can answer."""

    questions: list[str] = counted(1, MOST_QUESTIONS)


class Insight(Shape):
    """One thing that follows from several notes, and their numbers."""

    text: str
    subject: str
    predicate: str
    object: str
    importance: int = Field(ge=1, le=10)
    notes: list[int] = counted(1, MOST_SOURCES)


class Insights(Shape):
    """Insights that follow from the notes."""

    insights: list[Insight] = counted(1, MOST_INSIGHTS)


def bound_count(events: int) -> int:
    """Keep the number of memories that a reflection begins with within what it can look at."""
    return max(FEWEST_NOTES, min(MOST_NOTES, events))


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
    """Write one memory as one line that cannot be taken for two, nor for the end of the notes."""
    said = f"{memory.speaker}: {memory.content}" if memory.speaker else memory.content
    return f"{number}. {tidy(said, LONGEST_NOTE).translate(BRACKETS)}"


def choose_questions(answer: Questions) -> list[str]:
    """Take the first few questions that ask something."""
    asked = (tidy(question, LONGEST_QUESTION) for question in answer.questions)
    return list(dict.fromkeys(filter(None, asked)))[:MOST_QUESTIONS]


def to_thoughts(
    question: str, answer: Insights, shown: Sequence[Memory], occurred_at: datetime | None
) -> list[NewMemory]:
    """Turn insights into thoughts; what is drawn from no note that was shown is left out."""
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
                triple=Triple(*parts),
                occurred_at=occurred_at,
                evidence=tuple(shown[number - 1].id for number in numbers),
                metadata={"question": question},
            )
            thoughts.append(thought)
    return thoughts[:MOST_INSIGHTS]


def tidy(text: str, longest: int) -> str:
    """Bring a text onto one line without what cannot be stored, cut where it is too long."""
    line = " ".join(CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
