"""Receipts of purges are listed for a scope, and for administrators over the whole tenant."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import KeyBinding, Right
from recollect.store.conversations.lifecycle import QUERIES
from recollect.verbs.conversations.receipts import FIRST
from support.database import plans
from support.service.mcp_doors import listening

FILL = """
    insert into purge_receipts (scope_id, conversation_id, asked_by, begun_at)
    select id, 'c' || n, 'test', now() - n * interval '1 minute' from scopes cross join generate_series(1, %s) n
"""


@pytest.fixture
async def purged(recollect):
    """Purge a conversation in each of four scopes, one of them another tenant's."""
    scopes = [("ada", "li", "default"), ("ada", "", "default"), ("bo", "", "default"), ("ada", "li", "other")]
    for agent, user, tenant in scopes:
        view = (await recollect.mind(agent, user, tenant=tenant)).conversation(f"talk-{agent}-{user}")
        await view.append("hello")
        await view.purge()
    return await recollect.operator.act_for("default")


def told(page):
    return [(each.agent, each.user, each.conversation) for each in page.receipts]


async def test_of_the_tenant_and_of_a_scope_the_latest_first(recollect, purged):
    whole = await recollect.tenant.receipts(purged, KeyBinding())
    assert told(whole) == [("bo", "", "talk-bo-"), ("ada", "", "talk-ada-"), ("ada", "li", "talk-ada-li")]
    assert whole.receipts[0].removed["messages"] == 1
    first = await recollect.tenant.receipts(purged, KeyBinding(), limit=2)
    rest = await recollect.tenant.receipts(purged, KeyBinding(), first.next_cursor, 2)
    assert told(first) + told(rest) == told(whole) and rest.next_cursor is None
    assert told(await recollect.tenant.receipts(purged, KeyBinding("ada", "li"))) == [("ada", "li", "talk-ada-li")]
    assert told(await recollect.tenant.receipts(purged, KeyBinding("ada"))) == [("ada", "", "talk-ada-")]
    assert whole == await recollect.receipts()
    assert told(await recollect.receipts("ada", "li", tenant="other")) == [("ada", "li", "talk-ada-li")]
    for conversation, seen in (("talk-ada-li", 1), ("talk-ada-", 0)):
        assert len((await recollect.receipts("ada", "li", conversation=conversation)).receipts) == seen
    for unknown in ({"conversation": "talk-ada-li"}, {"agent": "ada", "conversation": "a b"}):
        with pytest.raises(InvalidInputError):
            await recollect.receipts(**unknown)
    for wrong in ((KeyBinding(None, "li"), ""), (KeyBinding(), "x"), (KeyBinding(), "2026-01-01_x")):
        with pytest.raises(InvalidInputError):
            await recollect.tenant.receipts(purged, *wrong)


async def test_rights_and_bounds(recollect, purged):
    _, reading = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, reading) as http:
        assert (await http.get("/v1/receipts")).status_code == 403
        found = (await http.get("/v1/receipts", params={"agent": "bo"})).json()["receipts"]
        assert [each["conversation"] for each in found] == ["talk-bo-"]
    for bounds, asked, seen in (
        (KeyBinding("ada", "li"), {}, ["talk-ada-li"]),
        (KeyBinding("ada"), {}, ["talk-ada-"]),
        (KeyBinding("ada"), {"user": "li"}, ["talk-ada-li"]),
        (KeyBinding("ada", "li"), {"conversation": "talk-ada-li"}, ["talk-ada-li"]),
        (KeyBinding("ada"), {"conversation": "talk-ada-li"}, []),
        (KeyBinding("ada", "li"), {"agent": "bo"}, None),
        (KeyBinding("ada", "li"), {"agent": "bo", "conversation": "talk-bo-"}, None),
    ):
        _, secret = await recollect.create_key(purged, "bound", tuple(Right), 50, bounds)
        async with http_client(recollect, secret) as http:
            answer = await http.get("/v1/receipts", params=asked)
            assert answer.status_code == (403 if seen is None else 200)
            assert seen is None or [each["conversation"] for each in answer.json()["receipts"]] == seen
    with pytest.raises(ForbiddenError):
        await recollect.tenant.receipts(type(purged)(purged.tenant_id, frozenset({Right.READ}), "x", 0), KeyBinding())


async def test_by_both_clients(recollect, purged):
    _, secret = await new_key(recollect)
    here = await recollect.tenant.receipts(purged, KeyBinding(), limit=2)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.receipts(limit=2), client.receipts("ada", "li", conversation="talk-ada-li")

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await client.receipts(limit=2) == here
        whole, own = await asyncio.to_thread(without_a_loop, url)
        assert whole == here and told(own) == [("ada", "li", "talk-ada-li")]
        assert told(await client.receipts(cursor=here.next_cursor)) == [("ada", "li", "talk-ada-li")]


@pytest.mark.parametrize("mode", plans.MODES)
@pytest.mark.parametrize("of", ["tenant", "scope"])
async def test_a_page_is_read_by_an_index(recollect, purged, addresses, owner, mode, of):
    owner.execute(FILL, [2_000])
    owner.execute("analyze purge_receipts")
    asked = {"agent": "ada", "user": "li", "conversation": "", "before": FIRST[0], "before_id": FIRST[1], "limit": 20}
    with plans.planning(addresses, purged.tenant_id, mode, nested=True) as connection:
        plan = plans.explain(connection, QUERIES[f"receipts_of_{of}"], asked)
        every = [plan, *(inside["Plan"] for inside in connection.plans)]
    nodes = [node for each in every for node in plans.flatten(each) if node.get("Relation Name") == "purge_receipts"]
    assert nodes and sum(map(plans.rows_of, nodes)) <= 25, every
