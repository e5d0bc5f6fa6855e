"""A restored backup is served only after every erasure newer than it was applied, also where a restore was killed."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from contextlib import asynccontextmanager

import pytest

from recollect.mind.operators import backups as operators
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import make_backup, open_recollect, restore_backup
from support.measuring.sizes import Sizes
from support.programs.folders import find_memory, open_folder
from support.programs.programs import COMMAND, plain_environment

RESTORES = Sizes("restores", ci=1, long=200)
BLIND = Sizes("restores", ci=1, long=5)
AGENTS, USERS, STEPS = ("ada", "bea"), 3, 10
PAUSE_SECONDS, MOST_SECONDS = 0.005, 2.0


class World:
    """Users with memories and conversations, each with a canary of its own; and what of it was erased."""

    def __init__(self, chance):
        self.chance = chance
        self.known, self.erased = {}, set()

    async def grow(self, recollect):
        """Remember something or say something, with a user by chance."""
        user, canary = f"user-{self.chance.randrange(USERS)}", f"zq{self.chance.getrandbits(64):016x}"
        mind = await recollect.mind(self.chance.choice(AGENTS), user)
        if self.chance.random() < 0.5:
            [receipt] = await mind.remember(f"{canary} is what they like")
            self.known[canary] = (user, lambda: mind.forget([receipt.id]))
        else:
            conversation = mind.conversation(canary[2:8])
            await conversation.append([NewMessage(Role.USER, f"{canary} is what they said")])
            self.known[canary] = (user, conversation.purge)

    async def shrink(self, recollect):
        """Erase one thing by chance: a memory, a conversation, now and then a whole user."""
        if not self.known:
            return
        canary = self.chance.choice(sorted(self.known))
        user, erase = self.known[canary]
        gone = [canary]
        if self.chance.random() < 0.2:
            caller = await recollect.operator.act_for("default")
            await recollect.operator.erasures.forget_user(caller, user)
            gone = [each for each, (owner, _) in self.known.items() if owner == user]
        else:
            await erase()
        for each in gone:
            self.erased.add(each)
            del self.known[each]

    async def live(self, recollect, share):
        for _ in range(STEPS):
            await (self.shrink if self.chance.random() < share else self.grow)(recollect)


def settings_in(folder, name):
    return Settings(embedder="none", data_dir=folder / name, request_timeout_seconds=60)


async def read_served(settings):
    """Read all that a record remembers, over all scopes, as whoever uses it does."""
    found = set()
    async with open_recollect(settings, work=False) as recollect:
        for number in range(USERS):
            for agent in AGENTS:
                page = await (await recollect.mind(agent, f"user-{number}")).list(limit=200)
                found |= {memory.content.split()[0] for memory in page.memories}
    return found


@asynccontextmanager
async def prepared(folder, chance):
    """Live, back up, live on and erase; the backup has what was known then."""
    world = World(chance)
    async with open_recollect(settings_in(folder, "data"), work=False) as recollect:
        await world.live(recollect, 0.2)
        made = await make_backup(settings_in(folder, "data"), folder / "backups")
        saved = {*world.known}
        while not saved & world.erased:
            await world.live(recollect, 0.6)
    yield made, saved, world.erased


def kill_restore(backup, folder, chance):
    """Kill the command at some moment after it has begun; tell whether it had ended before."""
    environment = plain_environment() | {"RECOLLECT_DATA_DIR": str(folder / "restored"), "RECOLLECT_EMBEDDER": "none"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([COMMAND, "admin", "backup", "restore", backup], env=environment, **quiet)
    begun = folder / "restored.restoring" / "postgres"
    while not begun.exists() and process.poll() is None:
        time.sleep(PAUSE_SECONDS)
    time.sleep(chance.random() * MOST_SECONDS)
    process.kill()
    return process.wait() == 0


async def restore_disturbed(backup, folder, chance):
    """Restore, after the command was killed once; return how many erasures were applied."""
    ended = await asyncio.to_thread(kill_restore, backup, folder, chance)
    there = (folder / "restored" / "postgres").exists()
    assert there or not ended
    if there:
        # It was killed behind the last step, or had ended: then it is all there, as the caller sees.
        await asyncio.to_thread(Cluster(folder / "restored.restoring").clear)
        return None
    return (await restore_backup(settings_in(folder, "restored"), backup)).applied


@pytest.mark.promise(
    "A restored backup is served only after every erasure newer than it was applied", RESTORES, part="backup"
)
async def test_a_restored_backup_lacks_what_was_erased_since(rounds, seed, figure):
    restores, again, killed = 0, 0, 0
    for number in rounds(RESTORES):
        chance = random.Random(f"{seed} {number}")
        with open_folder("restore", find_memory()) as folder:
            async with prepared(folder, chance) as (backup, saved, erased):
                applied = await restore_disturbed(backup, folder, chance)
                served = await read_served(settings_in(folder, "restored"))
        assert not served & erased, "what was erased is back"
        assert served == saved - erased, "and nothing else is missing"
        restores, again, killed = restores + 1, again + (applied or 0), killed + (applied is not None)
    figure(f"{restores} restores, {killed} killed before, {again} erasures applied again, 0 erased canaries served")


@pytest.mark.promise("The test of a restored backup notices erasures that are not applied", BLIND, part="backup")
async def test_without_the_log_it_would_be_back(rounds, seed, figure, monkeypatch):
    monkeypatch.setattr(operators, "choose_newer", lambda entries, position: [])
    leaked = 0
    for number in rounds(BLIND):
        with open_folder("restore", find_memory()) as folder:
            async with prepared(folder, random.Random(f"{seed} {number}")) as (backup, _, erased):
                await restore_backup(settings_in(folder, "restored"), backup)
                leaked += len(await read_served(settings_in(folder, "restored")) & erased)
    figure(f"{leaked} erased canaries served, as there must be")
    assert leaked > 0
