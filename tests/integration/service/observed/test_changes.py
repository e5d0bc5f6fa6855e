"""The change log: whatever is committed has its row, once and in the scope's order, by whichever way it came."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from conftest import http_client, new_key
from recollect.core.conversations.retention import RetentionRules
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.jobs.maintenance import prune_changes
from recollect.models.conversations import NewMessage
from recollect.models.items import DropItem, PutItem
from recollect.models.knowledge import NewFact
from recollect.models.memories import FadingRules, Kind, NewMemory, Role
from support.measuring.sizes import Sizes
from support.service.change_audit import Audit

STEPS = Sizes("steps of each writer", fast=20, ci=40, long=600)
LOG = "select operation, ids from changes order by scope_id, number"
OLD = datetime.now(UTC) - timedelta(days=900)
PLACES = ("Rome", "Oslo", "Bergen")
TOPICS = ("tea", "tea->green", "travel")


def conversation(mind, chance):
    return mind.conversation(chance.choice("ab"))


async def some(mind, chance, most=2):
    known = [each.id for each in (await mind.list(limit=200)).memories]
    return chance.sample(known, min(most, len(known)))


async def remember(mind, chance):
    topic = chance.choice(("", *TOPICS))
    await mind.remember([NewMemory("a walk", topic=topic, occurred_at=OLD), NewMemory("tea", pinned=True)])


async def append(mind, chance):
    said = [NewMessage(Role.USER, "shall we have tea?"), NewMessage(Role.ASSISTANT, "yes")]
    await conversation(mind, chance).append(said, idempotency_key=chance.choice(("", "k1", "k2")))


async def load(mind, chance):
    await mind.load([NewMemory(f"loaded {number}") for number in range(3)])


async def derive(mind, chance):
    await mind.remember(NewMemory("a thought", Kind.THOUGHT, evidence=tuple(await some(mind, chance))))


async def put(mind, chance):
    text = chance.choice(("", "green tea"))
    await mind.items.batch([PutItem(("a",), chance.choice("xyz"), {"n": 1}, text=text)])


async def drop(mind, chance):
    await mind.items.batch([DropItem(("a",), chance.choice("xyz"))])


async def state(mind, chance):
    await mind.knowledge.add([NewFact("Ann", "lives in", chance.choice(PLACES))])


async def end(mind, chance):
    facts = (await mind.knowledge.facts()).facts
    if facts:
        await mind.knowledge.end(chance.choice(facts).id, datetime.now(UTC))


async def pin(mind, chance):
    for each in await some(mind, chance):
        await mind.update(each, pinned=chance.random() < 0.5)


async def forget(mind, chance):
    await mind.forget(await some(mind, chance, 1))


async def archive(mind, chance):
    await conversation(mind, chance).update(state="archived")


async def delete(mind, chance):
    await conversation(mind, chance).delete()


async def restore(mind, chance):
    await conversation(mind, chance).update(state="active")


async def purge(mind, chance):
    if chance.random() < 0.3:
        await conversation(mind, chance).purge()


async def fade(mind, chance):
    await mind.fade(FadingRules(days=0.0001))


async def revive(mind, chance):
    faded = (await mind.list(filter={"state": "faded"})).memories
    await mind.restore([each.id for each in faded[:2]])


async def file(mind, chance):
    await mind.topics.link(chance.choice(TOPICS), await some(mind, chance))


async def unfile(mind, chance):
    await mind.topics.unlink(chance.choice(TOPICS), await some(mind, chance))


async def rename(mind, chance):
    await mind.topics.update(chance.choice(TOPICS), name=chance.choice(("tea", "trips")))


async def merge(mind, chance):
    await mind.topics.update("travel", into="tea")


async def describe(mind, chance):
    await conversation(mind, chance).update(name=chance.choice(("one", "two")))


DEEDS = (
    remember,
    append,
    append,
    load,
    derive,
    put,
    put,
    drop,
    state,
    state,
    end,
    pin,
    forget,
    archive,
    delete,
    restore,
    purge,
    fade,
    revive,
    file,
    unfile,
    rename,
    merge,
    describe,
)
"""What a writer may do; some of it more often."""


async def write(mind, chance, steps):
    """Do anything at any time; whatever is refused changes nothing."""
    await do(mind, chance, chance.choices(DEEDS, k=steps))


async def do(mind, chance, deeds):
    for deed in deeds:
        with suppress(ConflictError, InvalidInputError, NotFoundError):
            await deed(mind, chance)


@pytest.mark.promise("Every committed change of a scope is in its log once and in order, none without its row", STEPS)
@pytest.mark.parametrize("seed", range(2))
async def test_every_change_is_logged_once_and_in_order(recollect, embedder, owner, seed):
    audit = Audit(owner)
    minds = [await recollect.mind("ada", "li"), await recollect.mind("ada", "wang")]
    writers = [(minds[number % 3 % 2], random.Random(10 * seed + number)) for number in range(4)]
    await do(*writers[0], DEEDS)
    await asyncio.gather(*(write(*writer, STEPS.now // 2) for writer in writers))
    embedder.fail()
    await do(*writers[0], [remember])
    await asyncio.gather(*(write(*writer, STEPS.now // 4) for writer in writers))
    embedder.recover()
    await asyncio.gather(recollect.work(until_empty=True), *(write(*writer, STEPS.now // 4) for writer in writers))
    await recollect.work(until_empty=True)
    audit.check()
    told = {operation for operation, _ in owner.execute(LOG).fetchall()}
    assert {"stored", "forgotten", "state", "embedded", "pinned", "fact", "entity", "topic", "item"} <= told


async def test_a_write_is_one_row_with_its_ids_and_nothing_of_what_it_says(mind, owner):
    receipts = await mind.remember(["one", "two"])
    assert owner.execute(LOG).fetchall() == [("stored", [receipt.id for receipt in receipts])]
    said = await mind.conversation("c").append([NewMessage(Role.USER, "hello"), NewMessage(Role.ASSISTANT, "hi")])
    assert owner.execute(LOG).fetchall()[1:] == [("stored", [each.id for each in said])]
    await mind.update(receipts[0].id, pinned=True)
    await mind.update(receipts[0].id, pinned=True)
    await mind.forget([receipts[1].id])
    assert owner.execute(LOG).fetchall()[2:] == [("pinned", [receipts[0].id]), ("forgotten", [receipts[1].id])]


async def test_a_repeated_key_changes_nothing(mind, owner):
    await mind.remember("one", idempotency_key="k")
    await mind.remember("one", idempotency_key="k")
    await mind.conversation("c").append(NewMessage(Role.USER, "hello"), idempotency_key="c")
    await mind.conversation("c").append(NewMessage(Role.USER, "hello"), idempotency_key="c")
    assert [operation for operation, _ in owner.execute(LOG).fetchall()] == ["stored", "stored"]


async def test_the_log_names_the_key_that_changed_something(recollect, mind, owner):
    await mind.remember("by the library")
    key, secret = await new_key(recollect)
    async with http_client(recollect, secret) as client:
        answer = await client.post("/v1/memories", json={"agent": "ada", "user": "li", "content": "by a key"})
        assert answer.status_code == 201
    assert owner.execute("select key_id from changes order by number").fetchall() == [(None,), (key.id,)]


async def test_old_rows_go_and_those_that_a_reader_waits_for_go_later(recollect, mind, owner):
    for number in range(4):
        await mind.remember(str(number))
    other = await recollect.mind("eve")
    await other.remember("theirs")
    rules = RetentionRules(change_days=7, unread_change_days=30)

    async def left(days, position):
        owner.execute("update changes set at = now() - %s * interval '1 day'", [days])
        [[scope_id]] = owner.execute("select id from scopes where \"user\" = 'li'")
        owner.execute(
            "insert into change_readers (scope_id, name, position) values (%s, 'mirror', %s) "
            "on conflict (scope_id, name) do update set position = excluded.position",
            [scope_id, position],
        )
        await prune_changes(recollect.parts.database, rules)
        return [
            number for (number,) in owner.execute("select number from changes order by number, scope_id").fetchall()
        ]

    assert await left(6, 0) == [1, 1, 2, 3, 4]
    assert await left(8, 2) == [3, 4], "another scope has no reader"
    assert await left(29, 3) == [4]
    assert await left(31, 3) == []
    await mind.remember("later")
    assert owner.execute("select number from changes").fetchall() == [(5,)], "numbers go on"


async def test_the_owner_alone_begins_another_incarnation(addresses, mind, owner):
    with psycopg.connect(addresses.service, autocommit=True) as service:
        assert service.execute("select count(*) from incarnations").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute("select renew_incarnation()")
    [(before,)] = owner.execute("select id from incarnations").fetchall()
    [(after,)] = owner.execute("select renew_incarnation()").fetchall()
    assert owner.execute("select id from incarnations").fetchall() == [(after,)]
    assert after != before
