"""What a cue may ask for: a zone that exists, a period that has a length, topics and weights that can be used."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.dates.periods import find_zone
from recollect.core.recall.checks import check_cue, check_weights
from recollect.errors import InvalidInputError
from recollect.misspelt import read_filter
from recollect.models.filters import Filter
from recollect.models.memories import Kind, RecallState
from recollect.models.recall import Cue, StreamWeights

MAY, JUNE = datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "cue",
    [
        Cue("x", zone="Asia/Shanghai", since=MAY, until=JUNE, topics=("travel->Japan", "旅行"), below=True),
        Cue("x", since=MAY),
        Cue("x", until=MAY, weights={"text": 0, "vector": 1_000.0, "keyword": 0.25}, judge=True, keep=False),
        Cue("x", topics=("a",) * 16, weights={"long": -2.5, "speaker": 0.0}),
    ],
)
def test_cues_that_make_sense_are_accepted(cue):
    check_cue(cue)


@pytest.mark.parametrize(
    ("cue", "says"),
    [
        (Cue("x", zone="Mars/Olympus"), "zone"),
        (Cue("x", zone=""), "zone"),
        (Cue("x", since=JUNE, until=MAY), "since must be before until"),
        (Cue("x", since=MAY, until=MAY), "since must be before until"),
        (Cue("x", since=datetime(2025, 5, 1)), "since must carry a time zone offset"),  # noqa: DTZ001 - which is the point
        (Cue("x", until=datetime(1, 1, 1, tzinfo=UTC)), "until"),
        (Cue("x", topics=("->",)), "topics"),
        (Cue("x", topics=("a\nb",)), "topics"),
        (Cue("x", topics=("a" * 600,)), "^topics must"),
        (Cue("x", topics=("a",) * 17), "at most 16"),
        (Cue("x", weights={"text": -0.1}), "weights"),
        (Cue("x", weights={"text": math.nan}), "weights"),
        (Cue("x", weights={"text": math.inf}), "weights"),
        (Cue("x", weights={"text": 1_000.1}), "weights"),
        (Cue("x", weights={"": 1.0}), "no weight"),
        (Cue("x", weights={"a b": 1.0}), "no weight of such a name;"),
        (Cue("x", weighing=StreamWeights(recency=-1.0)), "recency must be between 0 and 1000"),
        (Cue("x", weights={"txet": 1.0}), "no weight 'txet'; there are: .* text, .* vector"),
        (Cue("x", weights={"long": -1_000.1}), "weights: long"),
    ],
)
def test_cues_that_make_none_are_refused(cue, says):
    with pytest.raises(InvalidInputError, match=says):
        check_cue(cue)


def test_a_channel_of_your_own_has_a_weight_too():
    check_weights({"dreams": 1.0}, {"dreams"})
    with pytest.raises(InvalidInputError, match="weights: dreams must be between 0 and 1000"):
        check_cue(Cue("x", weights={"dreams": -1.0}), {"dreams"})


def test_utc_is_known_without_any_database_of_zones(monkeypatch):
    def nowhere(name):
        raise KeyError(name)

    monkeypatch.setattr("recollect.core.dates.periods.ZoneInfo", nowhere)
    assert find_zone("UTC") is UTC
    with pytest.raises(InvalidInputError, match="zone"):
        find_zone("Europe/Berlin")


def test_zones_are_found_by_name():
    assert find_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("name", ["Europe", "../etc/passwd", "/etc/passwd", "a\0b", "UTC ", "\ud800", "x" * 65, "."])
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(InvalidInputError, match="zone"):
        find_zone(name)


@given(st.text(max_size=80))
def test_any_text_is_a_zone_or_refused(name):
    with suppress(InvalidInputError):
        assert find_zone(name) is not None


def test_a_filter_may_be_a_dict_with_the_same_fields():
    written = {"kinds": ["chat"], "where": ["a == 1"], "since": "2025-01-01T00:00:00+00:00", "state": "faded"}
    read = Filter(
        kinds=(Kind.CHAT,), where=("a == 1",), since=datetime(2025, 1, 1, tzinfo=UTC), state=RecallState.FADED
    )
    assert read_filter(written) == read
    assert hash(read_filter(written)) == hash(read)
    assert read_filter(read) is read
    assert read_filter(None) == read_filter({}) == Filter()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "chat"}, "`kind` is not known here; did you mean `kinds`?"),
        ({"kinds": ["talk"]}, "kinds.0: Input should be 'message', "),
        ({"since": "yesterday"}, "since: "),
    ],
)
def test_a_wrong_dict_names_the_field_that_was_meant(wrong, said):
    with pytest.raises(InvalidInputError, match=re.escape(f"filter: {said}")):
        read_filter(wrong)
