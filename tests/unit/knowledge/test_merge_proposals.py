"""Which entities are proposed to be one, in which order, and what a chat model's word changes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from recollect.core.knowledge.entities import MAX_NAMES_PER_PROMPT, AmbiguousMention, EntityCandidate, MatchMethod
from recollect.core.knowledge.proposals import confirm, may_be_one, pair_by_name, propose, to_doubts
from recollect.models.knowledge import Entity, EntityType, Mention, MergeProposal, MergeReason

NAME, SPELLING, MEANING = MergeReason.NAME, MergeReason.SPELLING, MergeReason.MEANING
PERSON, THING, OTHER = EntityType.PERSON, EntityType.THING, EntityType.OTHER


def ident(number):
    return UUID(int=number)


def entity(number, kind=PERSON, **more):
    return Entity(ident(number), f"name {number}", kind, **more)


def known(*entities):
    return {each.id: each for each in entities}


def pair(older, younger, reason=NAME, alike=1.0):
    return ident(older), ident(younger), reason, alike


def proposal(kept, absorbed, reason=NAME, alike=1.0):
    return MergeProposal(entity(kept), entity(absorbed), reason, alike)


def list_numbers(proposals):
    return [(each.kept.id.int, each.absorbed.id.int) for each in proposals]


@pytest.mark.parametrize(
    ("way", "reason"), [(MatchMethod.EXACT, NAME), (MatchMethod.ALIAS, NAME), (MatchMethod.SIMILAR, SPELLING)]
)
def test_an_entity_is_paired_with_the_older_ones_that_its_name_found(way, reason):
    asked = [ident(3), ident(5)]
    found = [EntityCandidate(number, entity(other), way, 0.9) for number in (0, 1) for other in (2, 3, 4, 5, 6)]
    assert pair_by_name(asked, found) == [
        (ident(2), ident(3), reason, 0.9),
        (ident(2), ident(5), reason, 0.9),
        (ident(3), ident(5), reason, 0.9),
        (ident(4), ident(5), reason, 0.9),
    ]


def test_the_strongest_reason_comes_first_then_the_most_alike_then_the_older():
    pairs = [
        pair(1, 6, MEANING, 1.0),
        pair(2, 5, SPELLING, 0.7),
        pair(3, 5, SPELLING, 0.9),
        pair(2, 6, NAME),
        pair(3, 4, NAME),
        pair(1, 4, NAME),
    ]
    found = propose(pairs, known(*map(entity, range(1, 7))), 10)
    assert list_numbers(found) == [(1, 4), (3, 4), (2, 6), (3, 5), (2, 5), (1, 6)]
    assert [each.reason for each in found] == [NAME, NAME, NAME, SPELLING, SPELLING, MEANING]
    assert list_numbers(propose(pairs, known(*map(entity, range(1, 7))), 2)) == [(1, 4), (3, 4)]


def test_a_pair_is_proposed_once_by_its_strongest_reason():
    pairs = [pair(1, 2, MEANING, 0.99), pair(1, 2, SPELLING, 0.87654321), pair(1, 2, SPELLING, 0.5)]
    (found,) = propose(pairs, known(entity(1), entity(2)), 10)
    assert found == MergeProposal(entity(1), entity(2), SPELLING, 0.8765)
    assert found.confirmed is None


@pytest.mark.parametrize("there", [[], [1], [2]])
def test_of_an_entity_that_is_gone_nothing_is_proposed(there):
    assert propose([pair(1, 2)], known(*map(entity, there)), 10) == []


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        (entity(1), entity(2), True),
        (entity(1), entity(2, OTHER), True),
        (entity(1, OTHER), entity(2, OTHER), True),
        (entity(1, OTHER), entity(2, THING), True),
        (entity(1, THING), entity(2, THING), False),
        (entity(1, PERSON), entity(2, EntityType.PLACE), False),
        (entity(1, merged_into=ident(9)), entity(2), False),
        (entity(1), entity(2, merged_into=ident(9)), False),
    ],
)
def test_only_what_stands_for_itself_and_has_a_name_and_a_type_that_fits_may_be_one(one, other, may):
    assert may_be_one(one, other) is may
    assert len(propose([pair(1, 2)], known(one, other), 10)) == may


def test_a_doubt_lists_all_that_one_entity_may_be():
    younger = Entity(ident(5), "Bo", PERSON, ("Bob",), "a baker")
    proposals = [
        MergeProposal(entity(1), younger, NAME, 1.0),
        proposal(2, 6),
        MergeProposal(entity(3), younger, SPELLING, 0.8),
    ]
    assert to_doubts(proposals) == [
        AmbiguousMention(Mention("Bo", PERSON, ("Bob",), "a baker"), (entity(1), entity(3))),
        AmbiguousMention(Mention("name 6", PERSON), (entity(2),)),
    ]


def test_one_question_takes_so_many_doubts():
    assert (
        len(to_doubts([proposal(1, 100 + number) for number in range(MAX_NAMES_PER_PROMPT + 1)]))
        == MAX_NAMES_PER_PROMPT
    )


def test_what_the_model_is_sure_of_comes_first():
    proposals = [proposal(1, 5), proposal(2, 6), proposal(3, 5), proposal(2, 7)]
    judged = confirm(proposals, {0: entity(3), 2: entity(2)})
    assert [(each.kept.id.int, each.absorbed.id.int, each.confirmed) for each in judged] == [
        (3, 5, True),
        (2, 7, True),
        (1, 5, False),
        (2, 6, False),
    ]


def test_what_was_not_asked_about_stays_open():
    proposals = [proposal(1, 100 + number) for number in range(MAX_NAMES_PER_PROMPT + 1)]
    judged = confirm(proposals, {MAX_NAMES_PER_PROMPT - 1: entity(1)})
    assert judged[0] == replace(proposals[MAX_NAMES_PER_PROMPT - 1], confirmed=True)
    assert [each.confirmed for each in judged[1:]] == [*[False] * (MAX_NAMES_PER_PROMPT - 1), None]
