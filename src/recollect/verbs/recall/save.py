"""Save a recall after its answer is made, and list saved recalls; an error here does not fail the answer."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.memories.ids import RANDOM_BYTES, memory_id
from recollect.core.recall.columns import RankingInput
from recollect.core.recall.saved import SavedRecallData, drop_non_finite, rank_again, to_explanation, to_hits
from recollect.core.text.checks import check_limit
from recollect.models.recall import Cue, RecallResult, SavedRecallPage
from recollect.models.service import Scope
from recollect.store.recall import saved_recalls
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.rank import DEFAULT_LIMIT

KEEPING_SHARE = 0.1
"""The share of the deadline for saving a recall; an answer that was not saved is better than a late one."""
LOG = logging.getLogger("recollect.recalls")


async def keep(
    parts: Dependencies,
    place: ScopeHandle,
    cue: Cue,
    vector: NDArray[np.float32] | None,
    inputs: RankingInput,
    recollection: RecallResult,
) -> RecallResult:
    """Save a recall if the query or else the service requests it; set the ID in the answer."""
    if place.scope_id is None or not is_kept(parts, cue):
        return recollection
    try:
        async with asyncio.timeout(KEEPING_SHARE * parts.database.deadline_seconds):
            kept = build_saved_recall(place, cue, vector, inputs, recollection)
            stored = await saved_recalls.keep(parts.database, place.scope_id, kept)
    except Exception as problem:
        # The answer exists already; only the type of the error never quotes content.
        LOG.warning(json.dumps({"event": "recall_not_saved", "problem": type(problem).__name__}))
        return recollection
    return replace(recollection, recall_id=kept.recall_id) if stored else recollection


async def explain_now(
    place: ScopeHandle, cue: Cue, vector: NDArray[np.float32] | None, inputs: RankingInput, recollection: RecallResult
) -> RecallResult:
    """Add the explanation of a saved recall to a new one; in a thread, because it ranks again."""
    kept = build_saved_recall(place, cue, vector, drop_non_finite(inputs), recollection)
    placings = await asyncio.to_thread(rank_again, kept, whole=True)
    found = {hit.memory.id: hit.memory for hit in recollection.hits}
    shown = tuple(replace(each, memory=found.get(each.id)) for each in placings)
    return replace(recollection, explanation=to_explanation(kept, shown, recollection.recall_id))


def is_kept(parts: Dependencies, cue: Cue) -> bool:
    """Return whether to save a recall: as the query requests, or else at random by the configured share."""
    return random.random() < parts.options.keep_share if cue.keep is None else cue.keep  # noqa: S311 - a sample


def build_saved_recall(
    place: ScopeHandle, cue: Cue, vector: NDArray[np.float32] | None, inputs: RankingInput, recollection: RecallResult
) -> SavedRecallData:
    """Build the saved data of a recall."""
    now = datetime.now(UTC)
    return SavedRecallData(
        recall_id=memory_id(now, 0, secrets.token_bytes(RANDOM_BYTES)),
        asked_at=now,
        cue=replace(cue, embedding=None, explain=False),
        vector=vector,
        space_id=place.space.id if place.space and vector is not None else None,
        inputs=inputs,
        hits=to_hits(recollection),
        # More are ranked than requested, to replace duplicates.
        limit=min(inputs.limit, cue.limit or place.profile.limit or DEFAULT_LIMIT),
        status=recollection.status,
        message=recollection.message,
        methods=recollection.methods,
        tallies=recollection.tallies,
        milliseconds=recollection.milliseconds,
    )


async def list_recalls(parts: Dependencies, scope: Scope, cursor: UUID | None, limit: int) -> SavedRecallPage:
    """Return one page of saved recalls, latest first."""
    check_limit(limit)
    rows = await saved_recalls.page(parts.database, scope, cursor, limit + 1)
    return SavedRecallPage(tuple(rows[:limit]), rows[limit - 1].recall_id if len(rows) > limit else None)
