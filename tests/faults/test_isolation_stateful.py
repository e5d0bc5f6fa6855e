"""Tenants with look-alike agents do what they like: nobody ever reads or touches another's memory or conversation."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from unittest.mock import AsyncMock
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as draw_from
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from conftest import addresses_of, new_key
from recollect.core.text.terms import analyse, hash_term, slot_of
from recollect.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.conversations import Conversation
from recollect.mind.service import Addresses
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.items import DropItem, FindItems, PutItem
from recollect.models.memories import NewMemory, Role
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.store.database import pool
from recollect.store.database.probe import Probe
from recollect.wiring import connected
from support.measuring.sizes import Sizes

STEPS = Sizes("steps", ci=600, long=1_000_000)
IN_ONE_WORLD = min(STEPS.now, 4_000)
"""After so many steps a new world begins: what a check costs grows with what is stored."""
# Few in a short walk, so that each has something to be seen by the others.
TENANTS = Sizes("tenants", ci=6, long=20)
KINDS = 16
"""So many kinds of steps there are."""
STEPS_PER_RUN = 50
SCOPES = [("a1", ""), ("a1", "u1"), ("A1", "u1"), ("a1", "U1"), ("u1", "a1"), ("a-1", "u1"), ("a1", "a1")]
CONVERSATIONS = ["c1", "C1", "c-1", "c1.", "a1", "u1"]
CHANGES = {
    "archive": partial(Conversation.update, state="archived"),
    "restore": partial(Conversation.update, state="active"),
    "delete": Conversation.delete,
    "purge": Conversation.purge,
}
WORDS = ("apple", "river", "张伟", "engine", "letter")
PAGE = 200
KEPT_FOR = 4
"""So many calls are made with one mind."""
SAID = re.compile(r"\w+ \d+ (?:user|assistant) of tenant\d+")
"""What a message says."""
TOO_LONG = "'recollect.tenant', %(tenant)s, false"


class LeakError(AssertionError):
    """Somebody saw or changed what is not theirs, or missed what is."""


@dataclass
class Expected:
    """What one conversation should hold."""

    messages: dict[UUID, str] = field(default_factory=dict)
    appended: int = 0


@dataclass
class World:
    """The service under test, and what everybody should find in it."""

    loop: asyncio.AbstractEventLoop
    running: object
    secrets: list[str]
    revoked: list[str]
    memories: dict[tuple[int, str, str], dict[UUID, str]] = field(default_factory=dict)
    ids: list[tuple[tuple[int, str, str], UUID]] = field(default_factory=list)
    said: dict[tuple[int, str, str], set[str]] = field(default_factory=dict)
    conversations: dict[tuple[int, str, str], dict[str, Expected]] = field(default_factory=dict)
    items: dict[tuple[int, str, str], dict[str, int]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    minds: dict[tuple[int, str, str], tuple[object, int]] = field(default_factory=dict)
    rows_seen: int = 0
    leaks: list[tuple[object, ...]] = field(default_factory=list)

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def mind(self, tenant, scope):
        """Give a mind, as programs do: some keep theirs for a while, so that not every step is authorized anew."""
        kept, uses = self.minds.get((tenant, *scope), (None, 0))
        if uses % KEPT_FOR == 0:
            kept = self.run(self.running.authorize(self.secrets[tenant], "http", *scope))
        self.minds[tenant, *scope] = kept, uses + 1
        return kept

    def mine(self, tenant, scope):
        return self.memories.setdefault((tenant, *scope), {})

    def of_tenant(self, tenant):
        owned = [memories for (number, *_), memories in self.memories.items() if number == tenant]
        return {identity: content for memories in owned for identity, content in memories.items()}

    def said_in(self, tenant, scope=None):
        """Give what messages have said in a scope, or in all of a tenant: a worker may sum it up at any time."""
        own = [said for place, said in self.said.items() if place[0] == tenant and scope in (None, place[1:])]
        return set().union(*own)

    def conversations_of(self, tenant, scope):
        return self.conversations.setdefault((tenant, *scope), {})

    def conversations_of_tenant(self, tenant):
        return [
            conversation
            for (number, *_), conversations in self.conversations.items()
            if number == tenant
            for conversation in conversations.values()
        ]

    def check(self, condition, what, *details):
        if not condition:
            self.leaks.append((what, *details))
            raise LeakError(what, *details)


class Crowd(RuleBasedStateMachine):
    """What anybody may try at any time, against a model of who owns what."""

    world: World

    @initialize()
    def begin(self):
        """Every run goes on in the same world, so that it fills up."""

    tenants = st.integers(0, TENANTS.now - 1)
    scopes = st.sampled_from(SCOPES)

    @rule(tenant=tenants, scope=scopes, word=st.sampled_from(WORDS), copies=st.integers(1, 3))
    def remember(self, tenant, scope, word, copies):
        world = self.world
        number = sum(world.done.values())
        contents = [f"{word} {number} {copy} of tenant{tenant}" for copy in range(copies)]
        receipts = world.run(world.mind(tenant, scope).remember([NewMemory(content) for content in contents]))
        for receipt, content in zip(receipts, contents, strict=True):
            world.mine(tenant, scope)[receipt.id] = content
            world.ids.append(((tenant, *scope), receipt.id))
        world.done["remember"] += 1

    @rule(tenant=tenants, scope=scopes, word=st.sampled_from(WORDS), limit=st.sampled_from([1, 5, 50]))
    def recall(self, tenant, scope, word, limit):
        world, mine = self.world, self.world.mine(tenant, scope)
        found = world.run(world.mind(tenant, scope).recall(Cue(word, limit=limit)))
        if len(found.hits) < min(limit, len(mine)):
            # A message whose predecessor was forgotten waits for a new vector.
            world.run(world.running.work(until_empty=True))
            found = world.run(world.mind(tenant, scope).recall(Cue(word, limit=limit)))
        self.compare(
            mine, {hit.memory.id: hit.memory.content for hit in found.hits}, "recall", world.said_in(tenant, scope)
        )
        world.check(len(found.hits) >= min(limit, len(mine)), "recall is short of hits", len(found.hits), len(mine))
        containing = [content for content in mine.values() if word in content]
        if containing:
            world.check(word in found.hits[0].memory.content, "recall misses what contains the word")
        world.done["recall"] += 1

    @rule(tenant=tenants, scope=scopes)
    def list_memories(self, tenant, scope):
        world, mine = self.world, self.world.mine(tenant, scope)
        page = world.run(world.mind(tenant, scope).list(limit=PAGE))
        seen = {memory.id: memory.content for memory in page.memories}
        self.compare(mine, seen, "list", world.said_in(tenant, scope))
        world.check(len(seen) >= min(PAGE, len(mine)), "list is short of memories", len(seen), len(mine))
        world.done["list"] += 1

    @rule(tenant=tenants, scope=scopes, pick=st.integers(0, 2**32))
    def get(self, tenant, scope, pick):
        world, mine = self.world, self.world.mine(tenant, scope)
        wanted = self.choose(pick, mine)
        try:
            memory = world.run(world.mind(tenant, scope).get(wanted))
        except NotFoundError as problem:
            world.check(wanted not in mine, "get misses a memory of its own")
            world.check(str(problem) == "No such memory in this scope.", "foreign ids are told apart")
        else:
            self.compare(mine, {memory.id: memory.content}, "get", world.said_in(tenant, scope))
        world.done["get"] += 1

    @rule(tenant=tenants, scope=scopes, pick=st.integers(0, 2**32))
    def forget(self, tenant, scope, pick):
        world, mine = self.world, self.world.mine(tenant, scope)
        wanted = self.choose(pick, mine)
        gone = world.run(world.mind(tenant, scope).forget([wanted]))
        world.check(gone == ([wanted] if wanted in mine else []), "forget took more or less than its own", gone)
        mine.pop(wanted, None)
        for conversation in world.conversations_of(tenant, scope).values():
            conversation.messages.pop(wanted, None)
        world.done["forget"] += 1

    @rule(tenant=tenants, scope=scopes, word=st.sampled_from(WORDS), drop=st.booleans())
    def use_items(self, tenant, scope, word, drop):
        """Everybody gives items the same names: each finds what was put in the own scope, and drops nothing else."""
        world = self.world
        mine = world.items.setdefault((tenant, *scope), {})
        number = sum(world.done.values())
        change = DropItem(("shared",), word) if drop else PutItem(("shared",), word, {"of": tenant, "number": number})
        found, changed = world.run(world.mind(tenant, scope).items.batch([FindItems(("shared",), limit=200), change]))
        seen = {each.item.key: each.item.value for each in found}
        own = {key: {"of": tenant, "number": put} for key, put in mine.items()}
        world.check(seen == own, "items of others, or not all of one's own", seen, own)
        world.check(drop is False or changed == (word in mine), "a drop took another's item", word)
        mine.pop(word, None)
        mine |= {} if drop else {word: number}
        world.rows_seen += len(seen)
        world.done["use_items"] += 1

    @rule(tenant=tenants, scope=scopes, pick=st.integers(0, 2**32))
    def derive(self, tenant, scope, pick):
        """Name somebody's memory as evidence: a foreign one is refused like an unknown one."""
        world, mine = self.world, self.world.mine(tenant, scope)
        wanted = self.choose(pick, {})
        if wanted in mine:
            return
        new = NewMemory("made of what is not mine", evidence=(wanted,))
        try:
            world.run(world.mind(tenant, scope).remember(new))
        except InvalidInputError as problem:
            world.check(
                str(problem).startswith("evidence must be memories of the same scope"),
                "foreign evidence is told apart",
            )
        else:
            world.check(False, "foreign evidence was accepted")
        world.done["derive"] += 1

    @rule(scope=scopes, pick=st.integers(0, 2**32), broken=st.booleans())
    def intrude(self, scope, pick, broken):
        """Show a key that was revoked, or one that was guessed."""
        world = self.world
        secret = world.revoked[pick % len(world.revoked)]
        secret = secret[:-1] + chr(ord(secret[-1]) ^ 1) if broken else secret
        try:
            world.run(world.running.authorize(secret, "http", *scope))
        except UnauthenticatedError as problem:
            world.check(str(problem) == "This API key is unknown or revoked.", "revoked keys are told apart")
        else:
            world.check(False, "a key without a right to anything was authorized")
        world.done["intrude"] += 1

    @rule(tenant=tenants, scope=scopes)
    def forget_the_predicates(self, tenant, scope):
        """A query that somebody wrote without naming scope or tenant: the database must add what it lacks."""
        world = self.world
        tenant_id = world.mind(tenant, scope).access.caller.tenant_id
        count, rows, *seen = world.run(look_everywhere(world.running.parts.database, tenant_id))
        mine = world.of_tenant(tenant)
        self.compare(mine, rows, "a query without predicates", world.said_in(tenant))
        world.check(count == len(mine), "a query without predicates counts", count, len(mine))
        conversations = world.conversations_of_tenant(tenant)
        own = (sum(len(conversation.messages) for conversation in conversations), len(conversations))
        world.check(tuple(seen) == own, "so does one of messages", seen, own)
        world.done["forget_the_predicates"] += 1

    @rule(tenant=tenants, scope=scopes, word=st.sampled_from(WORDS))
    def forget_the_tenant(self, tenant, scope, word):
        """A connection from the pool on which nobody said who asks: it must know nothing and nobody."""
        world = self.world
        place = world.mind(tenant, scope).access.place
        seen = world.run(look_unbound(world.running.parts.database, place.scope_id if place else 0, word))
        nothing = {"memories": 0, "messages": 0, "conversations": 0, "matches": 0, "tenant": "", "key": ""}
        world.check(seen == nothing, "a connection without a tenant shows something", seen)
        world.done["forget_the_tenant"] += 1

    def choose(self, pick, mine):
        """Pick a memory of one's own, anybody's, or an id that never was."""
        if pick % 3 == 0 and mine:
            return list(mine)[pick % len(mine)]
        if pick % 3 == 1 or not self.world.ids:
            return UUID(int=pick << 80 | 0x7 << 76 | 0b10 << 62)
        return self.world.ids[pick % len(self.world.ids)][1]

    def compare(self, mine, seen, what, said=frozenset()):
        self.world.rows_seen += len(seen)
        unknown = {identity: content for identity, content in seen.items() if mine.get(identity) != content}
        foreign = {identity: content for identity, content in unknown.items() if not sums_up(content, said)}
        self.world.check(not foreign, f"{what} shows what is not in this scope", foreign)


class ConversingCrowd(Crowd):
    """The same with conversations, whose names are nobody's own."""

    names = st.sampled_from(CONVERSATIONS)

    @rule(tenant=Crowd.tenants, scope=Crowd.scopes, name=names, word=st.sampled_from(WORDS))
    def append(self, tenant, scope, name, word):
        world, number = self.world, sum(self.world.done.values())
        contents = [f"{word} {number} {role} of tenant{tenant}" for role in (Role.USER, Role.ASSISTANT)]
        said = [NewMessage(Role.USER, contents[0]), NewMessage(Role.ASSISTANT, contents[1])]
        appended = world.run(world.mind(tenant, scope).conversation(name).append(said))
        conversation = world.conversations_of(tenant, scope).setdefault(name, Expected())
        first = conversation.appended + 1
        world.check([each.number for each in appended] == [first, first + 1], "an append counts others' messages")
        conversation.appended += len(appended)
        for each, content in zip(appended, contents, strict=True):
            conversation.messages[each.id] = content
            world.mine(tenant, scope)[each.id] = content
            world.said.setdefault((tenant, *scope), set()).add(content)
            world.ids.append(((tenant, *scope), each.id))
        world.done["append"] += 1

    @rule(begun=st.integers(0, 2**32), pick=st.integers(0, 2**32))
    def follow(self, begun, pick):
        """Name somebody's message as parent or leaf: a foreign one is refused like an unknown one."""
        world, wanted = self.world, self.choose(pick, {})
        conversations = [
            (*place, name, conversation)
            for place, conversations in world.conversations.items()
            for name, conversation in conversations.items()
        ]
        if not conversations:
            return
        tenant, agent, user, name, conversation = conversations[begun % len(conversations)]
        if wanted in conversation.messages:
            return
        view = world.mind(tenant, (agent, user)).conversation(name)
        for call, error, told in (
            (
                view.append(NewMessage(Role.USER, "after what is not mine", parent=wanted)),
                InvalidInputError,
                "parent must be a message of the same conversation",
            ),
            (view.history(HistoryOptions(leaf=wanted)), NotFoundError, "leaf names no message of this conversation."),
        ):
            try:
                world.run(call)
            except error as problem:
                world.check(str(problem) == told, "foreign messages are told apart", str(problem))
            else:
                world.check(False, "a foreign message was accepted")
        world.done["follow"] += 1

    @rule(tenant=Crowd.tenants, scope=Crowd.scopes, name=names)
    def history(self, tenant, scope, name):
        world, conversation = self.world, self.world.conversations_of(tenant, scope).get(name)
        try:
            found = world.run(world.mind(tenant, scope).conversation(name).history(1_000_000))
        except NotFoundError as problem:
            world.check(conversation is None, "history misses a conversation of its own")
            world.check(str(problem) == "No such conversation in this scope.", "conversations are told apart")
        else:
            world.check(conversation is not None, "history shows a foreign conversation")
            seen = {message.id: message.content for message in found.messages}
            self.compare(conversation.messages, seen, "history")
            # Where something was forgotten, what is left of its turn may not be whole.
            if len(conversation.messages) == conversation.appended:
                world.check(list(seen) == list(conversation.messages), "history is short of messages", len(seen))
        world.done["history"] += 1

    @rule(tenant=Crowd.tenants, scope=Crowd.scopes, name=names, word=st.sampled_from(WORDS))
    def context(self, tenant, scope, name, word):
        world, mine = self.world, self.world.mine(tenant, scope)
        made = world.run(world.mind(tenant, scope).conversation(name).context(word, 500))
        self.compare(
            mine, {hit.memory.id: hit.memory.content for hit in made.hits}, "context", world.said_in(tenant, scope)
        )
        conversation = world.conversations_of(tenant, scope).get(name, Expected())
        history = {message.id: message.content for message in made.history.messages}
        self.compare(conversation.messages, history, "the history of a context")
        strangers = [
            number for number in range(TENANTS.now) if number != tenant and f"of tenant{number}\n" in made.block
        ]
        world.check(not strangers, "the block of a context quotes somebody else", strangers)
        world.done["context"] += 1

    @rule(tenant=Crowd.tenants, scope=Crowd.scopes)
    def list_conversations(self, tenant, scope):
        world, conversations = self.world, self.world.conversations_of(tenant, scope)
        page = world.run(world.mind(tenant, scope).conversations(limit=PAGE))
        seen = {each.id: each.message_count for each in page.conversations}
        expected = {name: conversation.appended for name, conversation in conversations.items()}
        world.rows_seen += len(seen)
        world.check(seen == expected, "a list of conversations shows more or less than its own", seen, expected)
        world.done["list_conversations"] += 1

    @rule(tenant=Crowd.tenants, scope=Crowd.scopes, name=names, change=st.sampled_from(sorted(CHANGES)))
    def meddle(self, tenant, scope, name, change):
        """Put an end to a conversation that only others have."""
        world = self.world
        if name in world.conversations_of(tenant, scope):
            return
        try:
            world.run(CHANGES[change](world.mind(tenant, scope).conversation(name)))
        except NotFoundError as problem:
            world.check(str(problem) == "No such conversation in this scope.", "conversations are told apart")
        else:
            world.check(False, "a foreign conversation was changed", change)
        world.done["meddle"] += 1


def sums_up(content, said):
    """Tell whether a text is a summary of these messages and of nothing else."""
    return not SAID.sub("", content).strip() and said.issuperset(SAID.findall(content))


async def look_everywhere(database, tenant_id):
    query = """select (select count(*) from memories where kind <> 'summary') as memories,
        (select count(*) from messages) as messages, (select count(*) from conversations) as conversations,
        (select json_agg(json_build_array(id, content))
            from (select id, content from memories order by id desc limit 100) newest) as newest"""
    async with database.transaction(tenant_id) as connection:
        seen = await (await connection.execute(query)).fetchone()
    rows = {UUID(identity): content for identity, content in seen["newest"] or []}
    return seen["memories"], rows, seen["messages"], seen["conversations"]


async def look_unbound(database, scope_id, word):
    terms = [hash_term(scope_id, term) for term in analyse(word)]
    query = """select (select count(*) from memories) as memories,
        (select count(*) from messages) as messages, (select count(*) from conversations) as conversations,
        (select count(*) from match_terms(
            %(scope)s, %(terms)s, %(slots)s::integer[], null, 0::smallint, null, null, array[]::uuid[], 10, 10
        )) as matches,
        coalesce(current_setting('recollect.tenant', true), '') as tenant,
        coalesce(current_setting('recollect.key', true), '') as key"""
    async with database._pool.connection() as connection:
        asked = {"scope": scope_id, "terms": terms, "slots": [slot_of(term) for term in analyse(word)]}
        return await (await connection.execute(query, asked)).fetchone()


def build_world(loop, addresses):
    stack = AsyncExitStack()
    settings_ = Settings(embedder="fake", pool_size=3)
    running = loop.run_until_complete(stack.enter_async_context(connected(settings_, addresses, FakeEmbedder())))
    secrets, revoked = loop.run_until_complete(make_keys(running))
    yield World(loop, running, secrets, revoked)
    loop.run_until_complete(stack.aclose())


async def make_keys(running):
    secrets, revoked = [], []
    for number in range(TENANTS.now):
        secrets.append((await new_key(running, f"tenant{number}"))[1])
        key, secret = await new_key(running, f"tenant{number}")
        await running.revoke_key(await running.operator.act_for(f"tenant{number}"), key.id)
        revoked.append(secret)
    return secrets, revoked


def run_crowd(world, steps, number=1):
    class InThisWorld(ConversingCrowd):
        pass

    InThisWorld.world = world
    # Without a number of its own, the second run would repeat the first.
    draw_from(f"{number} {world.done.total()}")(InThisWorld)
    limits = settings(
        max_examples=max(1, steps // STEPS_PER_RUN),
        stateful_step_count=STEPS_PER_RUN,
        # What a step finds depends on all before it, so that nothing is to be kept or made smaller.
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(InThisWorld, settings=limits)


@pytest.mark.promise(
    "Nobody reads, finds or changes what belongs to another tenant or scope", STEPS, TENANTS, part="isolation"
)
def test_nobody_reads_or_touches_what_is_not_theirs(cluster, clones, rounds, seed, figure):
    done, rows, leaks, began = Counter(), 0, 0, time.process_time()
    for number in rounds(STEPS, by=IN_ONE_WORLD):
        name = clones.take()
        with asyncio.Runner() as runner:
            for world in build_world(runner.get_loop(), addresses_of(cluster, name)):
                walk(world, seed + number)
                done, rows, leaks = done + world.done, rows + world.rows_seen, leaks + len(world.leaks)
                compare_with_stored(world, cluster.dsn(name))
        clones.drop(name)
    speed = done.total() / (time.process_time() - began)
    figure(f"{done.total():,} steps of {len(done)} kinds, {rows:,} rows seen, {leaks} foreign; {speed:.0f} steps/CPU-s")
    assert len(done) == KINDS


def walk(world, number):
    """Go on until chance has tried every kind, with an end for a kind that can never be tried."""
    while (steps := world.done.total()) < IN_ONE_WORLD or (len(world.done) < KINDS and steps < 10 * IN_ONE_WORLD):
        run_crowd(world, max(IN_ONE_WORLD - steps, STEPS_PER_RUN), number)


def compare_with_stored(world, dsn):
    with psycopg.connect(dsn) as owner:
        # What a worker sums up is nobody's write.
        stored, told = (
            owner.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("memories where kind <> 'summary'", "messages")
        )
    assert stored == sum(map(len, world.memories.values()))
    assert told == sum(
        len(conversation.messages)
        for conversations in world.conversations.values()
        for conversation in conversations.values()
    )


@pytest.mark.promise("The test of isolation notices a role that row-level security does not bind", part="isolation")
def test_the_machine_catches_a_role_that_passes_row_level_security(addresses, monkeypatch, figure):
    """Connected as the owner of the tables, the service has nothing left but its own predicates."""
    # Such a role is refused at the start; here it is let in.
    monkeypatch.setattr(Probe, "check_role", AsyncMock())
    with asyncio.Runner() as runner:
        for world in build_world(runner.get_loop(), Addresses(addresses.owner, addresses.owner)):
            expect_leak(world, figure)


@pytest.mark.promise("The test of isolation notices a tenant that outlives its transaction", part="isolation")
def test_the_machine_catches_a_tenant_that_outlives_its_transaction(addresses, monkeypatch, figure):
    for name, query in pool.QUERIES.items():
        monkeypatch.setitem(pool.QUERIES, name, query.replace("'recollect.tenant', %(tenant)s, true", TOO_LONG))
    assert TOO_LONG in "".join(pool.QUERIES.values())
    with asyncio.Runner() as runner:
        for world in build_world(runner.get_loop(), addresses):
            expect_leak(world, figure)


def expect_leak(world, figure):
    # What leaks depends on what ran before, so that hypothesis may call the failure flaky.
    with contextlib.suppress(LeakError, Flaky, ExceptionGroup):
        run_crowd(world, 1_000)
    figure(f"caught after {sum(world.done.values())} steps")
    assert world.leaks
