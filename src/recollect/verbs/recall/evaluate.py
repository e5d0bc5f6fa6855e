"""Ask questions with known answers, and measure how well recall finds them; nothing is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from typing import Protocol
from uuid import UUID

import numpy as np

from recollect.core.recall.columns import to_uuids
from recollect.core.recall.fitting import RatedHits, try_fit
from recollect.core.recall.fusion import measure as measure_hits
from recollect.core.recall.fusion import rate
from recollect.core.recall.quality import (
    DEPTH,
    build_evaluation,
    count_within,
    find_places,
    list_above,
    measure,
    name_hits,
    write_piece,
)
from recollect.core.text.checks import MAX_CUE_LENGTH, MAX_HITS
from recollect.errors import InvalidInputError, NotFoundError, UnavailableError
from recollect.models.evaluations import Evaluation, EvaluationQuestion, QuestionResult, RelevanceCalibration
from recollect.models.memories import Memory
from recollect.models.recall import Cue, RecallResult, Script, Status
from recollect.models.service import Scope
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.rank import VECTOR, Ranking
from recollect.verbs.recall.recall import rank_one, recall

FIT_DEPTH = 20
"""Number of hits per question that are used to fit relevance."""


class Recalling(Protocol):
    """A mind, in the process or on a server."""

    def recall(self, cue: str | Cue, *, limit: int | None = None) -> Awaitable[RecallResult]:
        """Return the memories that match a query."""
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
    """Ask all questions with the settings of a query, and sum up; `report` gets the number of finished ones."""
    check_questions(questions)
    results: list[QuestionResult] = []
    methods: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        if not question.expected:
            continue
        cue = ask_like(like, question, DEPTH)
        answer = await _recall(mind, cue)
        for channel, method in answer.methods.items():
            methods[channel][method] += 1
        # Deeper than usual, because 4,000 tokens have room for more; the usual ranking is measured above.
        deep = await _recall(mind, replace(cue, limit=MAX_HITS))
        results.append(await _judge(mind, question, (answer, deep), counter[1]))
        report(len(results))
    return build_evaluation(results, counter[0], {channel: dict(counts) for channel, counts in methods.items()})


def ask_like(like: Cue, question: EvaluationQuestion, limit: int) -> Cue:
    """Build the query of a question, which leaves no trace."""
    return replace(like, text=question.cue, now=question.now or like.now, touch=False, keep=False, limit=limit)


def check_questions(questions: Sequence[EvaluationQuestion]) -> None:
    """Refuse questions that cannot be measured."""
    if not any(question.expected for question in questions):
        raise InvalidInputError("an evaluation needs at least one question with an expected memory")
    for number, question in enumerate(questions, 1):
        if not question.cue.strip():
            raise InvalidInputError(f"question {number} has no cue")
        if not all(each.strip() for each in question.expected):
            raise InvalidInputError(f"question {number} must name its expected memories by ID or content")


async def _recall(mind: Recalling, cue: Cue) -> RecallResult:
    answer = await mind.recall(cue)
    if answer.status is Status.ERROR:
        # If no channel could answer a question, recall did not fail at it.
        raise UnavailableError(f"Recall failed: no channel could search. {answer.message}")
    return answer


async def _judge(
    mind: Recalling,
    question: EvaluationQuestion,
    answers: tuple[RecallResult, RecallResult],
    count: Callable[[str], int],
) -> QuestionResult:
    expected = frozenset(map(_normalise, question.expected))
    hits, deep = (answer.hits for answer in answers)
    named, named_deep = name_hits(hits, expected), name_hits(deep, expected)
    places = find_places(named, sorted(expected))
    pieces = [write_piece(hit.memory.occurred_at, hit.memory.speaker, hit.memory.content) for hit in deep]
    costs = [(names, count(piece)) for names, piece in zip(named_deep, pieces, strict=True)]
    found = {name for names in (*named, *named_deep) for name in names}
    return QuestionResult(
        question,
        measure([name for names in named for name in sorted(names)], expected),
        count_within(costs, expected),
        places,
        list_above(hits, places),
        tuple([name for name in sorted(expected - found) if not await _is_there(mind, name)]),
    )


def _normalise(expected: str) -> str:
    return str(_read_id(expected) or expected)


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def _is_there(mind: Recalling, expected: str) -> bool:
    """Return whether the scope has a memory with this ID or content, if its own words find it."""
    known = _read_id(expected)
    if known is None:
        found = await _recall(mind, Cue(expected[:MAX_CUE_LENGTH], touch=False, keep=False, limit=MAX_HITS))
        return any(hit.memory.content == expected for hit in found.hits)
    try:
        await mind.get(known)
    except NotFoundError:
        return False
    return True


async def fit_relevance(
    parts: Dependencies, scope: Scope, place: ScopeHandle, questions: Sequence[EvaluationQuestion], like: Cue
) -> list[RelevanceCalibration]:
    """Fit a table of relevance for each script, with and without vectors, if there are enough questions."""
    check_questions(questions)
    groups: defaultdict[tuple[Script, str], list[RatedHits]] = defaultdict(list)
    for question in questions:
        ranking = await rank_one(parts, ask_like(like, question, FIT_DEPTH), place)
        if ranking is not None and ranking.best and not ranking.alone:
            expected = frozenset(map(_normalise, question.expected))
            deep = await recall(parts, scope, ask_like(like, question, MAX_HITS), place)
            named = zip(deep.hits, name_hits(deep.hits, expected), strict=True)
            rated = rate_ranking(ranking, {hit.memory.id for hit, names in named if names & expected})
            groups[rated.script, rated.model].append(rated)
    fits = [try_fit(rows) for rows in groups.values()]
    return [fit for fit in fits if fit is not None]


def rate_ranking(ranking: Ranking, evidence: Set[UUID]) -> RatedHits:
    """Return the measured features of the best hits of a ranking."""
    best, rated = ranking.best[:FIT_DEPTH], rate(ranking.inputs)
    places = {each: place for place, each in enumerate(to_uuids(rated.ids))}
    order = np.array([places[each.id] for each in best], dtype=np.intp)
    truth = np.array([each.id in evidence for each in best], dtype=np.bool_)
    script, model = ranking.inputs.facets.script, ranking.inputs.model if VECTOR in rated.columns else ""
    return RatedHits(script, model, measure_hits(rated, order), truth)
