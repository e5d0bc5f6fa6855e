"""Rows of Dify become conversations and messages as they were, and what is changed on the way is counted."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.imports import dify
from recollect.core.imports.dify import (
    DifyConversation,
    DifyNode,
    DifyRow,
    DifyTurn,
    File,
    describe_conversation,
    find_user,
    order_turns,
    set_parent,
    to_messages,
)
from recollect.models.conversations import LEGACY, Attachment, MessageStatus, NewMessage
from recollect.models.imports import DifyUserField
from recollect.models.memories import Role

ASKED_AT = datetime(2024, 3, 1, 9)  # noqa: DTZ001 - Dify's times have no zone
NIL = str(LEGACY)
FIRST, SECOND, GONE = (str(UUID(int=number)) for number in (1, 2, 9))
DONE, PENDING, FAILED = MessageStatus.DONE, MessageStatus.PENDING, MessageStatus.FAILED


def conversation(**more) -> DifyConversation:
    return DifyConversation(**{
        "id": "c", "app": "a", "mode": "chat", "name": "Tea", "inputs": {}, "created_at": ASKED_AT, "deleted": False,
        "source": "api", "invoked_from": None, "end_user": None, "account": None, "session": None,
    } | more)  # fmt: skip


def exchange(query: str = "tea?", answer: str = "oolong", **more) -> DifyRow:
    return DifyRow(**{
        "id": "e", "query": query, "query_length": len(query), "answer": answer, "answer_length": len(answer),
        "answer_tokens": 0, "status": "normal", "error": None, "created_at": ASKED_AT,
    } | more)  # fmt: skip


def file(**more) -> File:
    return File(**{
        "message": "e", "type": "image", "method": "local_file", "url": None, "upload": "u1", "side": "user",
        "name": None,
    } | more)  # fmt: skip


def read(*files: File, **more) -> tuple[tuple[NewMessage, ...], dict[str, int]]:
    found = to_messages(exchange(**more), files)
    return found.messages, dict(+found.remarks)


NAMED = {"session": "li", "end_user": GONE, "account": FIRST}


@pytest.mark.parametrize(
    ("by", "names", "user", "replaced"),
    [
        (DifyUserField.AUTO, NAMED, "li", False),
        (DifyUserField.AUTO, NAMED | {"session": None}, GONE, False),
        (DifyUserField.AUTO, NAMED | {"session": "a/b"}, GONE, True),
        (DifyUserField.AUTO, NAMED | {"session": "a/b", "end_user": None}, FIRST, True),
        (DifyUserField.AUTO, {"account": FIRST}, FIRST, False),
        (DifyUserField.AUTO, {}, "", False),
        (DifyUserField.SESSION, NAMED, "li", False),
        (DifyUserField.SESSION, NAMED | {"session": ""}, GONE, False),
        (DifyUserField.SESSION, {"account": FIRST}, None, False),
        (DifyUserField.END_USER, NAMED, GONE, False),
        (DifyUserField.END_USER, {"session": "li", "account": FIRST}, None, False),
        (DifyUserField.ACCOUNT, NAMED, FIRST, False),
        (DifyUserField.ACCOUNT, {"session": "li", "end_user": GONE}, None, False),
        (DifyUserField.NOBODY, NAMED, "", False),
    ],
)
def test_the_user_is_the_first_that_fits_of_those_that_may_name_it(by, names, user, replaced):
    assert find_user(conversation(**names), by) == (user, replaced)


def test_a_conversation_keeps_what_dify_knows_of_it():
    noted = Counter[str]()
    told = {"invoked_from": "web-app", "end_user": "u", "account": "b", "session": "l\0i", "inputs": {"cup": ["\0", 2]}}
    name, metadata = describe_conversation(conversation(name="Tea\ntime", **told), noted)
    assert name == "Tea time"
    assert metadata == {
        "dify": {
            "app": "a", "mode": "chat", "source": "api", "invoked_from": "web-app", "end_user": "u", "account": "b",
            "session": "l\ufffdi", "inputs": {"cup": ["\ufffd", 2]},
        }
    }  # fmt: skip
    assert noted == {dify.CLEANED: 2}
    assert describe_conversation(conversation(), Counter()) == (
        "Tea", {"dify": {"app": "a", "mode": "chat", "source": "api"}},
    )  # fmt: skip


def nest(levels: int) -> dict[str, object]:
    return {"in": nest(levels - 1)} if levels else {}


@pytest.mark.parametrize("inputs", [{"text": "x" * 20_000}, nest(70), nest(900)])
def test_inputs_that_are_too_large_or_too_deep_are_left_out(inputs):
    noted = Counter[str]()
    _, metadata = describe_conversation(conversation(inputs=inputs), noted)
    assert "inputs" not in metadata["dify"]
    assert noted == {"conversations with too large inputs: imported without them": 1}


def test_turns_follow_their_parents_wherever_these_are_listed():
    turns, adrift = order_turns([
        DifyNode("later", "first", 1), DifyNode("first", None, 2), DifyNode("alone", GONE, 3), DifyNode("odd", "?", 4),
        DifyNode("empty", "", 5), DifyNode("old", NIL, 6), DifyNode("older", NIL, 7),
    ])  # fmt: skip
    assert turns == [
        DifyTurn("first", None, None, 2), DifyTurn("later", "first", None, 1), DifyTurn("alone", None, UUID(GONE), 3),
        DifyTurn("odd", None, None, 4), DifyTurn("empty", None, None, 5), DifyTurn("old", None, LEGACY, 6),
        DifyTurn("older", "old", LEGACY, 7),
    ]  # fmt: skip
    assert adrift == 2
    assert order_turns([]) == ([], 0)


def test_a_question_follows_the_turn_before_it_or_begins_a_thread():
    asked = NewMessage(Role.USER, "tea?")
    begun = set_parent(asked, DifyTurn("e", None, UUID(GONE), 1), None)
    assert (begun.root, begun.parent, begun.stated_parent) == (True, None, UUID(GONE))
    legacy = set_parent(asked, DifyTurn("e", "d", LEGACY, 1), 0)
    assert (legacy.root, legacy.parent, legacy.stated_parent) == (False, 0, LEGACY)
    answered = set_parent(asked, DifyTurn("e", "d", None, 1), UUID(FIRST))
    assert (answered.root, answered.parent, answered.stated_parent) == (False, UUID(FIRST), None)
    other = set_parent(asked, DifyTurn("e", "d", UUID(GONE), 1), 3)
    assert (other.parent, other.stated_parent) == (3, None)


def test_an_exchange_is_a_question_and_an_answer():
    messages, remarks = read()
    at = ASKED_AT.replace(tzinfo=UTC)
    assert messages == (
        NewMessage(Role.USER, "tea?", occurred_at=at, external_id="e:user"),
        NewMessage(Role.ASSISTANT, "oolong", occurred_at=at, external_id="e:assistant"),
    )
    assert remarks == {}


@pytest.mark.parametrize(
    ("status", "answer", "tokens", "statuses", "remarks"),
    [
        ("normal", "oolong", 3, [DONE, DONE], {}),
        ("normal", "", 3, [DONE, DONE], {}),
        ("paused", "oolong", 0, [DONE, PENDING], {}),
        ("error", "oolong", 0, [DONE, FAILED], {"answers that failed": 1}),
        ("normal", "", 0, [PENDING], {"questions without an answer": 1}),
        ("paused", "", 0, [PENDING], {"questions without an answer": 1}),
        ("error", "", 0, [FAILED], {"questions without an answer": 1}),
    ],
)
def test_the_status_tells_whether_there_is_an_answer_and_how_it_went(status, answer, tokens, statuses, remarks):
    messages, noted = read(answer=answer, status=status, answer_tokens=tokens)
    assert [message.status for message in messages] == statuses
    assert noted == remarks


def test_an_error_is_noted_at_the_answer_or_at_the_question_that_has_none():
    answered, _ = read(error="no\0 room")
    assert [message.metadata for message in answered] == [{}, {"dify": {"error": "no\ufffd room"}}]
    [alone], _ = read(answer="", error="late", query_length=9)
    assert alone.metadata == {"dify": {"cut_from": 9, "error": "late"}}


def test_a_text_that_was_cut_says_how_long_it_was():
    messages, remarks = read(query_length=7, answer_length=len("oolong") + 1)
    assert [message.metadata for message in messages] == [{"dify": {"cut_from": 7}}, {"dify": {"cut_from": 7}}]
    assert remarks == {dify.CUT: 2}


@pytest.mark.parametrize(
    ("query", "files", "content", "blank"),
    [(" \n", [], "[empty]", 1), ("", [file(side=None)], "", 0), ("", [file(side="assistant")], "[empty]", 1)],
)
def test_a_question_without_text_or_files_is_marked(query, files, content, blank):
    messages, remarks = read(*files, query=query)
    assert (messages[0].content, remarks.get(dify.BLANK, 0)) == (content, blank)


def test_files_belong_to_the_side_that_sent_them():
    messages, _ = read(file(upload="a"), file(upload="b", side="assistant"), file(upload="c", side=None), answer="")
    assert [[each.upload_id for each in message.attachments] for message in messages] == [["a", "c"], ["b"]]


@pytest.mark.parametrize(("files", "kept", "surplus"), [(63, 63, 0), (64, 64, 0), (66, 64, 2)])
def test_a_message_has_at_most_sixty_four_files(files, kept, surplus):
    messages, remarks = read(*[file(upload=str(number)) for number in range(files)])
    assert [each.upload_id for each in messages[0].attachments] == [str(number) for number in range(kept)]
    assert remarks.get(dify.TOO_MANY_FILES, 0) == surplus


ADDRESS = "https://example.org/t.png"


@pytest.mark.parametrize(
    ("given", "url", "upload"),
    [
        (file(), "", "u1"),
        (file(url=ADDRESS), "", "u1"),
        (file(method="remote_url", upload=None, url=ADDRESS), ADDRESS, ""),
        (file(method="remote_url", url=ADDRESS), ADDRESS, "u1"),
        (file(method=None, upload=None, url=ADDRESS), ADDRESS, ""),
        (file(method=None, url=ADDRESS), "", "u1"),
        (file(method="tool_file", upload=None, url=f"/files/tools/{GONE}.png?sign=x/y"), "", GONE),
        (file(method="tool_file", upload=None, url=f"/files/tools/{GONE}.png?sign=x"), "", GONE),
        (file(method="tool_file", upload=None, url=f"{GONE}?sign=x"), "", GONE),
        (file(method="tool_file", upload=None, url=f"/files/{GONE}more"), "", GONE),
        (file(method="tool_file", upload=None, url="/files/tools/cup.png"), "", "cup"),
        (file(upload=None), "", ""),
    ],
)
def test_a_file_is_at_its_address_or_in_difys_own_store(given, url, upload):
    messages, remarks = read(given)
    assert messages[0].attachments == (Attachment("image", url, upload),)
    assert remarks == {}


def test_a_file_keeps_its_name_and_an_address_that_is_not_too_long():
    longest = "u" * 8_000
    messages, remarks = read(
        file(method="remote_url", upload=None, url=longest, name="tea\n.png"),
        file(method="remote_url", upload=None, url=f"{longest}u", name="far"),
    )
    assert messages[0].attachments == (Attachment("image", longest, name="tea .png"), Attachment("image", name="far"))
    assert remarks == {dify.FAR: 1}
