"""List entities that may be the same, for a person to accept; nothing is merged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from recollect.core.knowledge.proposals import MIN_SIMILARITY, confirm, pair_by_name, propose, to_doubts
from recollect.core.text.checks import check_limit
from recollect.errors import RecollectError
from recollect.llm.prompts import version_of
from recollect.models.knowledge import MergeProposal, MergeProposalPage, MergeReason
from recollect.models.service import Scope
from recollect.store.knowledge import entities, entity_vectors
from recollect.store.knowledge.entities import EntityQuery
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.knowledge.steps.resolve import PROMPT, match_names
from recollect.verbs.service.costs import metered

STEP = "propose"
COMPARED = 200
"""Number of entities to compare with all older ones at once."""


async def list_proposals(
    parts: Dependencies, scope: Scope, place: ScopeHandle, cursor: UUID | None, limit: int, *, judge: bool
) -> MergeProposalPage:
    """Compare one page of entities with all older ones; each pair is proposed once, with the younger one."""
    check_limit(limit)
    page = await entities.page(parts.database, scope, EntityQuery(), cursor, COMPARED + 1)
    asked = [entity.id for entity in page[:COMPARED]]
    if not asked or place.scope_id is None:
        return MergeProposalPage(())
    async with parts.database.reading(scope.tenant_id) as connection:
        names = [entity.name for entity in page[:COMPARED]]
        found = await entities.find_candidates(connection, place.scope_id, names, similar=True)
        space = place.space.id if place.space else 0
        near = await entity_vectors.list_older(connection, place.scope_id, space, asked, MIN_SIMILARITY)
    pairs = pair_by_name(asked, found)
    pairs += [(older, younger, MergeReason.MEANING, alike) for older, younger, alike in near]
    ids = {each for older, younger, *_ in pairs for each in (older, younger)}
    known = await entities.fetch(parts.database, scope, sorted(ids)) if ids else {}
    proposals = propose(pairs, known, limit)
    if judge and proposals and parts.chat is not None:
        proposals = await judge_proposals(parts, scope, place.scope_id, proposals)
    return MergeProposalPage(tuple(proposals), asked[-1] if len(page) > COMPARED else None)


async def judge_proposals(
    parts: Dependencies, scope: Scope, scope_id: int, proposals: Sequence[MergeProposal]
) -> list[MergeProposal]:
    """Ask the chat model about all proposals in one question; if it fails or is late, none is confirmed."""
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    with suppress(RecollectError, TimeoutError):
        async with asyncio.timeout(min(parts.options.judge_seconds, parts.database.deadline_seconds / 2)):
            return confirm(proposals, await match_names(chat, scope.agent, to_doubts(proposals)))
    return list(proposals)
