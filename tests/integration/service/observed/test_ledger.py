"""Every call of a model stands in the ledger, of one tenant only; a used-up day stops enrichment and nothing else."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import psycopg
import pytest

from conftest import http_client, new_key
from recollect import NewMemory, NewMessage, sync
from recollect.client import Client
from recollect.core.agents.reflection import Questions
from recollect.core.memories.erasure import Restatement
from recollect.core.text.tokens import estimate
from recollect.doors.http.app import create_app
from recollect.errors import BudgetError, ChatModelError, ForbiddenError, InvalidInputError, NotFoundError, SetupError
from recollect.jobs.worker import SPREAD_SECONDS, RetryPolicy, build_app, record_failure, run_worker
from recollect.llm.chat import ModelAnswer, Usage
from recollect.llm.fake import FakeEmbedder
from recollect.models import Kind, Role
from recollect.models.service import DailyBudget, Right
from recollect.settings import Settings
from recollect.store.service import jobs
from recollect.store.service.ledger import LedgerEntry, enter
from recollect.store.shards.tenants import Tenants
from recollect.verbs.conversations.chat import AssistantReply
from recollect.verbs.service.costs import Costs, metered, record_step
from recollect.wiring import build_chat_model, connected
from support.models.fake_chat import FakeChatModel
from support.models.scripted_chat import chatting
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.made_settings import make_settings
from support.service.serving import serving

ROWS = "select step, model, prompt_tokens, completion_tokens, outcome from ledger order by at"
ASKED = Questions(questions=["Why?"])
USAGE = {"prompt_tokens": 70, "completion_tokens": 30}


@asynccontextmanager
async def speaking(addresses, url, **settings):
    """A Recollect whose chat model is an endpoint on a real socket."""
    chosen = make_settings(embedder="fake", chat_url=url, chat_model="scripted", chat__timeout_seconds=5, **settings)
    chat = build_chat_model(chosen)
    async with connected(chosen, addresses, FakeEmbedder(), chat) as running:
        yield running
    await chat.close()


async def begin(recollect, agent="ada", tenant="default"):
    """Make a scope that holds something; return its mind."""
    mind = await recollect.mind(agent, tenant=tenant)
    await mind.remember(["Ann waters the plants", "Ann grows beans"])
    return mind


def number_of(owner, mind):
    row = [mind.access.scope.tenant_id, mind.access.scope.agent]
    return owner.execute("select id from scopes where tenant_id = %s and agent = %s", row).fetchone()[0]


@pytest.fixture
def chat():
    return FakeChatModel({Questions: ModelAnswer(ASKED.model_dump_json(), whole=True, usage=Usage(60, 40))})


@pytest.fixture
async def asking(addresses, embedder, chat):
    """A Recollect with a scripted chat model, a price for it, and 250 tokens a day."""
    settings = Settings(embedder="fake", chat_prices="fake-chat@1=1/2", daily_token_limit=250)
    async with connected(settings, addresses, embedder, chat) as running:
        yield running


async def test_a_reflection_is_entered_call_by_call(addresses, owner):
    with chatting(usage=USAGE) as url:
        async with speaking(addresses, url, chat_prices="scripted=1/10") as recollect:
            mind = await begin(recollect)
            await mind.reflect()
            found = await recollect.ledger("ada")
    assert owner.execute(ROWS).fetchall() == [("reflect", "scripted", 70, 30, "answered")] * 2
    versions = [row[0] for row in owner.execute("select prompt_version from ledger order by at")]
    assert [version.partition("@")[0] for version in versions] == ["questions", "insights"]
    [added] = found.sums
    assert (added.day, added.step, added.calls, added.failed) == (datetime.now(UTC).date(), "reflect", 2, 0)
    assert (added.prompt_tokens, added.completion_tokens) == (140, 60)
    assert added.price == pytest.approx((140 + 600) / 1_000_000)
    assert added.milliseconds > 0
    assert found.budget == DailyBudget(None, 200, None)


async def test_a_second_question_has_a_line_of_its_own(addresses, owner):
    with chatting(first=["I would rather not."], usage=USAGE) as url:
        async with speaking(addresses, url) as recollect:
            await (await begin(recollect)).reflect()
    outcomes = [row[-1] for row in owner.execute(ROWS)]
    assert outcomes == ["failed: UnusableReplyError", "answered", "answered"]
    assert {row[2:4] for row in owner.execute(ROWS)} == {(70, 30)}
    assert owner.execute("select count(price) from ledger").fetchone() == (0,)


async def test_what_fails_is_entered_too(addresses, owner):
    with chatting(nonsense=True) as url:
        async with speaking(addresses, url) as recollect:
            mind = await begin(recollect)
            with pytest.raises(ChatModelError):
                await mind.reflect()
    first, second = owner.execute(ROWS).fetchall()
    # This endpoint does not count, so its answers are estimated.
    assert first[2] > 100
    assert first[3] == second[3] == estimate("I would rather not.")
    assert (first[4], second[4]) == ("failed: UnusableReplyError", "failed: ChatModelError")
    async with speaking(addresses, url) as recollect:
        with pytest.raises(ChatModelError):
            await (await recollect.mind("ada")).reflect()
    assert owner.execute(ROWS).fetchall()[2:] == [("reflect", "scripted", 0, 0, "failed: ChatModelError")]


async def test_a_call_that_is_called_off_is_entered(asking, owner, chat):
    mind = await begin(asking)
    started = asyncio.Event()

    async def dawdle(*_):
        started.set()
        await asyncio.Event().wait()

    chat.ask = dawdle
    calling = asyncio.create_task(metered(asking.parts, number_of(owner, mind), "extract").ask("?", Questions))
    await started.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert owner.execute(ROWS).fetchall() == [("extract", "fake-chat@1", 0, 0, "failed: CancelledError")]


async def test_what_was_said_is_told_from_what_can_be_used(asking, owner, chat):
    scope_id, source = number_of(owner, await begin(asking)), uuid4()
    model = metered(asking.parts, scope_id, "extract", prompt_version="extraction@1", source_id=source)
    whole = ASKED.model_dump_json()
    for text, ended in ((whole, True), (whole[:9], False), ("no JSON", True), ("", True)):
        chat.script = {Questions: ModelAnswer(text, whole=ended, usage=Usage(6, 4))}
        assert (await model.complete("?", Questions)).text == text
    chat.fail()
    with pytest.raises(ChatModelError):
        await model.complete("?", Questions)
    outcomes = ["answered", "partial", "partial", "failed: UnusableReplyError", "failed: ChatModelError"]
    assert [row[-1] for row in owner.execute(ROWS)] == outcomes
    rows = owner.execute("select distinct prompt_version, source_id from ledger").fetchall()
    assert rows == [("extraction@1", source)]
    price = owner.execute("select price from ledger order by at limit 1").fetchone()[0]
    assert price == pytest.approx(14 / 1_000_000)
    assert (model.model, model.characters) == (chat.model, chat.characters)


async def test_a_chat_is_entered_in_the_scope_that_it_makes(asking, chat):
    chat.script = {AssistantReply: AssistantReply(text="Hello.")}
    conversation = (await asking.mind("new")).conversation("c")
    chat.fail()
    with pytest.raises(ChatModelError):
        await conversation.chat("Hello?")
    chat.recover()
    await conversation.chat("Hello?")
    sums = (await asking.ledger("new")).sums
    assert [(each.step, each.calls, each.failed) for each in sums] == [("chat", 2, 1)]
    assert (await asking.ledger("other")).sums == ()


async def test_what_is_made_again_is_entered(asking, chat):
    mind = await asking.mind("ada")
    conversation = mind.conversation("c")
    [said] = await conversation.append(NewMessage(Role.USER, "the secret"))
    [known] = await mind.remember("dogs bark")
    await mind.remember(NewMemory("both", Kind.THOUGHT, evidence=(said.id, known.id)))
    chat.script = {Restatement: Restatement(text="dogs", subject="dogs", predicate="do", object="bark")}
    await conversation.purge()
    await asking.work(until_empty=True)
    sums = (await asking.ledger("ada")).sums
    assert [(each.calls, each.failed) for each in sums if each.step == "rederive"] == [(1, 0)]


async def test_a_used_up_day_stops_what_is_budgeted_and_nothing_else(asking, owner, chat):
    scope_id = number_of(owner, await begin(asking))
    budgeted = metered(asking.parts, scope_id, "extract", budgeted=True)
    for _ in range(3):
        await budgeted.complete("?", Questions)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    for ask in (budgeted.complete, budgeted.ask):
        with pytest.raises(BudgetError, match=f"All 250 tokens.*{midnight:%F} 00:00 UTC") as caught:
            await ask("?", Questions)
        assert (caught.value.until, caught.value.unavailable) == (midnight, True)
    assert chat.calls == 3
    assert (await asking.ledger()).budget == DailyBudget(250, 300, midnight)
    assert await metered(asking.parts, scope_id, "reflect").ask("?", Questions) == ASKED
    await (await asking.mind("ada")).remember("Ann rests")
    owner.execute("update ledger set at = at - interval '24 hours'")
    assert (await asking.ledger()).budget == DailyBudget(250, 0, None)
    await budgeted.complete("?", Questions)


async def test_a_budget_is_a_tenants_own(asking, owner, chat):
    mine, theirs = await begin(asking), await begin(asking, tenant="other")
    models = [metered(asking.parts, number_of(owner, mind), "extract", budgeted=True) for mind in (mine, theirs)]
    for _ in range(3):
        await models[0].complete("?", Questions)
    await models[1].complete("?", Questions)
    assert (await asking.ledger.allow("default", 500)).limit == 500
    await models[0].complete("?", Questions)
    assert (await asking.ledger.allow("other", 100)).used == 100
    with pytest.raises(BudgetError):
        await models[1].complete("?", Questions)
    assert (await asking.ledger.allow("other", 0)) == DailyBudget(None, 100, None)
    assert (await asking.ledger.allow("other", None)).limit == 250
    with pytest.raises(NotFoundError):
        await asking.ledger.allow("nobody", 1)
    with pytest.raises(NotFoundError):
        await asking.ledger(tenant="nobody")
    with pytest.raises(InvalidInputError):
        await asking.ledger.allow("other", -1)
    with pytest.raises(SetupError, match="RECOLLECT_OWNER_DATABASE_URL"):
        await Costs(asking.parts, Tenants()).allow("other", 1)


async def test_a_job_waits_for_the_day_says_so_and_goes_on_when_there_is_more(asking, owner):
    mind = await begin(asking)
    scope_id = number_of(owner, mind)
    owner.execute("delete from procrastinate_jobs")
    await enter(asking.parts.database, [LedgerEntry(scope_id, "extract", 1.0, "answered", prompt_tokens=250)])
    ran = []

    async def task(scope_id: int) -> None:
        await metered(asking.parts, scope_id, "extract", budgeted=True).complete("?", Questions)
        ran.append(scope_id)

    def make_app():
        app = build_app(asking.parts)
        around = [partial(record_failure, asking.parts.database)]
        app.task(name="spend", queue="spend", retry=RetryPolicy(), task_middleware=around)(task)
        return app

    async with asking.parts.database.transaction(mind.access.scope.tenant_id) as connection:
        await jobs.defer(connection, "spend", f"spend:{scope_id}", {"scope_id": scope_id})
    await run_worker(make_app, 1, until=lambda: jobs.nothing_ready(asking.parts.database))
    [waiting] = (await asking.jobs.page(mind.access.caller)).jobs
    midnight = (await asking.ledger()).budget.waits_until
    assert re.search("All 250 tokens of today are used up", waiting.reason)
    assert (waiting.state, ran) == ("waiting", [])
    assert midnight <= waiting.scheduled_at <= midnight + timedelta(seconds=SPREAD_SECONDS)
    await asking.ledger.allow("default", 1000)
    await run_worker(make_app, 1, until=lambda: jobs.nothing_ready(asking.parts.database))
    assert ran == [scope_id]


async def fill(recollect, owner):
    """Enter something for two agents of one tenant and one of another, some of it long ago."""
    for agent, tenant, tokens in (("ada", "default", 10), ("bob", "default", 20), ("ada", "other", 400)):
        scope_id = number_of(owner, await begin(recollect, agent, tenant))
        line = LedgerEntry(scope_id, "extract", 5.0, "answered", "large", prompt_tokens=tokens, price=tokens / 1000)
        await enter(
            recollect.parts.database, [line, LedgerEntry(scope_id, "extract", 5.0, "failed: ChatModelError", "large")]
        )
        await record_step(recollect.parts, scope_id, "segment", 2.5, outcome="done")
    owner.execute("update ledger set at = at - interval '40 days' where step = 'segment'")


async def test_http_tells_a_tenant_of_itself_alone(asking, owner):
    await fill(asking, owner)
    _, secret = await new_key(asking, rights=(Right.READ,))
    async with http_client(asking, secret) as http:
        answer = (await http.get("/v1/ledger")).json()
        [added] = answer["sums"]
        assert (added["step"], added["model"], added["calls"], added["failed"]) == ("extract", "large", 4, 2)
        assert (added["prompt_tokens"], added["completion_tokens"], added["partial"]) == (30, 0, 0)
        assert added["price"] == pytest.approx(0.03)
        assert added["day"] == f"{datetime.now(UTC):%F}"
        assert answer["budget"] == {"limit": 250, "used": 30, "waits_until": None}
        [only] = (await http.get("/v1/ledger", params={"agent": "bob"})).json()["sums"]
        assert only["prompt_tokens"] == 20
        assert (await http.get("/v1/ledger", params={"agent": "bob", "user": "li"})).json()["sums"] == []
        assert len((await http.get("/v1/ledger", params={"days": 60})).json()["sums"]) == 2
        for wrong in ({"days": 0}, {"days": 367}, {"user": "li"}, {"agent": "no/such name"}):
            assert (await http.get("/v1/ledger", params=wrong)).status_code == 422
    _, writer = await new_key(asking, rights=(Right.WRITE,))
    async with http_client(asking, writer) as http:
        assert (await http.get("/v1/ledger")).status_code == 403


async def test_no_tenant_can_enter_or_read_anothers_lines(asking, owner):
    await fill(asking, owner)
    database = asking.parts.database
    mine, theirs = (row[0] for row in owner.execute("select min(id) from scopes group by tenant_id order by 1"))
    async with database.reading(mine >> 40) as connection:
        seen = await connection.execute("select count(*) as lines, min(scope_id >> 40) as tenant from ledger")
    assert await seen.fetchone() == {"lines": 6, "tenant": mine >> 40}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.transaction(mine >> 40) as connection:
            await connection.execute(
                "insert into ledger (scope_id, step, milliseconds, outcome) values (%s, 'x', 0, 'answered')", [theirs]
            )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.transaction(mine >> 40) as connection:
            await connection.execute("update tenants set tokens_per_day = 0")


async def test_the_sdk_and_blocking_code_read_it(asking, owner):
    await fill(asking, owner)
    _, secret = await new_key(asking)
    async with serving(create_app(recollect=asking)) as url, Client(url, secret) as client:
        assert await client.ledger() == await asking.ledger()
        assert await client.ledger("bob", days=60) == await asking.ledger("bob", days=60)
        with pytest.raises(InvalidInputError, match="agent"):
            await client.ledger(user="li")

        def read():
            with sync.using(Client(url, secret)) as blocking:
                return blocking.ledger("ada")

        assert await asyncio.to_thread(read) == await asking.ledger("ada")
    _, writer = await new_key(asking, rights=(Right.WRITE,))
    with pytest.raises(ForbiddenError):
        await asking.ledger.read_costs(await asking.authenticate(writer, "test"))


async def test_the_command_line_shows_it_and_sets_budgets(asking, addresses, owner):
    await fill(asking, owner)
    run = partial(command_line.run, settings=settings_of(addresses))
    shown = await asyncio.to_thread(run, "admin", "costs")
    assert re.search(r"extract +│ large +│ +4 +│ +2 +│ +0 +│ +30 +│ +0 +│ +0\.0 +│ +0\.0300", shown)
    assert "30 tokens used today; there is no limit." in shown
    assert "No model was asked." in await asyncio.to_thread(run, "admin", "costs", "--agent", "eve")
    assert "30 of 1,000 tokens used today." in await asyncio.to_thread(
        run, "admin", "tenants", "budget", "default", "1000"
    )
    waits = await asyncio.to_thread(run, "admin", "tenants", "budget", "other", "400")
    assert re.search(r"400 of 400 tokens used today\. Enrichment waits until \d{4}-\d\d-\d\d 00:00 UTC", waits)
    assert await asyncio.to_thread(run, "admin", "tenants", "budget", "other") == waits
    assert "no limit" in await asyncio.to_thread(run, "admin", "tenants", "budget", "other", "--usual")
    refused = await asyncio.to_thread(run, "admin", "tenants", "budget", "nobody", "1", fails=True)
    assert "not_found: There is no tenant" in refused


def test_prices_that_cannot_be_read_stop_the_start(addresses):
    settings = Settings(embedder="fake", chat_prices="qwen")
    with pytest.raises(SetupError, match="RECOLLECT_CHAT_PRICES"):
        asyncio.run(enter_and_leave(settings, addresses))


async def enter_and_leave(settings, addresses):
    async with connected(settings, addresses, FakeEmbedder()):
        pass
