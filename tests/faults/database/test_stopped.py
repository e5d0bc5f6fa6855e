"""PostgreSQL stands still and goes on: callers are told in time, the process stays alive, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import contextmanager, suppress

import pytest

from conftest import http_client
from support.callers.acknowledged import Load, check_promises, traffic
from support.database.durable import connect, durable, service
from support.measuring.sizes import Sizes
from support.programs.folders import find_memory, open_folder

STOPS = Sizes("stops", ci=2, long=100)
LOAD = Load(writers=6, readers=2)


@contextmanager
def all_stopped(cluster):
    """Stop a server for as long as the block lasts, with what it starts while it is being stopped."""
    known = set()
    try:
        while new := {*cluster._server.processes()} - known:
            send(new, signal.SIGSTOP)
            known |= new
        yield
    finally:
        send(known, signal.SIGCONT)


@contextmanager
def stopped(pids):
    """Stop processes for as long as the block lasts."""
    send(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        send(pids, signal.SIGCONT)


def send(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


async def stand_still(cluster, http, ledger):
    """Stop all of the server: what is asked meanwhile is answered meanwhile."""
    with all_stopped(cluster):
        still = ledger.asked
        await ledger.hear(LOAD.writers, 503, after=still)
        assert (await http.get("/health/live")).status_code == 200
        assert (await http.get("/health/ready")).status_code == 503
        meanwhile = ledger.asked
        await ledger.hear_all()
        assert {ledger.answers[number] for number in range(still + 1, meanwhile + 1)} == {503}


async def stop_some(cluster, ledger, draw):
    """Stop some processes of the server: whoever needs them is told so, and the others are served."""
    pids = cluster._server.processes()
    with stopped(draw.sample(pids, draw.randint(1, len(pids) // 2))):
        await ledger.hear_all()


@pytest.mark.slow
@pytest.mark.promise("A PostgreSQL that stands still is answered 503 in time, then goes on", STOPS, part="stopped")
async def test_a_server_that_stands_still_is_waited_for_and_loses_nothing(rounds, seed, figure):
    draw = random.Random(seed)
    with open_folder("stopped", find_memory()) as folder:
        async with durable(folder / "server") as cluster, service(cluster) as running:
            async with http_client(running, None) as http, traffic(running, Load(seed=seed)) as ledger:
                for number in rounds(STOPS):
                    await ledger.go_on(draw.randint(5, 40))
                    await (stop_some(cluster, ledger, draw) if number % 2 else stand_still(cluster, http, ledger))
                    await ledger.go_on(2 * LOAD.writers)
            with connect(cluster) as owner:
                await asyncio.to_thread(check_promises, owner, ledger)
    figure(ledger.tell())
