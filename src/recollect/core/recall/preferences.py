"""Rate candidates by features apart from the channels: surroundings, session, speaker, and form.

Each preference gives every candidate a number from 0 to 1, and 0 where it does not apply; its weight says what that is
worth, and is negative where it speaks against a memory. docs/explanation/recall.md has them in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.periods import DAY
from recollect.models.memories import Kind
from recollect.models.recall import Asks, Facets, Features, Period, RankingInput, Script

Scores = NDArray[np.float64]
COVERAGE, SURROUNDINGS, SESSION = "coverage", "surroundings", "session"
SESSION_BEST, SESSION_MEANING = "session_best", "session_meaning"
SPEAKER, ANSWER, NEAR_DATE, LATEST = "speaker", "answer", "near_date", "latest"
TELLS_TIME, TELLS_NUMBER = "tells_time", "tells_number"
LONG, QUESTION, ASSISTANT, INSTRUCTION = "long", "question", "assistant", "instruction"
DIVERSITY = "diversity"
"""Not a number of its own: what each hit costs the others of its session where an overview is asked for."""
REACH = 2.0
"""Memories up to so many positions apart are neighbours."""
MOST_BESIDE = 12
"""So many on either side are looked at: one hour may have very many events."""
LONGEST_TELLING, LONGEST_QUESTION = 40, 25
"""In terms: words beyond the first ones occur by chance; a longer question also says something."""
LONGEST = 1000
DENSER = 3.0
"""A word of Chinese gives about three terms, its characters and their pairs; one of English gives one."""


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The candidates as arrays, in the order of their ids, with what all preferences need."""

    features: Sequence[Features]
    terms: Scores
    """1 where a candidate has a term of the cue, a column for each term."""
    rarities: Scores
    text: Scores
    vector: Scores
    sessions: NDArray[np.intp]
    """The session of each, as a number."""
    order: NDArray[np.intp]
    """Sorted by session, and by place within."""

    @classmethod
    def seat(cls, inputs: RankingInput, ids: Sequence[UUID], scaled: Mapping[str, Scores]) -> CandidateTable:
        """Build the arrays of the candidates."""
        all_features = [inputs.features[memory_id] for memory_id in ids]
        width = len(inputs.rarities)
        terms = np.zeros((len(ids), width))
        for place, its_features in enumerate(all_features):
            if width:
                terms[place, list(its_features.terms)] = 1.0
        names = {
            session: number
            for number, session in enumerate(sorted({its_features.session for its_features in all_features}))
        }
        sessions = np.array([names[its_features.session] for its_features in all_features], dtype=np.intp)
        none = np.zeros(len(ids))
        places = np.array([its_features.place for its_features in all_features])
        order = np.lexsort((places, sessions))
        text, vector = (np.nan_to_num(scaled.get(name, none)) for name in ("text", "vector"))
        return cls(all_features, terms, np.array(inputs.rarities), text, vector, sessions, order)

    @property
    def session_count(self) -> int:
        """Count the sessions."""
        return int(self.sessions.max()) + 1 if len(self.sessions) else 0


def prefer(bench: CandidateTable, facets: Facets) -> dict[str, Scores]:
    """Rate the candidates by every preference that applies."""
    return {
        COVERAGE: rate_coverage(bench),
        **rate_company(bench),
        SPEAKER: _flag(its_features.named for its_features in bench.features),
        ANSWER: rate_answers(bench),
        **rate_wording(bench.features, facets),
        NEAR_DATE: _flag(_is_near(facets.periods, its_features) for its_features in bench.features),
        LATEST: rate_age(bench, facets),
    }


def rate_coverage(bench: CandidateTable) -> Scores:
    """Compute which part of the cue each candidate has, weighted by the rarity of its terms."""
    whole = bench.rarities.sum()
    return bench.terms @ bench.rarities / whole if whole > 0 else np.zeros(len(bench.features))


def rate_company(bench: CandidateTable) -> dict[str, Scores]:
    """Compute what of the cue the neighbours and the whole session have, and the best score of the session."""
    nearby = bench.terms.copy()
    ordered, places = (
        bench.terms[bench.order],
        np.array([its_features.place for its_features in bench.features])[bench.order],
    )
    sessions = bench.sessions[bench.order]
    for step in range(1, min(MOST_BESIDE, len(places) - 1) + 1):
        near = (sessions[step:] == sessions[:-step]) & (places[step:] - places[:-step] <= REACH)
        if not near.any():
            break
        later, earlier = bench.order[step:][near], bench.order[:-step][near]
        nearby[later] = np.maximum(nearby[later], ordered[:-step][near])
        nearby[earlier] = np.maximum(nearby[earlier], ordered[step:][near])
    company = {SURROUNDINGS: _to_best(nearby @ bench.rarities)}
    if bench.session_count < 2:
        return company
    together = np.zeros((bench.session_count, bench.terms.shape[1]))
    np.maximum.at(together, bench.sessions, bench.terms)
    company[SESSION] = _to_best(together @ bench.rarities)[bench.sessions]
    for name, values in ((SESSION_BEST, bench.text + bench.vector), (SESSION_MEANING, bench.vector)):
        best = np.zeros(bench.session_count)
        np.maximum.at(best, bench.sessions, values)
        company[name] = _from_worst(best)[bench.sessions]
    return company


def rate_answers(bench: CandidateTable) -> Scores:
    """Rate answers to a question that shares words with the cue, by how much the question shares."""
    rated = np.zeros(len(bench.features))
    for before, after in zip(bench.order[:-1], bench.order[1:], strict=True):
        asked, told = bench.features[before], bench.features[after]
        follows = asked.session == told.session and told.place - asked.place == 1
        if follows and asked.asks and told.kind is Kind.MESSAGE and not told.assistant:
            rated[after] = bench.text[before]
    return rated


def rate_wording(all_features: Sequence[Features], facets: Facets) -> dict[str, Scores]:
    """Rate by length, by speaker, and by whether a candidate has the form that is asked for."""
    denser = DENSER if facets.script is Script.CJK else 1.0
    lengths = np.array([max(its_features.length, 1) / denser for its_features in all_features], dtype=np.float64)
    rated = {
        LONG: np.clip(np.log(lengths / LONGEST_TELLING) / np.log(LONGEST / LONGEST_TELLING), 0.0, 1.0),
        QUESTION: _flag(its_features.asks and its_features.length < LONGEST_QUESTION for its_features in all_features),
        ASSISTANT: _flag(its_features.assistant for its_features in all_features),
        INSTRUCTION: _flag(its_features.is_instruction and not its_features.assistant for its_features in all_features),
    }
    if Asks.TIME in facets.asks:
        rated[TELLS_TIME] = _flag(its_features.tells_time for its_features in all_features)
    if Asks.NUMBER in facets.asks:
        rated[TELLS_NUMBER] = _flag(its_features.tells_number for its_features in all_features)
    return rated


def rate_age(bench: CandidateTable, facets: Facets) -> Scores:
    """Rate by age where the cue asks for what is newest: 1 for the newest candidate, 0 for the oldest."""
    if Asks.LATEST not in facets.asks:
        return np.zeros(len(bench.features))
    return _from_worst(np.array([its_features.occurred_at.timestamp() for its_features in bench.features]))


def _is_near(periods: Sequence[Period], its_features: Features) -> bool:
    """Tell whether something happened within a day of a day that the cue names."""
    return any(
        period.end - period.start <= DAY + timedelta(hours=2)
        and period.start - DAY <= its_features.occurred_at < period.end + DAY
        for period in periods
    )


def _flag(flags: Iterable[bool]) -> Scores:
    return np.fromiter(flags, dtype=np.float64)


def _to_best(values: Scores) -> Scores:
    """Divide by the best; zeros stay zero."""
    best = values.max(initial=0.0)
    return values / best if best > 0 else np.zeros_like(values)


def _from_worst(values: Scores) -> Scores:
    """Scale between the worst and the best; equal values become 0."""
    span = np.ptp(values) if len(values) else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)
