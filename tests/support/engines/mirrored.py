"""A Recollect with mirrors in real engines, each test with an index, a database and a graph of its own."""

from __future__ import annotations

from contextlib import asynccontextmanager
from uuid import uuid4

from recollect.core.mirrors.rows import MirroredTable
from recollect.jobs.mirror import MirrorFeed, feed_tenant
from recollect.store.mirrors import generations
from recollect.wiring import connected
from support.service.made_settings import make_settings

PATIENT = {
    "request_timeout_seconds": 60,
    "recall__channel_timeout_seconds": 30,
    "embedding__wait_timeout_seconds": 30,
    "mirrors__timeout_seconds": 60,
}


def search_settings(url, **more):
    name = f"t{uuid4().hex[:12]}"
    return {
        "opensearch__url": url,
        "opensearch__index": name,
        "opensearch__shards": 2,
        "opensearch__replicas": 0,
        **more,
    }


@asynccontextmanager
async def mirrored(addresses, embedder, **settings):
    """Run with mirrors; what they hold is removed afterwards."""
    async with connected(make_settings(embedder="fake", **(PATIENT | settings)), addresses, embedder) as recollect:
        try:
            yield recollect
        finally:
            there = {each.name for each in await recollect.operator.mirrors.status(probe=False)}
            for name in there & recollect.parts.mirrors.keys():
                await recollect.operator.mirrors.drop(name)


async def follow(recollect):
    """Let the mirrors follow all that has changed, as the workers of all servers do."""
    for server in await recollect.parts.servers.all():
        for tenant_id in {scope.tenant_id for scope in recollect.opened}:
            await feed_tenant(server.database, recollect.parts.mirrors, tenant_id)


async def feed_of(recollect, name, shard=""):
    """The feed of the generation that answers, of a shard where there are several."""
    [database] = [each.database for each in await recollect.parts.servers.all() if each.name == shard]
    [ready] = [each for each in await generations.list_generations(database, name) if each.ready]
    return MirrorFeed(database, recollect.parts.mirrors[name], ready)


async def scope_of(mind):
    """The number of a mind's scope."""
    return (await mind.access.locate()).scope_id


async def held_ids(recollect, name, mind, table=MirroredTable.MEMORIES):
    """The ids that a mirror holds of a mind."""
    held = await (await feed_of(recollect, name)).read_held(await scope_of(mind))
    return {key.id for key in held if key.table is table}
