"""Inspect a saved recall: explain the rank of each candidate, and rank or ask it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.core.recall.checks import check_filter, check_weights
from recollect.core.recall.saved import SavedRecallData, is_same, rank_again, readable, to_explanation
from recollect.errors import NotFoundError
from recollect.models.filters import Filter
from recollect.models.recall import CandidateOutcome, Cue, Explanation, RankedCandidate, RecallResult, Replay
from recollect.models.service import Scope
from recollect.store.memories import memories
from recollect.store.recall import saved_recalls
from recollect.store.service.scopes import locate
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.recall import recall


async def explain_recall(parts: Dependencies, scope: Scope, recall_id: UUID) -> Explanation:
    """Return a recall's ranking input, and the rank of each candidate."""
    kept = await find_saved_recall(parts, scope, recall_id)
    with readable():
        placings = rank_again(kept, whole=True)
    return to_explanation(kept, await attach_memories(parts, scope, placings), kept.recall_id)


async def replay(
    parts: Dependencies,
    scope: Scope,
    recall_id: UUID,
    weights: Mapping[str, float] | None = None,
    as_of: datetime | None = None,
) -> Replay:
    """Rank a recall's candidates with other weights; or ask it again as of a time, without recording accesses."""
    check_filter(Filter(as_of=as_of))
    kept = await find_saved_recall(parts, scope, recall_id)
    check_weights(weights or {}, kept.inputs.candidates.keys())
    used = {**kept.inputs.weights, **(weights or {})}
    if as_of is None:
        with readable():
            placings = rank_again(kept, weights)
        placings = await attach_memories(parts, scope, placings)
    else:
        place = await locate(parts.database, scope)
        space = place.space.id if place.space else None
        answer = await recall(parts, scope, ask_again(kept, weights, as_of, space), place)
        placings = to_placings(kept, answer)
    return Replay(kept.recall_id, kept.asked_at, used, as_of, placings, is_same(kept, placings))


def ask_again(kept: SavedRecallData, weights: Mapping[str, float] | None, as_of: datetime, space_id: int | None) -> Cue:
    """Build the query of a replay as of a time, with the same vector if recall still reads its space."""
    vector = kept.vector if kept.space_id == space_id else None
    return replace(
        kept.cue,
        embedding=None if vector is None else [float(number) for number in vector],
        limit=kept.limit,
        as_of=as_of,
        # "Yesterday" keeps its original meaning.
        now=kept.cue.now or kept.asked_at,
        weights={**kept.cue.weights, **(weights or {})},
        touch=False,
        consult=False,
        judge=False,
        keep=False,
    )


def to_placings(kept: SavedRecallData, answer: RecallResult) -> tuple[RankedCandidate, ...]:
    """Compare the hits of an answer with those of the recall."""
    before = {hit.id: rank for rank, hit in enumerate(kept.hits, 1)}
    return tuple(
        RankedCandidate(
            id=hit.memory.id,
            fate=CandidateOutcome.HIT,
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


async def attach_memories(
    parts: Dependencies, scope: Scope, placings: Sequence[RankedCandidate]
) -> tuple[RankedCandidate, ...]:
    """Fetch the memories of hits, if they are visible, in the version that was found."""
    ids = [each.id for each in placings if each.fate is CandidateOutcome.HIT]
    found = await memories.fetch_every(parts.database, scope, ids) if ids else {}
    return tuple(replace(each, memory=found.get(each.id)) for each in placings)


async def find_saved_recall(parts: Dependencies, scope: Scope, recall_id: UUID) -> SavedRecallData:
    """Find a saved recall; the error explains why there may be none."""
    kept = await saved_recalls.fetch(parts.database, scope, recall_id)
    if kept is None:
        raise NotFoundError("No such saved recall: it was not saved, has expired, or its memories were forgotten.")
    return kept
