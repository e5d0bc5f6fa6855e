"""What may be appended to a conversation, and what each message then follows."""

from __future__ import annotations

from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from recollect.core.conversations.appends import (
    EmbeddedWithContext,
    OpenConversation,
    ParentMessage,
    PositionedMessage,
    advance_conversation,
    check_conversation,
    check_message,
    check_messages,
    compare_context,
    find_before,
    fingerprint_messages,
    link,
    texts_before,
    to_memory,
)
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.conversations import (
    LEGACY,
    Attachment,
    ConversationState,
    MessageStatus,
    NewMessage,
    Part,
    PartType,
)
from recollect.models.memories import Kind, NewMemory, Role

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
USER, ASSISTANT, SYSTEM, TOOL = Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL
ONE, TWO, THREE, FOUR, FIVE = (UUID(int=number) for number in range(1, 6))
OLD, OLDER, TURN = UUID(int=91), UUID(int=92), UUID(int=93)
LONG = "x" * 200_000


def said(content: str = "hello", role: Role = USER, **more) -> NewMessage:
    return NewMessage(role, content, **more)


def part(text: str = "", **more) -> Part:
    return Part(PartType.TEXT, text, **more)


@pytest.mark.parametrize("name", ["a", "x" * 128, "A-Z.0_9:@-", "X", ".a", "a.."])
def test_a_plain_name_of_a_conversation(name):
    check_conversation(name)


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "a/b", "茶", "a\n", ".", "..", "..."])
def test_a_name_of_a_conversation_that_could_be_mistaken(name):
    with pytest.raises(InvalidInputError, match="conversation"):
        check_conversation(name)


ACCEPTED = [
    said(LONG),
    said("", parts=(part(LONG),)),
    said("said", parts=(part(LONG),)),
    said("", ASSISTANT),
    said("", TOOL),
    said("", attachments=(Attachment("image"),)),
    said("", SYSTEM, parts=(part("word"),)),
    said(parts=(part(),) * 64, attachments=(Attachment("image"),) * 64),
    said(parts=(part(url="u" * 8_000, name="n" * 200, call_id="c" * 200),)),
    said(attachments=(Attachment("t" * 200, "u" * 8_000, "u" * 200, name="n" * 200),)),
    said(attachments=(Attachment("image", side=USER), Attachment("image", side=ASSISTANT))),
    said(name="n" * 200, external_id="e" * 200, importance=10.0, occurred_at=NOW, metadata={"a": 1}),
]
REFUSED = [
    (said(LONG + "x"), "content"),
    (said("a\0"), "content"),
    (said("", parts=(part(LONG), part("x"))), "parts"),
    (said("said", parts=(part(LONG + "x"),)), r"parts\.text"),
    (said("said", parts=(part("a\0"),)), r"parts\.text"),
    (said(" "), "message is empty"),
    (said("\n", SYSTEM), "message is empty"),
    (said("", parts=(part(),)), "message is empty"),
    (said(parts=(part(),) * 65), "parts and attachments"),
    (said(attachments=(Attachment("image"),) * 65), "parts and attachments"),
    (said(parts=(part(name="n" * 201),)), r"parts\.name"),
    (said(parts=(part(call_id="a\nb"),)), r"parts\.call_id"),
    (said(parts=(part(url="u" * 8_001),)), r"parts\.url"),
    (said(attachments=(Attachment("image", "u\0"),)), r"attachments\.url"),
    (said(attachments=(Attachment("t" * 201),)), r"attachments\.type"),
    (said(attachments=(Attachment(" "),)), r"attachments\.type"),
    (said(attachments=(Attachment("image", name="a\nb"),)), r"attachments\.name"),
    (said(attachments=(Attachment("image", upload_id="a\nb"),)), r"attachments\.upload_id"),
    (said(attachments=(Attachment("image", side=SYSTEM),)), r"attachments\.side"),
    (said(name="n" * 201), "name"),
    (said(external_id="e" * 201), "external_id"),
    (said(importance=11.0), "importance"),
    (said(metadata={"a": "x" * 17_000}), "metadata"),
]


@pytest.mark.parametrize("message", ACCEPTED)
def test_a_message_within_the_bounds_is_accepted(message):
    check_message(message)
    check_messages([message])


@pytest.mark.parametrize(("message", "field"), REFUSED)
def test_a_message_beyond_a_bound_is_refused_by_the_name_of_the_field(message, field):
    with pytest.raises(InvalidInputError, match=rf"^{field}\b"):
        check_message(message)


def test_an_empty_message_of_a_call_is_named_by_its_place():
    with pytest.raises(InvalidInputError, match=r"^messages\.1 is empty"):
        check_messages([said(), said("")])


def test_a_call_has_bounds_as_a_whole():
    check_messages([said("x")] * 1_000)
    check_messages([said(LONG), said("x" * 50_000)])
    check_messages([said("x", parts=(part(LONG),))] * 4 + [said("x", parts=(part("x" * 199_995),))])
    for many in ([], [said("x")] * 1_001):
        with pytest.raises(InvalidInputError, match="1 to 1000"):
            check_messages(many)
    for long in ([said(LONG), said("x" * 50_001)], [said("", parts=(part(LONG),)), said("x" * 50_001)]):
        with pytest.raises(InvalidInputError, match="250000 characters"):
            check_messages(long)
    with pytest.raises(InvalidInputError, match="with their parts"):
        check_messages([said("x", parts=(part(LONG),))] * 4 + [said("x", parts=(part("x" * 199_996),))])


def test_a_message_follows_only_what_comes_before_it_in_the_call():
    check_messages([said(), said(parent=0), said(parent=1), said(parent=ONE), said(root=True)])
    for wrong in ([said(parent=0)], [said(), said(parent=1)], [said(), said(parent=-1)]):
        with pytest.raises(InvalidInputError, match="parent"):
            check_messages(wrong)
    for parent in (ONE, 0):
        with pytest.raises(InvalidInputError, match="root"):
            check_messages([said(), said(parent=parent, root=True)])


def test_a_message_is_stored_as_a_memory_of_what_it_says():
    message = said(
        "", name="Li", parts=(part("tea"),), importance=3.0, occurred_at=NOW, embedding=[1.0], metadata={"a": 1}
    )
    assert to_memory(message) == NewMemory(
        "tea", Kind.MESSAGE, speaker="Li", importance=3.0, occurred_at=NOW, embedding=[1.0], metadata={"a": 1}
    )
    assert to_memory(message, "").content == ""


def test_which_message_of_the_call_comes_before_each():
    messages = [said(), said(), said(parent=0), said(root=True), said(parent=ONE), said(), said(parent=LEGACY)]
    before = find_before(messages)
    assert before == [None, 0, 0, None, None, 4, None]
    remembered = [NewMemory(str(place), speaker="Li" if place == 4 else "") for place in range(7)]
    assert texts_before(remembered, before) == ["", "0", "0", "", "", "Li: 4", ""]


def linked(identity: UUID, parent: UUID | None, number: int = 1, stated: UUID | None = None) -> PositionedMessage:
    return PositionedMessage(said(), identity, number, parent, identity, stated)


def test_what_follows_another_message_than_thought_is_embedded_again():
    messages = [linked(ONE, None), linked(TWO, ONE), linked(THREE, TWO), linked(FOUR, OLD), linked(FIVE, FOUR)]
    assert compare_context(messages, [None, 0, 0, None, 3], ["", "hi", "hi", "", ""]) == EmbeddedWithContext(
        done=frozenset({TWO}), again=frozenset({THREE, FOUR})
    )


def opened(**more) -> OpenConversation:
    return OpenConversation(**{
        "state": ConversationState.ACTIVE, "last_number": 7, "newest": ParentMessage(OLD, TURN), "unbranched": None,
        "named": {},
    } | more)  # fmt: skip


def show(messages: list[PositionedMessage]) -> list[tuple[int, UUID | None, UUID]]:
    return [(each.number, each.parent, each.turn) for each in messages]


def test_messages_follow_each_other_and_a_user_or_a_system_begins_a_turn():
    roles = [ASSISTANT, USER, ASSISTANT, TOOL, SYSTEM]
    ids = [ONE, TWO, THREE, FOUR, FIVE]
    result = link([said(role=role) for role in roles], ids, opened())
    assert show(result) == [(8, OLD, TURN), (9, ONE, TWO), (10, TWO, TWO), (11, THREE, TWO), (12, FOUR, FIVE)]
    assert [(each.id, each.message.role) for each in result] == list(zip(ids, roles, strict=True))
    assert {each.stated_parent for each in result} == {None}


def test_the_first_message_of_a_conversation_begins_a_turn_whoever_speaks():
    assert show(link([said(role=ASSISTANT)], [ONE], opened(newest=None, last_number=0))) == [(1, None, ONE)]


def test_a_message_follows_the_one_that_it_names():
    messages = [said(parent=OLDER, role=ASSISTANT), said(), said(role=ASSISTANT, parent=0), said(root=True, role=TOOL)]
    result = link(messages, [ONE, TWO, THREE, FOUR], opened(named={OLDER: ParentMessage(OLDER, OLDER)}))
    assert show(result) == [(8, OLDER, OLDER), (9, ONE, TWO), (10, ONE, OLDER), (11, None, FOUR)]
    with pytest.raises(InvalidInputError, match="parent"):
        link([said(parent=TURN)], [ONE], opened(named={OLDER: ParentMessage(OLDER, OLDER)}))


def test_messages_from_before_there_were_branches_follow_the_newest_of_their_sort():
    messages = [
        said(parent=LEGACY),
        said(role=ASSISTANT),
        said(root=True, stated_parent=OLD),
        said(parent=LEGACY),
        said(role=ASSISTANT, parent=2),
    ]
    before = opened(unbranched=ParentMessage(OLDER, OLDER))
    result = link(messages, [ONE, TWO, THREE, FOUR, FIVE], before)
    assert show(result) == [(8, OLDER, ONE), (9, ONE, ONE), (10, None, THREE), (11, TWO, FOUR), (12, THREE, THREE)]
    assert [each.stated_parent for each in result] == [LEGACY, LEGACY, OLD, LEGACY, None]
    assert show(link([said(parent=LEGACY)], [ONE], opened())) == [(8, None, ONE)]


@pytest.mark.parametrize("state", [ConversationState.DELETED, ConversationState.PURGING])
def test_nothing_is_appended_to_what_is_being_deleted(state):
    with pytest.raises(ConflictError, match=state):
        link([said()], [ONE], opened(state=state))


def test_what_is_archived_is_appended_to():
    assert len(link([said()], [ONE], opened(state=ConversationState.ARCHIVED))) == 1


def test_the_next_append_finds_what_the_last_one_left():
    before = opened(
        state=ConversationState.ARCHIVED, unbranched=ParentMessage(OLDER, TURN), named={OLD: ParentMessage(OLD, OLD)}
    )
    after = [linked(ONE, OLD, 8), linked(TWO, ONE, 9), replace(linked(THREE, TWO, 10), turn=TURN)]
    assert advance_conversation(before, after) == OpenConversation(
        ConversationState.ACTIVE, 10, ParentMessage(THREE, TURN), ParentMessage(OLDER, TURN), {}
    )
    legacy = [linked(each, OLD, 8, LEGACY) for each in (ONE, TWO, THREE)]
    assert advance_conversation(before, [*legacy, linked(FOUR, THREE)]).unbranched == ParentMessage(THREE, THREE)


FULL = said(
    "茶",
    name="Li",
    parts=(part("x"),),
    attachments=(Attachment("image"),),
    parent=ONE,
    occurred_at=NOW,
    embedding=(1.0,),
    metadata={"a": 1, "b": 2},
)


@pytest.mark.parametrize(
    "change",
    [
        *({"role": SYSTEM}, {"content": "tea"}, {"name": "Mo"}, {"parts": ()}, {"attachments": ()}, {"parent": TWO}),
        *({"root": True}, {"stated_parent": ONE}, {"status": MessageStatus.FAILED}, {"importance": 1.0}),
        *({"occurred_at": NOW + timedelta(seconds=1)}, {"embedding": (2.0,)}, {"external_id": "e"}, {"metadata": {}}),
    ],
)
def test_whatever_a_message_says_is_in_its_fingerprint(change):
    assert fingerprint_messages("c", [replace(FULL, **change)]) != fingerprint_messages("c", [FULL])


def test_a_fingerprint_is_that_of_the_conversation_and_of_all_messages_in_their_order():
    one, two = said("one"), said("two")
    prints = [
        fingerprint_messages(name, messages)
        for name, messages in (("c", [one, two]), ("c", [two, one]), ("c", [one]), ("d", [one, two]))
    ]
    assert len({*prints}) == 4
    assert {len(each) for each in prints} == {32}


def test_the_same_moment_and_the_same_metadata_have_one_fingerprint_however_they_are_written():
    east = NOW.astimezone(timezone(timedelta(hours=8)))
    again = replace(FULL, occurred_at=east, metadata={"b": 2, "a": 1}, embedding=array("d", [1.0]))
    assert fingerprint_messages("c", [again]) == fingerprint_messages("c", [FULL])
