"""Clocks are set an hour forward or back while all is running: jobs are done once, and nobody waits for the hour."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest

from conftest import PATIENT, addresses_of, new_key
from support.callers.acknowledged import Load, calling, check_promises, stop
from support.callers.trails import DEFER, OUT_OF_ORDER, TWICE, UNDONE, ask, end_worker, lay_trail, start_worker
from support.database.durable import DATABASE, connect, durable, service
from support.measuring.sizes import Sizes
from support.programs.folders import find_memory, open_folder
from support.programs.ports import free_port
from support.programs.preload import Preload
from support.programs.programs import Program
from support.programs.waiting import until

HOUR = 3600
NOON = 12 * HOUR - int(time.time()) % (24 * HOUR)
"""All clocks begin at noon, so that an hour more or less is the same day."""
WORKER_CLOCKS = [("worker", -HOUR), ("postgres", -HOUR), ("worker", HOUR), ("postgres", HOUR)]
WORKER_STEPS = Sizes("steps of a clock", ci=4, long=80)
SERVICE_CLOCKS = [("service", -HOUR), ("postgres", HOUR), ("service", HOUR), ("postgres", -HOUR)]
SERVICE_STEPS = Sizes("steps of a clock", ci=2, long=40)
JOBS, SCOPES = 24, 12
"""More scopes than one worker does jobs at a time."""
LIVING = "select count(*) from procrastinate_workers where last_heartbeat between now() - interval '1 s' and now()"
BUSY = "select count(distinct worker_id) from procrastinate_jobs where task_name = 'trail' and status = 'doing'"
PAUSES = (0.2, 0.6)
TOKENS = 100
SPEND = f"""insert into ledger (scope_id, step, prompt_tokens, milliseconds, outcome)
    select id, 'extract', {TOKENS}, 1, 'done' from scopes where agent = 'probe'"""
FOLLOWED = "agent-0"
PAGE = 200
"""The longest page that may be asked for."""


@pytest.fixture
async def stepped():
    """A server and a library for its workers, each with a clock that can be set."""
    with open_folder("clock", find_memory()) as folder:
        clocks = {name: Preload(folder, name) for name in ("postgres", "worker", "service")}
        for clock in clocks.values():
            clock.step(NOON)
        with clocks["postgres"].loaded():
            async with durable(folder / "server") as cluster:
                yield cluster, clocks


@contextmanager
def working(cluster, clock):
    """Give a function that starts a worker; all of them end with the block."""
    dsn = addresses_of(cluster, DATABASE).service
    with ExitStack() as stack:

        def start():
            worker = start_worker(dsn, "guarded", PAUSES, clock.environment)
            stack.callback(end_worker, worker)
            return worker

        yield start


async def work_through(owner, workers, deferred, lose):
    """Lose one of two busy workers: the other, which lives through it all, does what it left. Give how many jobs."""
    await until(lambda: ask(owner, LIVING) == len(workers))
    busy = 0
    # One that has just begun to live may come too late for the first jobs.
    while busy < len(workers):
        owner.execute(DEFER, [SCOPES, deferred + 1, deferred + JOBS])
        deferred += JOBS
        await until(lambda: ask(owner, BUSY) == len(workers) or ask(owner, UNDONE) == 0)
        busy = ask(owner, BUSY)
    lose(workers[0])
    await until(lambda: ask(owner, UNDONE) == 0)
    return deferred


@pytest.mark.slow
@pytest.mark.promise(
    "Jobs are done once, and soon, whichever clock is set an hour forward or back", WORKER_STEPS, part="clock"
)
async def test_jobs_are_done_once_and_soon_whichever_clock_is_set(stepped, rounds, seed, figure):
    draw, deferred, (cluster, clocks) = random.Random(seed), 0, stepped
    with connect(cluster) as owner, working(cluster, clocks["worker"]) as start:
        lay_trail(owner)
        workers = [start(), start()]
        for number in rounds(WORKER_STEPS):
            who, seconds = WORKER_CLOCKS[number % len(WORKER_CLOCKS)]
            clock, how = clocks[who], draw.choice([signal.SIGSTOP, signal.SIGKILL])

            def lose(worker, clock=clock, seconds=seconds, how=how):
                clock.step(NOON + seconds)
                worker.send_signal(how)

            deferred = await work_through(owner, workers, deferred, lose)
            clock.step(NOON)
            workers[0].send_signal(signal.SIGCONT)
            if how == signal.SIGKILL:
                workers = [workers[1], start()]
        done, twice, unordered = (ask(owner, query) for query in ("select count(*) from trail", TWICE, OUT_OF_ORDER))
        resumed = ask(owner, "select count(*) from ended where attempts > 0")
    figure(f"{done} jobs done, {resumed} of them by another worker, {twice} twice, {unordered} out of order")
    assert (done, twice, unordered) == (deferred, 0, 0)
    assert resumed


@asynccontextmanager
async def serving_outside(cluster, clock):
    """Run `recollect serve` in a process with a clock of its own; give a client of it with every right."""
    async with service(cluster) as running:
        _, secret = await new_key(running)
    address = addresses_of(cluster, DATABASE).service
    chosen = PATIENT | {"database_url": address, "port": free_port(), "embedder": "fake"}
    settings = {f"RECOLLECT_{name.upper()}": str(value) for name, value in chosen.items()}
    server = Program("serve", settings=settings | clock.environment)
    try:
        await asyncio.to_thread(server.wait_until_ready)
        async with httpx.AsyncClient(base_url=server.url, headers=bearer(secret), timeout=60, trust_env=False) as http:
            yield http
    finally:
        server.kill()


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


class Probe:
    """What must hold at any time, whatever the clocks show."""

    def __init__(self, http):
        self._http = http

    async def begin(self, owner):
        """Make a key that is revoked and one that ends in half an hour; store something, and spend tokens."""
        soon = (datetime.now(UTC) + timedelta(seconds=NOON + HOUR / 2)).isoformat()
        made = [
            await self._post("/v1/keys", {"name": "probe", "rights": ["read"]} | more)
            for more in ({}, {"expires_at": soon})
        ]
        self._revoked, self._ending = (bearer(each["secret"]) for each in made)
        await self._http.delete(f"/v1/keys/{made[0]['key']['id']}")
        self._stored = await self._store()
        owner.execute(SPEND)

    async def _store(self):
        body = {"agent": "probe", "memories": [{"content": "an apple a day"}]}
        return await self._post("/v1/memories", body, {"Idempotency-Key": "probe"})

    async def _post(self, path, body, headers=None):
        answer = await self._http.post(path, json=body, headers=headers)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    async def check(self, ledger, *, ended):
        """Look at keys, at a repeated write, at what was spent of the day's tokens, and at what was written last."""
        codes = [(await self._http.get("/v1/key", headers=each)).status_code for each in (self._revoked, self._ending)]
        assert codes == [401, 401 if ended else 200]
        assert await self._store() == self._stored
        assert (await self._http.get("/v1/ledger")).json()["budget"]["used"] == TOKENS
        content, identity = list(ledger.promised.items())[-1]
        found = [await self._post("/v1/recall", {"agent": f"agent-{number}", "text": content}) for number in range(3)]
        assert identity in {hit["memory"]["id"] for each in found for hit in each["hits"]}

    async def list_page(self, limit, cursor=None):
        """List some of a scope in the order in which it was stored; give the ids, and where the list goes on."""
        given = {"agent": FOLLOWED, "limit": limit, "order": "oldest"} | ({"cursor": cursor} if cursor else {})
        answer = (await self._http.get("/v1/memories", params=given)).json()
        return [each["id"] for each in answer["memories"]], answer["next_cursor"]

    async def list_rest(self, cursor=None):
        """List all that a scope has behind a cursor."""
        listed, cursor = await self.list_page(PAGE, cursor)
        return listed + (await self.list_rest(cursor) if cursor else [])

    async def follow(self, numbers):
        """Note the number of every change of a scope."""
        async with self._http.stream("GET", "/v1/changes", params={"agent": FOLLOWED}) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    numbers.append(json.loads(line.removeprefix("data: "))["number"])


@pytest.mark.slow
@pytest.mark.promise(
    "Keys, cursors, repeated writes and changes hold, whichever clock is set an hour forward or back",
    SERVICE_STEPS,
    part="clock",
)
async def test_keys_cursors_and_changes_hold_whichever_clock_is_set(stepped, rounds, seed, figure):
    numbers, (cluster, clocks) = [], stepped
    with connect(cluster) as owner:
        async with (
            serving_outside(cluster, clocks["service"]) as http,
            calling({"default": http}, Load(3, 1, seed)) as ledger,
        ):
            probe = Probe(http)
            await probe.begin(owner)
            following = asyncio.create_task(probe.follow(numbers))
            await until(lambda: numbers)
            for number in rounds(SERVICE_STEPS):
                who, seconds = SERVICE_CLOCKS[number % len(SERVICE_CLOCKS)]
                for offset in (seconds, 0):
                    await list_across(probe, ledger, partial(clocks[who].step, NOON + offset))
                    await probe.check(ledger, ended=who == "postgres" and offset > 0)
            await stop([following])
        check_promises(owner, ledger)
    figure(f"{len(numbers)} changes in order, {ledger.tell()}")
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert set(ledger.codes()) == {200, 201}


async def list_across(probe, ledger, step):
    """Begin a list, set a clock, and end the list: it has all that was there, each once and in order."""
    await ledger.go_on(8)
    before = await probe.list_rest()
    first, cursor = await probe.list_page(min(len(before) // 2, PAGE))
    step()
    await ledger.go_on(8)
    listed = first + await probe.list_rest(cursor)
    assert listed[: len(before)] == before
    assert len(set(listed)) == len(listed)
