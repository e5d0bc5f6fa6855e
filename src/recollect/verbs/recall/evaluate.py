"""Ask questions whose answers are known, and measure how well recall finds these; nothing is stored."""

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
from recollect.models.evaluations import Evaluation, EvaluationQuestion, QuestionResult, RelevanceFit
from recollect.models.memories import Memory
from recollect.models.recall import Cue, Recollection, Script, Status
from recollect.models.service import Scope
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts
from recollect.verbs.recall.rank import VECTOR, Ranking
from recollect.verbs.recall.recall import rank_one, recall

FIT_DEPTH = 20
"""So many hits of a question teach what relevance is."""


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
        if not question.expected:
            continue
        cue = ask_like(like, question, DEPTH)
        answer = await _recall(mind, cue)
        for channel, method in answer.methods.items():
            methods[channel][method] += 1
        # Deeper than usual, because 4,000 tokens have room for more; the usual ranking is measured above.
        deep = await _recall(mind, replace(cue, limit=MOST_HITS))
        results.append(await _judge(mind, question, (answer, deep), counter[1]))
        report(len(results))
    return conclude(results, counter[0], {channel: dict(counts) for channel, counts in methods.items()})


def ask_like(like: Cue, question: EvaluationQuestion, limit: int) -> Cue:
    """Make the cue of a question, which leaves no trace."""
    return replace(like, text=question.cue, now=question.now or like.now, touch=False, keep=False, limit=limit)


def check_questions(questions: Sequence[EvaluationQuestion]) -> None:
    """Refuse what cannot be measured."""
    if not any(question.expected for question in questions):
        raise InvalidInputError("an evaluation needs at least one question that expects a memory")
    for number, question in enumerate(questions, 1):
        if not question.cue.strip():
            raise InvalidInputError(f"question {number} has no cue")
        if not all(each.strip() for each in question.expected):
            raise InvalidInputError(f"question {number} must name what it expects by id or content")


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


async def fit_relevance(
    parts: Parts, scope: Scope, place: Place, questions: Sequence[EvaluationQuestion], like: Cue
) -> list[RelevanceFit]:
    """Fit a table of relevance for each script, with and without vectors, as far as there are questions for it."""
    check_questions(questions)
    groups: defaultdict[tuple[Script, str], list[RatedHits]] = defaultdict(list)
    for question in questions:
        ranking = await rank_one(parts, ask_like(like, question, FIT_DEPTH), place)
        if ranking is not None and ranking.best and not ranking.alone:
            expected = frozenset(map(_normalise, question.expected))
            deep = await recall(parts, scope, ask_like(like, question, MOST_HITS), place)
            named = zip(deep.hits, name_hits(deep.hits, expected), strict=True)
            rated = lay_out(ranking, {hit.memory.id for hit, names in named if names & expected})
            groups[rated.script, rated.model].append(rated)
    fits = [try_fit(rows) for rows in groups.values()]
    return [fit for fit in fits if fit is not None]


def lay_out(ranking: Ranking, evidence: Set[UUID]) -> RatedHits:
    """Lay out what was measured of the best of a ranking."""
    best, rated = ranking.best[:FIT_DEPTH], rate(ranking.inputs)
    places = {each: place for place, each in enumerate(to_uuids(rated.ids))}
    order = np.array([places[each.id] for each in best], dtype=np.intp)
    truth = np.array([each.id in evidence for each in best], dtype=np.bool_)
    script, model = ranking.inputs.facets.script, ranking.inputs.model if VECTOR in rated.columns else ""
    return RatedHits(script, model, measure_hits(rated, order), truth)
