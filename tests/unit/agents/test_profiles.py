"""An agent's profile and the JSON it is kept as."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents.profiles import check_profile, fill_in, from_profile, to_profile
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import Kind, RecallState
from recollect.models.recall import Cue, Mode, Weighing

WEIGHTS = st.none() | st.floats(0, 1000)
WEIGHINGS = st.builds(
    Weighing,
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
    since=st.none() | st.datetimes(timezones=st.just(UTC)),
    speakers=st.lists(st.sampled_from(["Ann", "李雷"]), unique=True).map(tuple),
    where=st.sampled_from([(), ("project == alpha",)]),
    state=st.none() | st.sampled_from(RecallState),
    also=st.sampled_from([(), ("ada",), ("ada/li", "世界")]),
)


@given(PROFILES)
def test_a_profile_survives_being_kept(profile):
    check_profile(profile)
    assert to_profile(from_profile(profile)) == profile


def test_nothing_kept_is_a_profile_that_says_nothing():
    assert to_profile(None) == to_profile({}) == Profile()
    assert from_profile(Profile()) == {}


def test_only_what_a_profile_says_is_kept():
    assert from_profile(Profile(Weighing(decay=0.95), limit=5)) == {"weighing": {"decay": 0.95}, "limit": 5}


def test_what_a_newer_version_kept_is_passed_over():
    kept = {"mood": "calm", "limit": 7, "weighing": {"mode": "paper", "novelty": 1}}
    assert to_profile(kept) == Profile(Weighing(Mode.PAPER), limit=7)


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        (Profile(Weighing(recency=-1)), "recency"),
        (Profile(Weighing(importance=float("nan"))), "importance"),
        (Profile(Weighing(decay=0)), "decay"),
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


def test_what_a_cue_names_takes_the_place_of_what_the_profile_restricts_to():
    profile = Profile(kinds=(Kind.FACT,), min_trust=50, topics=("work",), below=True, topics_only=True)
    filled = fill_in(Cue("any"), profile)
    assert (filled.kinds, filled.min_trust) == ((Kind.FACT,), 50)
    assert (filled.topics, filled.below, filled.topics_only) == (("work",), True, True)
    named = fill_in(Cue("any", kinds=(Kind.EVENT,), topics=("travel",)), profile)
    assert (named.kinds, named.min_trust) == ((Kind.EVENT,), 50)
    assert (named.topics, named.below, named.topics_only) == (("travel",), False, False)
