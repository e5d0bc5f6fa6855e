"""How the service is set up, and what it still has to do for a tenant."""

from __future__ import annotations

import asyncio

from conftest import PATIENT, http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.llm.fake import FakeEmbedder
from recollect.loading import package_version
from recollect.models.service import KeyBinding, Right
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel
from support.service.made_settings import make_settings
from support.service.mcp_doors import listening


async def defer(recollect, embedder, *scopes):
    """Let memories wait for their vectors, which is one job for each scope."""
    embedder.fail()
    for agent, user, tenant in scopes:
        await (await recollect.mind(agent, user, tenant=tenant)).remember("one")
    embedder.recover()


async def test_jobs_are_those_of_the_tenant_by_task(recollect, embedder, owner):
    await defer(recollect, embedder, ("ada", "li", "default"), ("ada", "wu", "default"), ("x", "", "other"))
    caller = await recollect.operator.act_for("default")
    status = await recollect.tenant.status(caller)
    [task] = status.jobs
    assert (task.task, task.waiting, task.running, task.failed) == ("embed", 2, 0, 0)
    assert task.oldest_seconds >= 0
    owner.execute("update procrastinate_jobs set status = 'failed'")
    [task] = (await recollect.tenant.status(caller)).jobs
    assert (task.waiting, task.failed, task.oldest_seconds) == (0, 2, None)


async def test_how_it_is_set_up(addresses, recollect, embedder):
    plain = await recollect.tenant.status(await recollect.operator.act_for("default"))
    assert (plain.version, plain.chat_model, plain.keep_recalls) == (package_version(), "", "off")
    assert (plain.embedder.model, plain.embedder.active, plain.by_words) == (embedder.model, True, "")
    assert (plain.budget.limit, plain.budget.used, plain.jobs) == (None, 0, ())
    chosen = make_settings(embedder="fake", recall__save="sampled", daily_token_limit=500, **PATIENT)
    other = FakeEmbedder(dimensions=7)
    async with connected(chosen, addresses, other, FakeChatModel(lambda *_: "")) as running:
        status = await running.tenant.status(await running.operator.act_for("default"))
    assert (status.keep_recalls, status.budget.limit) == ("sampled", 500)
    assert status.chat_model
    assert not status.embedder.active and other.model in status.by_words


async def test_a_bound_key_sees_the_jobs_of_its_own_scope_and_no_budget(recollect, embedder):
    await defer(recollect, embedder, ("ada", "li", "default"), ("ada", "wu", "default"), ("bo", "", "default"))
    maker = await recollect.operator.act_for("default")
    for bounds, waiting in ((KeyBinding("ada"), 2), (KeyBinding("ada", "li"), 1), (KeyBinding("ada", ""), 0)):
        _, secret = await recollect.create_key(maker, "bound", (Right.READ,), 50, bounds)
        async with http_client(recollect, secret) as http:
            status = (await http.get("/v1/status")).json()
            assert sum(task["waiting"] for task in status["jobs"]) == waiting
            assert status["budget"] is None and status["embedder"]["model"]


async def test_over_http_and_by_both_clients(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    _, writing = await new_key(recollect, rights=(Right.WRITE,))
    here = await recollect.tenant.status(await recollect.operator.act_for("default"))
    async with http_client(recollect, writing) as http:
        assert (await http.get("/v1/status")).status_code == 403

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.status()

    async with listening(recollect) as url, Client(url, secret) as client:
        assert await client.status() == here
        assert await asyncio.to_thread(without_a_loop, url) == here
