"""Erasures are logged outside the database before they are acknowledged: ids alone, each once, or nothing is erased."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from conftest import PATIENT
from recollect.core.service.erasures import LoggedErasure, choose_newer, find_position
from recollect.errors import ErasureLogError, SetupError, UnavailableError
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role
from recollect.settings import Settings
from recollect.store.backups import record
from recollect.store.backups.log import FileErasureLog, ObjectErasureLog, build_log, read_whole
from recollect.store.cold.storage import open_objects
from recollect.wiring import connected
from support.service.made_settings import make_settings

WORDS = "peanuts"
WAITS = """select exists (select from pg_locks where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database()))"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "erasures"


@pytest.fixture
async def recollect(addresses, embedder, folder):
    async with connected(
        make_settings(embedder="fake", operations__erasure_log=str(folder), **PATIENT), addresses, embedder
    ) as running:
        yield running


@pytest.fixture
async def mind(recollect):
    return await recollect.mind("ada", "Li Example")


def lines(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


async def say(mind, name):
    conversation = mind.conversation(name)
    return conversation, await conversation.append([NewMessage(Role.USER, WORDS)])


async def test_every_way_of_erasing_is_logged_by_ids_alone(recollect, mind, folder, owner):
    [source] = await mind.remember(WORDS)
    [derived] = await mind.remember(NewMemory("of it", Kind.THOUGHT, evidence=(source.id,)))
    await mind.forget([source.id])
    await mind.forget([uuid4()])
    await mind.forget(filter=Filter(kinds=(Kind.EVENT,)), dry_run=True)
    [other] = await mind.remember(WORDS)
    await mind.forget(filter=Filter(kinds=(Kind.EVENT,)))
    conversation, _ = await say(mind, "dinner")
    await conversation.purge(dry_run=True)
    receipt = await conversation.purge()
    old, _ = await say(mind, "old")
    await old.delete()
    owner.execute("update conversations set changed_at = now() - interval '90 days'")
    assert len(await recollect.operator.retain()) == 1
    await (await recollect.mind("bea", "Li Example")).remember(WORDS)
    caller = await recollect.operator.act_for("default")
    erased = await recollect.operator.erasures.forget_user(caller, "Li Example")
    found = lines(folder)
    first, second = [row[0] for row in owner.execute("select id from scopes order by agent").fetchall()]
    # Both agents' scopes are of one receipt.
    retained = owner.execute("select id from purge_receipts where asked_by = 'retention'").fetchall()
    assert not retained, "the receipts of purges went with the user"
    assert [set(each["memories"]) for each in found[:2]] == [{str(source.id), str(derived.id)}, {str(other.id)}]
    assert [(each["scope"], each["conversation"]) for each in found[2:4]] == [(first, "dinner"), (first, "old")]
    assert found[2]["receipt"] == str(receipt.id)
    assert [each["receipt"] for each in found[4:]] == [str(erased.id)] * 2
    assert {each["scope"] for each in found[4:]} == {first, second}
    written = "".join(path.read_text() for path in folder.iterdir())
    assert WORDS not in written and "Li Example" not in written
    assert {oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())} == {"0o700", "0o600"}


async def test_without_a_setting_only_the_embedded_server_logs(addresses, embedder):
    async with connected(Settings(embedder="fake"), addresses, embedder) as running:
        assert running.parts.database.erasures is None


async def test_what_cannot_be_logged_is_not_erased(recollect, mind, folder, owner):
    [kept] = await mind.remember(WORDS)
    conversation, _ = await say(mind, "dinner")
    folder.write_text("no folder")
    caller = await recollect.operator.act_for("default")
    for erase in (
        mind.forget([kept.id]),
        conversation.purge(),
    ):
        with pytest.raises(ErasureLogError, match="Nothing was erased"):
            await erase
    assert issubclass(ErasureLogError, UnavailableError), "a caller tries again"
    begun = await recollect.operator.erasures.forget_user(caller, "Li Example")
    assert begun.erased_at is None, "a job goes on with it"
    assert len((await mind.list()).memories) == 2
    assert owner.execute("select count(*) from purge_receipts").fetchone() == (0,)
    folder.unlink()
    assert await mind.forget([kept.id]) == [kept.id]
    assert len(lines(folder)) == 1


async def test_no_backup_reads_the_log_between_an_entry_and_its_effect(recollect, mind, owner):
    [kept] = await mind.remember(WORDS)
    log, written, go_on = recollect.parts.database.erasures, asyncio.Event(), asyncio.Event()
    append = log.append

    async def halt(erasure):
        await append(erasure)
        written.set()
        await go_on.wait()

    log.append = halt
    forgetting = asyncio.create_task(mind.forget([kept.id]))
    await written.wait()
    reading = asyncio.create_task(record.read_log(recollect.addresses.owner, log))
    while not owner.execute(WAITS).fetchone()[0]:
        assert not reading.done()
        await asyncio.sleep(0.01)
    assert owner.execute("select count(*) from memories").fetchone() == (1,)
    go_on.set()
    entries = await reading
    assert owner.execute("select count(*) from memories").fetchone() == (0,)
    assert [each.ids for numbered in entries.values() for each in numbered.values()] == [(kept.id,)]
    await forgetting


def entry(number=1):
    return LoggedErasure(number, datetime(2026, 11, 18, tzinfo=UTC), ids=(uuid4(),))


def open_bucket(tmp_path):
    return ObjectErasureLog("s3://bucket", open_objects(f"file://{tmp_path}/objects", "", 30, "place"))


@pytest.mark.parametrize("kind", ["files", "objects"])
async def test_processes_have_streams_of_their_own_and_a_position_tells_what_is_newer(tmp_path, folder, kind):
    make = {"files": lambda: FileErasureLog(folder), "objects": lambda: open_bucket(tmp_path)}[kind]
    one, two = make(), make()
    before = [entry(number) for number in range(20)]
    await asyncio.gather(*(log.append(each) for log, each in zip([one, two] * 10, before, strict=True)))
    read = await make().read_erasures()
    assert len(read) == 2 and all(set(numbered) == set(range(1, 11)) for numbered in read.values())
    position = find_position(read)
    after = [entry(100), entry(101)]
    await one.append(after[0])
    await make().append(after[1])
    assert sorted(each.scope_id for each in choose_newer(await make().read_erasures(), position)) == [100, 101]
    assert {*map(str, before)} < {*map(str, choose_newer(await make().read_erasures(), {}))}


async def test_a_line_that_was_cut_is_none_and_a_damaged_one_stops_everything(folder):
    log = FileErasureLog(folder)
    await log.append(entry())
    [path] = folder.iterdir()
    path.write_bytes(path.read_bytes() + b'{"scope":7,"at"')
    [numbered] = (await log.read_erasures()).values()
    assert list(numbered) == [1]
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SetupError, match="damaged"):
        await log.read_erasures()


async def test_after_a_failed_write_the_process_begins_another_file(folder, monkeypatch):
    log = FileErasureLog(folder)
    whole = os.fsync

    def fail(file):
        raise OSError(5, "Input/output error")

    await log.append(entry())
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ErasureLogError, match="Input/output error"):
        await log.append(entry())
    monkeypatch.setattr(os, "fsync", whole)
    await log.append(entry())
    assert len(list(folder.iterdir())) == 2


async def test_a_log_that_is_lost_is_told_from_an_empty_one(folder):
    log = build_log(str(folder), Settings())
    with pytest.raises(SetupError, match="is missing or incomplete"):
        await read_whole(log, {})
    folder.mkdir()
    assert await read_whole(log, {}) == {}
    with pytest.raises(SetupError, match="is missing or incomplete"):
        await read_whole(log, {"other": 3})
    assert build_log("off", Settings()) is None and build_log("", Settings()) is None
