"""Random histories of several shards: a catalog from a backup, wrong addresses, exchanged servers and moves."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from unittest.mock import patch

import psycopg

from conftest import addresses_of, http_client, new_key
from recollect.errors import ConflictError, NotFoundError, RecollectError, UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.operators.placements import TenantPlacements
from recollect.mind.operators.shards import Shards
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.shards import ServerAddresses
from recollect.store.shards import catalog, placing, repair
from recollect.store.shards.entry import add_shard
from recollect.store.shards.tenants import Tenants
from recollect.wiring import connected
from support.service.made_settings import make_settings
from support.shards.shard_callers import Oracle, note_error
from support.shards.shards import query

USERS, PACE, PAUSE, DEADLINE = 4, 0.03, 0.005, 10
"""A writer writes once per pace, so that a quick refusal counts no more often than a write."""
PLACED = (
    "select tenants.name, shards.name, first_bucket, last_bucket, generation from placements "
    "join tenants on tenants.id = tenant_id join shards on shards.id = shard_id"
)
CLAIMED = (
    "select tenants.name, first_bucket, last_bucket, generation from placements "
    "join tenants on tenants.id = tenant_id where state = %s"
)
RENAME = (
    "alter database {0} allow_connections false",
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{0}'",
)
KILLS = {"await_rows": placing, "close_tenant": placing, "record": placing, "resume": placing, "cut_claim": repair}
"""The steps after which a command may be killed."""
STEPS = ("suspend", "export_rows", "export_keys", "place", "import_keys", "import_rows", "resume")
"""A move of a tenant, in the order of docs/howto/move-tenant.md."""


@dataclass
class Process:
    """A service, perhaps with a worker, or an operator's command."""

    recollect: object
    stack: AsyncExitStack


@dataclass
class Move:
    """How far the move of a tenant has come."""

    tenant: str
    target: str
    file: object
    done: int = 0
    back: bool = False
    """Whether the tenant stays where it is."""
    rows: dict = field(default_factory=dict)
    """How many rows of each section were exported."""
    keys: list = field(default_factory=list)
    placing: bool = False
    """Whether it was tried to place the tenant."""


@dataclass
class History:
    """A catalog with its servers, two processes, and what is known of them."""

    layout: object
    cluster: object
    clones: object
    folder: object
    seed: int
    oracle: Oracle = field(default_factory=Oracle)
    processes: list = field(default_factory=lambda: [None, None])
    """None stands for a process that does not run."""
    keys: dict = field(default_factory=dict)
    dumps: list = field(default_factory=list)
    sound: frozenset = frozenset()
    """The tenants whose server is reachable and correctly configured, and whose writes are not suspended."""
    epochs: Counter = field(default_factory=Counter)
    """How often a tenant was not sound."""
    expected: Counter = field(default_factory=Counter)
    """How many writes to sound tenants were acknowledged, and how many were not."""
    acts: Counter = field(default_factory=Counter)
    swapped: tuple = ()
    moves: dict = field(default_factory=dict)
    """The moves that have begun, by tenant."""
    twice: set = field(default_factory=set)
    """Buckets for which two servers accepted writes at once."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self):
        self.chance = random.Random(f"history {self.seed}")
        self.tenants = TenantPlacements(Tenants(catalog=self.layout.owner, several=True))
        self.shards = Shards(self.layout.owner)

    @property
    def addresses(self):
        return {name: ServerAddresses(*each) for name, each in self.layout.shards.items()}

    async def open_process(self, place, *, working=False):
        """Run a process; it finds the map that another one saved before."""
        stack, file = AsyncExitStack(), self.folder / f"map-{place}.json"
        chosen = {"shards__map_file": file, "postgres__max_requests": 64, "request_timeout_seconds": DEADLINE}
        # The memories that one of them writes get their vectors from jobs.
        chosen |= {"embedding__wait_timeout_seconds": 0} if place == 1 else {}
        settings = make_settings(embedder="fake", **chosen)
        recollect = await stack.enter_async_context(connected(settings, self.layout.addresses, FakeEmbedder()))
        if working:
            stack.push_async_callback(end, asyncio.create_task(run_worker_forever(recollect)))
        return Process(recollect, stack)

    async def revive(self):
        """Start the processes that do not run, as far as they start: one without any right address does not."""
        for place, process in enumerate(self.processes):
            if process is None:
                try:
                    self.processes[place] = await self.open_process(place, working=place == 0)
                except RecollectError as problem:
                    self.acts[f"start: {type(problem).__name__}"] += 1

    async def end_process(self, place):
        process, self.processes[place] = self.processes[place], None
        if process is not None:
            await process.stack.aclose()

    async def look(self):
        """Find out which tenants are sound: catalog and server agree about them, and the addresses are right."""
        known = await catalog.list_addresses(self.layout.owner)
        numbers = dict(query(self.layout.owner, "select name, id from shards"))
        right = {name for name, each in self.addresses.items() if name in numbers and known[numbers[name]] == each}
        right -= {*self.swapped}
        placed = query(self.layout.owner, PLACED)
        claims = [
            (tenant, shard, *place)
            for shard, each in self.addresses.items()
            for tenant, *place in query(each.owner, CLAIMED, "open")
        ]
        self.twice.update(find_twice((tenant, first, last) for tenant, _, first, last, _ in claims))
        lost = {row[0] for row in placed if row[1] not in right or row not in claims}
        self.turn({name for name in self.keys if name in {row[0] for row in placed}} - lost)

    def turn(self, sound):
        self.epochs.update(set(self.keys) - sound)
        self.sound = frozenset(sound)

    async def write(self, place):
        """Write, and note whether it was acknowledged, until told to stop."""
        chance, number = random.Random(f"writer {self.seed} {place}"), 0
        while not self.stop.is_set():
            began, process, number = time.monotonic(), self.processes[place], number + 1
            tenant, user = chance.choice([*self.keys]), f"user-{chance.randrange(USERS)}"
            if process is not None:
                await self.write_one(place, process, (tenant, user, f"{tenant} {user} heard word {place}-{number}."))
            await asyncio.sleep(max(PAUSE, began + PACE - time.monotonic()))

    async def write_one(self, place, process, said):
        tenant, user, content = said
        before = self.epochs[tenant] if tenant in self.sound else -1
        async with http_client(process.recollect, self.keys[tenant]) as client:
            answer = await client.post("/v1/memories", json={"agent": "ada", "user": user, "content": content})
        if done := answer.status_code == 201:
            self.oracle.acknowledged[tenant] += 1
            self.oracle.written[tenant, user, answer.json()["memories"][0]["id"]] = content
        else:
            note_error(self.oracle, answer)
        # A process that was ended meanwhile need not have answered.
        if process is self.processes[place] and tenant in self.sound and before == self.epochs[tenant]:
            self.expected[done] += 1
            if not done:
                self.oracle.reasons[tenant] = answer.text


class Moves(History):
    """The moves of tenants with their rows, which an operator goes on with after a failure."""

    async def suspend(self, name=""):
        """Suspend a tenant that is not being moved, and resume it."""
        name = name or self.chance.choice([*self.keys])
        if name not in self.moves:
            self.moves[name] = Move(name, "", None, back=True)
            self.turn(self.sound - {name})
            await self.tenants.suspend(name)
            await asyncio.sleep(PACE)
            await self.tenants.resume(name)
            del self.moves[name]

    async def move(self, name=""):
        """Move a tenant with its rows, or go on with a move that broke off."""
        begun = [*self.moves] if self.chance.random() < 0.7 else []
        name = name or self.chance.choice(begun or [*self.keys])
        target = self.chance.choice([*self.addresses])
        move = self.moves.setdefault(name, Move(name, target, self.folder / f"{name}.zip"))
        self.turn(self.sound - {name})
        if move.done < STEPS.index("place") and self.chance.random() < 0.2:
            move.back = True
        if not move.back:
            await self.go_on(move)
        else:
            await self.tenants.resume(name)
        del self.moves[name]

    async def go_on(self, move):
        """Run the commands of a move from the one that failed."""
        operator = await self.open_process("operator")
        async with operator.stack:
            for step in STEPS[move.done :]:
                await getattr(self, step + "_move")(move, operator.recollect.operator)
                move.done += 1

    async def suspend_move(self, move, _):
        await self.tenants.suspend(move.tenant)

    async def export_rows_move(self, move, operator):
        caller = await operator.act_for(move.tenant)
        try:
            with move.file.open("wb") as file:
                move.rows = (await operator.exports.write_export_file(caller, ExportRequest(), file)).lines
        except NotFoundError as problem:
            if "no such scope" not in str(problem):
                raise
            move.file = None

    async def export_keys_move(self, move, _):
        move.keys = []
        await self.tenants.export(move.tenant, move.keys.append)

    async def place_move(self, move, _):
        tried, move.placing = move.placing, True
        try:
            await self.tenants.place(move.tenant, [move.target])
        except ConflictError:
            move.back = not tried
            if not tried or not await self.is_placed(move):
                raise

    async def is_placed(self, move):
        number = await catalog.find_tenant(self.layout.owner, move.tenant)
        placed = await catalog.find_placed(self.layout.owner, number)
        return placed.shards == (await catalog.find_shard(self.layout.owner, move.target),)

    async def import_keys_move(self, move, _):
        await self.tenants.import_lines(move.tenant, move.keys)

    async def import_rows_move(self, move, operator):
        if move.file is not None:
            caller = await operator.act_for(move.tenant)
            with move.file.open("rb") as file:
                read = await operator.exports.import_export_file(caller, ImportOptions(""), file, limited=False)
            assert Counter(read.lines) + Counter(read.left_out) == Counter(move.rows), (read, move)

    async def resume_move(self, move, _):
        await self.tenants.resume(move.tenant)


class Happenings(Moves):
    """Everything that may happen in a history, each by the name of its method."""

    async def act(self, name, *given, kill=None):
        """Let one thing happen, and perhaps be killed after a step; an error of ours is an answer."""
        self.turn(set()) if name in {"restore", "misdirect", "exchange"} else None
        try:
            with killing(kill):
                await getattr(self, name)(*given)
            self.acts[name] += 1
        except RecollectError as problem:
            self.acts[f"{name}: {type(problem).__name__}"] += 1
        await self.revive()
        await self.look()

    def choose_kill(self, name):
        """Choose the step after which a command is killed, if it is."""
        steps = {"move": [*KILLS][:-1], "repair": ["cut_claim"]}.get(name, [])
        return self.chance.choice([None, None, *steps])

    async def dump(self):
        files = {each.name: each.read_bytes() for each in self.folder.glob("map-*.json")}
        self.dumps.append((self.layout.dump(), files))

    async def restore(self):
        self.layout.restore(self.chance.choice(self.dumps)[0])

    async def repair(self):
        await self.shards.repair()

    async def restart(self):
        """End a process; it starts again with an older copy of the map."""
        place = self.chance.randrange(2)
        await self.end_process(place)
        for name, rows in self.chance.choice(self.dumps)[1].items():
            if name == f"map-{place}.json":
                (self.folder / name).write_bytes(rows)

    async def grow(self):
        """Enter the third shard."""
        found = addresses_of(self.cluster, self.clones.take())
        await add_shard(self.layout.owner, "west", ServerAddresses(found.service, found.owner))
        self.layout.shards["west"] = found.service, found.owner

    async def add_tenant(self):
        """Make a tenant, sometimes with its buckets on two shards."""
        name = f"tenant-{len(self.keys)}"
        if self.chance.random() < 0.25:
            await self.tenants.place(name, self.chance.sample([*self.addresses], 2))
        await self.add_key(name)

    async def add_key(self, name=""):
        """Make a key, of a tenant that exists unless told otherwise: it is placed again where the catalog says."""
        name = name or self.chance.choice([*self.keys])
        for process in filter(None, self.processes[:]):
            _, self.keys[name] = await new_key(process.recollect, name)
            return

    async def misdirect(self):
        """Write a wrong address to the catalog: of an empty database, another catalog's server or another shard."""
        first, second = self.chance.sample([*self.addresses], 2)
        empty = addresses_of(self.cluster, self.clones.take())
        if self.chance.random() < 0.5:
            query(empty.owner, "insert into server_identity values (true, gen_random_uuid(), 1)")
        wrong = [ServerAddresses(empty.service, empty.owner), self.addresses[second]]
        for each in wrong:
            await self.expect_refused(first, each)
        self.set_address(first, self.chance.choice(wrong))

    async def exchange(self):
        """Exchange two addresses behind the catalog."""
        first, second = self.chance.sample([*self.addresses], 2)
        self.set_address(first, self.addresses[second])
        self.set_address(second, self.addresses[first])

    def set_address(self, name, addresses):
        asked = (addresses.service, addresses.owner, name)
        query(self.layout.owner, "update shards set service_address = %s, owner_address = %s where name = %s", *asked)

    async def expect_refused(self, name, wrong):
        try:
            await add_shard(self.layout.owner, name, wrong)
        except RecollectError:
            return
        raise AssertionError(f"{name} was entered at a wrong address")

    async def swap(self):
        """Exchange two servers behind their addresses, and put them back later."""
        self.swapped = tuple(self.chance.sample([*self.addresses], 2))
        moved = {row[0] for row in query(self.layout.owner, PLACED) if row[1] in self.swapped}
        self.turn(self.sound - moved)
        await asyncio.to_thread(self.exchange_databases)
        try:
            await asyncio.sleep(0.1)
            await self.look()
            if self.chance.random() < 0.5:
                with_repair = self.chance.random() < 0.5
                await (self.repair() if with_repair else self.add_tenant())
        finally:
            await asyncio.to_thread(self.exchange_databases)
            self.swapped = ()
        if self.chance.random() < 0.5:
            await self.repair()

    def exchange_databases(self):
        names = [psycopg.conninfo.conninfo_to_dict(self.addresses[each].owner)["dbname"] for each in self.swapped]
        with psycopg.connect(self.cluster.dsn(), autocommit=True) as connection:
            for name in names:
                for statement in RENAME:
                    connection.execute(statement.format(name))
                while connection.execute("select from pg_stat_activity where datname = %s", [name]).fetchall():
                    pass
            for before, after in ((names[0], "exchanged"), (names[1], names[0]), ("exchanged", names[1])):
                connection.execute(f"alter database {before} rename to {after}")
            for name in names:
                connection.execute(f"alter database {name} allow_connections true")


def killing(step):
    """Kill a command after a step."""
    stack = ExitStack()
    if step:
        whole = getattr(KILLS[step], step)

        async def killed(*given):
            await whole(*given)
            raise UnavailableError("killed")

        stack.enter_context(patch.object(KILLS[step], step, killed))
    return stack


async def run_worker_forever(recollect):
    """Run a worker as a program does: it begins again after every error."""
    while True:
        try:
            await recollect.work(2, stop_seconds=1)
        except RecollectError:
            await asyncio.sleep(0.1)


async def end(task):
    task.cancel()
    await asyncio.wait([task])


def find_twice(claims):
    """List the buckets that are claimed more than once."""
    counted = Counter((tenant, bucket) for tenant, first, last in claims for bucket in range(first, last + 1))
    return [bucket for bucket, times in counted.items() if times > 1]
