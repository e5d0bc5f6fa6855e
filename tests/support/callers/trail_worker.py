"""A worker to be killed: real engine, tasks and lease guard, and one more task that shows when it is done twice."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace
from functools import partial

from procrastinate import JobContext

from recollect.jobs.clock import HeartbeatConfig
from recollect.jobs.lease import lease_of
from recollect.jobs.worker import RetryPolicy, WorkerOptions, build_app, run_worker
from recollect.llm.build import build_chat_model
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.settings import Settings
from recollect.store.service.jobs import claim_effect
from recollect.wiring import connected

CONCURRENCY = 2
PULSE = HeartbeatConfig(heartbeat_seconds=0.3, stalled_seconds=1.5, look_at="* * * * * *")
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


async def work(dsn, guarded, pauses, chat_url):
    """Work until killed; without a chat model nothing is learned from conversations."""
    settings = Settings(embedder="fake", chat_url=chat_url, chat_model="scripted")
    async with connected(settings, Addresses(dsn, ""), FakeEmbedder(), build_chat_model(settings)) as recollect:
        parts = recollect.parts if chat_url else replace(recollect.parts, steps={})

        def make_app():
            app = build_app(parts, WorkerOptions(pulse=PULSE))
            task = partial(leave_trail, parts.database, guarded, pauses)

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
