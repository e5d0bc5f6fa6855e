"""What was believed at any moment reads the same ever after, whatever is learned, corrected or ends later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from support.measuring.sizes import Sizes
from support.memories.past import amend, moment, scope_of, state, year

EXAMPLES = Sizes("examples", ci=4, long=400)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["state", "amend", "end", "remember", "delete", "restore", "touch"]),
        st.integers(0, 5),
        st.integers(2018, 2030),
        st.integers(1, 12),
    ),
    min_size=3,
    max_size=12,
)

# Every verb once, and something after what was taken back.
VARIED = [
    ("state", 0, 2019, 3),
    ("remember", 1, 2020, 1),
    ("amend", 0, 2021, 2),
    ("touch", 0, 2020, 1),
    ("end", 0, 2022, 1),
    ("delete", 0, 2020, 1),
    ("restore", 0, 2020, 1),
    ("state", 2, 2025, 1),
]


@dataclass
class World:
    """What was done to a scope, and how it looked after each step."""

    mind: object
    owner: object
    believed: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    hidden: bool = False

    async def take(self, step):
        """Do one thing, and look at everything."""
        verb, which, begins, years = step
        await getattr(self, verb)(which, year(begins), year(begins + years))
        if not self.hidden:
            now = moment(self.owner)
            self.seen.append((now, await self.read(), await self.read(as_of=now), await self.look(as_of=now)))

    async def state(self, which, begins, ends):
        new = f"Ann said thing {len(self.seen)} of {which}."
        self.believed.append(await state(self.mind, self.owner, new, begins, **await self.evidence(which)))

    async def amend(self, which, begins, ends):
        await self.correct(which, begins, None)

    async def end(self, which, begins, ends):
        await self.correct(which, begins, ends)

    async def correct(self, which, begins, ends):
        if self.believed and not self.hidden:
            place = which % len(self.believed)
            new = f"Ann corrected thing {len(self.seen)} of {which}."
            self.believed[place] = await amend(self.mind, self.owner, self.believed[place], new, begins, ends)

    async def remember(self, which, begins, ends):
        await self.mind.remember(NewMemory(f"Ann did thing {len(self.seen)}.", occurred_at=begins))

    async def delete(self, which, begins, ends):
        if await self.has_conversation():
            await self.mind.conversation("talk").delete()
            self.hidden = True

    async def restore(self, which, begins, ends):
        if self.hidden:
            await self.mind.conversation("talk").update(state="active")
            self.hidden = False

    async def touch(self, which, begins, ends):
        await self.mind.recall("Ann")

    async def has_conversation(self):
        return bool((await self.mind.conversations()).conversations)

    async def evidence(self, which):
        """Every other fact comes from a conversation that may be deleted and restored."""
        if which % 2 or self.hidden:
            return {}
        [said] = await self.mind.conversation("talk").append(NewMessage(Role.USER, f"Thing {which}."))
        return {"evidence": (said.id,)}

    async def read(self, **times):
        page = await self.mind.list(limit=200, filter=Filter(**times))
        return [(each.id, each.content, each.valid_at, each.invalid_at) for each in page.memories]

    async def look(self, **times):
        cue = Cue("Ann thing", kinds=(Kind.FACT, Kind.EVENT), limit=200, touch=False, **times)
        return {hit.memory.id for hit in (await self.mind.recall(cue)).hits}


@pytest.mark.promise("What is read as of a moment is what was read then, whatever was done since", EXAMPLES)
async def test_the_past_never_changes(recollect, owner):
    """One database for all examples, a scope for each: the event loop is the test's own."""
    loop = asyncio.get_running_loop()
    numbers = iter(range(1_000_000))

    async def live(steps):
        number = next(numbers)
        mind = await recollect.mind(f"agent{number}")
        stranger = await recollect.mind(f"agent{number}", "stranger")
        await stranger.remember("Ann is somebody else.")
        world = World(mind, owner)
        await mind.remember("Ann begins.")
        for step in steps:
            await world.take(step)
        await world.restore(0, None, None)
        for then, usual, read, found in world.seen:
            assert usual == read
            assert await world.read(as_of=then) == read
            assert await world.look(as_of=then) == found
            assert found == {identity for identity, content, *_ in read if content.startswith("Ann")}
        strange = await stranger.list(filter=Filter(as_of=moment(owner)))
        assert [memory.content for memory in strange.memories] == ["Ann is somebody else."]
        assert scope_of(mind, owner) != scope_of(stranger, owner)

    @settings(max_examples=EXAMPLES.now, database=None)
    @given(STEPS)
    @example(VARIED)
    def check(steps):
        asyncio.run_coroutine_threadsafe(live(steps), loop).result()

    await asyncio.to_thread(check)
