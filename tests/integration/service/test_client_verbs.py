"""Reflect, chat, load, tune and profiles through the blocking client: a real server, the values of the process."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from starlette.responses import Response

from conftest import PATIENT, new_key
from integration.agents.test_feedback import fill, mark_by_importance
from integration.agents.test_reflect import QUESTIONS, think, thoughts_of, work_off
from recollect import sync
from recollect.client import Client, special
from recollect.client.special import MAX_MEMORIES_PER_REQUEST, MAX_PART_LENGTH, MAX_REQUEST_BYTES, to_part
from recollect.core.agents.reflection import Questions
from recollect.doors.http.app import create_app
from recollect.doors.http.middleware import MAX_BODY_BYTES
from recollect.errors import (
    ChatModelError,
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    RecollectError,
    UnavailableError,
)
from recollect.models.agents import NOTHING_THERE, Profile, Reflection
from recollect.models.conversations import HistoryOptions
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import StreamWeights
from recollect.models.service import KeyBinding, Right
from recollect.verbs.conversations.chat import AssistantReply
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel
from support.service.made_settings import make_settings
from support.service.serving import serving

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
NO_MODEL = "No chat model is configured"


class PausedChatModel(FakeChatModel):
    """A chat model that can be made to wait."""

    def __init__(self, script):
        super().__init__(script)
        self.going = asyncio.Event()
        self.going.set()

    async def complete(self, prompt, answer):
        await self.going.wait()
        return await super().complete(prompt, answer)


def answer(prompt, shape):
    return AssistantReply(text="Pascal.") if shape is AssistantReply else think(prompt, shape)


@pytest.fixture
async def chat():
    return PausedChatModel(answer)


@pytest.fixture
async def thinking(addresses, embedder, chat):
    """A running Recollect with a chat model."""
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder, chat) as running:
        yield running


@asynccontextmanager
async def blocking(recollect, secret="", wrap=lambda app: app):
    """Give a way to call the blocking client of a server, in a thread as a program without a loop would."""
    if not secret:
        _, secret = await new_key(recollect)

    async with serving(wrap(create_app(recollect=recollect))) as url:

        async def call(work, agent="ada", user="li"):
            def run():
                with sync.connect(url, secret) as client:
                    return work(client.mind(agent, user))

            return await asyncio.to_thread(run)

        yield call


@asynccontextmanager
async def working(recollect):
    """Run a worker beside the test."""
    task = asyncio.create_task(recollect.work())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def losing(lost):
    """Wrap an application in a gateway that loses the answers whose turn has come, after the work was done."""

    def wrap(app):
        async def gateway(scope, receive, send):
            if scope["type"] != "http" or not next(lost, False):
                await app(scope, receive, send)
                return

            async def drop(_message):
                pass

            await app(scope, receive, drop)
            await Response(status_code=503, headers={"Retry-After": "0"})(scope, receive, send)

        return gateway

    return wrap


async def remember_plants(recollect):
    mind = await recollect.mind("ada", "li")
    await mind.remember([f"Ann waters plant number {number}" for number in range(8)])
    return mind


async def test_a_reflection_is_waited_for_and_its_job_is_followed(thinking, chat):
    here, loop, heard = await remember_plants(thinking), asyncio.get_running_loop(), []
    waiting = asyncio.Event()
    chat.going.clear()

    def report(step):
        heard.append(step)
        loop.call_soon_threadsafe((waiting if step == "waiting" else chat.going).set)

    async with blocking(thinking) as call:
        asked = asyncio.create_task(call(lambda mind: mind.reflect(NOW, report=report)))
        await waiting.wait()
        async with working(thinking):
            reflection = await asked
    thoughts = await thoughts_of(here)
    assert heard == ["waiting", "running"]
    assert reflection.questions == tuple(QUESTIONS)
    assert [receipt.id for receipt in reflection.thoughts] == [thought.id for thought in thoughts]
    assert {thought.occurred_at for thought in thoughts} == {NOW}


async def test_a_reflection_at_another_moment_is_another_job(thinking):
    here = await remember_plants(thinking)
    jobs = [await here.reflect_later(now) for now in (None, NOW, NOW, None)]
    assert (jobs[0], jobs[1]) == (jobs[3], jobs[2])
    assert jobs[0] != jobs[1]


async def test_a_reflection_that_fails_says_so(thinking, chat, owner):
    await remember_plants(thinking)
    chat.script = {Questions: "nonsense"}
    async with blocking(thinking) as call:
        asked = asyncio.create_task(call(lambda mind: mind.reflect()))
        while not asked.done():
            await work_off(thinking, owner)
        with pytest.raises(RecollectError, match=r"Reflection failed: .*nonsense"):
            await asked


async def test_a_reflection_is_given_up_in_time_and_goes_on(thinking, owner):
    here = await remember_plants(thinking)
    async with blocking(thinking) as call:
        with pytest.raises(UnavailableError, match=r"within 0 seconds; job \d+ continues \(waiting\)"):
            await call(lambda mind: mind.reflect(timeout_seconds=0))
        job_id = await call(lambda mind: mind.reflect_later())
        await work_off(thinking, owner)
        there = await call(lambda mind: mind.reflection(job_id))
        assert there == await here.reflection(job_id)
        assert len(there.reflection.thoughts) == len(await thoughts_of(here)) == 6
        with pytest.raises(UnavailableError, match="No answer within"):
            await here.reflect(timeout_seconds=0)


async def test_where_nothing_was_remembered_nothing_is_reflected_upon(thinking, recollect):
    async with blocking(thinking) as call:
        assert await call(lambda mind: mind.reflect()) == Reflection((), (), NOTHING_THERE)
    async with blocking(recollect) as call:
        with pytest.raises(InvalidInputError, match=NO_MODEL):
            await call(lambda mind: mind.reflect())


async def test_a_bound_key_follows_its_own_reflection_and_no_other(thinking):
    await remember_plants(thinking)
    caller = await thinking.operator.act_for("default")
    keys = [
        (await thinking.create_key(caller, "bound", (Right.READ, Right.WRITE), 50, KeyBinding("ada", user)))[1]
        for user in ("li", "zoe")
    ]
    async with blocking(thinking, keys[0]) as call, working(thinking):
        assert len((await call(lambda mind: mind.reflect())).thoughts) == 6
        job_id = await call(lambda mind: mind.reflect_later())
    async with blocking(thinking, keys[1]) as call:
        for unknown in (job_id, 2**62, 2**63):
            with pytest.raises((NotFoundError, InvalidInputError)):
                await call(lambda mind, number=unknown: mind.reflection(number), user="zoe")


async def test_an_answer_comes_with_its_prompt_and_both_messages_are_appended(thinking):
    shown = []
    async with blocking(thinking) as call:

        def work(mind):
            conversation = mind.conversation("c")
            first = conversation.chat("My cat is Pascal.", 500)
            last = first.appended[-1].id
            return conversation.chat(
                "Its name?", 500, window=HistoryOptions(leaf=last), system="Be kind.", report=shown.append
            )

        reply = await call(work)
    here = (await thinking.mind("ada", "li")).conversation("c")
    assert (reply.answer, shown) == ("Pascal.", [reply.context])
    assert reply.context.messages[0] == {"role": "system", "content": "Be kind."}
    messages = (await here.history()).messages
    assert [message.content for message in messages] == ["My cat is Pascal.", "Pascal.", "Its name?", "Pascal."]
    assert [message.id for message in messages][2:] == [each.id for each in reply.appended]


async def test_an_answer_without_a_model_or_with_a_silent_one_keeps_its_error(thinking, chat, recollect):
    async with blocking(recollect) as call:
        with pytest.raises(InvalidInputError, match=NO_MODEL):
            await call(lambda mind: mind.conversation("c").chat("hello"))
    chat.script = {AssistantReply: AssistantReply(text=" ")}
    async with blocking(thinking) as call:
        with pytest.raises(ChatModelError, match="empty answer"):
            await call(lambda mind: mind.conversation("c").chat("hello"))
    _, reader = await new_key(thinking, rights=(Right.READ,))
    async with blocking(thinking, reader) as call:
        with pytest.raises(ForbiddenError):
            await call(lambda mind: mind.conversation("c").chat("hello"))


async def test_an_answer_that_is_lost_on_the_way_is_not_asked_for_again(thinking, chat):
    async with blocking(thinking, wrap=losing(iter([True]))) as call:
        with pytest.raises(UnavailableError):
            await call(lambda mind: mind.conversation("c").chat("hello"))
    assert chat.calls == 1
    here = (await thinking.mind("ada", "li")).conversation("c")
    assert [message.content for message in (await here.history()).messages] == ["hello", "Pascal."]


async def test_a_caller_gives_up_on_an_answer_in_time(thinking, chat):
    chat.going.clear()
    async with blocking(thinking) as call:
        with pytest.raises(UnavailableError, match=r"No answer within 0\.05 seconds"):
            await call(lambda mind: mind.conversation("c").chat("hello", timeout_seconds=0.05))
        chat.going.set()
    chat.going.clear()
    with pytest.raises(UnavailableError, match=r"No answer within 0\.05 seconds"):
        await (await thinking.mind("ada", "li")).conversation("c").chat("hello", timeout_seconds=0.05)


async def test_an_answer_may_take_as_long_as_the_chat_model_and_no_other_request(thinking):
    granted = {}

    def wrap(app):
        async def noting(scope, receive, send):
            await app(scope, receive, send)
            if scope["type"] == "http":
                granted[scope["path"]] = scope["allow_seconds"].__self__.deadline_seconds

        return noting

    async with blocking(thinking, wrap=wrap) as call:
        await call(lambda mind: (mind.conversation("c").chat("hello"), mind.overview()))
    usual = thinking.settings.request_timeout_seconds
    assert granted == {"/v1/chat": usual + thinking.settings.chat.timeout_seconds, "/v1/overview": usual}


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(special, "MAX_MEMORIES_PER_REQUEST", 2)


def chain(length, **more):
    """Give memories each of which, but the first, was made from the first and from the one before."""
    first = [NewMemory("memory 0")]
    rest = (NewMemory(f"memory {n}", Kind.THOUGHT, evidence=(0, n - 1)) for n in range(1, length))
    return [replace(memory, **more) for memory in (*first, *rest)]


async def test_a_load_in_parts_is_as_one_and_every_part_is_stored_once(recollect, small_parts):
    """Every answer is lost once; evidence by position reaches over the parts."""
    async with blocking(recollect, wrap=losing(iter([True, False] * 3))) as call:
        ids = await call(lambda mind: mind.load(chain(5)))
        assert await call(lambda mind: mind.load([])) == []
    here, twin = await recollect.mind("ada", "li"), await recollect.mind("ada", "twin")
    whole = await twin.load(chain(5))
    for scope, stored in ((here, ids), (twin, whole)):
        memories = (await scope.list()).memories
        assert [memory.id for memory in memories] == stored
        assert [memory.content for memory in memories] == [f"memory {n}" for n in range(5)]
        read = [set((await scope.get(memory.id)).evidence) for memory in memories]
        assert read == [set(), *({stored[0], stored[n - 1]} for n in range(1, 5))]


async def test_a_load_that_fails_says_how_much_is_stored_and_goes_on_under_its_key(recollect, small_parts):
    good = chain(5)
    for wrong in (replace(good[4], evidence=(7,)), replace(good[4], evidence=(-1,)), NewMemory(" ")):
        async with blocking(recollect) as call:
            with pytest.raises(InvalidInputError, match=r"^4 of 5 memories are stored\. "):
                await call(lambda mind, last=wrong: mind.load([*good[:4], last], idempotency_key="k"))
    async with blocking(recollect) as call:
        ids = await call(lambda mind: mind.load(good, idempotency_key="k"))
        assert ids == await call(lambda mind: mind.load(good, idempotency_key="k"))
        with pytest.raises(ConflictError, match=r"^0 of 5"):
            await call(lambda mind: mind.load(chain(5, importance=9.0), idempotency_key="k"))
    memories = (await (await recollect.mind("ada", "li")).list()).memories
    assert [memory.id for memory in memories] == ids


async def test_a_load_in_the_process_is_stored_once_under_its_key(mind, owner):
    ids = await mind.load(chain(5), idempotency_key="k")
    assert await mind.load(chain(5), idempotency_key="k") == ids
    with pytest.raises(ConflictError):
        await mind.load(chain(4), idempotency_key="k")
    with pytest.raises(InvalidInputError, match="memory 2"):
        await mind.load([NewMemory("one"), NewMemory(" ")], idempotency_key="other")
    assert owner.execute("select count(*) from memories").fetchone() == (5,)
    assert len(await mind.load(chain(4))) == 4


def test_a_part_of_a_load_fits_a_request():
    assert MAX_REQUEST_BYTES <= MAX_BODY_BYTES / 2
    wide = [NewMemory("a vector", embedding=[1 / 3] * 4096) for _ in range(200)]
    for memories in (wide, [NewMemory("记" * 32_000)] * 20, [NewMemory("short")] * (MAX_MEMORIES_PER_REQUEST + 1)):
        stored, parts = [], []
        while (taken := to_part(memories, stored))[0]:
            stored += range(taken[0])
            parts.append(json.loads(taken[1]))
            assert len(taken[1]) <= MAX_REQUEST_BYTES
            assert sum(len(body["content"]) for body in parts[-1]) <= MAX_PART_LENGTH
            assert len(parts[-1]) <= MAX_MEMORIES_PER_REQUEST
        assert len(stored) == len(memories)
        assert 1 < len(parts) < 20


async def test_weights_are_learned_and_applied_from_afar(recollect):
    here = await recollect.mind("ada", "li")
    await fill(here, 60)
    await here.set_profile(Profile(StreamWeights(recency=4.0, similarity=2.0, importance=0.1), limit=8))
    await mark_by_importance(here, 24)
    _, reader = await new_key(recollect, rights=(Right.READ,))
    _, secret = await new_key(recollect)

    def tune(secret, agent="ada", **chosen):
        with sync.connect(url, secret) as client:
            return client.tune(agent, **chosen)

    async with serving(create_app(recollect=recollect)) as url:
        [tuning] = await asyncio.to_thread(tune, reader)
        assert [tuning] == await recollect.tenant.tune(here.access.caller, "ada")
        assert tuning.recommended
        with pytest.raises(ForbiddenError):
            await asyncio.to_thread(tune, reader, apply=True)
        assert await asyncio.to_thread(tune, secret, apply=True) == [replace(tuning, applied=True)]
        for agent, problem in (("bob", "tuning needs"), ("", "agent")):
            with pytest.raises(InvalidInputError, match=problem):
                await asyncio.to_thread(tune, secret, agent)
    assert (await here.profile()).weighing == StreamWeights(**tuning.after)


async def test_what_is_kept_of_an_agent_is_read_from_afar(recollect, owner):
    here = await recollect.mind("ada", "li")
    await here.set_profile(Profile(limit=3))
    owner.execute("""update agents set metadata = '{"a": [1, null], "b": {"c": "d"}}'""")
    async with blocking(recollect) as call:
        kept = await call(lambda mind: mind.profile())
        assert kept == await here.profile() == Profile(limit=3, metadata={"a": [1, None], "b": {"c": "d"}})
        assert (await call(lambda mind: mind.overview())).profile == Profile(limit=3)
        assert await call(lambda mind: mind.set_profile(replace(kept, limit=4))) == replace(kept, limit=4)
        assert await call(lambda mind: mind.profile(), agent="nobody") == Profile()


async def test_the_blocking_client_sees_and_retries_jobs(thinking, chat, owner):
    here = await remember_plants(thinking)
    _, secret = await new_key(thinking)
    chat.script = {Questions: "nonsense"}
    job_id = await here.reflect_later()
    async with serving(create_app(recollect=thinking)) as url:

        def look():
            with sync.connect(url, secret) as client:
                return client.jobs(task="reflect").jobs

        assert [job.id for job in await asyncio.to_thread(look)] == [job_id]
        await work_off(thinking, owner, 9)
        chat.script = answer

        def retry():
            with sync.connect(url, secret) as client:
                return client.retry_job(job_id)

        assert (await asyncio.to_thread(retry)).state == "waiting"
        await work_off(thinking, owner)
        async with Client(url, secret) as client:
            assert (await (await client.mind("ada", "li")).reflection(job_id)).state == "succeeded"
