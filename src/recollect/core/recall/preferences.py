"""Rate candidates by features other than channel scores: surroundings, session, speaker, and form.

Each preference gives every candidate a number from 0 to 1, or 0 if it does not apply. Its weight is negative if it
counts against a memory. docs/explanation/recall.md has a table of the preferences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.periods import DAY, find_within
from recollect.core.recall.columns import KINDS, FeatureTable, Numbers, Scores
from recollect.models.memories import Kind
from recollect.models.recall import Period, QueryAnalysis, QuestionType, Script

MESSAGE = KINDS.index(Kind.MESSAGE)
COVERAGE, SURROUNDINGS, SESSION = "coverage", "surroundings", "session"
SESSION_BEST, SESSION_MEANING = "session_best", "session_meaning"
SPEAKER, ANSWER, NEAR_DATE, LATEST = "speaker", "answer", "near_date", "latest"
IMPORTANCE, ACCESSED = "importance", "accessed"
TELLS_TIME, TELLS_NUMBER = "tells_time", "tells_number"
LONG, QUESTION, ASSISTANT, INSTRUCTION = "long", "question", "assistant", "instruction"
DIVERSITY = "diversity"
"""Has no values: its weight lowers the scores of further hits of one session in overview questions."""
REACH = 2.0
"""Maximum distance of positions between neighbors."""
MAX_NEIGHBORS = 12
"""Maximum number of neighbors on either side: one hour may have very many events."""
MAX_SCORED_TERMS, MAX_QUESTION_LENGTH = 40, 25
"""In terms: further words match by chance; a longer question also contains statements."""
MAX_CANDIDATE_LENGTH = 1000
MIN_IMPORTANCE, MAX_IMPORTANCE = 1.0, 10.0
OTHERS = 0.5
"""The factor for people who are named but did not act: Ann more likely answers "What did Ann give to Bo?"."""
DENSER = 3.0
"""A Chinese word has about three terms, its characters and their pairs; an English word has one."""


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The candidates with the data that preferences use."""

    features: FeatureTable
    terms: Scores
    """1 if a candidate contains a term of the cue; a column for each term."""
    rarities: Scores
    text: Scores
    vector: Scores
    order: NDArray[np.intp]
    """The order by session, then by position in the session."""

    @classmethod
    def index_candidates(
        cls, features: FeatureTable, rarities: Sequence[float], scaled: Mapping[str, Scores]
    ) -> CandidateTable:
        """Return the table of some candidates."""
        order = np.lexsort((features.places, features.sessions))
        none = np.zeros(len(features))
        text, vector = (np.nan_to_num(scaled.get(name, none)) for name in ("text", "vector"))
        terms = features.terms[:, : len(rarities)].astype(np.float64)
        return cls(features, terms, np.array(rarities, dtype=np.float64), text, vector, order)


def score_preferences(table: CandidateTable, facets: QueryAnalysis) -> dict[str, Scores]:
    """Rate the candidates by every preference that applies."""
    return {
        COVERAGE: rate_coverage(table),
        **rate_company(table),
        SPEAKER: rate_speakers(table.features, facets.actor),
        ANSWER: rate_answers(table),
        **rate_wording(table.features, facets),
        NEAR_DATE: rate_nearness(facets.periods, table.features.occurred_at),
        LATEST: rate_age(table.features, facets),
        IMPORTANCE: rate_importance(table.features),
        ACCESSED: _from_worst(table.features.accessed_at / 1e6),
    }


def rate_coverage(table: CandidateTable) -> Scores:
    """Return the share of the cue's terms in each candidate; rarer terms count more."""
    whole = table.rarities.sum()
    return table.terms @ table.rarities / whole if whole > 0 else np.zeros(len(table.features))


def rate_company(table: CandidateTable) -> dict[str, Scores]:
    """Rate candidates by the terms of their neighbors and session, and by its best candidate."""
    beside = table.terms.copy()
    ordered, places = table.terms[table.order], table.features.places[table.order]
    sessions = table.features.sessions[table.order]
    for step in range(1, min(MAX_NEIGHBORS, len(places) - 1) + 1):
        near = (sessions[step:] == sessions[:-step]) & (places[step:] - places[:-step] <= REACH)
        if not near.any():
            break
        later, earlier = table.order[step:][near], table.order[:-step][near]
        beside[later] = np.maximum(beside[later], ordered[:-step][near])
        beside[earlier] = np.maximum(beside[earlier], ordered[step:][near])
    company = {SURROUNDINGS: _to_best(beside @ table.rarities)}
    own = table.features.sessions
    if not len(own) or (own == own[0]).all():
        return company
    together = np.zeros((int(own.max()) + 1, table.terms.shape[1]))
    np.maximum.at(together, own, table.terms)
    company[SESSION] = _to_best((together @ table.rarities)[own])
    for name, values in ((SESSION_BEST, table.text + table.vector), (SESSION_MEANING, table.vector)):
        best = np.zeros(int(own.max()) + 1)
        np.maximum.at(best, own, values)
        company[name] = _from_worst(best[own])
    return company


def rate_speakers(known: FeatureTable, actor: str) -> Scores:
    """Rate candidates by speakers named in the cue; other speakers than the actor count less."""
    rated = known.named.astype(np.float64)
    if actor:
        others = np.array([name not in {"", actor} for name in known.speaker_names], dtype=np.bool_)[known.speakers]
        rated[others] *= OTHERS
    return rated


def rate_answers(table: CandidateTable) -> Scores:
    """Rate answers by how much their question has in common with the cue."""
    known, before, after = table.features, table.order[:-1], table.order[1:]
    follows = (known.sessions[before] == known.sessions[after]) & (known.places[after] - known.places[before] == 1)
    answers = follows & known.asks[before] & (known.kinds[after] == MESSAGE) & ~known.assistant[after]
    rated = np.zeros(len(known))
    rated[after[answers]] = table.text[before[answers]]
    return rated


def rate_wording(known: FeatureTable, facets: QueryAnalysis) -> dict[str, Scores]:
    """Rate by length, by speaker, and by the form that the cue asks for."""
    denser = DENSER if facets.script is Script.CJK else 1.0
    lengths = np.maximum(known.lengths, 1) / denser
    rated = {
        LONG: np.clip(np.log(lengths / MAX_SCORED_TERMS) / np.log(MAX_CANDIDATE_LENGTH / MAX_SCORED_TERMS), 0.0, 1.0),
        QUESTION: (known.asks & (known.lengths < MAX_QUESTION_LENGTH)).astype(np.float64),
        ASSISTANT: known.assistant.astype(np.float64),
        INSTRUCTION: (known.is_instruction & ~known.assistant).astype(np.float64),
    }
    if QuestionType.TIME in facets.asks:
        rated[TELLS_TIME] = known.tells_time.astype(np.float64)
    if QuestionType.NUMBER in facets.asks:
        rated[TELLS_NUMBER] = known.tells_number.astype(np.float64)
    return rated


def rate_age(known: FeatureTable, facets: QueryAnalysis) -> Scores:
    """Rate by age if the cue asks for the latest: 1 for the newest candidate, 0 for the oldest."""
    if QuestionType.LATEST not in facets.asks:
        return np.zeros(len(known))
    return _from_worst(known.occurred_at / 1e6)


def rate_importance(known: FeatureTable) -> Scores:
    """Rate by importance above the least important candidate; 0 if all are equal."""
    least = known.importances.min(initial=MAX_IMPORTANCE)
    rated: Scores = (known.importances - least) / (MAX_IMPORTANCE - MIN_IMPORTANCE)
    return rated


def rate_nearness(periods: Sequence[Period], moments: Numbers) -> Scores:
    """Rate candidates within a day of a day that the cue mentions."""
    near = np.zeros(len(moments), dtype=np.bool_)
    for period in periods:
        if period.end - period.start <= DAY + timedelta(hours=2):
            near |= find_within(moments, period.start - DAY, period.end + DAY)
    return near.astype(np.float64)


def _to_best(values: Scores) -> Scores:
    """Divide by the maximum; zeros stay zero."""
    best = values.max(initial=0.0)
    return values / best if best > 0 else np.zeros_like(values)


def _from_worst(values: Scores) -> Scores:
    """Scale between minimum and maximum; equal values become 0."""
    span = np.ptp(values) if len(values) else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)
