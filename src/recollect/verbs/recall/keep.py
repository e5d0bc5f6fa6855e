"""Keep a recall after its answer is made, and list what was kept; no failure to keep one spoils its answer."""

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
from recollect.core.recall.kept import Kept, leave_finite, rank_again, to_explanation, to_hits
from recollect.core.text.checks import check_limit
from recollect.models.kept import KeptRecalls
from recollect.models.recall import Cue, Recollection
from recollect.models.service import Scope
from recollect.store.recall import kept_recalls
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts
from recollect.verbs.recall.rank import USUAL_LIMIT

KEEPING_SHARE = 0.1
"""The share of the deadline for keeping a recall; an answer that was not kept is better than a late one."""
LOG = logging.getLogger("recollect.recalls")


async def keep(
    parts: Parts,
    place: Place,
    cue: Cue,
    vector: NDArray[np.float32] | None,
    inputs: RankingInput,
    recollection: Recollection,
) -> Recollection:
    """Keep a recall if the cue or else the service says so; set the id in the answer."""
    if place.scope_id is None or not is_kept(parts, cue):
        return recollection
    try:
        async with asyncio.timeout(KEEPING_SHARE * parts.database.deadline_seconds):
            kept = gather(place, cue, vector, inputs, recollection)
            stored = await kept_recalls.keep(parts.database, place.scope_id, kept)
    except Exception as problem:
        # The answer is there already; only the type of the error certainly quotes nothing.
        LOG.warning(json.dumps({"event": "recall_not_kept", "problem": type(problem).__name__}))
        return recollection
    return replace(recollection, recall_id=kept.recall_id) if stored else recollection


async def explain_now(
    place: Place, cue: Cue, vector: NDArray[np.float32] | None, inputs: RankingInput, recollection: Recollection
) -> Recollection:
    """Say how a recall came about, by the same explanation as that of a kept one; in a thread, as it ranks again."""
    kept = gather(place, cue, vector, leave_finite(inputs), recollection)
    placings = await asyncio.to_thread(rank_again, kept, whole=True)
    found = {hit.memory.id: hit.memory for hit in recollection.hits}
    shown = tuple(replace(each, memory=found.get(each.id)) for each in placings)
    return replace(recollection, explanation=to_explanation(kept, shown, recollection.recall_id))


def is_kept(parts: Parts, cue: Cue) -> bool:
    """Tell whether a recall is kept: as its cue says, or else at random, as often as the service is configured."""
    return random.random() < parts.keep_share if cue.keep is None else cue.keep  # noqa: S311 - a sample


def gather(
    place: Place, cue: Cue, vector: NDArray[np.float32] | None, inputs: RankingInput, recollection: Recollection
) -> Kept:
    """Build what is stored of a recall."""
    now = datetime.now(UTC)
    return Kept(
        recall_id=memory_id(now, 0, secrets.token_bytes(RANDOM_BYTES)),
        asked_at=now,
        cue=replace(cue, embedding=None, explain=False),
        vector=vector,
        space_id=place.space.id if place.space and vector is not None else None,
        inputs=inputs,
        hits=to_hits(recollection),
        # More are ranked than are asked for, to replace duplicates.
        limit=min(inputs.limit, cue.limit or place.profile.limit or USUAL_LIMIT),
        status=recollection.status,
        message=recollection.message,
        methods=recollection.methods,
        tallies=recollection.tallies,
        milliseconds=recollection.milliseconds,
    )


async def list_recalls(parts: Parts, scope: Scope, cursor: UUID | None, limit: int) -> KeptRecalls:
    """Return one page of kept recalls, the latest first."""
    check_limit(limit)
    rows = await kept_recalls.page(parts.database, scope, cursor, limit + 1)
    return KeptRecalls(tuple(rows[:limit]), rows[limit - 1].recall_id if len(rows) > limit else None)
