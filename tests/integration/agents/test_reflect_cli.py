"""Reflection from the command line, the SDK and blocking code: a chat endpoint on a real socket."""

from __future__ import annotations

import asyncio
import re

import pytest

from conftest import new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import build_chat_model, connected
from support.models.scripted_chat import chatting
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.serving import serving


@pytest.fixture
def run(addresses):
    """Run a command against this test's own database, with a chat endpoint if a URL is given."""

    def call(*words, url="", fails=False):
        chat = {"chat_url": url, "chat_model": "scripted"} if url else {}
        return command_line.run(*words, settings=settings_of(addresses, **chat), fails=fails)

    return call


def test_reflect_shows_questions_and_thoughts(run):
    with chatting() as url:
        assert "Nothing to reflect on" in run("mind", "reflect", "--agent", "ada", url=url)
        run("remember", "--agent", "ada", "Ann waters the plants")
        run("remember", "--agent", "ada", "Ann grows beans")
        table = run("mind", "reflect", "--agent", "ada", url=url)
    assert re.search(r"What does Ann grow\?.*Ann is a gardener.*7.*1.*2", table)


def test_reflect_says_what_is_missing_or_of_no_use(run):
    run("remember", "--agent", "ada", "Ann waters the plants")
    assert "RECOLLECT_CHAT_URL" in run("mind", "reflect", "--agent", "ada", fails=True)
    with chatting(nonsense=True) as url:
        message = run("mind", "reflect", "--agent", "ada", url=url, fails=True)
    assert "no usable Questions" in message
    assert "Traceback" not in message


async def test_jobs_lists_what_waits_and_what_failed_with_the_reason(run, addresses, owner):
    owner.execute("delete from procrastinate_jobs")
    assert "No job" in await asyncio.to_thread(run, "admin", "jobs")
    with chatting(nonsense=True) as url:
        settings = Settings(embedder="fake", chat_url=url, chat_model="scripted")
        chat = build_chat_model(settings)
        async with connected(settings, addresses, FakeEmbedder(), chat) as recollect:
            mind = await recollect.mind("ada")
            await mind.remember("Ann waters the plants")
            await mind.reflect_later()
            assert re.search(r"reflect.*waiting.*1", await asyncio.to_thread(run, "admin", "jobs"))
            for _ in range(9):
                owner.execute("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
                await recollect.work(until_empty=True)
        await chat.close()
    assert re.search(r"reflect.*failed.*9.*no usable Questions", await asyncio.to_thread(run, "admin", "jobs"))


async def test_the_sdk_and_blocking_code_leave_it_to_a_job(addresses):
    with chatting() as url:
        settings = Settings(embedder="fake", chat_url=url, chat_model="scripted")
        chat = build_chat_model(settings)
        async with connected(settings, addresses, FakeEmbedder(), chat) as recollect:
            _, secret = await new_key(recollect)
            async with serving(create_app(recollect=recollect)) as server, Client(server, secret) as client:
                mind = await client.mind("ada")
                await mind.remember("Ann waters the plants")
                job = await mind.reflect_later()

                def leave() -> int:
                    with sync.using(Client(server, secret)) as blocking:
                        return blocking.mind("ada").reflect_later()

                assert await asyncio.to_thread(leave) == job
                await recollect.work(until_empty=True)
                memories = (await mind.list()).memories
                assert [memory.content for memory in memories] == ["Ann waters the plants", "Ann is a gardener"]
        await chat.close()


async def test_the_sdk_raises_what_the_server_says(recollect):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as server, Client(server, secret) as client:
        with pytest.raises(InvalidInputError, match="RECOLLECT_CHAT_URL"):
            await (await client.mind("ada")).reflect_later()


def test_a_chat_model_needs_a_name():
    assert build_chat_model(Settings(chat_url="")) is None
    assert build_chat_model(Settings(chat_url="http://127.0.0.1:9/v1", chat_model="m")).model == "m"
