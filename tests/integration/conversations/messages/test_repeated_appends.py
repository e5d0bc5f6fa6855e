"""Appends that repeat messages: what is known is recognized, what is new is stored, and what differs is refused."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.core.conversations.repeats import StoredMessages
from recollect.doors.http.app import create_app
from recollect.errors import ConflictError
from recollect.models.conversations import Attachment, ConversationState, NewMessage, Part, PartType
from recollect.models.memories import Role
from recollect.store.conversations import conversations
from support.service.serving import serving

WRITTEN = """
    select (select count(*) from memories), (select count(*) from messages), (select count(*) from changes),
           (select count(*) from procrastinate_jobs), (select count(*) from idempotency_keys),
           (select last_written_at from scopes), (select last_number from conversations)
"""


@pytest.fixture(params=["process", "server"])
async def mind(request, recollect):
    """Give a scope in this process, and then on a server."""
    if request.param == "process":
        yield await recollect.mind("ada", "li")
        return
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            yield await client.mind("ada", "li")


def say(name, content="", role=Role.USER, **more):
    return NewMessage(role, content or f"said as {name}", external_id=name, **more)


def session(*names):
    """Return messages of a session, a user's and an assistant's in turns."""
    roles = (Role.USER, Role.ASSISTANT)
    return [say(name, role=roles[place % 2]) for place, name in enumerate(names)]


async def said(conversation):
    return [(each.external_id, each.number) for each in (await conversation.messages()).messages]


async def test_a_session_that_is_sent_again_goes_on(mind):
    conversation = mind.conversation("c")
    first = await conversation.append(session("e1", "e2"))
    assert not any(each.known or each.forgotten for each in first)
    again = await conversation.append(session("e1", "e2", "e3", "e4"))
    assert [each.known for each in again] == [True, True, False, False]
    assert [replace(each, known=False) for each in again[:2]] == first
    assert [each.number for each in again] == [1, 2, 3, 4]
    assert [each.parent for each in again] == [None, *(each.id for each in again[:3])]
    assert [each.content for each in (await conversation.history()).messages] == [f"said as e{n}" for n in range(1, 5)]


async def test_nothing_is_written_if_all_is_known(mind, owner):
    conversation = mind.conversation("c")
    first = await conversation.append(session("e1", "e2"))
    await conversation.update(state="archived")
    before = owner.execute(WRITTEN).fetchone()
    again = await conversation.append(session("e1", "e2"))
    assert [each.id for each in again] == [each.id for each in first]
    assert all(each.known for each in again)
    assert owner.execute(WRITTEN).fetchone() == before
    assert (await conversation.get()).state is ConversationState.ARCHIVED


async def test_a_new_message_follows_the_known_one_before_it(mind):
    conversation = mind.conversation("c")
    first = await conversation.append(session("e1", "e2", "e3", "e4"))
    branch = await conversation.append([*session("e1", "e2"), say("e5"), say("e6", role=Role.ASSISTANT)])
    assert [each.parent for each in branch[2:]] == [first[1].id, branch[2].id]
    by_place = await conversation.append([*session("e1", "e2"), say("e7", parent=0), say("e8", parent=2)])
    assert [each.parent for each in by_place[2:]] == [first[0].id, by_place[2].id]
    last = await conversation.append(
        [say("e9", parent=first[3].id), say("e4", role=Role.ASSISTANT), say("e10", root=True)]
    )
    assert [(each.known, each.parent) for each in last] == [(False, first[3].id), (True, first[2].id), (False, None)]


async def test_only_those_that_differ_are_refused_by_name(mind):
    conversation = mind.conversation("c")
    part, file = (
        Part(PartType.TOOL_CALL, "{}", "weather", call_id="1"),
        Attachment("image", "https://example.org/a.png"),
    )
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    full = NewMessage(Role.ASSISTANT, "x", "Ann", (part,), (file,), occurred_at=moment, external_id="e1")
    await conversation.append([full, *session("e2", "e3")])
    changes = {
        "content": "y",
        "role": Role.TOOL,
        "name": "Bob",
        "parts": (replace(part, text="[]"),),
        "attachments": (),
        "occurred_at": moment.replace(year=2025),
    }
    for field, value in changes.items():
        with pytest.raises(ConflictError) as refused:
            await conversation.append([replace(full, **{field: value}), *session("e2", "e3"), say("e4")])
        assert f"e1 ({field})" in str(refused.value)
        assert "e2" not in str(refused.value)
    assert await said(conversation) == [("e1", 1), ("e2", 2), ("e3", 3)]
    [again] = await conversation.append(replace(full, occurred_at=None, metadata={"sent": 2}, importance=9.0))
    assert again.known


async def test_the_same_message_twice_in_one_request_is_stored_once(mind):
    conversation = mind.conversation("c")
    first, second, third = await conversation.append([say("e1"), say("e1"), say("e2", role=Role.ASSISTANT)])
    assert (second.id, second.known, third.parent, third.number) == (first.id, True, first.id, 2)
    with pytest.raises(ConflictError, match=r"e3 \(content\)"):
        await conversation.append([say("e3"), say("e3", "otherwise")])


async def test_an_external_id_belongs_to_its_conversation(mind):
    [first] = await mind.conversation("c").append([say("e1")])
    [other] = await mind.conversation("d").append([say("e1", "otherwise")])
    assert first.id != other.id
    assert not other.known


async def test_appends_at_once_store_each_message_once(mind):
    conversation = mind.conversation("c")
    names = [f"e{number}" for number in range(8)]
    answers = await asyncio.gather(*(conversation.append(session(*names[: 4 + place % 5])) for place in range(20)))
    assert await said(conversation) == [(name, place + 1) for place, name in enumerate(names)]
    ids = [each.id for each in (await conversation.messages()).messages]
    assert all([each.id for each in answer] == ids[: len(answer)] for answer in answers)
    assert sum(not each.known for answer in answers for each in answer) == 8
    assert [each.content for each in (await conversation.history()).messages] == [f"said as {name}" for name in names]


async def test_a_forgotten_message_does_not_come_back(mind, owner):
    conversation = mind.conversation("c")
    first = await conversation.append(session("e1", "e2", "e3"))
    await mind.forget([first[1].id])
    again = await conversation.append(session("e1", "e2", "e3", "e4"))
    assert [(each.known, each.forgotten) for each in again] == [
        (True, False),
        (False, True),
        (True, False),
        (False, False),
    ]
    assert (again[1].id, again[1].number, again[1].parent) == (first[1].id, 0, None)
    assert await said(conversation) == [("e1", 1), ("e3", 3), ("e4", 4)]
    assert [each.parent for each in again[2:]] == [first[0].id, first[2].id]
    await mind.forget([first[2].id, again[3].id])
    more = await conversation.append([*session("e1", "e2", "e3", "e4"), say("e5")])
    assert more[4].parent == first[0].id
    kept = owner.execute("select external_hash from forgotten_messages where id = %s", [first[1].id]).fetchone()
    assert kept == (hashlib.sha256(b"e2").digest(),)


async def test_a_message_that_is_forgotten_while_it_is_sent_again_stays_forgotten(recollect, monkeypatch):
    conversation = (mind := await recollect.mind("ada", "li")).conversation("c")
    [first] = await conversation.append([say("e1")])
    fetch, calls = conversations.fetch_stored, []

    async def stale(*asked):
        calls.append(asked)
        if len(calls) == 1:
            await mind.forget([first.id])
            return StoredMessages({}, {})
        return await fetch(*asked)

    monkeypatch.setattr(conversations, "fetch_stored", stale)
    [again] = await conversation.append([say("e1")])
    assert again.forgotten
    assert await said(conversation) == []


async def test_a_revised_message_is_recognized_by_what_was_said_at_first(mind):
    conversation = mind.conversation("c")
    [first] = await conversation.append([say("e1", "I live in Bern.")])
    revision = await mind.update(first.id, content="I live in Basel.")
    for content in ("I live in Bern.", "I live in Basel."):
        [again] = await conversation.append([say("e1", content)])
        assert again.known
        assert again.id == revision.id
    with pytest.raises(ConflictError, match=r"e1 \(content\)"):
        await conversation.append([say("e1", "I live in Zug.")])


async def test_a_deleted_conversation_says_so_and_a_purged_one_begins_anew(mind):
    conversation = mind.conversation("c")
    [_, first] = await conversation.append(session("e0", "e1"))
    await mind.forget([first.id])
    await conversation.delete()
    with pytest.raises(ConflictError, match="deleted"):
        await conversation.append([say("e1")])
    await conversation.purge()
    while True:
        try:
            [again] = await conversation.append([say("e1")])
            break
        except ConflictError:
            await asyncio.sleep(0.05)
    assert (again.known, again.forgotten, again.number) == (False, False, 1)
    assert again.id != first.id


async def test_a_key_is_answered_as_the_first_time_with_what_was_known(mind):
    conversation = mind.conversation("c")
    await conversation.append([say("e1")])
    messages = [say("e1"), NewMessage(Role.ASSISTANT, "without an ID"), say("e2"), say("e2")]
    first = await conversation.append(messages, idempotency_key="k")
    assert [each.known for each in first] == [True, False, False, True]
    again = await conversation.append(messages, idempotency_key="k")
    assert [(each.id, each.known) for each in again] == [(each.id, each.known) for each in first]
    with pytest.raises(ConflictError, match="Idempotency-Key"):
        await conversation.append([say("e1"), say("e3")], idempotency_key="k")
    assert len(await said(conversation)) == 3


async def test_only_new_messages_are_embedded(recollect, embedder):
    conversation = (await recollect.mind("ada", "li")).conversation("c")
    texts = []
    embed = embedder.embed

    async def counting(given, *more, **named):
        texts.extend(given)
        return await embed(given, *more, **named)

    embedder.embed = counting
    await conversation.append(session("e1", "e2"))
    del texts[:]
    await conversation.append(session("e1", "e2", "e3"))
    assert len(texts) == 1
