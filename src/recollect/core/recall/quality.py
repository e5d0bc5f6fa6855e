"""Measure the quality of rankings: recall, nDCG, evidence within token budgets, confidence intervals.

The benchmarks of the project and `recollect mind evaluate` use only these functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from recollect.models.evaluations import (
    ConfidenceInterval,
    Evaluation,
    EvaluationDifference,
    Quality,
    QualityMean,
    QuestionResult,
    UnexpectedHit,
)
from recollect.models.recall import Hit

BUDGETS = (250, 500, 1_000, 2_000, 4_000)
"""Token budgets within which evidence is counted."""
DEPTH = 30
"""Number of hits to measure."""
MAX_UNEXPECTED_HITS = 3
DRAWINGS = 1_000
SEED = 7
"""Always the same samples: equal answers give equal intervals."""
COVERED = (0.025, 0.975)


def measure(ranked: Sequence[str], expected: Set[str]) -> Quality:
    """Compare ranked names, best first, with the expected ones."""
    found = [name in expected for name in dict.fromkeys(ranked)]
    gain = math.fsum(hit / math.log2(place + 2) for place, hit in enumerate(found[:10]))
    ideal = math.fsum(1 / math.log2(place + 2) for place in range(min(len(expected), 10)))
    at_5, at_10, at_30 = (sum(found[:depth]) / len(expected) for depth in (5, 10, DEPTH))
    return Quality(at_5, at_10, at_30, gain / ideal)


def count_within(
    ranked: Sequence[tuple[Set[str], int]], expected: Set[str], budgets: Sequence[int] = BUDGETS
) -> dict[int, float]:
    """Return the share of the expected names within each budget.

    Each ranked piece has names and a number of tokens. Pieces are added in order; a piece that does not fit is skipped,
    and smaller ones after it are still added.
    """
    return {budget: len(_take(ranked, budget) & expected) / len(expected) for budget in budgets}


def _take(ranked: Sequence[tuple[Set[str], int]], budget: int) -> set[str]:
    taken, left = set[str](), budget
    for names, tokens in ranked:
        if tokens <= left:
            taken, left = taken | names, left - tokens
    return taken


def name_hits(hits: Sequence[Hit], expected: Set[str]) -> list[Set[str]]:
    """Return the expected memories of each hit: by its ID or content, or by the ID of a duplicate."""
    found: list[Set[str]] = []
    for hit in hits:
        names = {str(hit.memory.id), hit.memory.content, *map(str, hit.duplicates)} & expected
        found.append(names or {str(hit.memory.id)})
    return found


def write_piece(occurred_at: datetime, speaker: str, content: str) -> str:
    """Format a memory as in a prompt, to count its tokens: date, speaker and text."""
    return f"{occurred_at:%F}{f' {speaker}' if speaker else ''}: {content}\n"


def find_places(named: Sequence[Set[str]], expected: Sequence[str]) -> dict[str, int | None]:
    """Return the place of each expected memory among the hits."""
    places = {name: place for place, names in reversed(list(enumerate(named, 1))) for name in names}
    return {name: places.get(name) for name in expected}


def list_above(hits: Sequence[Hit], places: Mapping[str, int | None]) -> tuple[UnexpectedHit, ...]:
    """List the first unexpected hits above the lowest expected one."""
    taken = set(places.values())
    lowest = len(hits) + 1 if None in taken else max(place for place in places.values() if place is not None)
    above = [hit for place, hit in enumerate(hits, 1) if place < lowest and place not in taken]
    return tuple(UnexpectedHit(hit.memory.id, hit.memory.content, hit.relevance) for hit in above[:MAX_UNEXPECTED_HITS])


def average(rows: Sequence[Quality]) -> Quality:
    """Return the mean over questions."""
    return Quality(*(math.fsum(getattr(row, field.name) for row in rows) / len(rows) for field in fields(Quality)))


def draw_interval(values: Sequence[float]) -> ConfidenceInterval:
    """Return a mean over questions with its confidence interval, by bootstrap."""
    known: NDArray[np.float64] = np.array(values, dtype=np.float64)
    drawn = known[_draw_places(len(known))].mean(axis=1)
    low, high = np.quantile(drawn, COVERED)
    return ConfidenceInterval(float(known.mean()), float(low), float(high))


def _draw_places(number: int) -> NDArray[np.intp]:
    """Return DRAWINGS samples with replacement: splitmix64, the same numbers on every machine."""
    mixed = (np.arange(DRAWINGS * number, dtype=np.uint64) + np.uint64(SEED)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(number)).astype(np.intp).reshape(DRAWINGS, number)


def draw_difference(values: Sequence[float], base: Sequence[float]) -> ConfidenceInterval:
    """Return the mean difference from another run of the same questions, in the same order."""
    return draw_interval([one - other for one, other in zip(values, base, strict=True)])


def summarize(results: Sequence[QuestionResult]) -> QualityMean:
    """Return the means over some questions, with their intervals."""
    return QualityMean(
        len(results),
        average([result.quality for result in results]),
        draw_interval([result.quality.recall_10 for result in results]),
        {budget: draw_interval([result.within[budget] for result in results]) for budget in results[0].within},
    )


def build_evaluation(
    results: Sequence[QuestionResult], tokenizer: str, methods: Mapping[str, Mapping[str, int]]
) -> Evaluation:
    """Summarize all questions and each category, and put the worst questions first."""
    categories = dict.fromkeys(sorted({result.question.category for result in results if result.question.category}))
    means = {name: summarize([each for each in results if each.question.category == name]) for name in categories}
    return Evaluation(summarize(results), means, tuple(sorted(results, key=_goodness)), tokenizer, methods)


def _goodness(result: QuestionResult) -> tuple[float, ...]:
    quality = result.quality
    return quality.recall_30, quality.recall_10, quality.ndcg_10


def compare(now: Evaluation, before: Evaluation) -> EvaluationDifference | None:
    """Compare the questions that both evaluations have; None if there are none."""
    others = {_identify(each): each for each in before.results}
    pairs = [(each, others[_identify(each)]) for each in now.results if _identify(each) in others]
    if not pairs:
        return None

    def differ(of: str) -> ConfidenceInterval:
        return draw_interval([getattr(one.quality, of) - getattr(other.quality, of) for one, other in pairs])

    budgets = pairs[0][0].within.keys() & pairs[0][1].within.keys()
    gains = {each: [one.within[each] - other.within[each] for one, other in pairs] for each in sorted(budgets)}
    within = {budget: draw_interval(some) for budget, some in gains.items()}
    return EvaluationDifference(len(pairs), differ("recall_10"), differ("ndcg_10"), within)


def _identify(result: QuestionResult) -> tuple[str, tuple[str, ...], str]:
    question = result.question
    return question.cue, question.expected, str(question.now)
