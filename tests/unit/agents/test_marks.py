"""From a verdict on hits to marks with the factors the hits were ranked by."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.agents.feedback import check_feedback, judge
from recollect.errors import InvalidInputError
from recollect.models.agents import Feedback, HitFeedback
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.recall import ChannelScore, ChannelStats, Factors, Hit, RecallResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDS = [UUID(int=number) for number in range(1, 5)]


def hit(number: int, *, ranked: bool = True) -> Hit:
    memory = Memory(
        *(UUID(int=number), Kind.EVENT, "something", "", 5.0, Triple(), False, 0, (), "library", 100),
        *(NOW, NOW, NOW, (), "", {}),
    )
    factors = Factors(0.5, 0.1 * number, 0.3, number) if ranked else None
    return Hit(memory, 1.0, {"stream" if ranked else "text": ChannelScore(1.0, 1.0, factors)})


RECOLLECTION = RecallResult(
    (hit(1), hit(2), hit(3), hit(4, ranked=False)), {"stream": "exact"}, tallies={"stream": ChannelStats(40, 0.0, 1.0)}
)


def test_the_other_hits_are_useless_unless_said_otherwise():
    feedback = judge(RECOLLECTION, [IDS[1]], None)
    assert {mark.memory_id: mark.useful for mark in feedback.marks} == {
        **dict.fromkeys(IDS, False),
        IDS[1]: True,
    }
    assert feedback.candidates == 40
    assert feedback.marks[0] == HitFeedback(IDS[1], True, Factors(0.5, 0.2, 0.3, 2))


def test_hits_of_other_scopes_are_not_marked():
    beside = replace(RECOLLECTION, hits=(hit(1), replace(hit(2), scope="eve")))
    assert [mark.memory_id for mark in judge(beside, [], None).marks] == [IDS[0]]
    with pytest.raises(InvalidInputError, match="name hits"):
        judge(beside, [IDS[1]], None)


def test_what_several_channels_and_preferences_added_is_told():
    parts = {"text": ChannelScore(3.0, 0.25), "vector": ChannelScore(0.4, 0.5)}
    several = replace(hit(1), channels=parts, preferences={"coverage": 0.1, "topics": 0.3}, relevance=0.2)
    [mark] = judge(replace(RECOLLECTION, hits=(several,), tallies={}), [IDS[0]], None).marks
    # What puts named topics first has no weight.
    assert (mark.factors, mark.shares) == (None, {"text": 0.25, "vector": 0.5, "coverage": 0.1})


def test_only_what_is_named_is_marked_where_the_useless_are_named():
    feedback = judge(RECOLLECTION, [IDS[1], IDS[1]], [IDS[0]])
    assert [(mark.memory_id, mark.useful) for mark in feedback.marks] == [(IDS[1], True), (IDS[0], False)]
    assert judge(RECOLLECTION, [], [IDS[0]]).marks[0].useful is False


@pytest.mark.parametrize(
    ("useful", "useless", "reason"),
    [
        ([UUID(int=99)], None, "name hits of the recollection"),
        ([IDS[0]], [UUID(int=99)], "name hits of the recollection"),
        ([IDS[0]], [IDS[0]], "both useful and useless"),
    ],
)
def test_a_verdict_on_what_is_no_hit_is_refused(useful, useless, reason):
    with pytest.raises(InvalidInputError, match=reason):
        judge(RECOLLECTION, useful, useless)


def test_a_recollection_without_hits_is_refused():
    with pytest.raises(InvalidInputError, match="needs a recall result with hits"):
        judge(replace(RECOLLECTION, hits=()), [], None)


GOOD = HitFeedback(IDS[0], True, Factors(1.0, 0.0, 0.5, 0))


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback((), 10),
        Feedback((GOOD, replace(GOOD, useful=False)), 10),
        Feedback((GOOD,), 0),
        Feedback((GOOD,)),
        Feedback((replace(GOOD, factors=None),)),
        Feedback((replace(GOOD, factors=None, shares={"text": 1.5}),)),
        Feedback((replace(GOOD, factors=None, shares={"mood": 0.5}),)),
        Feedback((GOOD,), 2**31),
        Feedback((replace(GOOD, factors=Factors(0.5, 1.1, 0.5, 1)),), 10),
        Feedback((replace(GOOD, factors=Factors(float("nan"), 0.1, 0.5, 1)),), 10),
        Feedback((replace(GOOD, factors=Factors(0.5, 0.1, 0.5, -1)),), 10),
        Feedback((replace(GOOD, factors=Factors(0.5, 0.1, 0.5, 11)),), 10),
        Feedback(tuple(replace(GOOD, memory_id=UUID(int=number)) for number in range(201)), 300),
    ],
)
def test_marks_that_no_recall_can_have_led_to_are_refused(feedback):
    check_feedback(Feedback((GOOD,), 10))
    check_feedback(Feedback((replace(GOOD, factors=None, shares={"text": 0.5, "long": -0.1}),)))
    with pytest.raises(InvalidInputError):
        check_feedback(feedback)
