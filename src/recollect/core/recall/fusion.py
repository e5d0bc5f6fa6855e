"""Rank the candidates of all channels as one list, and say why nothing was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.periods import rate_moment
from recollect.core.recall.preferences import DIVERSITY, CandidateTable, prefer
from recollect.models.recall import Asks, Candidate, ChannelScore, Cue, Ranked, RankingInput
from recollect.models.service import Scope

MOST_USERS = 5
RESTRICTIONS = ("channels", "topics", "since", "until")
"""Fields that restrict a cue in addition to its filter."""
VECTOR, SKIPPED = "vector", "skipped: "
Scores = NDArray[np.float64]


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
    given = [*cue.named, *(name for name in RESTRICTIONS if getattr(cue, name))]
    said = f"nothing was found within the given {' and '.join(given)}" if given else "nothing has the words of the cue"
    skipped = methods.get(VECTOR, "")
    return f"{said}; vectors were not compared: {skipped.removeprefix(SKIPPED)}" if SKIPPED in skipped else said


def join(
    proposals: Mapping[str, Sequence[Candidate]], lent: Mapping[str, Sequence[Candidate]], most: int
) -> dict[str, Sequence[Candidate]]:
    """Let candidates that are scored in a channel's unit stand among that channel's own, as many as it may propose.

    What is in the unit of a channel that nobody asked counts only where no channel with such a unit was asked.
    """
    asked = lent.keys() & proposals.keys() or lent.keys()
    joined = dict(proposals)
    for channel in sorted(asked):
        both = [*proposals.get(channel, ()), *lent[channel]]
        joined[channel] = sorted(both, key=lambda candidate: candidate.score, reverse=True)[:most]
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

    candidates: Sequence[Candidate | None]
    scores: Scores
    scaled: Scores

    def part(self, place: int, weight: float) -> ChannelScore:
        """Return the channel's part in one candidate."""
        candidate = self.candidates[place]
        factors = candidate.factors if candidate else None
        return ChannelScore(float(self.scores[place]), float(weight * self.scaled[place]), factors)


@dataclass(frozen=True, slots=True)
class Rated:
    """Scores of every channel and preference for all candidates, before weighing."""

    ids: Sequence[UUID]
    columns: Mapping[str, Column]
    preferences: Mapping[str, Scores]


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
    return _rank(inputs, rated.ids, rated.columns, weighed)


def rate(inputs: RankingInput) -> Rated:
    """Compute the scores of the channels that count, and of all preferences."""
    voiced = {
        name: some for name, some in sorted(inputs.candidates.items()) if some and inputs.weights.get(name, 0.0) > 0
    }
    ids = list({each.id: None for some in voiced.values() for each in some if math.isfinite(each.score)})
    if len(voiced) > 1:
        ids.sort(reverse=True)
    places = {memory_id: place for place, memory_id in enumerate(ids)}
    columns = {name: column for name, some in voiced.items() if (column := _fill(inputs, name, some, ids, places))}
    if not inputs.features or not ids:
        return Rated(ids, columns, {})
    bench = CandidateTable.seat(inputs, ids, {name: column.scaled for name, column in columns.items()})
    return Rated(ids, columns, prefer(bench, inputs.facets))


def _fill(
    inputs: RankingInput, channel: str, some: Sequence[Candidate], ids: Sequence[UUID], places: Mapping[UUID, int]
) -> Column | None:
    """Sort a channel's scores by the ids, and compute its score of what others proposed, where it can."""
    candidates: list[Candidate | None] = [None] * len(ids)
    scores = np.full(len(ids), np.nan)
    for each in some:
        place = places.get(each.id)
        if place is not None and math.isfinite(each.score) and not scores[place] >= each.score:
            candidates[place], scores[place] = each, each.score
    if np.isnan(scores).all():
        return None
    _complete(inputs, channel, ids, scores)
    return Column(candidates, scores, _scale(scores, FLOORS.get(channel, Floor.ZERO)))


def _complete(inputs: RankingInput, channel: str, ids: Sequence[UUID], scores: Scores) -> None:
    """Score what others proposed, where a channel's score follows from the features."""
    if not inputs.features or channel not in {"text", "vector", "date"}:
        return
    weakest = float(np.nanmin(scores))
    for place in np.flatnonzero(np.isnan(scores)).tolist():
        its_features = inputs.features[ids[place]]
        if channel == "vector":
            score = its_features.cosine
        elif channel == "text":
            # Its weight in each is not known; but if it were more than the weakest has, it would be proposed.
            rarities = [inputs.rarities[term] for term in its_features.terms] if inputs.rarities else []
            score = min(math.fsum(rarities), weakest)
        else:
            score = rate_moment(inputs.facets.periods, its_features.occurred_at)
        # A channel has no score for what it could not have found.
        scores[place] = score or math.nan


def _rank(
    inputs: RankingInput, ids: Sequence[UUID], columns: Mapping[str, Column], preferences: Mapping[str, Scores]
) -> list[Ranked]:
    """Add up the shares and sort; for an overview, spread the hits over the sessions."""
    gains = [inputs.weights[name] for name in preferences if inputs.weights[name] > 0]
    total = math.fsum((*(inputs.weights[name] for name in columns), *gains))
    if not ids or total <= 0:
        return []
    sums = np.zeros(len(ids))
    for name, column in columns.items():
        sums += inputs.weights[name] / total * np.nan_to_num(column.scaled)
    for values in preferences.values():
        sums += values / total
    order = np.argsort(-sums, kind="stable")
    limit = max(inputs.limit, 0)
    spread = max(inputs.weights.get(DIVERSITY, 0.0), 0.0) / total if Asks.OVERVIEW in inputs.facets.asks else 0.0
    best = order[: 2 * limit + 20] if spread and inputs.features else order[:limit]
    ranked = [_explain(inputs, ids[place], int(place), total, columns, preferences) for place in best]
    return _diversify(ranked, inputs, spread) if spread and inputs.features else ranked


def _explain(
    inputs: RankingInput,
    memory_id: UUID,
    place: int,
    total: float,
    columns: Mapping[str, Column],
    preferences: Mapping[str, Scores],
) -> Ranked:
    """Return what every channel and preference adds to one candidate."""
    parts = {
        name: column.part(place, inputs.weights[name] / total)
        for name, column in columns.items()
        if not math.isnan(column.scores[place])
    }
    extras = {name: float(values[place] / total) for name, values in preferences.items() if values[place]}
    score = math.fsum((*(part.share for part in parts.values()), *extras.values()))
    return Ranked(memory_id, min(score, 1.0), parts, extras)


def _diversify(ranked: Sequence[Ranked], inputs: RankingInput, spread: float) -> list[Ranked]:
    """Take the best in turn, where each one lowers the others of its session a little."""
    waiting = list(ranked)
    taken: dict[str, int] = {}
    chosen: list[Ranked] = []
    while waiting and len(chosen) < inputs.limit:
        penalties = [spread * taken.get(inputs.features[hit.id].session, 0) for hit in waiting]
        best = max(range(len(waiting)), key=lambda place: (waiting[place].score - penalties[place], -place))
        hit, penalty = waiting.pop(best), penalties[best]
        session = inputs.features[hit.id].session
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
