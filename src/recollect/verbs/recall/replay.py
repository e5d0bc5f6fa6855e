"""Look back at a kept recall: explain the place of each candidate, and rank or ask it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.core.recall.checks import check_filter, check_weights
from recollect.core.recall.kept import Kept, is_same, rank_again, to_explanation
from recollect.errors import NotFoundError
from recollect.models.kept import Replay
from recollect.models.recall import Cue, Explanation, Fate, Filter, Placing, Recollection
from recollect.models.service import Scope
from recollect.store.memories import memories
from recollect.store.recall import kept_recalls
from recollect.store.service.scopes import locate
from recollect.verbs.parts import Parts
from recollect.verbs.recall.recall import recall


async def explain(parts: Parts, scope: Scope, recall_id: UUID) -> Explanation:
    """Return a recall's ranking input, and the place of each candidate."""
    kept = await find(parts, scope, recall_id)
    placings = rank_again(kept, whole=True)
    return to_explanation(kept, await show(parts, scope, placings), kept.recall_id)


async def replay(
    parts: Parts,
    scope: Scope,
    recall_id: UUID,
    weights: Mapping[str, float] | None = None,
    as_of: datetime | None = None,
) -> Replay:
    """Rank what a recall found by other weights; or ask it again, as of a moment, without noting the access."""
    check_filter(Filter(as_of=as_of))
    kept = await find(parts, scope, recall_id)
    check_weights(weights or {}, kept.inputs.candidates.keys())
    used = {**kept.inputs.weights, **(weights or {})}
    if as_of is None:
        placings = await show(parts, scope, rank_again(kept, weights))
    else:
        place = await locate(parts.database, scope)
        space = place.space.id if place.space else None
        answer = await recall(parts, scope, ask_again(kept, weights, as_of, space), place)
        placings = to_placings(kept, answer)
    return Replay(kept.recall_id, kept.asked_at, used, as_of, placings, is_same(kept, placings))


def ask_again(kept: Kept, weights: Mapping[str, float] | None, as_of: datetime, space_id: int | None) -> Cue:
    """Make the cue of a replay: as of a moment, by the same vector where recall still reads its space."""
    vector = kept.vector if kept.space_id == space_id else None
    return replace(
        kept.cue,
        embedding=None if vector is None else [float(number) for number in vector],
        limit=kept.limit,
        as_of=as_of,
        # "Yesterday" still means what it meant then.
        now=kept.cue.now or kept.asked_at,
        weights={**kept.cue.weights, **(weights or {})},
        touch=False,
        consult=False,
        judge=False,
        keep=False,
    )


def to_placings(kept: Kept, answer: Recollection) -> tuple[Placing, ...]:
    """Compare the hits of an answer with those of the recall."""
    before = {hit.id: rank for rank, hit in enumerate(kept.hits, 1)}
    return tuple(
        Placing(
            id=hit.memory.id,
            fate=Fate.HIT,
            rank=rank,
            score=hit.score,
            channels=hit.channels,
            preferences=hit.preferences,
            relevance=hit.relevance,
            duplicates=hit.duplicates,
            before=before.get(hit.memory.id),
            memory=hit.memory,
        )
        for rank, hit in enumerate(answer.hits, 1)
    )


async def show(parts: Parts, scope: Scope, placings: Sequence[Placing]) -> tuple[Placing, ...]:
    """Fetch the memories of hits, as far as they are visible, in the version that was found."""
    ids = [each.id for each in placings if each.fate is Fate.HIT]
    found = await memories.fetch_every(parts.database, scope, ids) if ids else {}
    return tuple(replace(each, memory=found.get(each.id)) for each in placings)


async def find(parts: Parts, scope: Scope, recall_id: UUID) -> Kept:
    """Find a kept recall, or say why there may be none."""
    kept = await kept_recalls.fetch(parts.database, scope, recall_id)
    if kept is None:
        raise NotFoundError(
            "There is no such recall in this scope: it was not kept, its time is over, or what it found was forgotten."
        )
    return kept
