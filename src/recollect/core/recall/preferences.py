"""Rate candidates by features apart from the channels: surroundings, session, speaker, and form.

Each preference gives every candidate a number from 0 to 1, and 0 where it does not apply; its weight says what that is
worth, and is negative where it speaks against a memory. docs/explanation/recall.md has them in a table.
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
from recollect.models.recall import Asks, Facets, Period, Script

MESSAGE = KINDS.index(Kind.MESSAGE)
COVERAGE, SURROUNDINGS, SESSION = "coverage", "surroundings", "session"
SESSION_BEST, SESSION_MEANING = "session_best", "session_meaning"
SPEAKER, ANSWER, NEAR_DATE, LATEST = "speaker", "answer", "near_date", "latest"
IMPORTANCE, ACCESSED = "importance", "accessed"
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
LEAST_IMPORTANT, MOST_IMPORTANT = 1.0, 10.0
OTHERS = 0.5
"""What it counts that somebody is named who did not do it: "What did Ann give to Bo?" is more likely told by Ann."""
DENSER = 3.0
"""A word of Chinese gives about three terms, its characters and their pairs; one of English gives one."""


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The candidates with what all preferences look at."""

    features: FeatureTable
    terms: Scores
    """1 where a candidate has a term of the cue, a column for each term."""
    rarities: Scores
    text: Scores
    vector: Scores
    order: NDArray[np.intp]
    """Sorted by session, and by place within."""

    @classmethod
    def seat(cls, features: FeatureTable, rarities: Sequence[float], scaled: Mapping[str, Scores]) -> CandidateTable:
        """Line the candidates up."""
        order = np.lexsort((features.places, features.sessions))
        none = np.zeros(len(features))
        text, vector = (np.nan_to_num(scaled.get(name, none)) for name in ("text", "vector"))
        terms = features.terms[:, : len(rarities)].astype(np.float64)
        return cls(features, terms, np.array(rarities, dtype=np.float64), text, vector, order)


def prefer(table: CandidateTable, facets: Facets) -> dict[str, Scores]:
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
    """Say which part of the cue each candidate has, its rarer terms counting more."""
    whole = table.rarities.sum()
    return table.terms @ table.rarities / whole if whole > 0 else np.zeros(len(table.features))


def rate_company(table: CandidateTable) -> dict[str, Scores]:
    """Say what of the cue the neighbours and the whole session have, and how good the best of the session is."""
    beside = table.terms.copy()
    ordered, places = table.terms[table.order], table.features.places[table.order]
    sessions = table.features.sessions[table.order]
    for step in range(1, min(MOST_BESIDE, len(places) - 1) + 1):
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
    """Rate what was said by those whom the cue names; of several, what others say than who did it counts less."""
    rated = known.named.astype(np.float64)
    if actor:
        others = np.array([name not in {"", actor} for name in known.speaker_names], dtype=np.bool_)[known.speakers]
        rated[others] *= OTHERS
    return rated


def rate_answers(table: CandidateTable) -> Scores:
    """Rate what somebody says to a question that shares words with the cue, by how much the question shares."""
    known, before, after = table.features, table.order[:-1], table.order[1:]
    follows = (known.sessions[before] == known.sessions[after]) & (known.places[after] - known.places[before] == 1)
    answers = follows & known.asks[before] & (known.kinds[after] == MESSAGE) & ~known.assistant[after]
    rated = np.zeros(len(known))
    rated[after[answers]] = table.text[before[answers]]
    return rated


def rate_wording(known: FeatureTable, facets: Facets) -> dict[str, Scores]:
    """Rate by length, by who spoke, and by whether a candidate has the form of what is asked for."""
    denser = DENSER if facets.script is Script.CJK else 1.0
    lengths = np.maximum(known.lengths, 1) / denser
    rated = {
        LONG: np.clip(np.log(lengths / LONGEST_TELLING) / np.log(LONGEST / LONGEST_TELLING), 0.0, 1.0),
        QUESTION: (known.asks & (known.lengths < LONGEST_QUESTION)).astype(np.float64),
        ASSISTANT: known.assistant.astype(np.float64),
        INSTRUCTION: (known.is_instruction & ~known.assistant).astype(np.float64),
    }
    if Asks.TIME in facets.asks:
        rated[TELLS_TIME] = known.tells_time.astype(np.float64)
    if Asks.NUMBER in facets.asks:
        rated[TELLS_NUMBER] = known.tells_number.astype(np.float64)
    return rated


def rate_age(known: FeatureTable, facets: Facets) -> Scores:
    """Rate by age where the cue asks for what is newest: 1 for the newest candidate, 0 for the oldest."""
    if Asks.LATEST not in facets.asks:
        return np.zeros(len(known))
    return _from_worst(known.occurred_at / 1e6)


def rate_importance(known: FeatureTable) -> Scores:
    """Rate by how much more important a memory is than the least important candidate: nothing among equals."""
    least = known.importances.min(initial=MOST_IMPORTANT)
    rated: Scores = (known.importances - least) / (MOST_IMPORTANT - LEAST_IMPORTANT)
    return rated


def rate_nearness(periods: Sequence[Period], moments: Numbers) -> Scores:
    """Rate what happened within a day of a day that the cue names."""
    near = np.zeros(len(moments), dtype=np.bool_)
    for period in periods:
        if period.end - period.start <= DAY + timedelta(hours=2):
            near |= find_within(moments, period.start - DAY, period.end + DAY)
    return near.astype(np.float64)


def _to_best(values: Scores) -> Scores:
    """Divide by the best; zeros stay zero."""
    best = values.max(initial=0.0)
    return values / best if best > 0 else np.zeros_like(values)


def _from_worst(values: Scores) -> Scores:
    """Scale between the worst and the best; equal values become 0."""
    span = np.ptp(values) if len(values) else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)
