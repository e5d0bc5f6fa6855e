"""Propose which entities may be one: by their names, their spelling or their meaning; a chat model may confirm it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.knowledge.entities import (
    MOST_ASKED,
    NAMED,
    Doubt,
    EntityCandidate,
    Way,
    are_compatible,
)
from recollect.models.knowledge import Entity, EntityType, Mention, MergeProposal, MergeReason

LEAST_NEAR = 0.8
"""How near in meaning two entities are that may be one."""
REASONS = {Way.EXACT: MergeReason.NAME, Way.ALIAS: MergeReason.NAME, Way.SIMILAR: MergeReason.SPELLING}
ORDER = list(MergeReason)
Pair = tuple[UUID, UUID, MergeReason, float]
"""An older and a younger entity, why they may be one, and how much they are alike."""


def pair_by_name(asked: Sequence[UUID], found: Iterable[EntityCandidate]) -> list[Pair]:
    """Pair the entities whose names were looked up with the older ones that were found."""
    return [
        (each.entity.id, asked[each.number], REASONS[each.way], each.alike)
        for each in found
        if each.entity.id < asked[each.number]
    ]


def propose(pairs: Collection[Pair], known: Mapping[UUID, Entity], limit: int) -> list[MergeProposal]:
    """Make a proposal of each pair that can be one, by its strongest reason; the likeliest first."""
    ranked = sorted(pairs, key=lambda pair: (ORDER.index(pair[2]), -pair[3], pair[1], pair[0]))
    first: dict[tuple[UUID, UUID], MergeProposal] = {}
    for older, younger, reason, alike in ranked:
        kept, absorbed = known.get(older), known.get(younger)
        if kept is not None and absorbed is not None and may_be_one(kept, absorbed):
            first.setdefault((older, younger), MergeProposal(kept, absorbed, reason, round(float(alike), 4)))
    return list(first.values())[:limit]


def may_be_one(one: Entity, other: Entity) -> bool:
    """Tell whether two entities can be one: both stand for themselves, and have types that fit and proper names."""
    absorbed = one.merged_into is not None or other.merged_into is not None
    named = bool((NAMED | {EntityType.OTHER}) & {one.type, other.type})
    return not absorbed and named and are_compatible(one.type, other.type)


def to_doubts(proposals: Sequence[MergeProposal]) -> list[Doubt]:
    """Word proposals as doubts about names, as many as one question takes."""
    younger = {each.absorbed.id: each.absorbed for each in proposals}
    return [
        Doubt(
            Mention(entity.name, entity.type, entity.aliases, entity.description),
            tuple(each.kept for each in proposals if each.absorbed.id == entity.id),
        )
        for entity in [*younger.values()][:MOST_ASKED]
    ]


def confirm(proposals: Sequence[MergeProposal], matches: Mapping[int, Entity]) -> list[MergeProposal]:
    """Note in every proposal that was asked about what the model is sure of; the confirmed ones come first."""
    asked = list({each.absorbed.id: None for each in proposals})[:MOST_ASKED]
    sure = {(asked[number], entity.id) for number, entity in matches.items()}
    judged = [
        replace(each, confirmed=(each.absorbed.id, each.kept.id) in sure) if each.absorbed.id in asked else each
        for each in proposals
    ]
    return sorted(judged, key=lambda each: each.confirmed is not True)
