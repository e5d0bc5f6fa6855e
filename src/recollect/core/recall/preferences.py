"""Say what speaks for a candidate beside the channels: its surroundings, its session, who said it, and how.

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
from recollect.models.recall import Asks, Facets, Lineup, Period, Script, Trait

Scores = NDArray[np.float64]
COVERAGE, SURROUNDINGS, SESSION = "coverage", "surroundings", "session"
SESSION_BEST, SESSION_MEANING = "session_best", "session_meaning"
SPEAKER, ANSWER, NEAR_DATE, LATEST = "speaker", "answer", "near_date", "latest"
TELLS_TIME, TELLS_NUMBER = "tells_time", "tells_number"
LONG, QUESTION, ASSISTANT, WISH = "long", "question", "assistant", "wish"
DIVERSITY = "diversity"
"""Not a number of its own: what each hit costs the others of its session where the overall picture is asked for."""
REACH = 2.0
"""What is up to so many places apart stands by each other."""
MOST_BESIDE = 12
"""So many on either side are looked at: of events of one hour there may be very many."""
LONGEST_TELLING, LONGEST_QUESTION = 40, 25
"""In terms: beyond the first, words come to stand in a memory by chance; a longer question tells something as well."""
LONGEST = 1000
DENSER = 3.0
"""A word of Chinese gives about three terms, its characters and their pairs, where one of English gives one."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The candidates side by side, in the order of their ids, with what all preferences look at."""

    traits: Sequence[Trait]
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
    def seat(cls, lineup: Lineup, ids: Sequence[UUID], scaled: Mapping[str, Scores]) -> Bench:
        """Line the candidates up."""
        traits = [lineup.traits[memory_id] for memory_id in ids]
        width = len(lineup.rarities)
        terms = np.zeros((len(ids), width))
        for place, trait in enumerate(traits):
            if width:
                terms[place, list(trait.terms)] = 1.0
        names = {session: number for number, session in enumerate(sorted({trait.session for trait in traits}))}
        sessions = np.array([names[trait.session] for trait in traits], dtype=np.intp)
        none = np.zeros(len(ids))
        places = np.array([trait.place for trait in traits])
        order = np.lexsort((places, sessions))
        text, vector = (np.nan_to_num(scaled.get(name, none)) for name in ("text", "vector"))
        return cls(traits, terms, np.array(lineup.rarities), text, vector, sessions, order)

    @property
    def session_count(self) -> int:
        """Count the sessions."""
        return int(self.sessions.max()) + 1 if len(self.sessions) else 0


def prefer(bench: Bench, facets: Facets) -> dict[str, Scores]:
    """Rate the candidates by every preference that applies."""
    return {
        COVERAGE: rate_coverage(bench),
        **rate_company(bench),
        SPEAKER: _flag(trait.named for trait in bench.traits),
        ANSWER: rate_answers(bench),
        **rate_wording(bench.traits, facets),
        NEAR_DATE: _flag(_is_near(facets.periods, trait) for trait in bench.traits),
        LATEST: rate_age(bench, facets),
    }


def rate_coverage(bench: Bench) -> Scores:
    """Say which part of the cue each candidate has, its rarer terms counting more."""
    whole = bench.rarities.sum()
    return bench.terms @ bench.rarities / whole if whole > 0 else np.zeros(len(bench.traits))


def rate_company(bench: Bench) -> dict[str, Scores]:
    """Say what of the cue the neighbours and the whole session have, and how good the best of the session is."""
    beside = bench.terms.copy()
    ordered, places = bench.terms[bench.order], np.array([trait.place for trait in bench.traits])[bench.order]
    sessions = bench.sessions[bench.order]
    for step in range(1, min(MOST_BESIDE, len(places) - 1) + 1):
        near = (sessions[step:] == sessions[:-step]) & (places[step:] - places[:-step] <= REACH)
        if not near.any():
            break
        later, earlier = bench.order[step:][near], bench.order[:-step][near]
        beside[later] = np.maximum(beside[later], ordered[:-step][near])
        beside[earlier] = np.maximum(beside[earlier], ordered[step:][near])
    company = {SURROUNDINGS: _to_best(beside @ bench.rarities)}
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


def rate_answers(bench: Bench) -> Scores:
    """Rate what somebody says to a question that shares words with the cue, by how much the question shares."""
    rated = np.zeros(len(bench.traits))
    for before, after in zip(bench.order[:-1], bench.order[1:], strict=True):
        asked, told = bench.traits[before], bench.traits[after]
        follows = asked.session == told.session and told.place - asked.place == 1
        if follows and asked.asks and told.kind is Kind.MESSAGE and not told.assistant:
            rated[after] = bench.text[before]
    return rated


def rate_wording(traits: Sequence[Trait], facets: Facets) -> dict[str, Scores]:
    """Rate by length, by who spoke, and by whether a candidate has the form of what is asked for."""
    denser = DENSER if facets.script is Script.CJK else 1.0
    lengths = np.array([max(trait.length, 1) / denser for trait in traits], dtype=np.float64)
    rated = {
        LONG: np.clip(np.log(lengths / LONGEST_TELLING) / np.log(LONGEST / LONGEST_TELLING), 0.0, 1.0),
        QUESTION: _flag(trait.asks and trait.length < LONGEST_QUESTION for trait in traits),
        ASSISTANT: _flag(trait.assistant for trait in traits),
        WISH: _flag(trait.wishes and not trait.assistant for trait in traits),
    }
    if Asks.TIME in facets.asks:
        rated[TELLS_TIME] = _flag(trait.tells_time for trait in traits)
    if Asks.NUMBER in facets.asks:
        rated[TELLS_NUMBER] = _flag(trait.tells_number for trait in traits)
    return rated


def rate_age(bench: Bench, facets: Facets) -> Scores:
    """Rate by age where the cue asks for what is newest: 1 for the newest candidate, 0 for the oldest."""
    if Asks.LATEST not in facets.asks:
        return np.zeros(len(bench.traits))
    return _from_worst(np.array([trait.occurred_at.timestamp() for trait in bench.traits]))


def _is_near(periods: Sequence[Period], trait: Trait) -> bool:
    """Tell whether something happened within a day of a day that the cue names."""
    return any(
        period.end - period.start <= DAY + timedelta(hours=2)
        and period.start - DAY <= trait.occurred_at < period.end + DAY
        for period in periods
    )


def _flag(flags: Iterable[bool]) -> Scores:
    return np.fromiter(flags, dtype=np.float64)


def _to_best(values: Scores) -> Scores:
    """Scale to the best; nothing stays nothing."""
    best = values.max(initial=0.0)
    return values / best if best > 0 else np.zeros_like(values)


def _from_worst(values: Scores) -> Scores:
    """Scale between the worst and the best; equals tell nothing."""
    span = np.ptp(values) if len(values) else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)
