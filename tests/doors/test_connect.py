"""The blocking client works where there is no event loop, inside a running one, and in many threads at once."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.errors import UnauthenticatedError, UnavailableError
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Role
from recollect.sync import connect


@pytest.fixture
def memory(outside):
    with connect(outside["RECOLLECT_URL"], outside["RECOLLECT_KEY"]) as connected:
        yield connected


def test_the_verbs_block_and_start_no_thread(memory):
    before = threading.active_count()
    mind = memory.mind("connect", "li")
    [receipt] = mind.remember("Li drinks green tea")
    assert [hit.memory.id for hit in mind.recall("tea").hits] == [receipt.id]
    conversation = mind.conversation("c")
    conversation.append([NewMessage(Role.USER, "good morning"), NewMessage(Role.ASSISTANT, "and to you")])
    assert [message.content for message in conversation.history(100).messages] == ["good morning", "and to you"]
    assert threading.active_count() == before


def test_a_long_answer_comes_in_pieces(memory):
    mind = memory.mind("connect", "pieces")
    mind.knowledge.add(NewFact("Li", "drinks", "tea", "Li drinks tea"))
    assert "tea" in "".join(mind.knowledge.export())


async def test_it_may_be_called_inside_a_running_loop(memory):
    await asyncio.sleep(0)
    assert memory.mind("connect", "loop").recall("anything").hits == ()


def test_threads_share_one_client(memory):
    def work(number: int) -> list[str]:
        mind = memory.mind("connect", f"thread-{number}")
        mind.remember(f"number {number}")
        return [hit.memory.content for hit in mind.recall("number").hits]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(24))) == [[f"number {number}"] for number in range(24)]


def test_errors_keep_their_kind(outside):
    with connect(outside["RECOLLECT_URL"], "rec_nobody") as stranger, pytest.raises(UnauthenticatedError):
        stranger.mind("ada").recall("x")
    with (
        connect("http://127.0.0.1:9", "rec_nobody") as nowhere,
        pytest.raises(UnavailableError, match="Is the server running"),
    ):
        nowhere.mind("ada").recall("x")
