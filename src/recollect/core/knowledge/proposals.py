"""Propose entities to merge, by names, spelling or meaning; a chat model may confirm them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.knowledge.entities import (
    MAX_NAMES_PER_PROMPT,
    NAMED,
    AmbiguousMention,
    EntityCandidate,
    MatchMethod,
    are_compatible,
)
from recollect.models.knowledge import Entity, EntityType, Mention, MergeProposal, MergeReason

MIN_SIMILARITY = 0.8
"""Minimum similarity in meaning of two entities to propose."""
REASONS = {
    MatchMethod.EXACT: MergeReason.NAME,
    MatchMethod.ALIAS: MergeReason.NAME,
    MatchMethod.SIMILAR: MergeReason.SPELLING,
}
ORDER = list(MergeReason)
Pair = tuple[UUID, UUID, MergeReason, float]
"""An older and a younger entity, the reason to merge them, and their similarity."""


def pair_by_name(asked: Sequence[UUID], found: Iterable[EntityCandidate]) -> list[Pair]:
    """Pair the entities whose names were searched with the older entities that were found."""
    return [
        (each.entity.id, asked[each.number], REASONS[each.way], each.alike)
        for each in found
        if each.entity.id < asked[each.number]
    ]


def propose(pairs: Collection[Pair], known: Mapping[UUID, Entity], limit: int) -> list[MergeProposal]:
    """Return a proposal for each possible pair, by its strongest reason; the most likely first."""
    ranked = sorted(pairs, key=lambda pair: (ORDER.index(pair[2]), -pair[3], pair[1], pair[0]))
    first: dict[tuple[UUID, UUID], MergeProposal] = {}
    for older, younger, reason, alike in ranked:
        kept, absorbed = known.get(older), known.get(younger)
        if kept is not None and absorbed is not None and may_be_one(kept, absorbed):
            first.setdefault((older, younger), MergeProposal(kept, absorbed, reason, round(float(alike), 4)))
    return list(first.values())[:limit]


def may_be_one(one: Entity, other: Entity) -> bool:
    """Return whether two entities may be one: not merged, compatible types, and proper names."""
    absorbed = one.merged_into is not None or other.merged_into is not None
    named = bool((NAMED | {EntityType.OTHER}) & {one.type, other.type})
    return not absorbed and named and are_compatible(one.type, other.type)


def to_doubts(proposals: Sequence[MergeProposal]) -> list[AmbiguousMention]:
    """Convert proposals to doubts about names, at most as many as one prompt allows."""
    younger = {each.absorbed.id: each.absorbed for each in proposals}
    return [
        AmbiguousMention(
            Mention(entity.name, entity.type, entity.aliases, entity.description),
            tuple(each.kept for each in proposals if each.absorbed.id == entity.id),
        )
        for entity in [*younger.values()][:MAX_NAMES_PER_PROMPT]
    ]


def confirm(proposals: Sequence[MergeProposal], matches: Mapping[int, Entity]) -> list[MergeProposal]:
    """Set for the proposals in the prompt whether the model confirmed them; confirmed ones come first."""
    asked = list({each.absorbed.id: None for each in proposals})[:MAX_NAMES_PER_PROMPT]
    sure = {(asked[number], entity.id) for number, entity in matches.items()}
    judged = [
        replace(each, confirmed=(each.absorbed.id, each.kept.id) in sure) if each.absorbed.id in asked else each
        for each in proposals
    ]
    return sorted(judged, key=lambda each: each.confirmed is not True)
