"""Statements are prepared under names of their own, and what is lost or changed is prepared anew."""

from __future__ import annotations

import json

import pytest

from conftest import PATIENT
from recollect.errors import InvalidInputError, UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.store.database import driver
from recollect.store.database.pool import Database
from recollect.wiring import connected
from support.service.made_settings import make_settings

LISTED = "select name, statement from pg_prepared_statements"
ANSWER = "select 42 as answer"


@pytest.fixture
async def database(addresses):
    """One connection, so that all that is said of statements is said of this one."""
    opened = await Database.open(addresses.service, 1, 60)
    yield opened
    await opened.close()


async def ask(database, query, parameters=None, **options):
    async with database.reading(None) as connection:
        answer = await connection.execute(query, parameters, **options)
    return await answer.fetchall()


async def list_prepared(database):
    """Give the names of what is prepared, by statement."""
    rows = await ask(database, LISTED, prepare=False)
    return {row["statement"]: row["name"] for row in rows}


def told(caplog):
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "recollect.database"]
    return [line["reason"] for line in lines if line["event"] == "prepared_statements_disabled"]


async def test_a_statement_is_prepared_once_under_a_name_of_its_text_and_types(addresses, database):
    for value in (1, 2, 100_000):
        await ask(database, "select %s + 1 as sum", [value])
    rows = await ask(database, "select name from pg_prepared_statements where statement like '%%sum'", prepare=False)
    assert len(rows) == 2, "one for each type of the parameter"
    other = await Database.open(addresses.service, 1, 60)
    await ask(other, ANSWER)
    await ask(other, "select %s + 1 as sum", [1])
    names = {row["name"][:-1].rstrip("0123456789") for row in rows}
    assert (await list_prepared(other))["select $1 + 1 as sum"].rstrip("0123456789") in names
    await other.close()


async def test_what_is_done_again_is_neither_parsed_nor_planned_again(recollect, mind):
    await mind.remember("an apple")
    async with recollect.parts.database.statement() as connection:
        found = await connection.execute("select name from pg_prepared_statements", prepare=False)
        assert len(await found.fetchall()) > 5


@pytest.mark.parametrize("pipelined", [True, False])
async def test_a_transaction_that_fails_leaves_what_is_prepared_as_it_was(database, pipelined):
    await ask(database, ANSWER)
    before = await list_prepared(database)
    for _ in range(2):
        with pytest.raises(InvalidInputError):
            async with database.transaction(None, pipelined=pipelined) as connection:
                await connection.execute(ANSWER)
                await connection.execute("select 1 / %s as never", [0])
                await connection.execute("select 43 as never_reached")
    assert await list_prepared(database) | before == await list_prepared(database)
    assert await ask(database, ANSWER) == [{"answer": 42}]
    assert await ask(database, "select 43 as never_reached") == [{"never_reached": 43}]
    assert await ask(database, "select 1 / %s as never", [1]) == [{"never": 1}]


async def test_what_was_not_used_for_longest_makes_room(database, monkeypatch):
    monkeypatch.setattr(driver.NamedStatements, "prepared_max", 5)
    for number in range(20):
        assert await ask(database, f"select {number} as answer") == [{"answer": number}]
    kept = await list_prepared(database)
    assert len(kept) <= 6
    assert {"select 19 as answer"} <= kept.keys()


async def test_a_statement_that_is_lost_ends_preparing_and_is_told_of_once(database, caplog):
    await ask(database, ANSWER)
    async with database.statement() as connection:
        await connection.execute("deallocate all", prepare=False)
    with pytest.raises(UnavailableError, match="try again"):
        await ask(database, ANSWER)
    for _ in range(2):
        assert await ask(database, ANSWER) == [{"answer": 42}]
    assert await list_prepared(database) == {}
    assert told(caplog) == ["InvalidSqlStatementName 26000"]


async def test_a_statement_whose_columns_were_changed_is_prepared_anew(database, owner, caplog):
    owner.execute("create table changing (a integer); grant select on changing to recollect_service")
    assert await ask(database, "select * from changing") == []
    owner.execute("alter table changing add b integer; insert into changing values (1, 2)")
    with pytest.raises(UnavailableError, match="try again"):
        await ask(database, "select * from changing")
    assert await ask(database, "select * from changing") == [{"a": 1, "b": 2}]
    assert told(caplog) == []
    assert await list_prepared(database) != {}


async def test_an_operator_can_do_without(addresses):
    settings = make_settings(embedder="fake", postgres__prepare_statements=False, pool_size=1, **PATIENT)
    async with connected(settings, addresses, FakeEmbedder()) as running:
        mind = await running.mind("ada")
        await mind.remember("an apple")
        assert len((await mind.recall("apple")).hits) == 1
        assert await list_prepared(running.parts.database) == {}
