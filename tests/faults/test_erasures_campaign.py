"""Erasures by the thousand, of memories, conversations and users: no canary is left anywhere, also not in a backup."""

from __future__ import annotations

import io
import random
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg
import pytest

from conftest import PATIENT, addresses_of, execute
from integration.conversations.test_purge import Haystack
from recollect.jobs.mirror import build, feed_tenant
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role
from recollect.store.backups.dumps import run_program
from recollect.store.cold.sealing import SealingKey, open_sealed
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare, replay_erasures
from support.engines.memory_mirror import MemoryMirror
from support.measuring.sizes import Sizes
from support.memories.cold_scopes import objects_in, send_out
from support.programs.folders import find_memory, open_folder
from support.service.made_settings import make_settings

ERASURES = Sizes("erasures", ci=12, long=2_000)
LEAKING = Sizes("erasures", ci=6, long=60)
TOGETHER = min(ERASURES.now, 100)
"""So many are erased at once, and then looked for in every place."""
HOT, COLD = "ada", "bea"
TABLES = "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"


def silent(*_):
    """Report nothing."""


@dataclass
class Subject:
    """One that is to be erased: its canary, that of a bystander in the same scope if there is any, and how."""

    canary: str
    kept: str
    erase: object = None


@dataclass
class Scene:
    """A record with a mirror, object storage and a log of erasures, and those who are to be erased from it."""

    recollect: object
    chance: random.Random
    mirror: MemoryMirror = field(default_factory=MemoryMirror)
    subjects: list[Subject] = field(default_factory=list)

    def canary(self):
        return f"zq{self.chance.getrandbits(80):020x}"

    async def populate(self, count):
        """Let users live, the kinds of erasures by turns, in scopes that stay and in scopes that go cold."""
        for number in range(count):
            agent = COLD if number % 3 == 2 else HOT
            kinds = (self.of_memory, self.of_conversation, self.of_user, self.of_scope)
            self.subjects.append(await kinds[number % len(kinds)](agent, f"user-{number}"))

    async def of_memory(self, agent, user):
        subject, mind = Subject(self.canary(), self.canary()), await self.recollect.mind(agent, user)
        await mind.remember(f"{subject.kept} stays")
        new = NewMemory(
            f"{subject.canary} goes", keywords=(subject.canary,), metadata={"note": subject.canary}, importance=7
        )
        [receipt] = await mind.remember(new)
        thought = NewMemory(f"of {subject.canary}", Kind.THOUGHT, evidence=(receipt.id,))
        [derived] = await mind.remember(thought)
        await mind.remember(NewMemory(f"above {subject.canary}", Kind.THOUGHT, evidence=(derived.id,)))
        await mind.recall(subject.canary)
        subject.erase = lambda: mind.forget([receipt.id])
        return subject

    async def of_conversation(self, agent, user):
        subject, mind = Subject(self.canary(), self.canary()), await self.recollect.mind(agent, user)
        await mind.remember(f"{subject.kept} stays")
        conversation = mind.conversation("chat")
        said = await conversation.append([NewMessage(Role.USER, f"{subject.canary} {part}") for part in range(3)])
        await conversation.update(name=subject.canary, metadata={"note": subject.canary})
        await mind.remember(NewMemory(f"of {subject.canary}", Kind.THOUGHT, evidence=(said[0].id,)))
        subject.erase = conversation.purge
        return subject

    async def of_user(self, agent, user):
        subject = Subject(self.canary(), "")
        for each in (agent, HOT):
            await self.fill(await self.recollect.mind(each, user), subject)

        async def erase():
            caller = await self.recollect.operator.act_for("default")
            await self.recollect.operator.erasures.forget_user(caller, user)

        subject.erase = erase
        return subject

    async def of_scope(self, agent, user):
        subject, mind = Subject(self.canary(), self.canary()), await self.recollect.mind(agent, user)
        await (await self.recollect.mind(agent, f"beside-{user}")).remember(f"{subject.kept} stays")
        await self.fill(mind, subject)
        subject.erase = mind.forget_everything
        return subject

    async def fill(self, mind, subject):
        """Let a scope hold a canary in each of its parts."""
        [receipt] = await mind.remember(f"{subject.canary} goes")
        await mind.conversation("chat").append([NewMessage(Role.USER, f"{subject.canary} said")])
        await mind.knowledge.add([NewFact(subject.canary, "likes", f"{subject.canary} tea")])
        await mind.remember(NewMemory(f"of {subject.canary}", Kind.THOUGHT, evidence=(receipt.id,)))

    async def settle(self):
        """Let the worker do all that waits, and the mirror follow."""
        await self.recollect.work(until_empty=True)
        await self.recollect.operator.cold.remove_unused()
        tenant_id = next(iter(self.recollect.opened)).tenant_id
        await feed_tenant(self.recollect.parts.database, {self.mirror.name: self.mirror}, tenant_id)


def find(text, canaries):
    """Name the canaries that stand in a text, as they are or as bytes that are written out."""
    return {each for each in canaries if each in text or each.encode().hex() in text}


def read_rows(dsn):
    """Read every row of every table as one text: the log of changes and receipts, too."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        names = [name for (name,) in connection.execute(TABLES).fetchall()]
        return "\n".join(
            row for name in names for (row,) in connection.execute(f"select each::text from {name} each").fetchall()
        )


def read_objects(dsn, folder):
    """Read what all cold objects hold; one that the record does not know is of nobody, and must not be there."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        known = dict(connection.execute("select name, scope_id from cold_objects").fetchall())
    texts = []
    for path in objects_in(folder):
        with path.open("rb") as file:
            unpacked = io.BytesIO()
            open_sealed(file, known[path.relative_to(folder).as_posix()], lambda version: SealingKey(), unpacked)
            texts.append(unpacked.getvalue().decode(errors="replace"))
    return "\n".join(texts)


def look_everywhere(scene, haystack, folder, canaries):
    """Name the canaries that are found, by where."""
    needles = {each: each.encode() for each in canaries}
    rows = [f"{row.values}" for held in scene.mirror.rows.values() for row in held.values()]
    return {
        "rows": find(read_rows(haystack.dsn), canaries),
        "dump": haystack.dump(needles),
        "files": set(haystack.files(needles)),
        "mirror": find("\n".join(rows), canaries),
        "objects": find(read_objects(haystack.dsn, folder / "cold"), canaries),
        "log": find("".join(path.read_text() for path in (folder / "erasures").glob("*")), canaries),
    }


def settings_for(addresses, folder, cold="cold"):
    given = {"database_url": addresses.service, "owner_database_url": addresses.owner, "embedder": "fake"}
    kept = {"cold__url": f"file://{folder / cold}", "operations__erasure_log": str(folder / "erasures")}
    return make_settings(**given, **kept, **{**PATIENT, "pool_size": 4})


async def look_through_backup(cluster, backup, folder, canaries, since):
    """Restore a dump beside; return what it has of canaries, and how many erasures were applied again."""
    execute(cluster, "create database restored")
    addresses = addresses_of(cluster, "restored")
    try:
        settings = settings_for(addresses, folder, "cold-kept")
        run_program("pg_restore", addresses.owner, "--exit-on-error", str(backup))
        done = await replay_erasures(settings, since)
        async with connected(settings, addresses, FakeEmbedder()) as restored:
            await restored.operator.cold.remove_unused()
        text = read_rows(addresses.owner) + read_objects(addresses.owner, folder / "cold-kept")
    finally:
        execute(cluster, "drop database restored with (force)")
    return find(text, canaries), done.applied


async def erase_together(cluster, folder, chance, count):
    """Let users live, back up, erase them, and look for what is left; return that, and what must be left."""
    execute(cluster, "create database erased template prepared")
    addresses = addresses_of(cluster, "erased")
    settings = settings_for(addresses, folder)
    try:
        async with connected(settings, addresses, FakeEmbedder()) as recollect:
            scene = Scene(recollect, chance)
            await scene.populate(count)
            await build(recollect.parts.database, scene.mirror)
            await send_out(recollect, COLD, None)
            await scene.settle()
            with psycopg.connect(addresses.owner, autocommit=True) as connection:
                connection.execute("analyze")
            haystack, gone = Haystack(cluster, "erased"), {each.canary for each in scene.subjects}
            before = look_everywhere(scene, haystack, folder, gone)
            since, backup = datetime.now(UTC), folder / "backup.dump"
            run_program("pg_dump", cluster.dsn("erased"), "--format=custom", f"--file={backup}")
            # A bucket that keeps versions, as the page on cold scopes asks for.
            shutil.copytree(folder / "cold", folder / "cold-kept")
            for subject in scene.subjects:
                await subject.erase()
            await scene.settle()
            assert (await recollect.operator.rewrite_tables(silent)).left == ()
            after = look_everywhere(scene, haystack, folder, gone)
            kept = {each.kept for each in scene.subjects} - {""}
            left = find(read_rows(haystack.dsn) + read_objects(haystack.dsn, folder / "cold"), kept)
        restored, again = await look_through_backup(cluster, backup, folder, gone | kept, since)
        return before, {**after, "backup": restored & gone}, (kept - left) | (kept - restored), again
    finally:
        execute(cluster, "drop database erased with (force)")


@pytest.fixture
def servers():
    """Start a server of its own, whose files can be looked through, with a database to clone."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("erasures", find_memory()))
        yield stack.enter_context(Cluster(folder / "postgres"))


@pytest.mark.promise(
    "After an erasure no canary is left in rows, dump, files, mirrors, cold objects, or a restored backup",
    ERASURES,
    part="erasures",
)
async def test_no_canary_is_left_anywhere(servers, rounds, seed, figure, tmp_path):
    execute(servers, "create database prepared")
    await prepare(addresses_of(servers, "prepared"), FakeEmbedder())
    erased, applied = 0, 0
    for number in rounds(ERASURES, TOGETHER):
        folder, chance = tmp_path / str(number), random.Random(f"{seed} {number}")
        folder.mkdir()
        before, after, lost, again = await erase_together(servers, folder, chance, TOGETHER)
        gone = set().union(*before.values())
        assert len(gone) == TOGETHER and not before["log"], "what is not there cannot be seen to go"
        assert all(found for place, found in before.items() if place != "log"), "each place had some"
        assert {place: found for place, found in after.items() if found} == {}
        assert not lost, "nothing else went"
        shutil.rmtree(folder)
        erased, applied = erased + TOGETHER, applied + again
    figure(f"{erased} erasures, 0 canaries left in 7 places, {applied} applied again in restored backups")


@pytest.mark.promise("The test of erasures notices what is left if edges are deleted first", LEAKING, part="erasures")
async def test_edges_deleted_first_would_leak(recollect, owner, rounds, seed, figure):
    leaked = 0
    for number in rounds(LEAKING, LEAKING.ci):
        scene = Scene(recollect, random.Random(f"{seed} {number}"))
        for place in range(LEAKING.ci):
            make = scene.of_memory if place % 2 else scene.of_conversation
            scene.subjects.append(await make(HOT, f"user-{number}-{place}"))
        owner.execute("delete from evidence")
        for subject in scene.subjects:
            await subject.erase()
        await recollect.work(until_empty=True)
        leaked += len(find(read_rows(recollect.addresses.owner), {each.canary for each in scene.subjects}))
    figure(f"{leaked} canaries left, as there must be")
    assert leaked > 0
