"""A worker to be killed: real engine, tasks and lease guard, and one more task that shows when it is done twice."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import asynccontextmanager
from functools import partial

from procrastinate import JobContext

from recollect.jobs.clock import Pulse
from recollect.jobs.lease import lease_of
from recollect.jobs.worker import Duties, RetryPolicy, build_app, run_worker
from recollect.llm.fake import FakeEmbedder
from recollect.store.database.pool import Database
from recollect.store.service.jobs import claim_effect

CONCURRENCY = 2
PULSE = Pulse(heartbeat_seconds=0.3, stalled_seconds=1.5, look_at="* * * * * *")
STEP = "insert into trail (scope_id, number) values (%s, %s)"


async def leave_trail(database, guarded, pauses, context: JobContext, scope_id: int, number: int) -> None:
    """Write one row, as a job of enrichment would: think for a while, then write all in one transaction."""
    await asyncio.sleep(random.uniform(*pauses))
    try:
        async with database.transaction(scope_id >> 40) as connection:
            if not guarded or await claim_effect(connection, lease_of(context), scope_id, f"trail-{context.job.id}"):
                await asyncio.sleep(random.uniform(*pauses) / 10)
                await connection.execute(STEP, [scope_id, number])
    finally:
        print("tried", flush=True)
    await asyncio.sleep(random.uniform(*pauses) / 10)


@asynccontextmanager
async def learning(dsn, chat_url):
    """Give what learns from conversations, if there is a chat model to ask; who has none need not import it all."""
    if not chat_url:
        yield None
        return
    from recollect.llm.build import build_chat_model
    from recollect.mind.service import Addresses
    from recollect.settings import Settings
    from recollect.verbs.knowledge.enrich import enrich
    from recollect.wiring import connected

    settings = Settings(embedder="fake", chat_url=chat_url, chat_model="scripted")
    async with connected(settings, Addresses(dsn, ""), FakeEmbedder(), build_chat_model(settings)) as recollect:
        yield partial(enrich, recollect.parts)


async def work(dsn, guarded, pauses, chat_url):
    """Work until killed."""
    database = await Database.open(dsn, 10, 5)
    async with learning(dsn, chat_url) as enriching:

        def make_app():
            app = build_app(dsn, database, FakeEmbedder(), 64, Duties(pulse=PULSE, enriching=enriching))
            task = partial(leave_trail, database, guarded, pauses)

            async def trail(context: JobContext, scope_id: int, number: int) -> None:
                await task(context, scope_id, number)

            app.task(name="trail", queue="trail", retry=RetryPolicy(), pass_context=True)(trail)
            if not guarded:
                app.job_manager.__class__ = app.job_manager.__class__.__base__
            return app

        await run_worker(make_app, CONCURRENCY, pulse=PULSE)


if __name__ == "__main__":
    dsn, guard, shortest, longest, chat_url = sys.argv[1:]
    asyncio.run(work(dsn, guard == "guarded", (float(shortest), float(longest)), chat_url))
