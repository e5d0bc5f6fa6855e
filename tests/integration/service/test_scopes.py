"""The scopes of a tenant are listed page by page, in three orders, and a bound key sees its own."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import KeyBinding, Right, ScopeOrder, ScopeQuery
from recollect.store.service.scope_lists import FIRST, compose
from support.database import plans
from support.service.mcp_doors import listening

MANY = """
    insert into scopes (id, tenant_id, agent, "user", memory_count, last_written_at)
    select %(tenant)s::bigint << 40 | (5000 + n), %(tenant)s, 'agent ' || n %% 7, 'user ' || n, sizes.size, sizes.at
    from generate_series(1, %(count)s) n
    cross join lateral (
        select case when n %% 3 = 0 then n %% 9 else (n::bigint * 7919) %% 5000 end as size,
               timestamptz '2026-01-01' + (n::bigint * 104729 %% 100000) * interval '7 minutes' as at
    ) sizes
"""


async def fill(recollect):
    for agent, user, size in (("ada", "li", 3), ("ada", "wu", 1), ("Bo", "", 2)):
        await (await recollect.mind(agent, user)).remember([f"{user} {number}" for number in range(size)])
    await (await recollect.mind("ada", "li", tenant="other")).remember(["foreign"] * 5)


async def called(recollect, tenant="default"):
    return await recollect.operator.act_for(tenant)


async def walk(recollect, caller, wanted, limit):
    """Read page by page."""
    found, cursor = [], ""
    while cursor is not None:
        page = await recollect.tenant.scopes(caller, wanted, cursor, limit)
        assert len(page.scopes) <= limit
        found += page.scopes
        cursor = page.next_cursor
    return found


def names(scopes):
    return [(each.agent, each.user) for each in scopes]


async def test_three_orders(recollect):
    await fill(recollect)
    caller = await called(recollect)
    page = await recollect.tenant.scopes(caller, ScopeQuery())
    assert names(page.scopes) == [("Bo", ""), ("ada", "wu"), ("ada", "li")]
    assert page.next_cursor is None
    by_size = (await recollect.tenant.scopes(caller, ScopeQuery(order=ScopeOrder.SIZE))).scopes
    assert [(each.user, each.memories) for each in by_size] == [("li", 3), ("", 2), ("wu", 1)]
    by_name = (await recollect.tenant.scopes(caller, ScopeQuery(order=ScopeOrder.NAME))).scopes
    assert {*names(by_name)} == {*names(by_size)} and names(by_name)[-2:] != names(page.scopes)[-2:]
    assert all(isinstance(each.last_written_at, datetime) for each in by_name)


async def test_by_agent_and_by_a_part_of_a_name(recollect):
    await fill(recollect)
    caller = await called(recollect)
    for order in ScopeOrder:
        assert {*names(await walk(recollect, caller, ScopeQuery("ada", order=order), 1))} == {
            ("ada", "li"), ("ada", "wu")
        }  # fmt: skip
        assert names(await walk(recollect, caller, ScopeQuery(search="bO", order=order), 1)) == [("Bo", "")]
        assert names(await walk(recollect, caller, ScopeQuery(search="W", order=order), 1)) == [("ada", "wu")]
        assert names(await walk(recollect, caller, ScopeQuery("ada", search="i", order=order), 1)) == [("ada", "li")]
        assert await walk(recollect, caller, ScopeQuery(search="%", order=order), 1) == []


@pytest.mark.parametrize("order", ScopeOrder)
async def test_pages_hold_every_scope_once_in_order(recollect, owner, order):
    caller = await called(recollect)
    owner.execute(MANY, {"tenant": caller.tenant_id, "count": 600})
    other = await called(recollect, "other")
    owner.execute(MANY, {"tenant": other.tenant_id, "count": 50})
    for limit in (7, 200):
        found = await walk(recollect, caller, ScopeQuery(order=order), limit)
        assert len(found) == len({*names(found)}) == 600
        if order is ScopeOrder.RECENT:
            assert [each.last_written_at for each in found] == sorted((e.last_written_at for e in found), reverse=True)
        if order is ScopeOrder.SIZE:
            assert [each.memories for each in found] == sorted((each.memories for each in found), reverse=True)
        if order is ScopeOrder.NAME:
            assert [each.agent for each in found] == sorted(each.agent for each in found)


async def test_a_bound_key_sees_its_own(recollect):
    await fill(recollect)
    maker = await called(recollect)
    for bounds, seen in (
        (KeyBinding("ada"), {("ada", "li"), ("ada", "wu")}),
        (KeyBinding("ada", "li"), {("ada", "li")}),
        (KeyBinding("ada", ""), set()),
        (KeyBinding("Bo", ""), {("Bo", "")}),
    ):
        _, secret = await recollect.create_key(maker, "bound", (Right.READ,), 50, bounds)
        async with http_client(recollect, secret) as http:
            for order in ScopeOrder:
                found = (await http.get("/v1/scopes", params={"order": order})).json()["scopes"]
                assert {(each["agent"], each["user"]) for each in found} == seen
            assert (await http.get("/v1/scopes", params={"agent": bounds.agent})).status_code == 200
            assert (await http.get("/v1/scopes", params={"agent": "cy"})).status_code == 403


async def test_wrong_questions_are_refused(recollect):
    await fill(recollect)
    _, secret = await new_key(recollect, rights=(Right.WRITE,))
    _, reading = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as http:
        assert (await http.get("/v1/scopes")).status_code == 403
    async with http_client(recollect, reading) as http:
        for wrong in (
            {"order": "newest"}, {"limit": 201}, {"cursor": "x"}, {"cursor": "2026-01-01_99999999999999999999"},
            {"order": "size", "cursor": "a_1"}, {"order": "size", "cursor": "1_-1"}, {"users": "li"},
        ):  # fmt: skip
            assert (await http.get("/v1/scopes", params=wrong)).status_code == 422, wrong


async def test_by_both_clients(recollect):
    await fill(recollect)
    _, secret = await new_key(recollect, rights=(Right.READ,))
    here = await recollect.tenant.scopes(await called(recollect), ScopeQuery(order=ScopeOrder.SIZE), limit=2)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            first = client.scopes(order="size", limit=2)
            return first, client.scopes(order="size", cursor=first.next_cursor, limit=2)

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await client.scopes(order=ScopeOrder.SIZE, limit=2) == here
        first, second = await asyncio.to_thread(without_a_loop, url)
        assert first == here and names(second.scopes) == [("ada", "wu")]
        assert names((await client.scopes("ada", search="l")).scopes) == [("ada", "li")]


async def test_nothing_is_said_without_the_right(recollect):
    caller = await called(recollect)
    with pytest.raises(ForbiddenError):
        await recollect.tenant.scopes(type(caller)(caller.tenant_id, frozenset(), "x", 0), ScopeQuery())
    with pytest.raises(InvalidInputError):
        await recollect.tenant.scopes(caller, ScopeQuery(search="a\nb"))


@pytest.mark.parametrize("mode", plans.MODES)
@pytest.mark.parametrize("order", ScopeOrder)
async def test_a_page_is_read_by_an_index(recollect, addresses, owner, mode, order):
    """Of 20,000 scopes a page of 20 reads those of the last hour, or of the last step of sizes, and no more."""
    caller = await called(recollect)
    owner.execute(MANY, {"tenant": caller.tenant_id, "count": 20_000})
    for number in range(3):
        other = await called(recollect, f"other {number}")
        owner.execute(MANY, {"tenant": other.tenant_id, "count": random.Random(number).randrange(2_000)})
    owner.execute("vacuum analyze scopes")
    place = FIRST[order]
    asked = {"before": place.value, "tie": place.tie, "limit": 20}
    with plans.planning(addresses, caller.tenant_id, mode) as connection:
        plan = plans.explain(connection, compose(order, ()), asked)
    nodes = [node for node in plans.flatten(plan) if node.get("Relation Name") == "scopes"]
    assert nodes and all("Index" in node["Node Type"] for node in nodes), plan
    assert sum(map(plans.rows_of, nodes)) <= 2_000, plan
