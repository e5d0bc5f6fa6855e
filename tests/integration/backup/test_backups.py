"""Backups are made, looked through and restored; what was erased since they were made is not in what is served."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import command_line
from conftest import PATIENT, addresses_of, execute
from folders import find_memory
from recollect.errors import ConflictError, NotFoundError, SchemaError, SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.operators import backups as operators
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.outside import BackupKind
from recollect.settings import Settings
from recollect.store.backups import copies, programs
from recollect.store.cold.storage import open_objects
from recollect.verbs.backups import reapply
from recollect.wiring import connected, make_backup, replay_erasures, restore_backup, verify_backup

OWNERS = """select proname, proowner::regrole::text from pg_proc
where pronamespace = 'public'::regnamespace and prosecdef order by 1, 2"""
KEPT, ERASED = "kept words", "erased words"


def silent(step, done, total):
    """Report nothing."""


@dataclass
class Lived:
    """A record with something to erase, and all that erases it."""

    recollect: object
    settings: Settings
    addresses: object

    async def live(self):
        self.mind = await self.recollect.mind("ada", "mo")
        await self.mind.remember(KEPT)
        [self.memory] = await self.mind.remember(f"{ERASED} by id")
        self.conversation = self.mind.conversation("dinner")
        await self.conversation.append([NewMessage(Role.USER, f"{ERASED} in a conversation")])
        for agent in ("ada", "bea"):
            await (await self.recollect.mind(agent, "li")).remember(f"{ERASED} of a user")

    async def erase(self):
        await self.mind.forget([self.memory.id])
        self.purged = await self.conversation.purge()
        caller = await self.recollect.operator.act_for("default")
        self.erased = await self.recollect.operator.erasures.forget_user(caller, "li")

    async def make(self, place, kind=None):
        return await make_backup(self.settings, str(place), kind, silent)


@pytest.fixture
async def lived(addresses, embedder, tmp_path):
    given = {"database_url": addresses.service, "owner_database_url": addresses.owner, "embedder": "fake"}
    settings = Settings(**given, erasure_log=str(tmp_path / "erasures"), **PATIENT)
    async with connected(settings, addresses, embedder) as recollect:
        record = Lived(recollect, settings, addresses)
        await record.live()
        yield record


@pytest.fixture
def empty(cluster):
    """The addresses of a database without any table."""
    execute(cluster, "create database emptied")
    yield addresses_of(cluster, "emptied")
    execute(cluster, "drop database emptied with (force)")


def pointed(settings, addresses):
    return settings.model_copy(update={"database_url": addresses.service, "owner_database_url": addresses.owner})


def contents(addresses):
    with psycopg.connect(addresses.owner, autocommit=True) as connection:
        return sorted(row[0] for row in connection.execute("select content from memories").fetchall())


def incarnation(addresses):
    with psycopg.connect(addresses.owner, autocommit=True) as connection:
        return connection.execute("select id from incarnations").fetchall()


async def test_a_restored_dump_lacks_what_was_erased_since(lived, empty, tmp_path, monkeypatch):
    made = await lived.make(tmp_path / "backups")
    assert made.kind is BackupKind.DUMP and made.rows > 5
    await lived.erase()
    target, whole, refused = pointed(lived.settings, empty), reapply.erase, []

    async def look(parts, scope, entry):
        with pytest.raises(SchemaError, match="restored from a backup"):
            async with connected(target, empty, FakeEmbedder()):
                pass
        refused.append(entry)
        return await whole(parts, scope, entry)

    monkeypatch.setattr(reapply, "erase", look)
    done = await restore_backup(target, made.name, silent)
    assert len(refused) == done.reapplied.logged == done.reapplied.applied == 4
    assert contents(empty) == [KEPT]
    assert [(done.incarnation,)] == [(str(each),) for (each,) in incarnation(empty)]
    assert incarnation(empty) != incarnation(lived.addresses)
    async with connected(target, empty, FakeEmbedder()) as again:
        mind = await again.mind("ada", "mo")
        assert [hit.memory.content for hit in (await mind.recall("words")).hits] == [KEPT]
        [receipt] = await mind.conversation("dinner").receipts()
        assert (receipt.id, receipt.asked_by, receipt.erased_at is not None) == (lived.purged.id, "restore", True)
        caller = await again.operator.act_for("default")
        [erased] = await again.operator.erasures.receipts(caller, "li")
        assert (erased.id, erased.scopes, erased.erased_at is not None) == (lived.erased.id, 2, True)
        with psycopg.connect(lived.addresses.owner) as before, psycopg.connect(empty.owner) as after:
            assert before.execute(OWNERS).fetchall() == after.execute(OWNERS).fetchall(), "their rights are the same"


async def test_what_a_backup_has_erased_already_is_not_erased_twice(lived, empty, tmp_path):
    await lived.erase()
    # Who comes back after an erasure begins anew, and a backup of that has it.
    await (await lived.recollect.mind("ada", "li")).remember("back again")
    await lived.conversation.append([NewMessage(Role.USER, "a new dinner")])
    made = await lived.make(tmp_path / "backups")
    done = await restore_backup(pointed(lived.settings, empty), made.name, silent)
    assert (done.reapplied.logged, done.reapplied.applied) == (0, 0)
    assert contents(empty) == ["a new dinner", "back again", KEPT]


async def test_a_purge_that_a_backup_has_begun_is_finished(lived, empty, tmp_path, monkeypatch):
    monkeypatch.setattr("recollect.verbs.conversations.manage.SYNC_SECONDS", -1.0)
    await lived.conversation.purge()
    made = await lived.make(tmp_path / "backups")
    assert f"{ERASED} in a conversation" in contents(lived.addresses)
    done = await restore_backup(pointed(lived.settings, empty), made.name, silent)
    assert (done.reapplied.applied, done.reapplied.finished) == (0, 1)
    assert f"{ERASED} in a conversation" not in contents(empty)


async def test_without_the_log_nothing_is_restored_unless_that_is_wanted(lived, empty, tmp_path):
    made = await lived.make(tmp_path / "backups")
    await lived.erase()
    shutil.rmtree(tmp_path / "erasures")
    target = pointed(lived.settings, empty)
    with pytest.raises(SetupError, match="erasure log"):
        await restore_backup(target, made.name, silent)
    with psycopg.connect(empty.owner) as connection:
        assert connection.execute("select to_regclass('memories')").fetchone() == (None,)
    done = await restore_backup(target, made.name, silent, logged=False)
    assert done.reapplied.logged == 0 and f"{ERASED} of a user" in contents(empty)


async def test_a_restore_that_was_broken_off_is_not_served(lived, empty, tmp_path, monkeypatch):
    made, target = await lived.make(tmp_path / "backups"), pointed(lived.settings, empty)
    await lived.erase()

    async def fail(parts, entries, report):
        raise ConflictError("broken off")

    monkeypatch.setattr(operators, "reapply", fail)
    with pytest.raises(ConflictError, match="broken off"):
        await restore_backup(target, made.name, silent)
    monkeypatch.undo()
    with pytest.raises(SchemaError, match="restored from a backup"):
        async with connected(target, empty, FakeEmbedder()):
            pass
    with pytest.raises(ConflictError, match="empty one"):
        await restore_backup(target, made.name, silent)
    done = await replay_erasures(target, datetime.now(UTC) - timedelta(hours=1), silent)
    assert done.reapplied.applied == 4 and contents(empty) == [KEPT]


async def test_erasures_are_replayed_in_a_copy_made_by_other_means(lived, cluster, empty):
    await lived.recollect.parts.database.close()
    execute(cluster, "drop database emptied with (force)")
    source = psycopg.conninfo.conninfo_to_dict(lived.addresses.owner)["dbname"]
    execute(cluster, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{source}'")
    execute(cluster, f"create database emptied template {source}")
    before = datetime.now(UTC)
    async with connected(lived.settings, lived.addresses, FakeEmbedder()) as recollect:
        lived.recollect, lived.mind = recollect, await recollect.mind("ada", "mo")
        lived.conversation = lived.mind.conversation("dinner")
        await lived.erase()
    done = await replay_erasures(pointed(lived.settings, empty), before, silent)
    assert (done.reapplied.logged, done.reapplied.applied) == (4, 4)
    assert contents(empty) == [KEPT]
    again = await replay_erasures(pointed(lived.settings, empty), before, silent)
    assert again.reapplied.logged == 0, "what was logged before an incarnation began was applied when it began"


async def test_a_backup_is_looked_through(lived, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", find_memory() and str(find_memory()))
    made = await lived.make(tmp_path / "backups")
    found = await verify_backup(lived.settings, made.name, silent)
    assert found.rows == made.rows and found.indexes > 100 and found.remarks == ()
    files = tmp_path / "backups" / made.name.rsplit("/", 1)[1]
    manifest = json.loads((files / "manifest.json").read_text())
    dump = files / copies.DUMP
    content = dump.read_bytes()
    dump.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(ConflictError, match=r"damaged: database\.dump"):
        await verify_backup(lived.settings, made.name, silent)
    dump.write_bytes(content)
    rows = manifest["record"]["rows"]
    operators.compare(rows, {**rows})
    with pytest.raises(ConflictError, match="other numbers of rows than the server had: memories, strange"):
        operators.compare(rows, {**rows, "memories": 0, "strange": 1})
    dump.unlink()
    with pytest.raises(ConflictError, match="lacks"):
        await verify_backup(lived.settings, made.name, silent)
    (files / "manifest.json").unlink()
    with pytest.raises(NotFoundError, match="no backup"):
        await verify_backup(lived.settings, made.name, silent)


async def test_a_bucket_holds_backups_too(lived, empty, tmp_path, monkeypatch):
    """Objects of a folder, by the same client as those of a bucket."""
    opened = operators.open_place

    def as_bucket(address, settings):
        place = opened(address, settings)
        return type(place)(address, None, open_objects(f"file://{place.folder}", "", 60, "place"))

    monkeypatch.setattr(operators, "open_place", as_bucket)
    made = await lived.make(tmp_path / "bucket")
    await lived.erase()
    await restore_backup(pointed(lived.settings, empty), made.name, silent)
    assert contents(empty) == [KEPT]
    with pytest.raises(NotFoundError, match="no backup"):
        await verify_backup(lived.settings, str(tmp_path / "bucket" / "other"), silent)


async def test_who_cannot_see_every_row_makes_no_backup(lived, tmp_path, owner):
    owner.execute("create role half login")
    half = lived.addresses.owner.replace("user=postgres", "user=half")
    try:
        with pytest.raises(SetupError, match="RECOLLECT_BACKUP_URL"):
            await make_backup(lived.settings.model_copy(update={"backup_url": half}), str(tmp_path), None, silent)
    finally:
        owner.execute("drop role half")
    assert [path.name for path in tmp_path.iterdir() if path.name != "erasures"] == [], "nothing is left"


async def test_who_reads_all_data_makes_a_backup(lived, tmp_path, owner):
    owner.execute("create role keeper login bypassrls in role pg_read_all_data")
    keeper = lived.addresses.owner.replace("user=postgres", "user=keeper")
    try:
        made = await make_backup(lived.settings.model_copy(update={"backup_url": keeper}), str(tmp_path), None, silent)
    finally:
        owner.execute("drop role keeper")
    assert (tmp_path / made.name).exists()


async def test_what_is_missing_is_named(lived, tmp_path, monkeypatch):
    monkeypatch.setattr(programs.shutil, "which", lambda name: None)
    monkeypatch.setattr(programs, "find_programs", lambda: tmp_path)
    with pytest.raises(SetupError, match=r"pg_dump is not installed.*postgresql-client"):
        await lived.make(tmp_path / "backups")
    shards = lived.settings.model_copy(update={"catalog_url": "postgresql://catalog"})
    for work in (make_backup(shards, str(tmp_path), None, silent), restore_backup(shards, str(tmp_path), silent)):
        with pytest.raises(SetupError, match="A backup is of one server"):
            await work


async def test_the_commands(lived, empty, tmp_path):
    log = {"erasure_log": str(tmp_path / "erasures")}
    settings = command_line.settings_of(lived.addresses, **log)
    made = command_line.call("backup", "make", str(tmp_path / "backups"), settings=settings)
    name, told, *_ = made.stdout.splitlines()
    assert told.startswith("made: dump, ") and told.endswith(" rows.")
    await lived.erase()
    said = command_line.run("backup", "restore", name, settings=command_line.settings_of(empty, **log))
    assert "4 erasures are newer than the backup; 4 of them had something to erase" in said
    assert contents(empty) == [KEPT]
    said = command_line.run(
        "backup", "replay", "--since", "2026-01-01", settings=command_line.settings_of(empty), fails=True
    )
    assert "Set RECOLLECT_ERASURE_LOG" in said
