"""Conversations through the SDK and its blocking twin: the same answers as in the process, on a real socket."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from starlette.responses import Response

from conftest import new_key
from recollect import sync
from recollect.client import Client
from recollect.client.bodies import flatten
from recollect.doors.http.app import create_app
from recollect.doors.http.bodies.conversations import ContextBody, HistoryBody, MessageBody
from recollect.doors.http.bodies.fields import build
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.conversations import (
    LEGACY,
    Attachment,
    BudgetShares,
    ConversationState,
    HistoryOptions,
    MessageStatus,
    NewMessage,
    OversizedTurn,
    Part,
    PartType,
)
from recollect.models.memories import Role
from recollect.models.recall import Cue
from support.service.purge_receipts import as_purged, receipts_of
from support.service.serving import serving

NAMED = {"user_prefix": "Li", "assistant_prefix": "Ada"}
FULL = NewMessage(
    Role.ASSISTANT,
    "in short",
    "Ada",
    (Part(PartType.TOOL_CALL, "{}", "look", "https://example.org", "c1"),),
    (Attachment("image", "https://example.org/a.png", "u-1", Role.USER, "a.png"), Attachment("document")),
    0,
    False,
    uuid4(),
    MessageStatus.PENDING,
    7.5,
    datetime(2026, 1, 31, tzinfo=UTC),
    [1.0, 0.0],
    "e-1",
    {"a": [1, None]},
)
WINDOW = HistoryOptions(
    77,
    uuid4(),
    "cl100k_base",
    OversizedTurn.CUT,
    True,
    True,
    5,
    *NAMED.values(),
    True,
    9,
    datetime(2026, 2, 1, tzinfo=UTC),
    datetime(2026, 3, 1, tzinfo=UTC),
)


def user(content, **more):
    return NewMessage(Role.USER, content, **more)


def assistant(content, **more):
    return NewMessage(Role.ASSISTANT, content, **more)


@pytest.fixture
async def served(recollect):
    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        yield url, secret


@pytest.fixture
async def minds(served, recollect):
    """The same scope twice: on a server, and in the process."""
    async with Client(*served) as client:
        yield await client.mind("ada", "li"), await recollect.mind("ada", "li")


@pytest.mark.parametrize("parent", [None, 3, LEGACY, uuid4()])
def test_a_message_travels_whole(parent):
    """Every field differs from its default, so that one that is lost on the way would show."""
    assert all(getattr(FULL, field.name) != field.default for field in fields(NewMessage) if field.name != "root")
    sent = NewMessage(**{field.name: getattr(FULL, field.name) for field in fields(FULL)} | {"parent": parent})
    assert MessageBody.model_validate(flatten(sent)).to_value() == sent
    root = user("x", root=True)
    assert MessageBody.model_validate(flatten(root)).to_value() == root


def test_a_window_travels_whole():
    assert all(getattr(WINDOW, field.name) != field.default for field in fields(HistoryOptions))
    for window in (WINDOW, HistoryOptions()):
        scope = {"agent": "a", "conversation": "c"}
        assert build(HistoryOptions, HistoryBody.model_validate(scope | flatten(window))) == window
        unbound = {name: value for name, value in flatten(window).items() if name != "max_tokens"}
        bound = build(HistoryOptions, ContextBody.model_validate(scope | unbound))
        # A prompt has one moment, and its cue says which.
        assert replace(bound, max_tokens=window.max_tokens, as_of=window.as_of, at=window.at) == window


async def test_the_client_answers_as_the_mind_does(minds):
    remote, local = minds
    there, here = (mind.conversation("c-1") for mind in minds)
    photo = Attachment("image", "https://example.org/a.png", side=Role.USER)
    said = await there.append([user("What is this?", name="Li", attachments=(photo,)), assistant("A violin.")])
    other = await there.append([user("And this?", parent=said[1].id), assistant("A bow.", metadata={"a": 1})])
    await there.append([user("Go back.", parent=said[1].id), assistant("As you like.")])
    await there.append(user("Anything else?"))
    for window in (
        HistoryOptions(),
        HistoryOptions(images=True, **NAMED),
        HistoryOptions(leaf=other[1].id),
        HistoryOptions(10, oversized=OversizedTurn.CUT, unanswered=True),
        HistoryOptions(tokenizer="cl100k_base", upstream=True, message_limit=2),
        7,
    ):
        assert await there.history(window) == await here.history(window)
    assert [message.content for message in (await there.history()).messages][-1] == "As you like."
    answered = await there.history(HistoryOptions(leaf=other[1].id))
    assert [message.metadata for message in answered.messages] == [{}, {}, {}, {"a": 1}]
    assert answered.prompt[-1] == {"role": "assistant", "content": "A bow."}
    assert (await there.get()).threads == (await here.get()).threads
    assert len((await there.get(1)).threads) == 1
    assert (await there.get(0)).threads == ()
    await there.update(name="Instruments", metadata={"a": [1]})
    assert await there.update(name="Strings") == await here.get(0)
    assert await there.get() == await here.get()
    assert ((await here.get()).name, (await here.get()).metadata) == ("Strings", {"a": [1]})
    await remote.conversation("c-2").append(user("hello"))
    page = await remote.conversations(limit=1)
    assert page == await local.conversations(limit=1)
    assert await remote.conversations(cursor=page.next_cursor) == await local.conversations(cursor=page.next_cursor)
    assert (await remote.conversations(ConversationState.ARCHIVED)).conversations == ()


async def test_a_context_is_the_same_from_here_and_there(minds):
    there, here = (mind.conversation("c-1") for mind in minds)
    await minds[1].remember([f"Li saw cat number {number}" for number in range(9)])
    said = await there.append([user("Which cats do you know?"), assistant("Several.")])
    await there.append([user("And dogs?"), assistant("None.")])
    for cue, budget, more in (
        ("cat", 4_000, {}),
        (Cue("cat number 3", limit=2, channels=("text",)), 300, {"system": "Be brief."}),
        (
            Cue("cat", min_trust=1),
            500,
            {"shares": BudgetShares(0.1, 0.9, 0), "window": HistoryOptions(leaf=said[1].id)},
        ),
        ("cat", 60, {"window": HistoryOptions(**NAMED, oversized=OversizedTurn.CUT, tokenizer="cl100k_base")}),
    ):
        quiet = replace(Cue(cue) if isinstance(cue, str) else cue, touch=False)
        assert await there.context(quiet, budget, **more) == await here.context(quiet, budget, **more)
    assert (await there.context("cat")).hits[0].memory.content.startswith("Li saw cat")


async def test_a_conversation_ends_the_same_from_here_and_there(minds):
    remote, local = minds
    there, here = (mind.conversation("c-1") for mind in minds)
    await there.append([user("one"), assistant("two")])
    for state in ("archived", ConversationState.ACTIVE):
        assert (await there.update(state=state)).state == state
        assert await there.get() == await here.get()
    assert (await there.delete()).state == "deleted"
    assert await there.get() == await here.get()
    with pytest.raises(ConflictError, match="deleted"):
        await there.update(state="archived")
    assert await remote.conversations(ConversationState.DELETED) == await local.conversations(ConversationState.DELETED)
    receipt = await there.purge()
    assert [receipt] == list(map(as_purged, await receipts_of(here)))
    page = await remote.client.receipts("ada", "li", conversation="c-1")
    assert [as_purged(each) for each in page.receipts] == [receipt]
    with pytest.raises(NotFoundError):
        await there.get()


async def test_errors_keep_their_kind_over_the_wire(minds):
    remote, _ = minds
    conversation, unknown = remote.conversation("c-1"), remote.conversation("c-2")
    await conversation.append(user("one"), idempotency_key="k")
    for error, call in [
        (ConflictError, conversation.append(user("two"), idempotency_key="k")),
        (InvalidInputError, conversation.append(user(" "))),
        (InvalidInputError, conversation.append([])),
        (InvalidInputError, conversation.history(-1)),
        (InvalidInputError, remote.conversation("a b").get()),
        (InvalidInputError, remote.conversation("..").append(user("x"))),
        (NotFoundError, conversation.history(HistoryOptions(leaf=uuid4()))),
        (NotFoundError, unknown.history()),
        (NotFoundError, unknown.get()),
        (NotFoundError, unknown.update(name="x")),
        (NotFoundError, unknown.update()),
        (InvalidInputError, conversation.update(state="deleted")),
        (InvalidInputError, conversation.get(201)),
        (NotFoundError, unknown.purge()),
        (NotFoundError, conversation.context("x", window=HistoryOptions(leaf=uuid4()))),
        (InvalidInputError, conversation.context("x", 0)),
    ]:
        with pytest.raises(error):
            await call


async def test_a_retried_append_is_stored_once(recollect):
    """A gateway loses the first answer, after the messages were committed."""
    _, secret = await new_key(recollect)
    app = create_app(recollect=recollect)
    lost = iter([True])

    async def gateway(scope, receive, send):
        if scope["type"] != "http" or not next(lost, False):
            await app(scope, receive, send)
            return
        answers = []

        async def keep(message):
            answers.append(message)

        await app(scope, receive, keep)
        assert answers[0]["status"] == 201
        await Response(status_code=503, headers={"Retry-After": "0"})(scope, receive, send)

    async with serving(gateway) as url, Client(url, secret) as client:
        conversation = (await client.mind("ada")).conversation("c-1")
        appended = await conversation.append([user("only once"), assistant("indeed")])
        assert [message.number for message in appended] == [1, 2]
        assert (await conversation.get()).message_count == 2


async def test_the_blocking_twin_needs_no_event_loop(served):
    def work():
        with sync.using(Client(*served)) as memory:
            mind = memory.mind("ada", "li")
            conversation = mind.conversation("c-1")
            said = conversation.append([user("green apples"), assistant("or pears")])
            assert [message.id for message in conversation.history().messages] == [message.id for message in said]
            assert [leaf.id for leaf in conversation.get().threads] == [said[1].id]
            conversation.update(name="Fruit")
            assert conversation.get().name == "Fruit"
            assert conversation.context("apples", 500, system="Hi").messages[0]["content"] == "Hi"
            assert (
                conversation.update(state="archived").state,
                conversation.update(state="active").state,
                conversation.delete().state,
            ) == ("archived", "active", "deleted")
            conversation.update(state="active")
            assert [each.id for each in mind.conversations().conversations] == ["c-1"]
            assert memory.receipts("ada", "li").receipts == ()
            purged = conversation.purge()
            assert list(map(as_purged, memory.receipts("ada", "li", conversation="c-1").receipts)) == [purged]
            assert memory.receipts("ada", "li", conversation="c-2").receipts == ()

    await asyncio.to_thread(work)
