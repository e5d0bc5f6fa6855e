"""An agent's profile and the JSON it is kept as."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents.profiles import check_profile, fill_in, from_profile, to_profile
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import Kind, RecallState
from recollect.models.recall import Cue, Mode, StreamWeights

WEIGHTS = st.none() | st.floats(0, 1000)
WEIGHINGS = st.builds(
    StreamWeights,
    mode=st.none() | st.sampled_from(Mode),
    recency=WEIGHTS,
    similarity=WEIGHTS,
    importance=WEIGHTS,
    gains=st.none() | st.tuples(*[st.floats(0, 1000)] * 3),
    decay=st.none() | st.floats(0.001, 1),
)
PROFILES = st.builds(
    Profile,
    weighing=WEIGHINGS,
    kinds=st.lists(st.sampled_from(Kind), unique=True).map(tuple),
    limit=st.none() | st.integers(1, 200),
    reflection_threshold=st.none() | st.floats(0, 1_000_000),
    since=st.none() | st.datetimes(datetime(2, 1, 1), datetime(9997, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
    speakers=st.lists(st.sampled_from(["Ann", "李雷"]), unique=True).map(tuple),
    where=st.sampled_from([(), ("project == alpha",)]),
    state=st.none() | st.sampled_from(RecallState),
    also=st.sampled_from([(), ("ada",), ("ada/li", "世界")]),
)


@given(PROFILES)
def test_a_profile_survives_being_kept(profile):
    check_profile(profile)
    assert to_profile(json.loads(json.dumps(from_profile(profile)))) == profile


def test_nothing_kept_is_a_profile_that_says_nothing():
    assert to_profile(None) == to_profile({}) == Profile()
    assert from_profile(Profile()) == {}


def test_only_what_a_profile_says_is_kept():
    assert from_profile(Profile(StreamWeights(decay=0.95), limit=5)) == {"weighing": {"decay": 0.95}, "limit": 5}


def test_what_a_newer_version_kept_is_passed_over():
    kept = {"mood": "calm", "limit": 7, "weighing": {"mode": "paper", "novelty": 1}}
    assert to_profile(kept) == Profile(StreamWeights(Mode.PAPER), limit=7)


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        (Profile(StreamWeights(recency=-1)), "recency"),
        (Profile(StreamWeights(importance=float("nan"))), "importance"),
        (Profile(StreamWeights(decay=0)), "decay"),
        (Profile(kinds=(Kind.EVENT, Kind.EVENT)), "kinds"),
        (Profile(limit=0), "limit"),
        (Profile(min_trust=101), "min_trust"),
        (Profile(where=("nonsense",)), "where|condition"),
        (Profile(also=("a/b/c",)), "user"),
        (Profile(also=("ada",) * 5), "also"),
        (Profile(limit=201), "limit"),
        (Profile(reflection_threshold=-1), "reflection_threshold"),
        (Profile(reflection_threshold=float("inf")), "reflection_threshold"),
    ],
)
def test_absurd_profiles_are_refused_by_name(profile, field):
    with pytest.raises(InvalidInputError, match=field):
        check_profile(profile)


@pytest.mark.parametrize(
    ("field", "most"),
    [
        ("fading_threshold", 1),
        ("segment_depth", 2),
        ("reflection_threshold", 1_000_000),
        ("idle_minutes", 365 * 24 * 60),
        *((field, 36_500) for field in ("archive_after_days", "delete_after_days", "purge_after_days")),
        *((field, 36_500) for field in ("fading_days", "fading_fact_days")),
        ("min_relevance", 1),
    ],
)
def test_every_number_has_its_bounds(field, most):
    for within in (None, 0, most / 2, most):
        check_profile(Profile(**{field: within}))
    for beyond in (-0.001, most + 0.001, float("nan")):
        with pytest.raises(InvalidInputError, match=field):
            check_profile(Profile(**{field: beyond}))


def test_a_profile_names_up_to_twenty_whose_memory_it_is():
    names = tuple(f"name {number}" for number in range(21))
    check_profile(Profile(names=names[:20]))
    for refused in (names, ("two\nlines",), ("x" * 10_000,)):
        with pytest.raises(InvalidInputError, match=r"names\b"):
            check_profile(Profile(names=refused))


@pytest.mark.parametrize("language", ["", "en", "zh"])
def test_prompts_are_in_english_or_chinese(language):
    check_profile(Profile(language=language))
    with pytest.raises(InvalidInputError, match="language"):
        check_profile(Profile(language=f"{language}x"))


def test_a_channel_must_be_known():
    check_profile(Profile(channels=("text", "vector")))
    check_profile(Profile(channels=("text", "own")), ["own"])
    with pytest.raises(InvalidInputError, match="own"):
        check_profile(Profile(channels=("text", "own")))


def test_weights_and_relevance_of_a_profile_are_checked_as_those_of_a_cue():
    check_profile(Profile(weights={"text": 2.0}, channels=("text", "vector"), min_relevance=0.5))
    with pytest.raises(InvalidInputError):
        check_profile(Profile(weights={"nothing": 2.0}))
    with pytest.raises(InvalidInputError, match="min_relevance"):
        check_profile(Profile(channels=("text",), min_relevance=0.5))


def test_a_profile_that_says_nothing_leaves_a_cue_alone():
    cue = Cue("tea", channels=("text",))
    assert fill_in(cue, Profile()) is cue
    # What else it says is none of the cue's business.
    assert fill_in(cue, Profile(limit=5, names=("Ann",), fading_days=3)) is cue


PROFILE = Profile(
    channels=("text", "vector"), weights={"text": 2.0, "vector": 3.0}, min_relevance=0.5, consult=True, judge=True
)


def test_a_cue_is_filled_in_with_what_it_does_not_say():
    filled = fill_in(Cue("tea"), PROFILE)
    assert (filled.channels, filled.weights, filled.min_relevance) == (PROFILE.channels, PROFILE.weights, 0.5)
    assert (filled.consult, filled.judge) == (True, True)


def test_what_a_cue_says_stands():
    said = {"channels": ("text", "graph"), "min_relevance": 0.0, "consult": False, "judge": False}
    filled = fill_in(Cue("tea", weights={"text": 9.0}, **said), PROFILE)
    assert {name: getattr(filled, name) for name in said} == said
    assert filled.weights == {"text": 9.0, "vector": 3.0}


@pytest.mark.parametrize("field", ["channels", "weights", "min_relevance", "consult", "judge", "min_trust"])
def test_one_setting_is_enough_to_fill_in(field):
    value = 50 if field == "min_trust" else getattr(PROFILE, field)
    filled = fill_in(Cue("tea"), Profile(**{field: value}))
    assert getattr(filled, field) == value


@pytest.mark.parametrize(
    ("cue", "profile", "least"),
    [
        (Cue("tea", channels=("text",)), PROFILE, None),
        (Cue("tea", channels=("text", "text")), PROFILE, None),
        (Cue("tea", channels=("text",), min_relevance=0.25), PROFILE, 0.25),
        (Cue("tea"), Profile(channels=("text",), min_relevance=0.5), None),
        (Cue("tea"), Profile(min_relevance=0.5), 0.5),
        (Cue(), PROFILE, None),
        (Cue(min_relevance=0.25), PROFILE, 0.25),
    ],
)
def test_a_channel_that_ranks_alone_has_no_least_relevance(cue, profile, least):
    assert fill_in(cue, profile).min_relevance == least


def test_a_cue_without_text_asks_only_the_channels_that_it_names():
    assert fill_in(Cue(), PROFILE).channels == ()
    assert fill_in(Cue(channels=("recent",)), PROFILE).channels == ("recent",)


def test_what_a_cue_names_takes_the_place_of_what_the_profile_restricts_to():
    profile = Profile(kinds=(Kind.FACT,), min_trust=50, topics=("work",), below=True, topics_only=True)
    filled = fill_in(Cue("any"), profile)
    assert (filled.kinds, filled.min_trust) == ((Kind.FACT,), 50)
    assert (filled.topics, filled.below, filled.topics_only) == (("work",), True, True)
    named = fill_in(Cue("any", kinds=(Kind.EVENT,), topics=("travel",)), profile)
    assert (named.kinds, named.min_trust) == ((Kind.EVENT,), 50)
    assert (named.topics, named.below, named.topics_only) == (("travel",), False, False)
