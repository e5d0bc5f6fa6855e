"""Rank the candidates of all channels as one list, and say why nothing was found."""

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
from recollect.core.recall.lending import EVIDENCE, lend, lends
from recollect.core.recall.preferences import COVERAGE, DIVERSITY, SPEAKER, CandidateTable, prefer
from recollect.core.recall.relevance import ENOUGH, LEAST_TELLING, TELLING, WHOLE, arrange, estimate
from recollect.models.recall import Asks, ChannelScore, Cue, Ranked
from recollect.models.service import Scope

MOST_USERS = 5
TEXT, VECTOR, TOPIC, SKIPPED = "text", "vector", "topic", "skipped: "
TOPICS = "topics"
"""What a hit owes to being filed under a topic that the caller named."""


def tell_empty(scope: Scope, users: Sequence[str]) -> str:
    """Say that a scope is empty, and which others of its agent are not, as far as they are given."""
    said = f"agent {scope.agent} has no memories with {name_user(scope.user)}"
    if not users:
        return said
    more = " and others" if len(users) > MOST_USERS else ""
    return f"{said}; users with memories: {', '.join(map(name_user, users[:MOST_USERS]))}{more}"


def name_user(user: str) -> str:
    """Name a user; an agent's own memories have none."""
    return user or "no user"


def tell_unmatched(cue: Cue, methods: Mapping[str, str]) -> str:
    """Say why nothing was found: the restrictions that were given, or the words."""
    given = [*cue.named, *(("channels",) if cue.channels else ())]
    said = f"nothing was found within the given {' and '.join(given)}" if given else "nothing has the words of the cue"
    skipped = methods.get(VECTOR, "")
    return f"{said}; vectors were not compared: {skipped.removeprefix(SKIPPED)}" if SKIPPED in skipped else said


def join(proposals: Mapping[str, Candidates], lent: Mapping[str, Candidates], most: int) -> dict[str, Candidates]:
    """Let candidates that are scored in a channel's unit stand among that channel's own, as many as it may propose.

    What is in the unit of a channel that nobody asked counts only where no channel with such a unit was asked.
    """
    asked = lent.keys() & proposals.keys() or lent.keys()
    joined = dict(proposals)
    for channel in sorted(asked):
        own, others = proposals.get(channel, Candidates()), lent[channel]
        both = Candidates(np.concatenate([own.ids, others.ids]), np.concatenate([own.scores, others.scores]))
        joined[channel] = both.take(np.argsort(-both.scores, kind="stable")[:most])
    return joined


class Floor(Enum):
    """The raw score at which a channel's scale begins; it ends at the channel's best score."""

    ZERO = "zero"
    """Nothing found means nothing scored: BM25, counts, activations."""
    LOWEST = "lowest"
    """Everything has some score, so only the distance from the weakest candidate counts: cosines."""


FLOORS: Mapping[str, Floor] = MappingProxyType({"vector": Floor.LOWEST})
"""Where each channel's scale begins; a channel not named here begins at zero."""


@dataclass(frozen=True, slots=True)
class Column:
    """One channel's scores of all candidates; NaN where it did not propose one."""

    proposed: Candidates
    rows: NDArray[np.intp]
    """Where each stands among what the channel proposed; -1 for what others did."""
    scores: Scores
    scaled: Scores

    def parts(self, places: NDArray[np.intp], weight: float) -> list[ChannelScore | None]:
        """Give the channel's part in each of some candidates; None where it has no say."""
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
class Rated:
    """Scores of every channel and preference for all candidates, before weighing."""

    ids: Ids
    columns: Mapping[str, Column]
    preferences: Mapping[str, Scores]
    sessions: Numbers | None = None
    """The session of each, as a number, where it is known."""


def fuse(inputs: RankingInput) -> list[Ranked]:
    """Rank candidates by the weighted sum of scaled scores and preferences.

    Equals come newest first, or in the order of the channel where only one has a say.
    """
    rated = rate(inputs)
    weighed = {
        name: inputs.weights[name] * values
        for name, values in rated.preferences.items()
        if inputs.weights.get(name, 0.0) and values.any()
    }
    if lends(inputs):
        lent = lend(rated.ids, _add_up(inputs, rated, weighed, 1.0), inputs.evidence)
        weighed |= {EVIDENCE: inputs.weights[EVIDENCE] * lent} if lent.any() else {}
    return _rank(inputs, rated, weighed)


def rate(inputs: RankingInput) -> Rated:
    """Compute the scores of the channels that count, and of all preferences."""
    voiced = {
        name: some.take(np.isfinite(some.scores))
        for name, some in sorted(inputs.candidates.items())
        if len(some) and inputs.weights.get(name, 0.0) > 0
    }
    through = inputs.evidence.sources if voiced and lends(inputs) else NO_IDS
    proposed = np.concatenate([NO_IDS, *(some.ids for some in voiced.values()), through])
    ascending, first = np.unique(proposed, return_index=True)
    order = np.argsort(first, kind="stable") if len(voiced) == 1 else np.arange(len(ascending))[::-1]
    ids = ascending[order]
    seats = np.empty(len(ids), dtype=np.intp)
    seats[order] = np.arange(len(ids))
    known = inputs.features.take(inputs.features.find(ids)) if inputs.features is not None and len(ids) else None
    columns = {
        name: _fill(name, some, seats[np.searchsorted(ascending, some.ids)], len(ids), known, inputs)
        for name, some in voiced.items()
        if len(some)
    }
    if known is None:
        return Rated(ids, columns, {})
    table = CandidateTable.seat(known, inputs.rarities, {name: column.scaled for name, column in columns.items()})
    return Rated(ids, columns, prefer(table, inputs.facets), known.sessions)


def _fill(
    channel: str,
    some: Candidates,
    seats: NDArray[np.intp],
    size: int,
    known: FeatureTable | None,
    inputs: RankingInput,
) -> Column:
    """Bring a channel's scores to their seats among all ids, and let it score what others proposed, where it can."""
    scores, rows = np.full(size, np.nan), np.full(size, -1, dtype=np.intp)
    # Of what is proposed twice, the better counts: it is written last.
    order = np.argsort(-some.scores, kind="stable")[::-1]
    scores[seats[order]], rows[seats[order]] = some.scores[order], order
    if known is not None:
        _complete(inputs, known, channel, scores)
    return Column(some, rows, scores, _scale(scores, FLOORS.get(channel, Floor.ZERO)))


def _complete(inputs: RankingInput, known: FeatureTable, channel: str, scores: Scores) -> None:
    """Score what others proposed, where a channel's score follows from what is known of a memory."""
    missing = np.flatnonzero(np.isnan(scores))
    if not len(missing) or channel not in {"text", "vector", "date"}:
        return
    if channel == "vector":
        found = known.cosines[missing]
    elif channel == "text":
        # What it weighs in each is not known; but if it were more than the weakest has, it would be proposed.
        found = np.minimum(known.terms[missing] @ np.array(inputs.rarities), np.nanmin(scores))
    else:
        found = rate_moments(inputs.facets.periods, known.occurred_at[missing])
    # Of what a channel would not have found at all it says nothing.
    scores[missing] = np.where(found == 0, np.nan, found)


def _rank(inputs: RankingInput, rated: Rated, preferences: Mapping[str, Scores]) -> list[Ranked]:
    """Add up the shares and sort; a ranking for the overall picture is then spread over the sessions."""
    gains = [inputs.weights[name] for name in preferences if inputs.weights[name] > 0]
    total = math.fsum((*(inputs.weights[name] for name in rated.columns), *gains))
    if not len(rated.ids) or total <= 0:
        return []
    # A channel that is asked alone ranks by itself.
    several = inputs.features is not None or len(rated.columns) > 1
    filed = rated.columns.get(TOPIC) if inputs.facets.topics_first and several else None
    # What is filed there has the upper half of the scale, and all else the lower.
    total *= 1 if filed is None else 2
    sums = _add_up(inputs, rated, preferences, total)
    order = np.argsort(-sums, kind="stable")
    limit = max(inputs.limit, 0)
    if filed is not None:
        raised = np.where(np.isnan(filed.scaled), sums, (1 + filed.scaled) / 2)
        order = np.lexsort((-sums, -raised))
        preferences = {**preferences, TOPICS: (raised - sums) * total}
        return _explain(inputs, rated, order[:limit], total, preferences)
    spread = max(inputs.weights.get(DIVERSITY, 0.0), 0.0) / total if Asks.OVERVIEW in inputs.facets.asks else 0.0
    if not spread or rated.sessions is None:
        return _explain(inputs, rated, order[:limit], total, preferences)
    best = order[: 2 * limit + 20]
    ranked = _explain(inputs, rated, best, total, preferences)
    return _diversify(ranked, rated.sessions[best].tolist(), limit, spread)


def _add_up(inputs: RankingInput, rated: Rated, preferences: Mapping[str, Scores], total: float) -> Scores:
    """Add the shares of channels and preferences, as parts of a total."""
    sums = np.zeros(len(rated.ids))
    for name, column in rated.columns.items():
        sums += inputs.weights[name] / total * np.nan_to_num(column.scaled)
    for values in preferences.values():
        sums += values / total
    return sums


def _explain(
    inputs: RankingInput, rated: Rated, places: NDArray[np.intp], total: float, preferences: Mapping[str, Scores]
) -> list[Ranked]:
    """Say what every channel and preference adds to each of some candidates."""
    parts = {name: column.parts(places, inputs.weights[name] / total) for name, column in rated.columns.items()}
    extras = {name: (values[places] / total).tolist() for name, values in preferences.items()}
    relevances = rate_relevance(inputs, rated, places)
    ranked: list[Ranked] = []
    for row, memory_id in enumerate(to_uuids(rated.ids[places])):
        channels = {name: part for name, column in parts.items() if (part := column[row]) is not None}
        preferred = {name: values[row] for name, values in extras.items() if values[row]}
        score = math.fsum((*(part.share for part in channels.values()), *preferred.values()))
        ranked.append(Ranked(memory_id, min(score, 1.0), channels, preferred, relevances[row]))
    return ranked


def rate_relevance(inputs: RankingInput, rated: Rated, places: NDArray[np.intp]) -> Sequence[float | None]:
    """Say how likely each of the best helps with the cue; None where too little is known of them."""
    if inputs.features is None or not len(places):
        return [None] * len(places)
    found = estimate(measure(rated, places), inputs.facets.script, inputs.model if VECTOR in rated.columns else "")
    enough = rated.preferences[COVERAGE][places] >= WHOLE
    for name in TELLING & rated.columns.keys():
        if name == TOPIC and not inputs.facets.topics:
            # A word of the cue that is also a topic's name may mean something else.
            continue
        column = rated.columns[name]
        enough |= (column.rows[places] >= 0) & (column.scores[places] >= LEAST_TELLING.get(name, -np.inf))
    relevances: list[float] = np.where(enough, np.maximum(found, ENOUGH), found).tolist()
    return relevances


def measure(rated: Rated, places: NDArray[np.intp]) -> Scores:
    """Measure what relevance is estimated from."""
    nothing = np.zeros(len(rated.ids))
    text, vector = rated.columns.get(TEXT), rated.columns.get(VECTOR)
    return arrange(
        coverage=rated.preferences[COVERAGE],
        text=text.scores if text else nothing,
        text_scaled=text.scaled if text else nothing,
        speaker=rated.preferences[SPEAKER],
        vector=vector.scores if vector else nothing,
        places=places,
    )


def _diversify(ranked: Sequence[Ranked], sessions: Sequence[int], limit: int, spread: float) -> list[Ranked]:
    """Take the best in turn, where each that is taken makes the others of its session a little less welcome."""
    waiting = list(zip(ranked, sessions, strict=True))
    taken: dict[int, int] = {}
    chosen: list[Ranked] = []
    while waiting and len(chosen) < limit:
        penalties = [spread * taken.get(session, 0) for _, session in waiting]
        best = max(range(len(waiting)), key=lambda place: (waiting[place][0].score - penalties[place], -place))
        (hit, session), penalty = waiting.pop(best), penalties[best]
        taken[session] = taken.get(session, 0) + 1
        if penalty:
            hit = replace(hit, score=hit.score - penalty, preferences={**hit.preferences, DIVERSITY: -penalty})
        chosen.append(hit)
    return chosen


def _scale(scores: Scores, floor: Floor) -> Scores:
    """Map raw scores onto 0..1; missing ones stay missing."""
    # Halved, because the distance of two floats can be more than a float holds.
    lowest = np.nanmin(scores) / 2 if floor is Floor.LOWEST else 0.0
    span = np.nanmax(scores) / 2 - lowest
    if span <= 0:
        return np.where(np.isnan(scores), np.nan, 1.0 if floor is Floor.LOWEST else 0.0)
    return np.maximum(scores / 2 - lowest, 0.0) / span
