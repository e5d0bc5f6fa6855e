"""Values of an evaluation: questions with known answers, and how well recall finds these."""

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
    """IDs of memories, or their exact contents."""
    category: str = ""
    now: datetime | None = None
    """The time of the question, for cues like "yesterday"; the present if None."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of one ranking, or the mean of several."""

    recall_5: float
    recall_10: float
    recall_30: float
    ndcg_10: float


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean, and the limits of its 95% interval over samples of the questions."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class UnexpectedHit:
    """An unexpected hit that ranks above an expected one."""

    id: UUID
    content: str
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one question."""

    question: EvaluationQuestion
    quality: Quality
    within: Mapping[int, float]
    """The share of expected memories in the first hits within each number of tokens."""
    places: Mapping[str, int | None]
    """The place of each expected memory among the hits, 1 for the best; None if it is missing."""
    above: tuple[UnexpectedHit, ...] = ()
    """The first unexpected hits above the lowest expected memory."""
    unknown: tuple[str, ...] = ()
    """Expected memories that do not exist in the scope: check the questions."""


@dataclass(frozen=True, slots=True)
class QualityMean:
    """The mean over some questions."""

    questions: int
    quality: Quality
    recall_10: ConfidenceInterval
    within: Mapping[int, ConfidenceInterval]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well recall answers questions: the means, and every question, the worst first."""

    overall: QualityMean
    categories: Mapping[str, QualityMean]
    results: tuple[QuestionResult, ...]
    tokenizer: str = ""
    """The tokenizer that was used."""
    methods: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """How each channel searched, with the number of questions."""


@dataclass(frozen=True, slots=True)
class RelevanceCalibration:
    """A relevance table fitted to half of the questions, and compared with the present one on the other half."""

    script: Script
    with_vector: bool
    questions: tuple[int, int]
    """Number of questions for fitting, and number of held-out ones."""
    table: Mapping[str, float]
    """The coefficient of each measure of a hit."""
    before: tuple[float, float]
    """The table in use, on held-out questions: expected error, and area under the curve."""
    after: tuple[float, float]
    """The same values for the fitted table."""
    loss: ConfidenceInterval
    """The change of the mean logarithmic loss, paired by question: below 0 is better."""

    @property
    def better(self) -> bool:
        """Return whether it is better on held-out questions by more than chance."""
        return self.loss.high < 0


@dataclass(frozen=True, slots=True)
class EvaluationDifference:
    """Changes between two evaluations of the same questions, paired by question."""

    questions: int
    recall_10: ConfidenceInterval
    ndcg_10: ConfidenceInterval
    within: Mapping[int, ConfidenceInterval]
