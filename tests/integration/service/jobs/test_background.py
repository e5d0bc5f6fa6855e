"""A program that opens Recollect learns by itself: its worker runs beside it, is waited for, and stops without loss."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from recollect import sync, wiring
from recollect.jobs import running
from recollect.jobs.running import LEAVE_SECONDS, SHORT_STOP_SECONDS, worker_running
from recollect.jobs.worker import MAX_ATTEMPTS, RetryPolicy
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.settings import Settings
from recollect.wiring import open_recollect
from support.models.fake_chat import FakeChatModel
from support.programs.waiting import WAIT_SECONDS, until
from support.service.made_settings import change_settings

TALK = [NewMessage(Role.USER, "Shall we cook on Friday?"), NewMessage(Role.ASSISTANT, "Gladly.")]


class HangingEmbedder(FakeEmbedder):
    """An embedder that never answers, until it is freed."""

    def __init__(self):
        super().__init__()
        self.asked, self.freed = asyncio.Event(), False

    async def embed(self, texts):
        if not self.freed:
            self.asked.set()
            await asyncio.Event().wait()
        return await super().embed(texts)


class HangingChatModel(FakeChatModel):
    """A chat model that never answers."""

    def __init__(self):
        super().__init__({})
        self.asked = asyncio.Event()

    async def complete(self, prompt, answer):
        self.asked.set()
        await asyncio.Event().wait()


@pytest.fixture
def settings(addresses):
    return Settings(
        database_url=addresses.service, owner_database_url=addresses.owner, embedder="fake", request_timeout_seconds=60
    )


@pytest.fixture
def opening(settings, monkeypatch):
    """Open Recollect as a program does, with models of the test."""

    @asynccontextmanager
    async def opened(embedder=None, chat=None, **options):
        monkeypatch.setattr(wiring, "build_embedder", lambda _: embedder or FakeEmbedder())
        monkeypatch.setattr(wiring, "build_chat_model", lambda _: chat)
        changed = change_settings(settings, embedding__wait_timeout_seconds=0.01 if embedder else 30)
        async with open_recollect(changed, **options) as recollect:
            yield recollect

    return opened


def waiting_jobs(owner):
    told = "select task_name, status::text from procrastinate_jobs where args ? 'scope_id' and task_name <> 'fold'"
    return owner.execute(told).fetchall()


def test_a_program_without_a_loop_learns_before_it_ends(settings):
    with sync.open(settings) as memory:
        conversation = memory.mind("ada", "li").conversation("dinner")
        conversation.append(TALK)
        conversation.update(close_segment=True)
        assert memory.wait(WAIT_SECONDS)
        [segment] = conversation.segments()
        assert segment.state == "enriched"
        assert "cook" in memory.mind("ada", "li").get(segment.summary_id).content


def test_a_program_can_leave_the_work_to_others(settings, owner):
    with sync.open(settings, work=False) as memory:
        conversation = memory.mind("ada", "li").conversation("dinner")
        conversation.append(TALK)
        conversation.update(close_segment=True)
        assert memory.wait(0.2) is False
        assert conversation.segments()[0].state == "closed"
        assert ("enrich", "todo") in waiting_jobs(owner)


async def test_waiting_is_for_the_scopes_of_this_process(opening, owner):
    async with opening(work=False) as other:
        await (await other.mind("bob")).conversation("talk").append(TALK)
        async with opening(work=False) as recollect:
            assert await recollect.wait(WAIT_SECONDS)
            mind = await recollect.mind("ada", tenant="another")
            assert await recollect.wait(WAIT_SECONDS)
            await mind.conversation("talk").append(TALK)
            assert await recollect.wait(0.1) is False
            owner.execute("update procrastinate_jobs set scheduled_at = now() + interval '1 hour'")
            assert await recollect.wait(WAIT_SECONDS)
            owner.execute("update procrastinate_jobs set status = 'doing'")
            assert await recollect.wait(0.1) is False


async def test_a_job_that_waits_behind_one_of_later_is_not_waited_for(opening, owner):
    async with opening(work=False) as recollect:
        mind = await recollect.mind("ada")
        await mind.conversation("talk").append(TALK)
        [job] = owner.execute("select id from procrastinate_jobs where task_name = 'enrich'").fetchall()
        owner.execute(
            "insert into procrastinate_jobs (queue_name, task_name, priority, lock, args) "
            "select queue_name, task_name, priority, lock, args from procrastinate_jobs where id = %s",
            job,
        )
        assert await recollect.wait(0.1) is False
        owner.execute("update procrastinate_jobs set scheduled_at = now() + interval '1 hour' where id = %s", job)
        assert await recollect.wait(WAIT_SECONDS)


async def test_a_program_ends_although_its_embedder_hangs_and_the_job_is_done_later(opening, owner):
    embedder = HangingEmbedder()
    async with asyncio.timeout(WAIT_SECONDS):
        async with opening(embedder) as recollect:
            [receipt] = await (await recollect.mind("ada")).remember("Ann waters the plants")
            assert receipt.progress == "stored"
            embedder.asked.clear()
            await embedder.asked.wait()
            assert await recollect.wait(0.1) is False
        assert {*waiting_jobs(owner)} == {("embed", "todo")}
        embedder.freed = True
        async with opening(embedder) as recollect:
            mind = await recollect.mind("ada")
            assert await recollect.wait()
            assert (await mind.get(receipt.id)).progress == "embedded"
    assert waiting_jobs(owner) == []


async def test_a_program_ends_although_its_chat_model_hangs_and_the_job_is_done_later(opening, owner):
    chat = HangingChatModel()
    async with asyncio.timeout(WAIT_SECONDS):
        async with opening(chat=chat) as recollect:
            conversation = (await recollect.mind("ada")).conversation("dinner")
            await conversation.append(TALK)
            await conversation.update(close_segment=True)
            await chat.asked.wait()
        assert ("enrich", "todo") in waiting_jobs(owner)
        async with opening() as recollect:
            conversation = (await recollect.mind("ada")).conversation("dinner")
            assert await recollect.wait()
            assert (await conversation.segments())[0].state == "enriched"
    assert waiting_jobs(owner) == []


def test_an_interrupted_job_is_never_given_up_and_needs_not_wait():
    class Tried:
        attempts = 10 * MAX_ATTEMPTS

    decision = RetryPolicy().get_retry_decision(exception=asyncio.CancelledError(), job=Tried())
    assert decision.retry_at.timestamp() <= time.time()


async def test_the_worker_of_a_program_is_given_so_long_to_stop_and_no_longer(monkeypatch):
    assert SHORT_STOP_SECONDS < LEAVE_SECONDS <= 2
    monkeypatch.setattr(running, "LEAVE_SECONDS", 0.05)
    begun, freed = asyncio.Event(), asyncio.Event()

    async def deaf():
        begun.set()
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(WAIT_SECONDS), worker_running(deaf):
        await begun.wait()
    assert not freed.is_set()
    freed.set()


async def test_the_worker_of_a_program_begins_again_after_an_error(monkeypatch, caplog):
    monkeypatch.setattr(running, "RESTART_SECONDS", 0.0)
    begun = []

    async def fail():
        begun.append(1)
        raise RuntimeError("what was said")

    async with worker_running(fail):
        await until(lambda: len(begun) > 2)
    assert "RuntimeError" in caplog.text
    assert "what was said" not in caplog.text


async def test_a_program_may_end_at_once(opening):
    async with asyncio.timeout(WAIT_SECONDS):
        for _ in range(3):
            async with opening() as recollect:
                await recollect.mind("ada")
