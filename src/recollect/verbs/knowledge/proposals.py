"""List which entities may be one, for a person to accept; nothing is merged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from recollect.core.knowledge.proposals import LEAST_NEAR, confirm, pair_by_name, propose, to_doubts
from recollect.core.text.checks import check_limit
from recollect.errors import RecollectError
from recollect.llm.prompts import version_of
from recollect.models.knowledge import MergeProposal, MergeProposals, MergeReason
from recollect.models.service import Scope
from recollect.store.knowledge import entities, entity_vectors
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.service.scopes import Place
from recollect.verbs.knowledge.steps.resolve import PROMPT, match_names
from recollect.verbs.parts import Parts
from recollect.verbs.service.costs import metered

STEP = "propose"
COMPARED = 200
"""So many entities are compared with all older ones at once."""


async def list_proposals(
    parts: Parts, scope: Scope, place: Place, cursor: UUID | None, limit: int, *, judge: bool
) -> MergeProposals:
    """Compare one page of entities with all older ones; each pair is proposed once, on the page of the younger."""
    check_limit(limit)
    page = await entities.page(parts.database, scope, EntityQuery(), cursor, COMPARED + 1)
    asked = [entity.id for entity in page[:COMPARED]]
    if not asked or place.scope_id is None:
        return MergeProposals(())
    async with parts.database.reading(scope.tenant_id) as connection:
        names = [entity.name for entity in page[:COMPARED]]
        found = await entities.find_candidates(connection, place.scope_id, names, similar=True)
        space = place.space.id if place.space else 0
        near = await entity_vectors.list_older(connection, place.scope_id, space, asked, LEAST_NEAR)
    pairs = pair_by_name(asked, found)
    pairs += [(older, younger, MergeReason.MEANING, alike) for older, younger, alike in near]
    ids = {each for older, younger, *_ in pairs for each in (older, younger)}
    known = await entities.fetch(parts.database, scope, sorted(ids)) if ids else {}
    proposals = propose(pairs, known, limit)
    if judge and proposals and parts.chat is not None:
        proposals = await ask(parts, scope, place.scope_id, proposals)
    return MergeProposals(tuple(proposals), asked[-1] if len(page) > COMPARED else None)


async def ask(parts: Parts, scope: Scope, scope_id: int, proposals: Sequence[MergeProposal]) -> list[MergeProposal]:
    """Ask the chat model about the proposals by one question; one that fails or is late confirms nothing."""
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    with suppress(RecollectError, TimeoutError):
        async with asyncio.timeout(min(parts.judge_seconds, parts.database.deadline_seconds / 2)):
            return confirm(proposals, await match_names(chat, scope.agent, to_doubts(proposals)))
    return list(proposals)
