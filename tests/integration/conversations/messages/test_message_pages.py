"""All messages of a conversation, whatever their branch, are read page by page in the order of their numbers."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.service import Right
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}


async def branch(mind):
    """Begin a conversation whose second message has two answers."""
    said = await mind.conversation("c").append(
        [
            NewMessage(Role.USER, "one"),
            NewMessage(Role.ASSISTANT, "two"),
            NewMessage(Role.USER, "three"),
            NewMessage(Role.USER, "three, said otherwise", parent=1),
        ]
    )
    return [each.id for each in said]


async def test_all_branches_are_read_page_by_page(mind):
    ids = await branch(mind)
    view = mind.conversation("c")
    whole = await view.messages()
    assert ([each.id for each in whole.messages], whole.next) == (ids, None)
    assert [each.number for each in whole.messages] == [1, 2, 3, 4]
    assert [each.parent for each in whole.messages] == [None, ids[0], ids[1], ids[1]]
    first = await view.messages(limit=3)
    assert (len(first.messages), first.next) == (3, 3)
    rest = await view.messages(first.next, limit=3)
    assert ([each.content for each in rest.messages], rest.next) == (["three, said otherwise"], None)
    assert (await view.messages(after=4)).messages == ()
    # As a history shows them, tokens included.
    shown = (await view.history(100_000)).messages
    assert [each for each in whole.messages if each.id in {one.id for one in shown}] == [*shown]


async def test_a_message_is_shown_in_its_current_version(mind):
    [first, *_] = await branch(mind)
    revised = await mind.update(first, content="one, mended")
    page = await mind.conversation("c").messages(limit=1)
    assert [(each.id, each.content) for each in page.messages] == [(revised.id, "one, mended")]


async def test_an_archived_conversation_is_read_and_a_deleted_one_is_unknown(mind):
    await branch(mind)
    view = mind.conversation("c")
    await view.update(state="archived")
    assert len((await view.messages()).messages) == 4
    await view.delete()
    with pytest.raises(NotFoundError):
        await view.messages()


async def test_wrong_bounds_and_unknown_conversations_are_refused(recollect, mind):
    await branch(mind)
    view = mind.conversation("c")
    for wrong in ({"after": -1}, {"limit": 0}, {"limit": 201}):
        with pytest.raises(InvalidInputError):
            await view.messages(**wrong)
    for other in (await recollect.mind("ada", "wu"), await recollect.mind("ada", "li", tenant="other")):
        with pytest.raises(NotFoundError):
            await other.conversation("c").messages()


async def test_over_http_and_by_both_clients(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    mind = await recollect.mind("ada", "li")
    await branch(mind)
    async with http_client(recollect, secret) as http:
        path = "/v1/conversations/c/messages"
        page = (await http.get(path, params=SCOPE | {"after": 1, "limit": 2})).json()
        assert ([each["number"] for each in page["messages"]], page["next"]) == ([2, 3], 3)
        assert (await http.get(path, params=SCOPE | {"after": -1})).status_code == 422
        assert (await http.get("/v1/conversations/none/messages", params=SCOPE)).status_code == 404

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").conversation("c").messages(2)

    async with listening(recollect) as url, Client(url, secret) as client:
        here = await mind.conversation("c").messages(2)
        assert await (await client.mind("ada", "li")).conversation("c").messages(2) == here
        assert await asyncio.to_thread(without_a_loop, url) == here
