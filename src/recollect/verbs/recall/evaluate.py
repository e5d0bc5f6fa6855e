"""Ask questions whose answers are known, and measure how well recall finds these; nothing is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from recollect.core.recall.quality import (
    DEPTH,
    conclude,
    count_within,
    find_places,
    list_above,
    measure,
    name_hits,
    write_piece,
)
from recollect.core.text.checks import LONGEST_CUE, MOST_HITS
from recollect.errors import InvalidInputError, NotFoundError, UnavailableError
from recollect.models.evaluations import Evaluation, EvaluationQuestion, QuestionResult
from recollect.models.memories import Memory
from recollect.models.recall import Cue, Recollection, Status


class Recalling(Protocol):
    """A mind, in the process or on a server."""

    def recall(self, cue: str | Cue, *, limit: int | None = None) -> Awaitable[Recollection]:
        """Return what a cue reminds of."""
        ...

    def get(self, memory_id: UUID) -> Awaitable[Memory]:
        """Fetch one memory."""
        ...


async def evaluate(
    mind: Recalling,
    questions: Sequence[EvaluationQuestion],
    like: Cue,
    counter: tuple[str, Callable[[str], int]],
    report: Callable[[int], None],
) -> Evaluation:
    """Ask every question with the settings of a cue, and sum up; `report` is called with how many are done."""
    check_questions(questions)
    results: list[QuestionResult] = []
    methods: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        cue = replace(like, text=question.cue, now=question.now or like.now, touch=False, keep=False, limit=DEPTH)
        answer = await _recall(mind, cue)
        for channel, method in answer.methods.items():
            methods[channel][method] += 1
        # Deeper than usual, because 4,000 tokens have room for more; the usual ranking is measured above.
        deep = await _recall(mind, replace(cue, limit=MOST_HITS))
        results.append(await _judge(mind, question, (answer, deep), counter[1]))
        report(len(results))
    return conclude(results, counter[0], {channel: dict(counts) for channel, counts in methods.items()})


def check_questions(questions: Sequence[EvaluationQuestion]) -> None:
    """Refuse what cannot be measured."""
    if not questions:
        raise InvalidInputError("an evaluation needs at least one question")
    for number, question in enumerate(questions, 1):
        if not question.cue.strip():
            raise InvalidInputError(f"question {number} has no cue")
        if not question.expected or not all(each.strip() for each in question.expected):
            raise InvalidInputError(f"question {number} must expect at least one memory, by its id or its content")


async def _recall(mind: Recalling, cue: Cue) -> Recollection:
    answer = await mind.recall(cue)
    if answer.status is Status.ERROR:
        # A question that nobody could answer is not one that recall failed at.
        raise UnavailableError(f"No channel could look. {answer.message}")
    return answer


async def _judge(
    mind: Recalling,
    question: EvaluationQuestion,
    answers: tuple[Recollection, Recollection],
    count: Callable[[str], int],
) -> QuestionResult:
    expected = frozenset(map(_normalise, question.expected))
    hits, deep = (answer.hits for answer in answers)
    named, named_deep = name_hits(hits, expected), name_hits(deep, expected)
    places = find_places(named, sorted(expected))
    costs = [(names, count(write_piece(hit.memory.occurred_at, hit.memory.speaker, hit.memory.content))) for names, hit in zip(named_deep, deep, strict=True)]
    missing = expected - {name for names in named_deep for name in names} - {n for names in named for n in names}
    return QuestionResult(
        question,
        measure([name for names in named for name in sorted(names)], expected),
        count_within(costs, expected),
        places,
        list_above(hits, places),
        tuple([name for name in sorted(missing) if not await _is_there(mind, name)]),
    )


def _normalise(expected: str) -> str:
    return str(_read_id(expected) or expected)


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _is_there(mind: Recalling, expected: str) -> bool:
    """Tell whether the scope holds a memory of this id or content, as far as its own words find it."""
    known = _read_id(expected)
    if known is None:
        found = await _recall(mind, Cue(expected[:LONGEST_CUE], touch=False, keep=False, limit=MOST_HITS))
        return any(hit.memory.content == expected for hit in found.hits)
    try:
        await mind.get(known)
    except NotFoundError:
        return False
    return True
