"""Preferences say what speaks for a candidate beside the channels, each for reasons that can be shown."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.recall.columns import RankingInput, to_candidates, to_table, to_uuids
from recollect.core.recall.fusion import fuse, rate
from recollect.core.recall.weights import NAMES, default_weights
from recollect.models.memories import Kind
from recollect.models.recall import Candidate, Features, Period, QueryAnalysis, QuestionType, Script

DAY = datetime(2024, 5, 7, tzinfo=UTC)


def feature(place=1, **given):
    said = {"kind": Kind.MESSAGE, "session": "conversation a", "place": float(place), "length": 20, "occurred_at": DAY}
    return Features(**{**said, **given})


def inputs(*features, facets=None, rarities=(1.0, 3.0), weights=None, text=None, vector=(), limit=50):
    ids = [UUID(int=number) for number in range(1, len(features) + 1)]
    scores = text or [1.0] * len(features)
    return RankingInput(
        {
            "text": to_candidates([*map(Candidate, ids, scores)]),
            "vector": to_candidates([Candidate(*each) for each in zip(ids, vector, strict=False)]),
            "recent": to_candidates([Candidate(each, 1.0) for each in ids]),
        },
        to_table(dict(zip(ids, features, strict=True)), len(rarities)),
        facets or QueryAnalysis(),
        default_weights(Script.WORDS) if weights is None else {"text": 1.0, **weights},
        limit,
        rarities,
    )


def preferred(name, *features, **given):
    rated = rate(inputs(*features, **given))
    values = rated.preferences.get(name)
    found = {identity.int: float(value) for identity, value in zip(to_uuids(rated.ids), values, strict=True)}
    return [round(found[number], 6) for number in sorted(found)]


def test_coverage_is_the_part_of_the_cue_that_is_there():
    assert preferred("coverage", feature(terms=(0,)), feature(terms=(1,)), feature(terms=(0, 1)), feature()) == [
        0.25,
        0.75,
        1.0,
        0.0,
    ]


def test_neighbours_up_to_two_places_away_share_what_they_have():
    conversation = [feature(1, terms=(0,)), feature(2), feature(3), feature(4), feature(5, terms=(1,))]
    assert preferred("surroundings", *conversation) == [0.25, 0.25, 1.0, 0.75, 0.75]


def test_two_are_enough_to_be_neighbours():
    assert preferred("surroundings", feature(1, terms=(1,)), feature(2)) == [1.0, 1.0]


def test_a_cue_of_common_words_is_covered_by_all_of_them():
    assert preferred("coverage", feature(terms=(0,)), feature(terms=(0, 1)), rarities=(0.25, 0.25)) == [0.5, 1.0]
    assert preferred("coverage", feature(terms=(0,)), rarities=(0.0, 0.0)) == [0.0]


def test_of_very_many_at_one_place_twelve_on_either_side_are_neighbours():
    crowd = [feature(1, terms=(1,)), *[feature(1)] * 14]
    assert preferred("surroundings", *crowd) == [1.0] * 13 + [0.0] * 2


def test_nobody_is_a_neighbour_across_sessions():
    assert preferred("surroundings", feature(1, terms=(1,)), feature(2, session="conversation b")) == [1.0, 0.0]


def test_events_of_one_hour_stand_side_by_side():
    places = [minutes / 30 for minutes in (0, 50, 70, 300)]
    events = [feature(place, kind=Kind.EVENT, session="2024-05-07") for place in places]
    events[2] = replace(events[2], terms=(1,))
    assert preferred("surroundings", *events) == [0.0, 1.0, 1.0, 0.0]


def test_a_session_counts_for_all_that_its_members_have_together():
    conversation = [feature(1, terms=(0,)), feature(50, terms=(1,)), feature(1, session="conversation b", terms=(1,))]
    assert preferred("session", *conversation) == [1.0, 1.0, 0.75]
    assert preferred("session_best", *conversation, text=[4.0, 1.0, 2.0]) == [1.0, 1.0, 0.0]


def test_the_best_of_a_session_is_the_best_in_words_and_meaning_together():
    talks = [feature(1, session=name) for name in "abc"]
    given = {"text": [4.0, 2.0, 0.0], "vector": [0.1, 0.9, 0.5]}
    # Scaled, the words give 1, 0.5 and 0, the meaning 0, 1 and 0.5.
    assert preferred("session_best", *talks, **given) == [0.5, 1.0, 0.0]
    assert preferred("session_meaning", *talks, **given) == [0.0, 1.0, 0.5]


def test_one_session_alone_tells_nothing():
    rated = rate(inputs(feature(1, terms=(0,)), feature(2)))
    assert not {"session", "session_best", "session_meaning"} & rated.preferences.keys()


def test_who_is_named_is_preferred():
    assert preferred("speaker", feature(speaker="caroline", named=True), feature(speaker="melanie"), feature()) == [
        1,
        0,
        0,
    ]


def test_of_two_who_are_named_the_first_did_it():
    told = [feature(speaker="gina", named=True), feature(speaker="jon", named=True), feature(named=True), feature()]
    assert preferred("speaker", *told, facets=QueryAnalysis(names=("gina", "jon"), actor="gina")) == [
        1.0,
        0.5,
        1.0,
        0.0,
    ]
    assert preferred("speaker", *told, facets=QueryAnalysis(names=("gina", "jon"))) == [1.0, 1.0, 1.0, 0.0]


def test_an_answer_is_worth_what_its_question_shares():
    conversation = [feature(1, asks=True), feature(2), feature(3)]
    assert preferred("answer", *conversation, text=[4.0, 1.0, 1.0]) == [0.0, 1.0, 0.0]
    assert preferred("answer", feature(1, asks=True), feature(2, assistant=True), text=[4.0, 1.0]) == [0.0, 0.0]
    assert preferred("answer", feature(1, asks=True), feature(3), text=[4.0, 1.0]) == [0.0, 0.0]


def test_form_counts_only_where_it_is_asked_for():
    times = (feature(tells_time=True), feature())
    assert preferred("tells_time", *times, facets=QueryAnalysis(asks=frozenset({QuestionType.TIME}))) == [1, 0]
    assert "tells_time" not in rate(inputs(*times)).preferences
    numbers = (feature(tells_number=True), feature())
    assert preferred("tells_number", *numbers, facets=QueryAnalysis(asks=frozenset({QuestionType.NUMBER}))) == [1, 0]


def test_what_rambles_is_marked():
    chinese = QueryAnalysis(script=Script.CJK)
    assert preferred("long", feature(length=120), feature(length=3000), facets=chinese) == [0, 1]
    assert preferred("long", feature(length=7), feature(length=40), feature(length=1000), feature(length=5000)) == [
        0,
        0,
        1,
        1,
    ]


def test_length_counts_on_a_logarithmic_scale():
    lengths = [feature(length=length) for length in (0, 40, 200, 1000)]
    assert preferred("long", *lengths) == [0.0, 0.0, 0.5, 1.0]
    tripled = [feature(length=length) for length in (120, 600, 3000)]
    assert preferred("long", *tripled, facets=QueryAnalysis(script=Script.CJK)) == [0.0, 0.5, 1.0]


def test_a_long_question_also_says_something():
    asked = [feature(asks=True, length=24), feature(asks=True, length=25), feature(length=24)]
    assert preferred("question", *asked) == [1, 0, 0]


def test_what_an_assistant_says_is_no_instruction_to_it():
    told = [
        feature(is_instruction=True),
        feature(is_instruction=True, assistant=True),
        feature(),
        feature(assistant=True),
    ]
    assert preferred("instruction", *told) == [1, 0, 0, 0]
    assert preferred("assistant", *told) == [0, 1, 0, 1]


def test_importance_counts_by_how_much_more_it_is_than_the_least():
    assert preferred("importance", *(feature(importance=number) for number in (1.0, 5.5, 10.0))) == [0.0, 0.5, 1.0]
    assert preferred("importance", *(feature(importance=number) for number in (5.5, 10.0))) == [0.0, 0.5]


def test_what_was_accessed_last_counts_most():
    read = [feature(accessed_at=DAY + timedelta(hours=hours)) for hours in (1, 2, 5)]
    assert preferred("accessed", *read) == [0.0, 0.25, 1.0]
    assert preferred("accessed", feature(accessed_at=DAY), feature()) == [0.0, 0.0]


def test_age_counts_only_where_the_newest_is_asked_for():
    both = (feature(occurred_at=DAY), feature(occurred_at=DAY + timedelta(days=1)))
    assert preferred("latest", *both, facets=QueryAnalysis(asks=frozenset({QuestionType.LATEST}))) == [0, 1]
    assert preferred("latest", *both) == [0, 0]


def test_the_days_around_a_day_are_near_it():
    day = Period(DAY, DAY + timedelta(days=1))
    month = Period(DAY, DAY + timedelta(days=30))
    around = [feature(occurred_at=DAY + timedelta(hours=hours)) for hours in (-25, -23, 1, 47, 49)]
    assert preferred("near_date", *around, facets=QueryAnalysis(periods=(day,))) == [0, 1, 1, 1, 0]
    assert preferred("near_date", *around, facets=QueryAnalysis(periods=(month,))) == [0, 0, 0, 0, 0]


def test_a_day_of_up_to_26_hours_has_days_around_it():
    eve = feature(occurred_at=DAY - timedelta(hours=5))
    for hours, near in ((25, 1), (26, 1), (26.5, 0)):
        day = Period(DAY, DAY + timedelta(hours=hours))
        assert preferred("near_date", eve, facets=QueryAnalysis(periods=(day,))) == [near]


def test_the_overall_picture_is_taken_from_many_sessions():
    conversation = [feature(place, session=f"conversation {'a' if place < 4 else 'b'}") for place in range(1, 6)]
    texts = [9.0, 8.9, 8.8, 8.7, 8.0]
    asked = QueryAnalysis(asks=frozenset({QuestionType.OVERVIEW}))
    plain = fuse(inputs(*conversation, text=texts, weights={"diversity": 0.5}))
    spread = fuse(inputs(*conversation, text=texts, weights={"diversity": 0.5}, facets=asked))
    assert [hit.id.int for hit in plain] == [1, 2, 3, 4, 5]
    assert [hit.id.int for hit in spread] == [1, 4, 2, 5, 3]
    assert spread[2].preferences["diversity"] == pytest.approx(-0.5)


features = st.builds(
    feature,
    st.integers(1, 6),
    session=st.sampled_from(["conversation a", "conversation b", "2024-05-07"]),
    named=st.booleans(),
    terms=st.sampled_from([(), (0,), (1,), (0, 1)]),
    length=st.integers(0, 2000),
    asks=st.booleans(),
    assistant=st.booleans(),
    is_instruction=st.booleans(),
    cosine=st.none() | st.floats(-1, 1),
    occurred_at=st.integers(-100, 100).map(lambda hours: DAY + timedelta(hours=hours)),
)
facets = st.builds(
    QueryAnalysis,
    periods=st.sampled_from([(), (Period(DAY, DAY + timedelta(days=1)),)]),
    asks=st.frozensets(st.sampled_from(QuestionType)),
)


@given(st.lists(features, min_size=1, max_size=20), facets)
def test_every_preference_is_known_and_between_nought_and_one(some, read):
    rated = rate(inputs(*some, facets=read))
    assert rated.preferences.keys() <= NAMES
    for values in rated.preferences.values():
        assert ((values >= 0) & (values <= 1)).all()


@given(st.lists(features, min_size=1, max_size=20), facets, st.integers(0, 25))
def test_a_score_is_the_sum_of_what_is_shown(some, read, limit):
    hits = fuse(inputs(*some, facets=read, limit=limit))
    assert len(hits) == min(limit, len(some))
    for hit in hits:
        parts = (*(part.share for part in hit.channels.values()), *hit.preferences.values())
        assert hit.score == pytest.approx(min(math.fsum(parts), 1.0))
    assert [hit.id for hit in hits] == [hit.id for hit in fuse(inputs(*some, facets=read, limit=limit))]
