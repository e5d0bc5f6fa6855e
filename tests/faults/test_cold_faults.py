"""Object storage that is slow, dead or wrong, crashes at every step, and a scope that is used while it moves."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from conftest import new_key
from recollect.errors import ColdStorageError, ScopeRestoringError
from recollect.models.memories import NewMemory
from recollect.store.cold import tiers
from recollect.store.cold.storage import ColdStorage
from recollect.verbs.cold import moves
from support.measuring.sizes import Sizes
from support.memories.cold_scopes import chilly, export, objects_in, rows_of, send_out, tier_of

ROUNDS = Sizes("moves", ci=6, long=120)
WRITERS, READERS = 2, 3
DEADLINE_SECONDS = 2.0


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
async def recollect(addresses, embedder, folder):
    async with chilly(addresses, embedder, f"file://{folder}") as running:
        yield running


async def filled(recollect):
    mind = await recollect.mind("ada", "li")
    await mind.remember([NewMemory(f"Li likes tea number {number}.") for number in range(5)])
    return mind


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def swap(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def replace_all(path):
    path.write_bytes(b"something else")


@pytest.mark.parametrize(
    "damage", [cut, swap, replace_all, lambda path: path.unlink()], ids=["cut", "swap", "other", "gone"]
)
async def test_an_object_that_is_not_what_was_stored_is_told_and_nothing_is_lost(recollect, owner, folder, damage):
    mind = await filled(recollect)
    first = await export(recollect, agent="ada", user="li")
    await send_out(recollect)
    [path] = objects_in(folder)
    kept = path.read_bytes()
    damage(path)
    for call in (mind.list, lambda: mind.remember("Li has a cat."), lambda: export(recollect)):
        with pytest.raises(ColdStorageError, match="Nothing was changed"):
            await call()
    assert tier_of(owner) == "cold" and owner.execute("select count(*) from memories").fetchone()[0] == 0
    path.write_bytes(kept)
    assert len((await mind.list()).memories) == 5
    assert await export(recollect, agent="ada", user="li") == first


@pytest.mark.parametrize("answers", [False, True], ids=["dead", "silent"])
async def test_a_storage_that_does_not_answer_is_told_and_nothing_is_lost(addresses, embedder, owner, answers):
    """Nobody listens, or somebody who never says a word."""
    held = []

    async def hold(reader, writer):
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if not answers:
        server.close()
        await server.wait_closed()
    options = f"endpoint=http://127.0.0.1:{port} access_key_id=a secret_access_key=b region=us-east-1"
    async with chilly(
        addresses, embedder, "s3://bucket/x", cold__options=options, cold__timeout_seconds=1
    ) as recollect:
        mind = await filled(recollect)
        with pytest.raises(ColdStorageError, match="object storage failed"):
            await send_out(recollect)
        assert len((await mind.list()).memories) == 5 and tier_of(owner) == "hot"
    for writer in held:
        writer.close()
    server.close()


class Crash(BaseException):
    """The process ends here."""


STEPS = ("begin_object", "pack", "put", "check_stored", "delete_archived_rows", "forget_attempt")


@pytest.mark.promise("A crash while a scope goes to object storage or comes back loses nothing")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_crash_on_the_way_out_leaves_the_scope_hot_or_cold(recollect, owner, folder, monkeypatch, step, after):
    mind = await filled(recollect)
    first = await export(recollect, agent="ada", user="li")
    places = {"begin_object": tiers, "delete_archived_rows": tiers, "put": ColdStorage}
    crash_at(monkeypatch, places.get(step, moves), step, after=after)
    if step != "forget_attempt":
        monkeypatch.setattr(moves, "forget_attempt", nothing)
    with pytest.raises(Crash):
        await send_out(recollect)
    monkeypatch.undo()
    out = step == "forget_attempt" or (step == "delete_archived_rows" and after)
    assert tier_of(owner) == ("cold" if out else "leaving")
    if out:
        assert len(objects_in(folder)) == 1
    assert await export(recollect, agent="ada", user="li") == first
    assert len((await mind.list()).memories) == 5
    assert await export(recollect, agent="ada", user="li") == first
    owner.execute("update cold_objects set since = since - interval '3 hours'")
    await recollect.operator.cold.remove_unused()
    assert objects_in(folder) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["release", "restore_rows", "set_tier", "remove"])
async def test_a_crash_on_the_way_back_leaves_the_scope_cold_or_hot(recollect, owner, folder, monkeypatch, step, after):
    mind = await filled(recollect)
    first = await export(recollect, agent="ada", user="li")
    await send_out(recollect)
    scope_id = owner.execute("select id from scopes").fetchone()[0]
    crash_at(monkeypatch, moves if step == "restore_rows" else tiers, step, after=after)
    with pytest.raises(Crash):
        await moves.restore_scope(recollect.parts, scope_id)
    monkeypatch.undo()
    assert tier_of(owner) == ("hot" if step == "remove" else "cold")
    assert await export(recollect, agent="ada", user="li") == first
    assert len((await mind.list()).memories) == 5
    await recollect.operator.cold.remove_unused()
    assert objects_in(folder) == [] and not rows_of(owner, scope_id).get("cold_objects")


def crash_at(monkeypatch, place, name, *, after):
    step = getattr(place, name)

    async def crash(*given, **named):
        if after:
            await step(*given, **named)
        raise Crash

    monkeypatch.setattr(place, name, crash)


async def nothing(*_):
    """A process that has ended tidies nothing up."""


class Users:
    """Who writes to a scope and reads from it: each read must show all that was acknowledged before it began."""

    def __init__(self, recollect, mind, secret):
        self.recollect, self.secret = recollect, secret
        self.mind, self.acknowledged, self.told_to_wait, self.reads = mind, set(), 0, 0
        self.at_work, self.over = asyncio.Event(), False

    async def write(self, number):
        count = 0
        while not self.over:
            await self.at_work.wait()
            with suppress(ScopeRestoringError):
                count += 1
                made = await self.mind.remember(NewMemory(f"{number} says {count}"))
                self.acknowledged |= {each.id for each in made}
            await asyncio.sleep(random.uniform(0, 0.05))

    async def read(self, number):
        while not self.over:
            await self.at_work.wait()
            known = {*self.acknowledged}
            try:
                # Over HTTP the place of the scope is known from the beginning of a call on.
                served = await self.recollect.authorize(self.secret, "http", "ada", "li") if number % 2 else self.mind
                shown = await self.list_all(served)
            except ScopeRestoringError:
                self.told_to_wait += 1
                continue
            assert known <= shown, f"{len(known - shown)} of {len(known)} are missing"
            self.reads += 1
            await asyncio.sleep(random.uniform(0, 0.05))

    async def list_all(self, mind):
        found, cursor = set(), ""
        while True:
            page = await mind.list(limit=200, cursor=cursor)
            found |= {each.id for each in page.memories}
            if not page.next_cursor:
                return found
            cursor = page.next_cursor


@pytest.mark.promise("A scope that is used while it moves loses nothing, and no caller takes it for empty", ROUNDS)
async def test_a_scope_is_used_while_it_goes_out_and_comes_back(addresses, embedder, owner, folder, figure):
    async with chilly(addresses, embedder, f"file://{folder}", request_timeout_seconds=DEADLINE_SECONDS) as recollect:
        _, secret = await new_key(recollect)
        users = Users(recollect, await recollect.mind("ada", "li"), secret)
        await users.mind.remember("The first.")
        tasks = [asyncio.create_task(users.write(number)) for number in range(WRITERS)]
        tasks += [asyncio.create_task(users.read(number)) for number in range(READERS)]
        moved = kept = 0
        caller = await recollect.operator.act_for("default")
        view = replace(recollect.operator.cold, deadline_seconds=DEADLINE_SECONDS)
        for number in range(ROUNDS.now):
            users.at_work.set()
            await asyncio.sleep(0.3)
            users.at_work.clear()
            owner.execute("delete from procrastinate_jobs where status = 'todo'")
            leaving = asyncio.create_task(view.out(caller, "ada", "li"))
            # They come back while it packs, is put, is read back or leaves, or just after.
            await asyncio.sleep(DEADLINE_SECONDS + 0.5 + 0.02 * (number % 6))
            users.at_work.set()
            outcome = await leaving
            moved, kept = moved + outcome.moved, kept + outcome.skipped
        assert moved + kept == ROUNDS.now
        while not moved:
            # On a slow machine somebody always came in time: once it leaves undisturbed.
            users.at_work.clear()
            owner.execute("delete from procrastinate_jobs where status = 'todo'")
            moved += (await view.out(caller, "ada", "li")).moved
        users.over = True
        users.at_work.set()
        await asyncio.gather(*tasks)
        assert await users.list_all(users.mind) >= users.acknowledged
        figure(f"{moved} times out, {kept} times kept, {len(users.acknowledged)} writes, {users.reads} reads")
        assert users.reads
