"""A new version takes the place of an old one under traffic: migrated, both at once, then the new one alone."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest

import recollect as package
from conftest import addresses_of, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.store.database.migrate import list_migrations
from recollect.wiring import connected
from support.callers.oracle import check
from support.callers.traffic import READS, WRITES, Told, traffic
from support.database.balancer import Balancer
from support.measuring.sizes import Sizes
from support.programs.command_line import settings_of
from support.programs.ports import free_port
from support.programs.programs import Program

UPGRADES = Sizes("upgrades under traffic", ci=1, long=30)
FEW, MANY = 15, 40
"""Writes that are acknowledged in a stage of an upgrade, at least."""
DEADLINE_SECONDS = 10
CHOSEN = {"request_timeout_seconds": str(DEADLINE_SECONDS), "postgres__max_requests": "16"}
MIGRATION = "9000_planted"
NEWEST = list_migrations()[-1].name[:4]
ANSWERED = re.compile(r'^recollect_http_requests_total\{.*route="/v1/.*status="20\d"\} ([\d.]+)', re.MULTILINE)


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """The variables with which a program runs from a copy of the sources that has one more migration."""
    folder = tmp_path_factory.mktemp("newer")
    copy = shutil.copytree(Path(package.__file__).parent, folder / "recollect")
    planted = f"-- admits programs from: {NEWEST}\nalter table memories add column planted text not null default ''"
    (copy / "store" / "database" / "migrations" / f"{MIGRATION}.sql").write_text(planted, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def count_answers(server: Program) -> float:
    """Count what a server says that it has answered well."""
    metrics = httpx.get(f"{server.url}/metrics", timeout=30, trust_env=False).text
    return sum(map(float, ANSWERED.findall(metrics)))


async def upgrade(addresses, newer, seed, told: Told) -> None:
    """Let a new version take the place of an old one while callers call."""
    async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as recollect:
        _, secret = await new_key(recollect)
    with ExitStack() as stack:

        def start(*words: str, **variables: str) -> Program:
            program = Program(*words, settings=settings_of(addresses, port=str(free_port()), **CHOSEN) | variables)
            stack.callback(program.kill)
            return program

        old, old_worker = start("serve"), start("worker")
        await asyncio.to_thread(old.wait_until_ready)
        async with (
            Balancer(old.port) as balancer,
            traffic(balancer.url, secret, told, seed, callers=range(4), kinds=WRITES | READS),
        ):
            await told.hear_more(FEW)
            migrating = start("admin", "migrate", **newer)
            assert await asyncio.to_thread(migrating.process.wait) == 0
            await told.hear_more(FEW)
            new, _ = start("serve", **newer), start("worker", **newer)
            await asyncio.to_thread(new.wait_until_ready)
            balancer.ports.append(new.port)
            before = await asyncio.to_thread(count_answers, old)
            # Others, because a connection stays with the server that took it.
            async with traffic(balancer.url, secret, told, seed + 1, callers=range(4, 8), kinds=WRITES | READS):
                await told.hear_more(MANY)
                assert await asyncio.to_thread(count_answers, old) > before
                assert await asyncio.to_thread(count_answers, new) > 0
                balancer.ports.remove(old.port)
                assert await asyncio.to_thread(old.stop) == 0
                assert await asyncio.to_thread(old_worker.stop) == 0
                await told.hear_more(FEW)


@pytest.mark.slow
@pytest.mark.promise(
    "A new version takes the place of an old one under traffic: nothing acknowledged is lost, and what fails is mended "
    "by a retry",
    UPGRADES,
    part="upgrade",
)
async def test_a_new_version_takes_the_place_of_an_old_one(cluster, clones, newer, rounds, seed, figure):
    codes, acknowledged, cut, slowest = Counter(), 0, 0, 0.0
    for number in rounds(UPGRADES):
        told, name = Told(DEADLINE_SECONDS), clones.take()
        addresses = addresses_of(cluster, name)
        await upgrade(addresses, newer, seed + 1_000 * number, told)
        faults = await asyncio.to_thread(check, addresses.owner, told)
        with psycopg.connect(addresses.owner) as owner:
            assert owner.execute("select count(planted) > 0 from memories").fetchone() == (True,)
        clones.drop(name)
        assert (faults, told.wrong) == ({}, [])
        codes, acknowledged, cut = codes + told.codes, acknowledged + told.acknowledged, cut + told.cut
        slowest = max(slowest, told.slowest)
    figure(
        f"{acknowledged} writes acknowledged, 0 lost; answers {dict(sorted(codes.items()))}, {cut} connections cut, "
        f"all of it mended by retries; slowest answer {slowest:.1f} s"
    )
