"""The pure rule: what a message's vector is made of, and which message of a call each one follows."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.conversations.appends import (
    PositionedMessage,
    compare_context,
    find_before,
    texts_before,
    to_memory,
)
from recollect.core.text.terms import BEFORE, embedded_text, utterance_before
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.memories import NewMemory, Role


def user(content, **more):
    return NewMessage(Role.USER, content, **more)


def test_a_message_is_embedded_behind_the_utterance_before():
    before = utterance_before("Ada", "Where did you go?")
    assert before == "Ada: Where did you go?"
    assert embedded_text(NewMemory("To Leuven.", speaker="Li"), before) == "Ada: Where did you go?\nLi: To Leuven."


def test_without_a_speaker_it_is_what_was_said():
    assert embedded_text(NewMemory("Yes."), utterance_before("", "Tea?")) == "Tea?\nYes."


def test_what_is_long_is_not_seen_at_all():
    whole = "x" * BEFORE
    assert utterance_before("Ada", whole) == f"Ada: {whole}"
    assert utterance_before("Ada", f"y{whole}") == ""


def test_where_nothing_was_said_the_message_stands_alone():
    assert embedded_text(NewMemory("Hello.", speaker="Ada"), "") == "Ada: Hello."
    assert utterance_before("Ada", "") == utterance_before("Ada", " \n ") == ""


def test_a_text_given_for_it_is_embedded_as_it_is():
    assert embedded_text(NewMemory("Yes.", embedding_text="assent"), "Ada: Tea?") == "assent"


@given(st.text(max_size=600), st.text(max_size=20))
def test_the_end_of_an_utterance_says_all_that_the_rule_reads(content, speaker):
    """A query may cut what it reads, as long as one character more tells that something was before it."""
    quoted = utterance_before(speaker, content)
    assert utterance_before(speaker, content[-BEFORE - 1 :]) == quoted
    assert len(quoted) <= BEFORE + len(speaker) + 2


def test_within_a_call_each_follows_the_one_before_or_the_one_it_names():
    elsewhere = UUID(int=7)
    call = [
        user("a"),
        user("b"),
        user("c", parent=0),
        user("d", root=True),
        user("e", parent=elsewhere),
        user("f", parent=LEGACY),
        user("g"),
    ]
    before = find_before(call)
    assert before == [None, 0, 0, None, None, None, 5]
    assert texts_before([to_memory(message) for message in call], before) == ["", "a", "a", "", "", "", "f"]


def test_what_follows_something_that_was_not_known_is_embedded_once_more():
    messages = [user("a"), user("b"), user("c", root=True), NewMessage(Role.ASSISTANT, ""), user("e")]
    ids = [UUID(int=number) for number in range(1, 6)]
    parents = [UUID(int=99), ids[0], None, ids[2], ids[3]]
    linked = [
        PositionedMessage(message, identity, number, parent, identity, None)
        for number, (message, identity, parent) in enumerate(zip(messages, ids, parents, strict=True))
    ]
    before = find_before(messages)
    compared = compare_context(linked, before, texts_before([to_memory(message) for message in messages], before))
    assert compared.again == {ids[0]}
    assert compared.done == {ids[1], ids[3]}
