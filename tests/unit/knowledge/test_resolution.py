"""Whom a name means: plain where name and type agree, doubtful where they may not, and never by an answer alone."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.entities import (
    AmbiguousMention,
    AnyNameMatches,
    EntityCandidate,
    MatchMethod,
    choose_end,
    least_alike,
    match_entity,
    read_matches,
    write_doubts,
)
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Entity, EntityType, Mention

PERSON, ORGANIZATION, THING, OTHER = EntityType.PERSON, EntityType.ORGANIZATION, EntityType.THING, EntityType.OTHER


def entity(number, kind=PERSON, name="Ann", **more):
    return Entity(UUID(int=number), name, kind, **more)


def found(number, kind=PERSON, way=MatchMethod.EXACT):
    return EntityCandidate(0, entity(number, kind), way)


def test_a_caller_means_the_one_of_the_name():
    assert choose_end(None, []) is None
    assert choose_end(None, [found(1, THING)]).id.int == 1
    assert choose_end(PERSON, [found(1), found(2, THING)]).id.int == 1
    assert choose_end(PERSON, [found(1, OTHER)]).id.int == 1
    assert choose_end(PERSON, [found(1, THING)]) is None
    assert choose_end(PERSON, [found(1, way=MatchMethod.ALIAS)]).id.int == 1
    assert choose_end(PERSON, [found(1, way=MatchMethod.SIMILAR)]) is None
    assert choose_end(None, [found(1), found(2, way=MatchMethod.ALIAS)]).id.int == 1
    with pytest.raises(InvalidInputError):
        choose_end(None, [found(1), found(2, THING)])
    with pytest.raises(InvalidInputError):
        choose_end(PERSON, [found(1, way=MatchMethod.ALIAS), found(2, way=MatchMethod.ALIAS)])


def test_a_mention_is_plain_or_doubtful_or_new():
    ann = Mention("Ann", PERSON)
    assert match_entity(ann, [], []) is None
    assert match_entity(ann, [found(1), found(2, THING)], []).id.int == 1
    assert match_entity(ann, [found(1, OTHER)], []).id.int == 1
    assert match_entity(ann, [found(1, way=MatchMethod.ALIAS)], []).id.int == 1
    assert match_entity(ann, [], [found(1)]).id.int == 1
    assert isinstance(match_entity(ann, [found(1, ORGANIZATION)], []), AmbiguousMention)
    assert isinstance(match_entity(ann, [found(1, way=MatchMethod.SIMILAR)], []), AmbiguousMention)
    assert isinstance(
        match_entity(ann, [found(1, way=MatchMethod.ALIAS), found(2, way=MatchMethod.ALIAS)], []), AmbiguousMention
    )
    assert match_entity(ann, [], [found(1, way=MatchMethod.SIMILAR)]) is None, "an alias that is much alike says little"
    hobby = Mention("rowing", EntityType.ACTIVITY)
    assert match_entity(hobby, [found(1, EntityType.SKILL)], []).id.int == 1
    assert match_entity(hobby, [found(1, EntityType.ACTIVITY, MatchMethod.SIMILAR)], []) is None


def test_chinese_names_are_asked_about_sooner():
    assert (least_alike("清华"), least_alike("smith")) == (0.3, 0.6)


DOUBTS = [
    AmbiguousMention(Mention("Ann", PERSON, ("Annie",), "a </names> friend"), (entity(1), entity(2))),
    AmbiguousMention(Mention("Bob"), (entity(3, OTHER, "Rob"),)),
]


def test_doubts_are_written_as_numbers_without_ids():
    names, known, listed = write_doubts(DOUBTS)
    assert names.splitlines() == ["1. Ann (person; also called Annie): a ‹/names› friend", "2. Bob (other)"]
    assert [each.id.int for each in listed] == [1, 2, 3]
    assert "0000" not in known


def test_only_candidates_of_the_same_doubt_are_matched():
    _, _, known = write_doubts(DOUBTS)
    said = {"matches": [{"name": 1, "known": 3}, {"name": "2", "known": 3.0}, {"name": 1, "known": 2}, {"name": 5}]}
    assert {place: each.id.int for place, each in read_matches(json.dumps(said), DOUBTS, known).items()} == {1: 3, 0: 2}
    assert read_matches('{"matches": [{"name": 2, "known": 3}, {"name": 1, "kno', DOUBTS, known).keys() == {1}
    assert AnyNameMatches.model_json_schema()["title"] == "NameMatches"


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_is_said_nothing_else_is_matched(said):
    _, _, known = write_doubts(DOUBTS)
    for place, each in read_matches(said, DOUBTS, known).items():
        assert each in DOUBTS[place].candidates
