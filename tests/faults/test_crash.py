"""PostgreSQL dies in the middle of writes: what was acknowledged is there again, once, and whole.

In a campaign a server that does not wait for its disk is killed as well, to show that the test would notice.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from conftest import addresses_of, execute, http_client, new_key
from known_numbers import VECTORS
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from sizes import Sizes

KILLS = Sizes("kills", ci=5, long=100)
CONTROL = Sizes("kills", ci=0, long=100)
WRITERS = 8
WAIT_SECONDS = 60
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "64MB"}
WHOLE = f"""select count(*),
    count(*) filter (where not exists (select from memory_terms t where (t.scope_id, t.id) = (m.scope_id, m.id))),
    count(*) filter (where not exists (select from {VECTORS} v where (v.scope_id, v.id) = (m.scope_id, m.id))
                       and not exists (select from pending_embeddings p where (p.scope_id, p.id) = (m.scope_id, m.id)))
    from memories m"""
MISCOUNTED = """select count(*) from scopes s
    where memory_count <> (select count(*) from memories m where m.scope_id = s.id)"""
ORPHANS = """select count(*) from idempotency_keys k, unnest(memory_ids) as promised
    where not exists (select from memories m where (m.scope_id, m.id) = (k.scope_id, promised))"""


def open_folder():
    """Make a folder that the server's account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-crash-"))
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def own_cluster(**settings):
    """A cluster that nobody else uses, on a real disk, prepared for the service."""
    folder = open_folder()
    cluster = Cluster(folder / "postgres", settings=DURABLE | settings)
    try:
        await asyncio.to_thread(cluster.start)
        execute(cluster, "create database crash")
        await prepare(addresses_of(cluster, "crash"), FakeEmbedder())
        yield cluster
    finally:
        await asyncio.to_thread(cluster.stop)
        shutil.rmtree(folder, ignore_errors=True)


async def write_for_ever(http, number, promised, codes, embedder):
    """Write under a key until it is acknowledged, then go on to the next one."""
    while True:
        key, count = uuid4().hex, random.randint(1, 3)
        body = {"agent": f"agent-{number % 3}", "memories": [{"content": f"{key} {part}"} for part in range(count)]}
        embedder.delay_seconds = random.choice([0, 0, 0, 10])
        while key not in promised:
            answer = await http.post("/v1/memories", json=body, headers={"Idempotency-Key": key})
            codes[answer.status_code] += 1
            if answer.status_code == 201:
                promised[key] = [memory["id"] for memory in answer.json()["memories"]]
            else:
                await asyncio.sleep(0.05)


async def campaign(cluster, kills):
    """Kill and recover while writers write; return what they were promised and what they were told."""
    promised, codes = {}, Counter()
    embedder, addresses = FakeEmbedder(), addresses_of(cluster, "crash")
    settings = Settings(embedder="fake", deadline_seconds=5, embed_wait_seconds=0.02, pool_size=6)
    async with connected(settings, addresses, embedder) as running:
        _, secret = await new_key(running)
        async with http_client(running, secret) as http:
            writers = [
                asyncio.create_task(write_for_ever(http, number, promised, codes, embedder))
                for number in range(WRITERS)
            ]
            for _ in range(kills):
                await more_promises(promised, random.randint(1, 40))
                await asyncio.to_thread(cluster.kill)
                await asyncio.to_thread(cluster.start)
            await more_promises(promised, 1)
            await cancel(writers)
    return promised, codes


async def more_promises(promised, number):
    """Wait until so many more writes have been acknowledged: the writers are then anywhere in their next ones."""
    started, wanted = time.monotonic(), len(promised) + number
    while len(promised) < wanted:
        assert time.monotonic() < started + WAIT_SECONDS, "no write was acknowledged after the recovery"
        await asyncio.sleep(0.001)


async def cancel(tasks):
    """Cancel until all have ended: asyncio.wait_for of Python 3.11 can swallow a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)
    assert all(task.cancelled() for task in tasks)


def find_losses(cluster, promised):
    with psycopg.connect(cluster.dsn("crash")) as owner:
        stored = {str(identity): content for identity, content in owner.execute("select id, content from memories")}
    return [
        key
        for key, ids in promised.items()
        if [stored.get(identity) for identity in ids] != [f"{key} {part}" for part in range(len(ids))]
    ]


def check_whole(cluster):
    with psycopg.connect(cluster.dsn("crash")) as owner:
        rows, without_terms, without_vector = owner.execute(WHOLE).fetchone()
        twice = owner.execute("select content from memories group by content having count(*) > 1").fetchall()
        assert (without_terms, without_vector, twice) == (0, 0, [])
        assert owner.execute(MISCOUNTED).fetchone() == (0,)
        assert owner.execute(ORPHANS).fetchone() == (0,)
    return rows


@pytest.mark.slow
@pytest.mark.promise("What was acknowledged is there, once and whole, after PostgreSQL was killed amid writes", KILLS)
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(figure):
    async with own_cluster() as cluster:
        promised, codes = await campaign(cluster, KILLS.now)
        rows = check_whole(cluster)
        lost = find_losses(cluster, promised)
    figure(f"{len(promised)} writes acknowledged, {len(lost)} lost, {rows} memories stored, answers {dict(codes)}")
    assert lost == []
    assert set(codes) <= {201, 503}
    assert codes[201] > KILLS.now
    assert codes[503] > 0


@pytest.mark.slow
@pytest.mark.skipif(not CONTROL.now, reason="a control that only a campaign runs")
@pytest.mark.promise("The test of a killed PostgreSQL notices one that does not wait for its disk", CONTROL)
async def test_a_server_that_does_not_wait_for_its_disk_is_found_out(figure):
    async with own_cluster(synchronous_commit="off", wal_writer_delay="10s") as cluster:
        promised, _ = await campaign(cluster, CONTROL.now)
        lost = find_losses(cluster, promised)
    figure(f"{len(lost)} of {len(promised)} acknowledged writes lost, as they must be")
    assert lost
