"""An embedder that dies in mid-run costs nothing but time: no write fails, and every vector comes."""

from __future__ import annotations

import asyncio

import pytest

from recollect.llm.openai.embedder import EmbedderEndpoint, OpenAIEmbedder
from recollect.models.memories import MemoryProgress
from recollect.store.memories.spaces import ensure_space, switch_space
from recollect.wiring import connected, prepare
from support.measuring.sizes import Sizes
from support.models.embedding_server import DIMENSIONS, MODEL, serving
from support.programs.waiting import until
from support.service.made_settings import make_settings

MEMORIES = Sizes("writes", ci=200, long=1_000)
BEFORE = 50
"""How many are written while the embedder lives."""


@pytest.mark.real_model
@pytest.mark.promise("No write fails when the embedder dies, and every vector comes when it is back", MEMORIES)
async def test_writes_survive_the_death_of_the_embedder(addresses, owner):
    space = await ensure_space(addresses.owner, MODEL, DIMENSIONS)
    await switch_space(addresses.owner, space.id)
    with serving() as server:
        embedder = OpenAIEmbedder(EmbedderEndpoint(server.url, MODEL, DIMENSIONS, timeout_seconds=5, slow_seconds=0.2))
        await prepare(addresses, embedder)
        settings = make_settings(embedder="none", embedding__wait_timeout_seconds=0.5, embedding__max_batch_size=32)
        async with connected(settings, addresses, embedder) as recollect:
            worker = asyncio.create_task(recollect.work(concurrency=4))
            try:
                receipts = await write_through_an_outage(recollect, server)
                assert len(receipts) == MEMORIES.now
                progress = {receipt.progress for receipt in receipts}
                # The outage must hit some and spare some.
                assert progress == {MemoryProgress.EMBEDDED, MemoryProgress.STORED}
                await every_memory_is_found_by_text(recollect)
                assert count_vectors(owner) < MEMORIES.now
                await asyncio.to_thread(server.start)
                await until(lambda: count_vectors(owner) == MEMORIES.now)
            finally:
                worker.cancel()
                await asyncio.gather(worker, return_exceptions=True)
        await embedder.close()
    assert owner.execute("select count(*) from pending_embeddings").fetchone() == (0,)


async def write_through_an_outage(recollect, server):
    minds = [await recollect.mind(f"agent-{number}") for number in range(10)]
    receipts = []
    for number in range(MEMORIES.now):
        if number == BEFORE:
            server.kill()
        receipts += await minds[number % 10].remember(f"note{number} about the garden")
    return receipts


async def every_memory_is_found_by_text(recollect):
    minds = [await recollect.mind(f"agent-{number}") for number in range(10)]
    for number in range(MEMORIES.now):
        hits = (await minds[number % 10].recall(f"note{number}", limit=1)).hits
        assert hits, number
        assert hits[0].memory.content == f"note{number} about the garden"


def count_vectors(owner):
    table = owner.execute("select 'vectors_' || id from embedding_spaces where state = 'active'").fetchone()[0]
    return owner.execute(f"select count(*) from {table}").fetchone()[0]
