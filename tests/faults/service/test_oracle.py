"""What a database is held against after processes were killed: it notices every fault that it is to find."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from conftest import application, new_key
from support.callers.oracle import SIDES, check, find_faults
from support.callers.traffic import READS, WRITES, Told, traffic
from support.service.known_numbers import VECTORS
from support.service.serving import serving

WRITTEN = 150
COPY = """insert into memories (scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at)
    select scope_id, gen_random_uuid(), kind, {}, importance, origin, trust, occurred_at, created_at
    from memories where kind = 'message' limit 1"""
FAULTS = [
    ("lost", "update memories set content = content || '!' where kind = 'event'"),
    ("lost", "update memories set object = '' where kind = 'fact'"),
    ("lost", "update messages set number = number + 1000"),
    ("lost", "update items set value = '{}'"),
    ("lost", "insert into items (scope_id, path, key, value, text, revision, created_at, updated_at) "
             "select scope_id, path, 'other', '{\"number\": 1}', '', 1, now(), now() from items limit 1"),
    ("lost", "update api_keys set revoked_at = null"),
    ("twice", COPY.format("content")),
    ("untold", COPY.format("'never said'")),
    ("bare", "delete from memory_terms"),
    ("bare", "delete from memory_features"),
    ("bare", f"delete from {VECTORS}"),
    ("without job", "delete from procrastinate_jobs"),
    ("miscounted", "update scopes set memory_count = memory_count + 1"),
    ("miscounted", "update scopes set event_count = event_count - 1"),
    ("miscounted", "update keyword_strengths set strength = strength + 1"),
    ("miscounted", "update messages set number = number + 1 where number = (select max(number) from messages)"),
    ("miscounted", "update conversations set last_number = last_number + 1"),
    ("miscounted", "delete from changes where number = 3"),
]  # fmt: skip


async def call(recollect) -> Told:
    """Let callers call a server of which nothing is killed."""
    told = Told(60)
    _, secret = await new_key(recollect)
    with application(recollect) as app:
        async with (
            serving(app, lifespan="off") as url,
            traffic(url, secret, told, 4, callers=range(4), kinds=WRITES | READS),
        ):
            await told.hear_more(WRITTEN)
    return told


@contextmanager
def planted(owner, statement):
    """Do something that neither triggers nor keys mend, for the length of the block."""
    with owner.transaction() as transaction:
        owner.execute("set local session_replication_role = replica")
        assert owner.execute(statement).rowcount > 0, statement
        yield
        raise psycopg.Rollback(transaction)


@pytest.mark.promise("The tests of killed processes notice every fault that they are to find")
async def test_every_fault_is_noticed(recollect, addresses, owner):
    told = await call(recollect)
    assert (check(addresses.owner, told), told.wrong) == ({}, [])
    for sort, statement in FAULTS:
        with planted(owner, statement):
            assert sort in find_faults(owner, told), statement
    filled = {table for table in SIDES if owner.execute(f"select from {table} limit 1").fetchall()}
    assert len(filled) > 6
    with planted(owner, "delete from memories"):
        assert {table for table, _ in find_faults(owner, told)["orphans"]} == filled
    [nonce, *_] = told.forgotten
    back = COPY.format("'back again'").replace("gen_random_uuid()", f"'{told.memories[nonce][0]}'")
    with planted(owner, back):
        assert find_faults(owner, told)["untold"] == ["back again"]
    assert find_faults(owner, told) == {}
