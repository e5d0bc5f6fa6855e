"""Jobs are listed by scope and retried by task and scope, and a bound key reads the ledger of its own."""

from __future__ import annotations

import asyncio

import pytest

from conftest import http_client, new_key
from integration.service.observed.test_status import defer
from recollect import sync
from recollect.client import Client
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.service import JobState, KeyBinding, Right
from recollect.store.service import ledger
from recollect.store.service.ledger import LedgerEntry
from support.service.mcp_doors import listening

SCOPES = [("ada", "li", "default"), ("ada", "", "default"), ("bo", "", "default"), ("ada", "li", "other")]


@pytest.fixture
async def caller(recollect, embedder, owner):
    await defer(recollect, embedder, *SCOPES)
    owner.execute("update procrastinate_jobs set status = 'failed'")
    return await recollect.operator.act_for("default")


def names(page):
    return sorted((job.agent, job.user) for job in page.jobs)


async def test_jobs_of_an_agent_or_of_one_scope(recollect, caller):
    async def listed(*bounds):
        return names(await recollect.jobs.page(caller, bounds=KeyBinding(*bounds)))

    assert await listed() == [("ada", ""), ("ada", "li"), ("bo", "")]
    assert await listed("ada") == [("ada", ""), ("ada", "li")]
    assert await listed("ada", "") == [("ada", "")]
    assert await listed("cy") == []
    with pytest.raises(InvalidInputError):
        await listed(None, "li")


async def test_failed_jobs_are_retried_by_task_and_scope(recollect, caller, owner):
    assert await recollect.jobs.retry_many(caller, "reflect") == 0
    assert await recollect.jobs.retry_many(caller, bounds=KeyBinding("ada", "li")) == 1
    assert names(await recollect.jobs.page(caller, JobState.WAITING)) == [("ada", "li")]
    assert await recollect.jobs.retry_many(caller, "embed") == 2
    assert await recollect.jobs.retry_many(caller) == 0
    # Another tenant's are left as they are.
    left = (
        "select count(*) from procrastinate_jobs where status = 'failed' and (args ->> 'scope_id')::bigint >> 40 = %s"
    )
    other = await recollect.operator.act_for("other")
    assert owner.execute(left, [caller.tenant_id]).fetchone() == (0,)
    assert owner.execute(left, [other.tenant_id]).fetchone() == (1,)


async def test_over_http_and_by_both_clients(recollect, caller):
    _, secret = await new_key(recollect)
    _, reading = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, reading) as http:
        found = (await http.get("/v1/jobs", params={"agent": "ada", "user": ""})).json()["jobs"]
        assert [(job["agent"], job["user"]) for job in found] == [("ada", "")]
        assert (await http.get("/v1/jobs", params={"user": "li"})).status_code == 422
        assert (await http.post("/v1/jobs/retry", json={})).status_code == 403
    async with http_client(recollect, secret) as http:
        assert (await http.post("/v1/jobs/retry", json={"agent": "bo"})).json() == {"retried": 1}
        assert (await http.post("/v1/jobs/retry", json={"tasks": "x"})).status_code == 422

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.retry_jobs(agent="ada", user=""), client.jobs(agent="ada", user="")

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await client.retry_jobs("embed", agent="ada", user="li") == 1
        retried, page = await asyncio.to_thread(without_a_loop, url)
        assert (retried, names(page)) == (1, [("ada", "")])


async def test_a_bound_key_reads_the_ledger_of_its_own_scope(recollect):
    maker = await recollect.operator.act_for("default")
    for agent, user, tokens in (("ada", "li", 5), ("ada", "", 7), ("bo", "", 11)):
        await (await recollect.mind(agent, user)).remember("one")
        place = await (await recollect.mind(agent, user)).access.locate()
        await ledger.enter(
            recollect.parts.database, [LedgerEntry(place.scope_id, "extract", 1.0, "answered", "m", "", tokens)]
        )
    for bounds, asked, tokens in (
        (KeyBinding("ada", "li"), {}, 5),
        (KeyBinding("ada", "li"), {"agent": "ada", "user": "li"}, 5),
        (KeyBinding("ada"), {}, 7),
        (KeyBinding("ada"), {"user": "li"}, 5),
        (KeyBinding("ada", "li"), {"agent": "bo"}, None),
        (KeyBinding("ada", ""), {"agent": "ada", "user": "li"}, None),
    ):
        _, secret = await recollect.create_key(maker, "bound", (Right.READ,), 50, bounds)
        async with http_client(recollect, secret) as http:
            answer = await http.get("/v1/ledger", params=asked)
            if tokens is None:
                assert answer.status_code == 403
            else:
                assert [each["prompt_tokens"] for each in answer.json()["sums"]] == [tokens]
                assert answer.json()["budget"] is None
    whole = await recollect.ledger.read_costs(maker)
    assert sum(each.prompt_tokens for each in whole.sums) == 23 and whole.budget is not None
    with pytest.raises(ForbiddenError):
        await recollect.ledger.read_costs(type(maker)(maker.tenant_id, frozenset({Right.WRITE}), "x", 0))
