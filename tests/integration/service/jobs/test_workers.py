"""Several processes serve one address: they start and stop together, count together, and obey one record of keys."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from conftest import new_key
from support.programs import command_line
from support.programs.ports import free_port
from support.programs.programs import COMMAND, plain_environment
from support.programs.waiting import WAIT_SECONDS, until

WORKERS = 2
FRESH_CONNECTIONS = 24
"""Enough that the system spreads them over all processes."""


def children_of(process):
    """List the processes that serve; Python starts one more, which serves nobody."""
    with contextlib.suppress(OSError):
        started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [int(pid) for pid in started if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    return []


def is_alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def start(environment):
    command = [COMMAND, "serve", "--workers", str(WORKERS)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.asynccontextmanager
async def served(addresses, **settings):
    """Run `recollect serve` by several processes; give the first process and the address."""
    port = free_port()
    environment = plain_environment() | command_line.settings_of(addresses, port=str(port), **settings)
    process = start(environment)
    url = f"http://127.0.0.1:{port}"
    try:
        await until(lambda: len(children_of(process.pid)) == WORKERS)
        await until_all_serve(url)
        yield process, url
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, WAIT_SECONDS)


async def ask(url, path="/health/live", **options):
    """Ask on a connection of its own."""
    async with httpx.AsyncClient(timeout=WAIT_SECONDS, trust_env=False) as client:
        return await client.get(url + path, **options)


async def answered_by(url):
    """Say how many processes answer: each counts its own pool."""
    with contextlib.suppress(httpx.TransportError):
        found = re.search(r'recollect_pool{counter="pool_max",shard=""} ([\d.]+)', (await ask(url, "/metrics")).text)
        return float(found[1]) / 10 if found else 0
    return 0


async def until_all_serve(url):
    async with asyncio.timeout(WAIT_SECONDS):
        while await answered_by(url) < WORKERS:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)


async def test_they_count_together_and_a_taken_address_is_refused(recollect, addresses):
    _, secret = await new_key(recollect)
    async with served(addresses) as (_, url):
        headers = {"Authorization": f"Bearer {secret}"}
        for _ in range(FRESH_CONNECTIONS):
            answer = await ask(url, "/v1/jobs", headers=headers)
            assert answer.status_code == 200
        counted = re.search(r'requests_total{method="GET",route="/v1/jobs",status="200"} ([\d.]+)',
                            (await ask(url, "/metrics")).text)  # fmt: skip
        assert float(counted[1]) == FRESH_CONNECTIONS
        port = url.rpartition(":")[2]
        for words in (("serve",), ("serve", "--workers", "2")):
            ended = await asyncio.to_thread(
                command_line.call, *words, settings=command_line.settings_of(addresses, port=port)
            )
            assert ended.code == 1
            assert "is already in use" in ended.said


@pytest.mark.promise("A revoked key is refused by every process from the answer of the revocation on")
async def test_a_revoked_key_is_refused_by_all_of_them_at_once(recollect, addresses):
    key, secret = await new_key(recollect)
    _, admin = await new_key(recollect)
    headers = {"Authorization": f"Bearer {secret}"}
    async with served(addresses) as (_, url):
        for _ in range(FRESH_CONNECTIONS):
            assert (await ask(url, "/v1/jobs", headers=headers)).status_code == 200
            recall = {"agent": "ada", "text": "plants"}
            async with httpx.AsyncClient(timeout=WAIT_SECONDS, headers=headers, trust_env=False) as client:
                assert (await client.post(f"{url}/v1/recall", json=recall)).status_code == 200
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {admin}"}, trust_env=False) as client:
            assert (await client.delete(f"{url}/v1/keys/{key.id}", timeout=WAIT_SECONDS)).status_code == 200
        for _ in range(FRESH_CONNECTIONS):
            assert (await ask(url, "/v1/jobs", headers=headers)).status_code == 401
            async with httpx.AsyncClient(timeout=WAIT_SECONDS, headers=headers, trust_env=False) as client:
                assert (await client.post(f"{url}/v1/recall", json=recall)).status_code == 401


async def ask_again(url):
    """Ask until there is an answer: a connection that the dead process had taken is cut."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            with contextlib.suppress(httpx.TransportError):
                return await ask(url)


async def test_one_that_dies_is_started_again_and_all_stop_together(addresses):
    async with served(addresses) as (process, url):
        first = children_of(process.pid)
        os.kill(first[0], signal.SIGKILL)
        assert (await ask_again(url)).status_code == 200
        await until(lambda: len(set(children_of(process.pid)) - {first[0]}) == WORKERS)
        await until_all_serve(url)
        second = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 0
        assert not any(map(is_alive, second))


async def test_they_end_with_whoever_started_them(addresses):
    async with served(addresses) as (process, _):
        children = children_of(process.pid)
        process.kill()
        await until(lambda: not any(map(is_alive, children)))


async def test_what_keeps_them_from_starting_is_said_once(addresses):
    settings = command_line.settings_of(addresses, port=str(free_port()), postgres__start_timeout_seconds="0")
    settings["RECOLLECT_DATABASE_URL"] = "postgresql://recollect_service@127.0.0.1:1/nowhere"
    command = [COMMAND, "serve", "--workers", str(WORKERS)]
    ended = await asyncio.to_thread(
        subprocess.run, command, env=plain_environment() | settings, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.count("nothing listens there") == 1
