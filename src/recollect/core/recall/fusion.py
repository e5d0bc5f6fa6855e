"""Rank the candidates of all channels as one list, and explain empty results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.periods import rate_moments
from recollect.core.recall.columns import NO_IDS, Candidates, FeatureTable, Ids, Numbers, RankingInput, Scores, to_uuids
from recollect.core.recall.evidence_scores import EVIDENCE, passes_score_to_evidence, score_evidence
from recollect.core.recall.preferences import COVERAGE, DIVERSITY, SPEAKER, CandidateTable, score_preferences
from recollect.core.recall.relevance import (
    MIN_CHANNEL_SCORE,
    MIN_RELEVANCE,
    TELLING,
    WHOLE,
    estimate,
    relevance_inputs,
)
from recollect.models.recall import ChannelScore, Cue, FusedCandidate, QuestionType
from recollect.models.service import Scope

MAX_USERS = 5
TEXT, VECTOR, TOPIC, SKIPPED = "text", "vector", "topic", "skipped: "
TOPICS = "topics"
"""The part of a hit's score that comes from a topic named by the caller."""


def explain_empty_scope(scope: Scope, users: Sequence[str]) -> str:
    """Return that a scope is empty, and which other users of its agent have memories."""
    said = f"agent {scope.agent} has no memories {f'for user {scope.user}' if scope.user else 'without a user'}"
    if not users:
        return said
    more = " and others" if len(users) > MAX_USERS else ""
    named = ", ".join(user or "(no user)" for user in users[:MAX_USERS])
    return f"{said}; users with memories: {named}{more}"


def explain_no_match(cue: Cue, methods: Mapping[str, str]) -> str:
    """Return why nothing was found: the given restrictions, or the words."""
    given = [*cue.named, *(("channels",) if cue.channels else ())]
    said = f"nothing was found within the given {' and '.join(given)}" if given else "nothing has the words of the cue"
    skipped = methods.get(VECTOR, "")
    return f"{said}; vectors were not compared: {skipped.removeprefix(SKIPPED)}" if SKIPPED in skipped else said


def join(proposals: Mapping[str, Candidates], lent: Mapping[str, Candidates], most: int) -> dict[str, Candidates]:
    """Merge extra candidates with scores in a channel's unit into that channel's candidates.

    The number of candidates stays limited. Candidates in the unit of a channel that was not used count only if no
    channel with such a unit was used.
    """
    asked = lent.keys() & proposals.keys() or lent.keys()
    joined = dict(proposals)
    for channel in sorted(asked):
        own, others = proposals.get(channel, Candidates()), lent[channel]
        both = Candidates(np.concatenate([own.ids, others.ids]), np.concatenate([own.scores, others.scores]))
        joined[channel] = both.select(np.argsort(-both.scores, kind="stable")[:most])
    return joined


class ScaleFloor(Enum):
    """The raw score at which a channel's scale begins; it ends at the channel's best score."""

    ZERO = "zero"
    """Zero means no match: BM25, counts, activations."""
    LOWEST = "lowest"
    """Every candidate has some score, so only the distance from the weakest one counts: cosines."""


FLOORS: Mapping[str, ScaleFloor] = MappingProxyType({"vector": ScaleFloor.LOWEST})
"""The start of each channel's scale; for channels not listed here it is zero."""


@dataclass(frozen=True, slots=True)
class Column:
    """One channel's scores of all candidates; NaN if it did not propose one."""

    proposed: Candidates
    rows: NDArray[np.intp]
    """The index of each candidate among the channel's proposals; -1 if others proposed it."""
    scores: Scores
    scaled: Scores

    def parts(self, places: NDArray[np.intp], weight: float) -> list[ChannelScore | None]:
        """Return the channel's part in each of some candidates; None if it has no score."""
        told = zip(
            self.scores[places].tolist(),
            (weight * self.scaled[places]).tolist(),
            self.rows[places].tolist(),
            strict=True,
        )
        return [
            None
            if math.isnan(score)
            else ChannelScore(score, share, self.proposed.factors_of(row) if row >= 0 else None)
            for score, share, row in told
        ]


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """Scores of every channel and preference for all candidates, before weighing."""

    ids: Ids
    columns: Mapping[str, Column]
    preferences: Mapping[str, Scores]
    sessions: Numbers | None = None
    """The session of each candidate as a number, if known."""


def fuse(inputs: RankingInput) -> list[FusedCandidate]:
    """Rank candidates by the weighted sum of scaled scores and preferences.

    Ties come newest first, or in the order of the channel if there is only one.
    """
    rated = rate(inputs)
    weighed = {
        name: inputs.weights[name] * values
        for name, values in rated.preferences.items()
        if inputs.weights.get(name, 0.0) and values.any()
    }
    if passes_score_to_evidence(inputs):
        lent = score_evidence(rated.ids, _add_up(inputs, rated, weighed, 1.0), inputs.evidence)
        weighed |= {EVIDENCE: inputs.weights[EVIDENCE] * lent} if lent.any() else {}
    return _rank(inputs, rated, weighed)


def rate(inputs: RankingInput) -> ScoredCandidates:
    """Compute the scores of the weighted channels, and of all preferences."""
    voiced = {
        name: some.select(np.isfinite(some.scores))
        for name, some in sorted(inputs.candidates.items())
        if len(some) and inputs.weights.get(name, 0.0) > 0
    }
    through = inputs.evidence.sources if voiced and passes_score_to_evidence(inputs) else NO_IDS
    proposed = np.concatenate([NO_IDS, *(some.ids for some in voiced.values()), through])
    ascending, first = np.unique(proposed, return_index=True)
    order = np.argsort(first, kind="stable") if len(voiced) == 1 else np.arange(len(ascending))[::-1]
    ids = ascending[order]
    seats = np.empty(len(ids), dtype=np.intp)
    seats[order] = np.arange(len(ids))
    known = (
        inputs.features.select(inputs.features.find_indices(ids)) if inputs.features is not None and len(ids) else None
    )
    columns = {
        name: _fill(name, some, seats[np.searchsorted(ascending, some.ids)], len(ids), known, inputs)
        for name, some in voiced.items()
        if len(some)
    }
    if known is None:
        return ScoredCandidates(ids, columns, {})
    table = CandidateTable.index_candidates(
        known, inputs.rarities, {name: column.scaled for name, column in columns.items()}
    )
    return ScoredCandidates(ids, columns, score_preferences(table, inputs.facets), known.sessions)


def _fill(
    channel: str,
    some: Candidates,
    seats: NDArray[np.intp],
    size: int,
    known: FeatureTable | None,
    inputs: RankingInput,
) -> Column:
    """Put a channel's scores at their indices among all IDs, and complete them if possible."""
    scores, rows = np.full(size, np.nan), np.full(size, -1, dtype=np.intp)
    # If a candidate is proposed twice, the better score counts: it is written last.
    order = np.argsort(-some.scores, kind="stable")[::-1]
    scores[seats[order]], rows[seats[order]] = some.scores[order], order
    if known is not None:
        _complete(inputs, known, channel, scores)
    return Column(some, rows, scores, _scale(scores, FLOORS.get(channel, ScaleFloor.ZERO)))


def _complete(inputs: RankingInput, known: FeatureTable, channel: str, scores: Scores) -> None:
    """Score the proposals of other channels, if a channel's score follows from the features."""
    missing = np.flatnonzero(np.isnan(scores))
    if not len(missing) or channel not in {"text", "vector", "date"}:
        return
    if channel == "vector":
        found = known.cosines[missing]
    elif channel == "text":
        # Its exact score is not known, but a higher score than the lowest one would have been proposed.
        found = np.minimum(known.terms[missing] @ np.array(inputs.rarities), np.nanmin(scores))
    else:
        found = rate_moments(inputs.facets.periods, known.occurred_at[missing])
    # Candidates that a channel cannot find get no score from it.
    scores[missing] = np.where(found == 0, np.nan, found)


def _rank(inputs: RankingInput, rated: ScoredCandidates, preferences: Mapping[str, Scores]) -> list[FusedCandidate]:
    """Add up the shares and sort; for overview questions, spread the hits over sessions."""
    gains = [inputs.weights[name] for name in preferences if inputs.weights[name] > 0]
    total = math.fsum((*(inputs.weights[name] for name in rated.columns), *gains))
    if not len(rated.ids) or total <= 0:
        return []
    # A single channel ranks alone.
    several = inputs.features is not None or len(rated.columns) > 1
    filed = rated.columns.get(TOPIC) if inputs.facets.topics_first and several else None
    # Candidates with this topic use the upper half of the scale, all others the lower half.
    total *= 1 if filed is None else 2
    sums = _add_up(inputs, rated, preferences, total)
    order = np.argsort(-sums, kind="stable")
    limit = max(inputs.limit, 0)
    if filed is not None:
        raised = np.where(np.isnan(filed.scaled), sums, (1 + filed.scaled) / 2)
        order = np.lexsort((-sums, -raised))
        preferences = {**preferences, TOPICS: (raised - sums) * total}
        return _explain(inputs, rated, order[:limit], total, preferences)
    spread = (
        max(inputs.weights.get(DIVERSITY, 0.0), 0.0) / total if QuestionType.OVERVIEW in inputs.facets.asks else 0.0
    )
    if not spread or rated.sessions is None:
        return _explain(inputs, rated, order[:limit], total, preferences)
    best = order[: 2 * limit + 20]
    ranked = _explain(inputs, rated, best, total, preferences)
    return _diversify(ranked, rated.sessions[best].tolist(), limit, spread)


def _add_up(inputs: RankingInput, rated: ScoredCandidates, preferences: Mapping[str, Scores], total: float) -> Scores:
    """Add up the shares of channels and preferences, divided by a total."""
    sums = np.zeros(len(rated.ids))
    for name, column in rated.columns.items():
        sums += inputs.weights[name] / total * np.nan_to_num(column.scaled)
    for values in preferences.values():
        sums += values / total
    return sums


def _explain(
    inputs: RankingInput,
    rated: ScoredCandidates,
    places: NDArray[np.intp],
    total: float,
    preferences: Mapping[str, Scores],
) -> list[FusedCandidate]:
    """Return the parts of every channel and preference in the scores of some candidates."""
    parts = {name: column.parts(places, inputs.weights[name] / total) for name, column in rated.columns.items()}
    extras = {name: (values[places] / total).tolist() for name, values in preferences.items()}
    relevances = rate_relevance(inputs, rated, places)
    ranked: list[FusedCandidate] = []
    for row, memory_id in enumerate(to_uuids(rated.ids[places])):
        channels = {name: part for name, column in parts.items() if (part := column[row]) is not None}
        preferred = {name: values[row] for name, values in extras.items() if values[row]}
        score = math.fsum((*(part.share for part in channels.values()), *preferred.values()))
        ranked.append(FusedCandidate(memory_id, min(score, 1.0), channels, preferred, relevances[row]))
    return ranked


def rate_relevance(inputs: RankingInput, rated: ScoredCandidates, places: NDArray[np.intp]) -> Sequence[float | None]:
    """Return the relevance of some candidates; None if too little is known of them."""
    if inputs.features is None or not len(places):
        return [None] * len(places)
    found = estimate(measure(rated, places), inputs.facets.script, inputs.model if VECTOR in rated.columns else "")
    enough = rated.preferences[COVERAGE][places] >= WHOLE
    for name in TELLING & rated.columns.keys():
        if name == TOPIC and not inputs.facets.topics:
            # A word of the cue that is also the name of a topic may mean something else.
            continue
        column = rated.columns[name]
        enough |= (column.rows[places] >= 0) & (column.scores[places] >= MIN_CHANNEL_SCORE.get(name, -np.inf))
    relevances: list[float] = np.where(enough, np.maximum(found, MIN_RELEVANCE), found).tolist()
    return relevances


def measure(rated: ScoredCandidates, places: NDArray[np.intp]) -> Scores:
    """Return the measures for the estimate of relevance."""
    nothing = np.zeros(len(rated.ids))
    text, vector = rated.columns.get(TEXT), rated.columns.get(VECTOR)
    return relevance_inputs(
        coverage=rated.preferences[COVERAGE],
        text=text.scores if text else nothing,
        text_scaled=text.scaled if text else nothing,
        speaker=rated.preferences[SPEAKER],
        vector=vector.scores if vector else nothing,
        places=places,
    )


def _diversify(
    ranked: Sequence[FusedCandidate], sessions: Sequence[int], limit: int, spread: float
) -> list[FusedCandidate]:
    """Choose the best candidates in turn; each choice lowers the scores of the others in its session."""
    waiting = list(zip(ranked, sessions, strict=True))
    taken: dict[int, int] = {}
    chosen: list[FusedCandidate] = []
    while waiting and len(chosen) < limit:
        penalties = [spread * taken.get(session, 0) for _, session in waiting]
        best = max(range(len(waiting)), key=lambda place: (waiting[place][0].score - penalties[place], -place))
        (hit, session), penalty = waiting.pop(best), penalties[best]
        taken[session] = taken.get(session, 0) + 1
        if penalty:
            hit = replace(hit, score=hit.score - penalty, preferences={**hit.preferences, DIVERSITY: -penalty})
        chosen.append(hit)
    return chosen


def _scale(scores: Scores, floor: ScaleFloor) -> Scores:
    """Map raw scores to 0..1; missing ones stay missing."""
    # Halved, because the difference of two floats can exceed the range of floats.
    lowest = np.nanmin(scores) / 2 if floor is ScaleFloor.LOWEST else 0.0
    span = np.nanmax(scores) / 2 - lowest
    if span <= 0:
        return np.where(np.isnan(scores), np.nan, 1.0 if floor is ScaleFloor.LOWEST else 0.0)
    return np.maximum(scores / 2 - lowest, 0.0) / span
