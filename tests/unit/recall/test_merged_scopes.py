"""Hits of several scopes become one answer: the best come first, and no scope's own order changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.recall.extra_scopes import MAX_EXTRA_SCOPES, check_also, join, read_scope_name
from recollect.errors import InvalidInputError
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.recall import Cue, Hit, RecallResult, Status

NOW = datetime(2026, 5, 3, tzinfo=UTC)
CUE = Cue("tea")


def hit(number, relevance=None, score=0.0, days=0):
    then = NOW - timedelta(days=days)
    memory = Memory(
        UUID(int=number), Kind.EVENT, "", "", 5.0, Triple(), False, 0, (), "", 100, then, NOW, NOW, (), "", {}
    )  # fmt: skip
    return Hit(memory, score, {}, relevance=relevance)


def found(*hits, **more):
    return RecallResult(tuple(hits), more.pop("methods", {}), **more)


def numbers(answer):
    return [each.memory.id.int for each in answer.hits]


@pytest.mark.parametrize(
    ("name", "scope"), [("ada", ("ada", "")), ("ada/li", ("ada", "li")), ("ada/", ("ada", "")), ("a/b/c", ("a", "b/c"))]
)
def test_a_scope_is_named_by_its_agent_and_perhaps_a_user(name, scope):
    assert read_scope_name(name) == scope


def test_at_most_four_scopes_are_read_beside_the_own_one():
    names = [f"agent{number}" for number in range(MAX_EXTRA_SCOPES + 1)]
    assert MAX_EXTRA_SCOPES == 4
    check_also(())
    check_also(names[:4])
    with pytest.raises(InvalidInputError, match="also"):
        check_also(names)


@pytest.mark.parametrize(("name", "field"), [("", "agent"), ("/li", "agent"), ("a/b/c", "user")])
def test_a_name_that_no_scope_can_have_is_refused(name, field):
    with pytest.raises(InvalidInputError, match=field):
        check_also(["ada", name])


def test_the_most_relevant_come_first_and_say_where_they_were_read():
    others = {"bo": found(hit(2, 0.8), hit(3, 0.2)), "cy/li": found(hit(4, 0.5))}
    answer = join(CUE, found(hit(1, 0.6), hit(5, 0.1)), others, 9)
    assert numbers(answer) == [2, 1, 4, 3, 5]
    assert [each.scope for each in answer.hits] == ["bo", "", "cy/li", "bo", ""]
    assert [each.relevance for each in answer.hits] == [0.8, 0.6, 0.5, 0.2, 0.1]


def test_of_equals_the_own_scope_comes_first():
    others = {"bo": found(hit(2, 0.5)), "cy": found(hit(3, 0.5))}
    assert numbers(join(CUE, found(hit(1, 0.5)), others, 9)) == [1, 2, 3]


def test_no_scope_changes_its_own_order():
    # The second of the own hits is more relevant than the first, yet ranks below it.
    own, others = found(hit(1, 0.3), hit(2, 0.9)), {"bo": found(hit(3, 0.5), hit(4, 0.2))}
    assert numbers(join(CUE, own, others, 9)) == [3, 1, 2, 4]


def test_where_no_relevance_is_known_the_score_decides():
    others = {"bo": found(hit(2, None, 0.7), hit(3, 0.0, 0.9))}
    assert numbers(join(CUE, found(hit(1, None, 0.4)), others, 9)) == [2, 1, 3]


def test_a_cue_without_text_lists_the_newest_first():
    own = found(hit(1, 0.9, days=3), hit(2, 0.9, days=9))
    assert numbers(join(Cue(), own, {"bo": found(hit(3, 0.1, days=1), hit(4, 0.1, days=5))}, 9)) == [3, 1, 4, 2]


def test_the_limit_holds_for_all_scopes_together_and_only_what_is_shown_counts_as_accessed():
    one, two, three = (UUID(int=number) for number in (1, 2, 3))
    own = found(hit(1, 0.6), accessed=(one,))
    others = {"bo": found(hit(2, 0.8), hit(3, 0.2), accessed=(two, three))}
    answer = join(CUE, own, others, 2)
    assert numbers(answer) == [2, 1]
    assert answer.accessed == (one, two)
    assert join(CUE, own, others, 3).accessed == (one, two, three)


def test_the_answer_tells_what_each_scope_gave_and_waits_for_the_slowest():
    own = found(methods={"text": "bm25"}, milliseconds=5.0)
    others = {"bo": found(hit(2, 0.8), hit(3, 0.2), milliseconds=7.0), "cy/li": found(milliseconds=11.0)}
    answer = join(CUE, own, others, 1)
    assert answer.methods == {"text": "bm25", "also bo": "2 hits", "also cy/li": "0 hits"}
    assert answer.milliseconds == 16.0
    assert join(CUE, own, {}, 1).milliseconds == 5.0


def test_a_hit_anywhere_is_an_answer():
    nothing = found(status=Status.NO_CANDIDATES, message="nothing here")
    answered = found(hit(2, 0.8), message="as asked")
    answer = join(CUE, nothing, {"bo": nothing, "cy": answered}, 9)
    assert (answer.status, answer.message) == (Status.OK, "as asked")
    own = found(hit(1, 0.1), message="own")
    assert join(CUE, own, {"cy": answered}, 9).message == "own"


def test_where_nothing_is_found_anywhere_the_own_scope_says_why():
    nothing = found(status=Status.NO_CANDIDATES, message="nothing here")
    answer = join(CUE, nothing, {"bo": found(status=Status.NOTHING_RELEVANT, message="nothing there")}, 9)
    assert (answer.hits, answer.status, answer.message) == ((), Status.NO_CANDIDATES, "nothing here")
