"""Writes of one scope that wait in one process share a transaction, and each has its own outcome."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest

from recollect.errors import ConflictError, InvalidInputError
from recollect.models.conversations import LEGACY, NewMessage
from recollect.models.memories import Kind, MemoryProgress, NewMemory, Role
from recollect.models.recall import Cue
from support.measuring.sizes import Sizes
from support.programs.waiting import until, until_blocked

WRITERS = Sizes("writers of one scope", ci=24, long=200)
TRANSACTIONS = "select count(distinct created_at) from memories"


@pytest.fixture
async def held(addresses, mind):
    """A scope that somebody else has locked, so that writes wait for it."""
    await mind.remember("first")
    with psycopg.connect(addresses.owner) as connection:
        connection.execute("select from scopes for update")
        yield connection


@pytest.fixture
def waiting(mind):
    """Tell how many writes wait in this process."""
    lists = mind.access.parts.process.writes._waiting
    return lambda: sum(map(len, lists.values()))


async def gather_behind(held, owner, waiting, *writes):
    """Let the first write wait for the lock, and the others for it; give what comes of each."""
    tasks = [asyncio.ensure_future(writes[0])]
    await until_blocked(owner, tasks[0])
    for write in writes[1:]:
        tasks.append(asyncio.ensure_future(write))
        await until(lambda: waiting() == len(tasks) - 1 or tasks[-1].done())
    held.rollback()
    return await asyncio.gather(*tasks, return_exceptions=True)


def numbers_of(owner):
    return owner.execute("select conversation_id, number, content from messages join memories using (scope_id, id) "
                         "order by 1, 2").fetchall()  # fmt: skip


async def test_what_waits_is_written_in_one_transaction(held, owner, waiting, mind):
    outcomes = await gather_behind(held, owner, waiting, *[mind.remember(f"note {n}") for n in range(9)])
    assert owner.execute(TRANSACTIONS).fetchone()[0] == 1 + 1 + 1
    assert [receipt.progress for [receipt] in outcomes] == [MemoryProgress.EMBEDDED] * 9
    ids = [receipt.id for [receipt] in outcomes]
    assert ids == sorted(ids)
    stored = owner.execute("select id, content from memories where content like 'note%' order by id").fetchall()
    assert stored == [(identity, f"note {n}") for n, identity in enumerate(ids)]
    assert waiting() == 0
    assert mind.access.parts.process.writes._waiting == {}


async def test_counters_and_terms_are_those_of_writes_one_by_one(recollect, owner, held, waiting, mind):
    texts = [f"the {word} cat sleeps" for word in ("red", "blue", "red", "green", "white")]
    await gather_behind(held, owner, waiting, *[mind.remember(NewMemory(text, kind=Kind.EVENT)) for text in texts])
    alone = await recollect.mind("ada", "alone")
    for text in ("first", *texts):
        await alone.remember(NewMemory(text, kind=Kind.EVENT))
    counted = "select memory_count, term_count, event_count, unreflected_importance from scopes order by id"
    assert len(set(owner.execute(counted).fetchall())) == 1
    found = [[hit.memory.content for hit in (await each.recall(Cue("red cat", channels=("text",)))).hits]
             for each in (mind, alone)]  # fmt: skip
    assert found[0] == found[1]


async def test_appends_to_one_conversation_follow_each_other(held, owner, waiting, mind):
    talk = mind.conversation("c")
    appends = [
        talk.append([NewMessage(Role.USER, f"ask {n}"), NewMessage(Role.ASSISTANT, f"say {n}")]) for n in range(4)
    ]
    outcomes = await gather_behind(held, owner, waiting, *appends)
    said = [each for outcome in outcomes for each in outcome]
    assert [each.number for each in said] == list(range(1, 9))
    assert [each.parent for each in said] == [None, *[each.id for each in said[:-1]]]
    history = await talk.history()
    assert [message.content for message in history.messages] == [
        f"{verb} {n}" for n in range(4) for verb in ("ask", "say")
    ]


async def test_branches_and_legacy_messages_are_linked_as_one_by_one(recollect, owner, held, waiting, mind):
    async def say(conversation):
        return [
            conversation.append(NewMessage(Role.USER, "a", parent=LEGACY)),
            conversation.append(NewMessage(Role.ASSISTANT, "b")),
            conversation.append([NewMessage(Role.USER, "c", root=True), NewMessage(Role.ASSISTANT, "d", parent=0)]),
            conversation.append(NewMessage(Role.USER, "e", parent=LEGACY)),
        ]

    await gather_behind(held, owner, waiting, mind.remember("x"), *await say(mind.conversation("c")))
    alone = (await recollect.mind("ada", "alone")).conversation("c")
    for append in await say(alone):
        await append
    rows = owner.execute(
        "select said.scope_id, content, number, "
        "(select content from memories where memories.scope_id = said.scope_id and memories.id = said.parent_id), "
        "(select content from memories where memories.scope_id = said.scope_id and memories.id = said.turn_id), "
        "stated_parent from messages said join memories using (scope_id, id) order by 1, 3"
    ).fetchall()
    assert [row[1:] for row in rows[:5]] == [row[1:] for row in rows[5:]]


@pytest.mark.promise("A write that fails fails alone, also if it shares a transaction")
async def test_one_that_fails_fails_alone(held, owner, waiting, mind):
    talk, closed = mind.conversation("c"), mind.conversation("closed")
    message = NewMessage(Role.USER, "once", external_id="x")
    writes = [
        mind.remember("one"),
        mind.remember(NewMemory("of nothing", evidence=(uuid4(),)), idempotency_key="k1"),
        talk.append(NewMessage(Role.USER, "to nobody", parent=uuid4())),
        talk.append(NewMessage(Role.USER, "hello"), idempotency_key="k2"),
        mind.remember(NewMemory("crooked", embedding=(1.0,))),
        mind.remember("two", idempotency_key="k3"),
    ]
    one, evidence, parent, hello, crooked, two = await gather_behind(held, owner, waiting, *writes)
    assert [type(each) for each in (evidence, parent, crooked)] == [InvalidInputError] * 3
    assert [type(each) for each in (one, hello, two)] == [list] * 3
    contents = {content for (content,) in owner.execute("select content from memories")}
    assert contents == {"first", "one", "hello", "two"}
    # A key whose write was refused is free again.
    assert await mind.remember("now", idempotency_key="k1")
    assert await mind.remember("two", idempotency_key="k3") == two
    assert (await talk.append(message))[0].number == 2
    with pytest.raises(ConflictError):
        await talk.append(replace(message, content="otherwise"))
    assert closed is not talk


async def test_what_the_database_refuses_is_refused_alone(held, owner, waiting, mind):
    talk = mind.conversation("c")
    message = NewMessage(Role.USER, "once", external_id="x")
    writes = [
        mind.remember("one"),
        talk.append(message),
        talk.append(message),
        talk.append(replace(message, content="otherwise")),
        talk.append(NewMessage(Role.USER, "two")),
    ]
    _, [first], [again], other, [two] = await gather_behind(held, owner, waiting, *writes)
    assert isinstance(other, ConflictError)
    assert (again.id, again.known, two.number) == (first.id, True, 2)
    assert numbers_of(owner) == [("c", 1, "once"), ("c", 2, "two")]


async def test_the_same_key_is_answered_twice_and_stored_once(held, owner, waiting, mind):
    talk = mind.conversation("c")
    twice = [talk.append(NewMessage(Role.USER, "hello"), idempotency_key="k") for _ in range(3)]
    other = talk.append(NewMessage(Role.USER, "bye"), idempotency_key="k")
    _, *said, conflict = await gather_behind(held, owner, waiting, mind.remember("x"), *twice, other)
    assert said[0] == said[1] == said[2]
    assert isinstance(conflict, ConflictError)
    assert numbers_of(owner) == [("c", 1, "hello")]


async def test_who_gives_up_while_waiting_has_written_nothing(held, owner, waiting, mind):
    first = asyncio.create_task(mind.remember("one"))
    await until_blocked(owner, first)
    patient, hasty = (asyncio.create_task(mind.remember(text)) for text in ("two", "three"))
    await until(lambda: waiting() == 2)
    hasty.cancel()
    await asyncio.wait([hasty])
    held.rollback()
    await asyncio.gather(first, patient)
    contents = {content for (content,) in owner.execute("select content from memories")}
    assert contents == {"first", "one", "two"}


async def test_who_gives_up_in_front_leaves_the_others_their_turn(held, owner, waiting, mind):
    first = asyncio.create_task(mind.remember("one"))
    await until_blocked(owner, first)
    behind = [asyncio.create_task(mind.remember(text)) for text in ("two", "three")]
    await until(lambda: waiting() == 2)
    first.cancel()
    held.rollback()
    await asyncio.gather(*behind)
    assert owner.execute("select count(*) from memories where content in ('two', 'three')").fetchone()[0] == 2


@pytest.mark.promise("Many writers of one scope lose nothing and keep every conversation's order", WRITERS)
async def test_many_writers_lose_nothing(mind, owner):
    async def talk(number):
        conversation = mind.conversation(f"c{number % 4}")
        said = await conversation.append(NewMessage(Role.USER, f"{number}"))
        [noted] = await mind.remember(f"note {number}")
        return said[0].id, noted.id

    told = await asyncio.gather(*[talk(number) for number in range(WRITERS.now)])
    stored = {identity for (identity,) in owner.execute("select id from memories")}
    assert stored == {identity for pair in told for identity in pair}
    for number in range(4):
        rows = [row[1] for row in numbers_of(owner) if row[0] == f"c{number}"]
        assert rows == list(range(1, WRITERS.now // 4 + 1))
    row = owner.execute("select memory_count, change_number from scopes").fetchone()
    assert row[0] == len(stored)
    assert owner.execute(TRANSACTIONS).fetchone()[0] < len(stored)
