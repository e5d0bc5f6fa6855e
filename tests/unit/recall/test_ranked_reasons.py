"""A ranking says what each hit owes to whom, how likely it helps, and why there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp, log1p, nan
from uuid import UUID

import pytest

from recollect.core.recall.columns import EvidencePairs, RankingInput, to_candidates, to_ids, to_table
from recollect.core.recall.fusion import explain_empty_scope, explain_no_match, fuse
from recollect.core.recall.relevance import MIN_CHANNEL_SCORE, MIN_RELEVANCE, WITH_VECTOR, WITHOUT_VECTOR
from recollect.models.memories import Kind
from recollect.models.recall import Candidate, Cue, Factors, Features, Period, QueryAnalysis, QuestionType, Script
from recollect.models.service import Scope

DAY = datetime(2024, 5, 7, tzinfo=UTC)
TODAY = Period(DAY, DAY + timedelta(days=1))
OVERVIEW = QueryAnalysis(asks=frozenset({QuestionType.OVERVIEW}))
TOPICS_FIRST = QueryAnalysis(topics=("tea",), topics_first=True)
FACTORS = Factors(0.5, 0.25, 0.75, 3)


def propose(**channels):
    """Let channels propose memories by their numbers."""
    return {
        name: to_candidates([Candidate(UUID(int=number), score) for number, score in some.items()])
        for name, some in channels.items()
    }


def know(*features, width=2):
    """Know something of the memories 1, 2 and so on."""
    table = {
        UUID(int=number): Features(**{"occurred_at": DAY - timedelta(days=9), "kind": Kind.EVENT} | each)
        for number, each in enumerate(features, 1)
    }
    return to_table(table, width)


def rank(candidates, known=None, facets=None, *, limit=50, rarities=(1.0, 3.0), model="", evidence=None, **weights):
    pairs = evidence or EvidencePairs()
    return fuse(RankingInput(candidates, known, facets or QueryAnalysis(), weights, limit, rarities, model, pairs))


def shares(hits, name):
    return {hit.id.int: hit.channels[name].share for hit in hits if name in hit.channels}


def relevances(hits):
    return {hit.id.int: hit.relevance for hit in hits}


@pytest.mark.parametrize(
    ("user", "users", "told"),
    [
        ("li", [], "agent ada has no memories for user li"),
        ("", [], "agent ada has no memories without a user"),
        ("li", ["bo", ""], "agent ada has no memories for user li; users with memories: bo, (no user)"),
        ("li", [*"abcde"], "agent ada has no memories for user li; users with memories: a, b, c, d, e"),
        ("li", [*"abcdef"], "agent ada has no memories for user li; users with memories: a, b, c, d, e and others"),
    ],
)
def test_an_empty_scope_names_up_to_five_users_that_are_not(user, users, told):
    assert explain_empty_scope(Scope(1, "ada", user), users) == told


@pytest.mark.parametrize(
    ("cue", "methods", "told"),
    [
        (Cue("tea"), {}, "nothing has the words of the cue"),
        (Cue("tea"), {"vector": "exact"}, "nothing has the words of the cue"),
        (Cue("tea", kinds=(Kind.FACT,)), {}, "nothing was found within the given kinds"),
        (
            Cue("tea", kinds=(Kind.FACT,), min_trust=5, channels=("text",)),
            {},
            "nothing was found within the given kinds and min_trust and channels",
        ),
        (
            Cue("tea"),
            {"vector": "skipped: no model"},
            "nothing has the words of the cue; vectors were not compared: no model",
        ),
    ],
)
def test_where_nothing_matches_it_is_said_what_was_asked_for(cue, methods, told):
    assert explain_no_match(cue, methods) == told


def test_a_score_that_is_made_of_factors_shows_them_and_another_does_not():
    stream = to_candidates([Candidate(UUID(int=1), 4.0, FACTORS), Candidate(UUID(int=2), 1.0)])
    first, second = rank({"stream": stream}, stream=1.0)
    assert (first.channels["stream"].factors, second.channels["stream"].factors) == (FACTORS, None)


def test_factors_are_those_of_the_better_of_two_proposals():
    worse = Factors(0.1, 0.1, 0.1, 9)
    stream = to_candidates([Candidate(UUID(int=1), 1.0, worse), Candidate(UUID(int=1), 4.0, FACTORS)])
    (hit,) = rank({"stream": stream}, stream=1.0)
    assert (hit.channels["stream"].score, hit.channels["stream"].factors) == (4.0, FACTORS)


def test_vectors_score_what_others_proposed_by_its_cosine():
    known = know({"cosine": 0.8}, {"cosine": 0.2}, {"cosine": 0.5}, {"cosine": None}, {"cosine": 0.0})
    proposed = propose(vector={1: 0.8, 2: 0.2}, recent={3: 1.0, 4: 1.0, 5: 1.0})
    hits = rank(proposed, known, vector=1.0, recent=1.0)
    assert shares(hits, "vector") == pytest.approx({1: 0.5, 2: 0.0, 3: 0.25})


def test_text_scores_what_others_proposed_by_its_terms_but_never_above_its_own_weakest():
    known = know({}, {}, {"terms": (0,)}, {"terms": (0, 1)}, {})
    proposed = propose(text={1: 8.0, 2: 2.0}, recent={3: 1.0, 4: 1.0, 5: 1.0})
    hits = rank(proposed, known, text=1.0, recent=1.0)
    assert {hit.id.int: hit.channels["text"].score for hit in hits if "text" in hit.channels} == {
        1: 8.0,
        2: 2.0,
        3: 1.0,
        4: 2.0,
    }


def test_dates_score_what_others_proposed_by_when_it_happened():
    known = know({"occurred_at": DAY}, {"occurred_at": DAY + timedelta(hours=1)}, {})
    proposed = propose(date={1: 1.0}, recent={2: 1.0, 3: 1.0})
    hits = rank(proposed, known, QueryAnalysis(periods=(TODAY,)), date=1.0, recent=1.0)
    assert shares(hits, "date").keys() == {1, 2}


def test_other_channels_say_nothing_of_what_they_did_not_propose():
    known = know({"cosine": 0.8, "terms": (0,)}, {"cosine": 0.8, "terms": (0,)})
    asked = QueryAnalysis(periods=(Period(DAY - timedelta(days=10), DAY),))
    hits = rank(propose(keyword={1: 1.0}, recent={2: 1.0}), known, asked, keyword=1.0, recent=1.0)
    assert shares(hits, "keyword") == {1: 0.5}


def test_a_channel_or_preference_that_speaks_against_a_memory_takes_no_part_in_the_total():
    known = know({"assistant": True}, {})
    hits = rank(propose(text={1: 8.0, 2: 8.0}, recent={1: 1.0}), known, text=1.0, recent=-1.0, assistant=-0.25)
    assert {hit.id.int: hit.score for hit in hits} == {2: 1.0, 1: 0.75}
    assert {hit.id.int: hit.preferences for hit in hits} == {2: {}, 1: {"assistant": -0.25}}


def test_a_preference_shares_the_total_with_the_channels():
    known = know({"named": True}, {})
    hits = rank(propose(text={1: 4.0, 2: 8.0}), known, text=1.0, speaker=3.0)
    assert [(hit.id.int, hit.score) for hit in hits] == [(1, 0.125 + 0.75), (2, 0.25)]
    assert [hit.preferences for hit in hits] == [{"speaker": 0.75}, {}]
    hits = rank(propose(text={1: 4.0, 2: 8.0}), known, text=3.0, speaker=1.0)
    assert [(hit.id.int, hit.score) for hit in hits] == [(2, 0.75), (1, 0.375 + 0.25)]


def test_evidence_alone_is_not_ranked():
    pairs = EvidencePairs(to_ids([UUID(int=1)]), to_ids([UUID(int=2)]))
    assert rank(propose(text={1: nan}), know({}, {}), evidence=pairs, text=1.0) == []
    lending = RankingInput(
        propose(text={1: nan}),
        know({}, {}),
        QueryAnalysis(),
        {"text": 1.0, "evidence": 1.0},
        9,
        (1.0, 3.0),
        evidence=pairs,
    )
    assert fuse(lending) == []


def test_what_is_filed_under_a_named_topic_has_the_upper_half_of_the_scale():
    known = know({}, {}, {})
    proposed = propose(text={1: 8.0, 2: 4.0, 3: 2.0}, topic={2: 2.0, 3: 1.0})
    hits = rank(proposed, known, TOPICS_FIRST, text=1.0, topic=1.0)
    assert [(hit.id.int, hit.score) for hit in hits] == [(2, 1.0), (3, 0.75), (1, 0.25)]
    assert hits[0].preferences == pytest.approx({"topics": 1.0 - 0.375})
    assert hits[1].preferences == pytest.approx({"topics": 0.75 - 0.1875})
    assert hits[2].preferences == {}
    assert shares(hits, "text") == {1: 0.25, 2: 0.125, 3: 0.0625}
    assert [hit.id.int for hit in rank(proposed, known, TOPICS_FIRST, limit=2, text=1.0, topic=1.0)] == [2, 3]


def test_of_what_is_filed_alike_the_better_score_comes_first():
    proposed = propose(text={1: 8.0, 2: 4.0, 3: 2.0}, topic={2: 1.0, 3: 1.0, 1: 1.0})
    hits = rank(proposed, know({}, {}, {}), TOPICS_FIRST, text=1.0, topic=1.0)
    assert [hit.id.int for hit in hits] == [1, 2, 3]
    assert {hit.score for hit in hits} == {1.0}


def test_topics_that_nobody_named_are_a_channel_like_others():
    proposed = propose(text={1: 8.0, 2: 4.0}, topic={2: 1.0})
    hits = rank(proposed, know({}, {}), QueryAnalysis(topics=("tea",)), text=1.0, topic=0.25)
    assert [hit.id.int for hit in hits] == [1, 2]


def test_topics_that_are_asked_alone_rank_by_themselves():
    alone = propose(topic={1: 2.0, 2: 1.0})
    assert [hit.score for hit in rank(alone, None, TOPICS_FIRST, topic=1.0)] == [1.0, 0.5]
    assert [hit.score for hit in rank(alone, know({}, {}), TOPICS_FIRST, topic=1.0)] == [1.0, 0.75]
    both = propose(topic={1: 2.0, 2: 1.0}, text={2: 1.0})
    assert [hit.score for hit in rank(both, None, TOPICS_FIRST, topic=1.0, text=1.0)] == [1.0, 0.75]


def spread_over(last, limit=2):
    """Ask for the overall picture of one session, and of another whose only memory ranks last."""
    known = know(*[{"session": "a"}] * (last - 1), {"session": "b"}, width=0)
    proposed = propose(text={number: 100.0 - number for number in range(1, last + 1)})
    hits = rank(proposed, known, OVERVIEW, limit=limit, rarities=(), text=1.0, diversity=9.0)
    return [hit.id.int for hit in hits]


def test_for_the_overall_picture_the_better_of_the_candidates_are_looked_at():
    assert spread_over(24) == [1, 24]
    assert spread_over(25) == [1, 2]
    assert spread_over(26, limit=3) == [1, 26, 2]


def test_every_further_hit_of_a_session_costs_more():
    known = know(*[{"session": "a"}] * 4, width=0)
    proposed = propose(text={1: 8.0, 2: 8.0, 3: 4.0, 4: 2.0})
    hits = rank(proposed, known, OVERVIEW, rarities=(), text=2.0, diversity=0.5)
    assert [hit.id.int for hit in hits] == [1, 2, 3, 4]
    assert [hit.preferences.get("diversity") for hit in hits] == [None, -0.25, -0.5, -0.75]
    assert [hit.score for hit in hits] == [1.0, 0.75, 0.0, -0.5]


def test_without_sessions_or_with_a_weight_that_says_otherwise_nothing_is_spread():
    proposed = propose(text={1: 8.0, 2: 8.0})
    for known, weight in ((None, 0.5), (know({}, {}), -0.5), (know({}, {}), 0.0)):
        hits = rank(proposed, known, OVERVIEW, text=1.0, diversity=weight)
        assert [hit.score for hit in hits] == [1.0, 1.0]
    assert [hit.score for hit in rank(proposed, know({}, {}), OVERVIEW, text=1.0)] == [1.0, 1.0]


def likely(table, *measures):
    return 1 / (1 + exp(-sum(weight * value for weight, value in zip(table, measures, strict=True))))


def test_relevance_follows_from_words_speaker_and_place():
    known = know({"terms": (0,), "named": True}, {"terms": (1,)})
    hits = rank(propose(text={1: 8.0, 2: 4.0}), known, text=1.0)
    table = WITHOUT_VECTOR[Script.WORDS]
    assert relevances(hits) == {
        1: pytest.approx(likely(table, 1, 0.25, 0.75, 1.0, log1p(8), 1, 0, 0)),
        2: pytest.approx(likely(table, 1, 0.75, 0.75, 0.5, log1p(4), 0, log1p(1), 0)),
    }


def test_vectors_tell_of_relevance_where_their_model_is_known():
    [model, *_] = WITH_VECTOR
    proposed, known = propose(vector={1: 0.5, 2: 0.25}), know({"cosine": 0.5}, {"cosine": 0.25})
    table = WITH_VECTOR[model][Script.WORDS]
    assert relevances(rank(proposed, known, model=model, vector=1.0)) == {
        1: pytest.approx(likely(table, 1, 0, 0, 0, 0, 0, 0, 0.5)),
        2: pytest.approx(likely(table, 1, 0, 0, 0, 0, 0, log1p(1), 0.25)),
    }
    plain = likely(WITHOUT_VECTOR[Script.WORDS], 1, 0, 0, 0, 0, 0, 0, 0.5)
    assert rank(proposed, known, vector=1.0)[0].relevance == pytest.approx(plain)
    unasked = rank(propose(recent={1: 1.0}), know({"cosine": 0.5}), model=model, recent=1.0)
    assert unasked[0].relevance == pytest.approx(plain)


def test_where_a_channel_ranks_by_itself_no_relevance_is_known():
    assert relevances(rank(propose(text={1: 8.0, 2: 4.0}), None, text=1.0)) == {1: None, 2: None}


def test_nine_tenths_of_the_cue_are_enough_to_help():
    known = know({"terms": (0,)}, {"terms": (1,)})
    enough = relevances(rank(propose(recent={1: 2.0, 2: 1.0}), known, rarities=(9.0, 1.0), recent=1.0))
    assert enough[1] == MIN_RELEVANCE
    assert enough[2] < MIN_RELEVANCE
    fewer = relevances(rank(propose(recent={1: 2.0}), know({"terms": (0,)}), rarities=(8.9, 1.1), recent=1.0))
    assert fewer[1] < MIN_RELEVANCE


def test_what_is_found_by_something_that_the_cue_names_is_likely_enough_to_help():
    least = MIN_CHANNEL_SCORE["graph"]
    proposed = propose(
        keyword={1: 1.0}, graph={2: least, 3: least - 0.01}, topic={4: 1.0}, date={5: 1.0}, recent={6: 1.0, 7: 1.0}
    )
    known = know({}, {}, {}, {}, {"occurred_at": DAY}, {"occurred_at": DAY}, {})
    weights = dict.fromkeys(proposed, 1.0)
    named = relevances(rank(proposed, known, QueryAnalysis(periods=(TODAY,), topics=("tea",)), **weights))
    assert {number for number, relevance in named.items() if relevance >= MIN_RELEVANCE} == {1, 2, 4, 5}
    # A word of the cue that is also the name of a topic may mean something else.
    unnamed = relevances(rank(proposed, known, QueryAnalysis(periods=(TODAY,)), **weights))
    assert {number for number, relevance in unnamed.items() if relevance >= MIN_RELEVANCE} == {1, 2, 5}


def test_what_is_likely_by_itself_is_not_held_down_to_enough():
    known = know({"terms": (0, 1), "named": True})
    (hit,) = rank(propose(text={1: 60.0}), known, text=1.0)
    assert hit.relevance > 10 * MIN_RELEVANCE
