"""Values of an evaluation: questions whose answers are known, and how well recall finds these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from recollect.models.recall import Script


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """One cue, and the memories that answer it."""

    cue: str
    expected: tuple[str, ...]
    """Ids of memories, or their exact contents."""
    category: str = ""
    now: datetime | None = None
    """The moment it is asked at, for cues like "yesterday"; the present if None."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How well one ranking, or the mean of many, meets what is expected."""

    recall_5: float
    recall_10: float
    recall_30: float
    ndcg_10: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the values between which it lies in 95 of 100 drawings of the questions."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HitAbove:
    """A hit that nobody expected, above one that was."""

    id: UUID
    content: str
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """How one question went."""

    question: EvaluationQuestion
    quality: Quality
    within: Mapping[int, float]
    """The share of what is expected that the first hits of so many tokens hold."""
    places: Mapping[str, int | None]
    """The place of each expected memory among the hits, 1 for the best; None if it is not among them."""
    above: tuple[HitAbove, ...] = ()
    """The first hits above the lowest expected memory that nobody expected."""
    unknown: tuple[str, ...] = ()
    """What is expected and was not found in the scope at all: check the questions."""


@dataclass(frozen=True, slots=True)
class QualityMean:
    """The mean over some questions."""

    questions: int
    quality: Quality
    recall_10: Interval
    within: Mapping[int, Interval]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well recall answers some questions: the means, and every question, the worst first."""

    overall: QualityMean
    categories: Mapping[str, QualityMean]
    results: tuple[QuestionResult, ...]
    tokenizer: str = ""
    """What counted the tokens."""
    methods: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """How each channel searched, and for how many questions it did so."""


@dataclass(frozen=True, slots=True)
class RelevanceFit:
    """A table of relevance fitted to one half of some questions, and measured on the other beside the one in use."""

    script: Script
    with_vector: bool
    questions: tuple[int, int]
    """How many it was fitted to, and how many were held out."""
    table: Mapping[str, float]
    """What each measure of a hit counts."""
    before: tuple[float, float]
    """Of the table in use, on what was held out: expected error, and area under the curve."""
    after: tuple[float, float]
    """The same of the fitted one."""
    loss: Interval
    """The change of the mean logarithmic loss, paired by question: below 0 is better."""

    @property
    def better(self) -> bool:
        """Tell whether it is better on what was held out than chance explains."""
        return self.loss.high < 0


@dataclass(frozen=True, slots=True)
class EvaluationDifference:
    """What became better or worse between two evaluations of the same questions, paired by question."""

    questions: int
    recall_10: Interval
    ndcg_10: Interval
    within: Mapping[int, Interval]
