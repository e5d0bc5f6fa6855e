"""Backups are made and restored; what was erased since they were made is not in what is served."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from conftest import PATIENT, addresses_of, execute
from recollect.errors import ConflictError, NotFoundError, SchemaError, SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.operators import backups as operators
from recollect.mind.service import Addresses
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.store.backups import dumps
from recollect.verbs.backups import reapply
from recollect.wiring import (
    connect_database,
    connected,
    make_backup,
    open_recollect,
    replay_erasures,
    restore_backup,
)
from support.programs import command_line
from support.programs.folders import find_memory, open_folder
from support.service.made_settings import change_settings, make_settings
from support.service.purge_receipts import receipts_of

OWNERS = """select proname, proowner::regrole::text from pg_proc
where pronamespace = 'public'::regnamespace and prosecdef order by 1, 2"""
ROLES = """select rolname, pg_authid.rolcanlogin, rolconfig, pg_authid.rolpassword,
    array(select roleid::regrole::text from pg_auth_members where member = pg_authid.oid order by 1)
from pg_authid join pg_roles using (rolname) where rolname !~ '^pg_' order by 1"""
GRANTS = "select unnest(datacl)::text from pg_database where datname = 'recollect' order by 1"
KEPT, ERASED = "kept words", "erased words"


@dataclass
class Lived:
    """A record with something to erase, and all that erases it."""

    recollect: object

    async def live(self):
        self.mind = await self.recollect.mind("ada", "mo")
        await self.mind.remember(KEPT)
        [self.memory] = await self.mind.remember(f"{ERASED} by id")
        self.conversation = self.mind.conversation("dinner")
        await self.conversation.append([NewMessage(Role.USER, f"{ERASED} in a conversation")])
        for agent in ("ada", "bea"):
            await (await self.recollect.mind(agent, "li")).remember(f"{ERASED} of a user")
        return self

    async def erase(self):
        await self.mind.forget([self.memory.id])
        self.purged = await self.conversation.purge()
        caller = await self.recollect.operator.act_for("default")
        self.erased = await self.recollect.operator.erasures.forget_user(caller, "li")


@pytest.fixture
def folder():
    with open_folder("backup", find_memory()) as made:
        yield made


def settings_in(folder, name="data", **more):
    return make_settings(embedder="none", data_dir=folder / name, **PATIENT, **more)


def ask(settings, query):
    with connect_database(settings) as addresses, psycopg.connect(addresses.owner) as connection:
        return connection.execute(query).fetchall()


def contents(settings):
    return sorted(row[0] for row in ask(settings, "select content from memories"))


def old_servers(folder, name="data"):
    return [*(folder / name).glob("postgres.replaced-*")]


async def test_a_restored_backup_lacks_what_was_erased_since(folder, monkeypatch):
    settings = settings_in(folder)
    async with open_recollect(settings, work=False) as recollect:
        lived = await Lived(recollect).live()
        with psycopg.connect(recollect.addresses.owner, autocommit=True) as owner:
            owner.execute("create role reporting login password 'p' in role recollect_readers")
            owner.execute("revoke temporary on database recollect from public")
        made = await make_backup(settings, folder / "backups")
        assert {oct(each.stat().st_mode & 0o777) for each in made.parent.iterdir()} == {"0o600"}
        assert {each.name for each in made.parent.iterdir()} == {made.name, f"{made.stem}.json"}
        await lived.erase()
        with pytest.raises(ConflictError, match="is running"):
            await restore_backup(settings, made)
    before = [ask(settings, query) for query in (OWNERS, ROLES, GRANTS)]

    async def fail(parts, entries):
        assert len(entries) == 4
        with pytest.raises(SchemaError, match="restored from a backup"):
            async with connected(settings, served(folder), FakeEmbedder()):
                pass
        raise ConflictError("broken off")

    monkeypatch.setattr(operators, "reapply", fail)
    with pytest.raises(ConflictError, match="broken off"):
        await restore_backup(settings, made)
    monkeypatch.undo()
    assert (contents(settings), old_servers(folder)) == ([KEPT], []), "the old server is where it was"
    done = await restore_backup(settings, made)
    assert (done.logged, done.applied) == (4, 4)
    assert [str(each) for each in old_servers(folder)] == [done.aside], "it was moved, not deleted"
    assert contents(settings) == [KEPT] and not (folder / "data.restoring").exists()
    assert ask(settings, "select id::text from incarnations") == [(done.incarnation,)]
    assert [ask(settings, query) for query in (OWNERS, ROLES, GRANTS)] == before, "roles and rights are the same"
    async with open_recollect(settings, work=False) as again:
        mind = await again.mind("ada", "mo")
        assert [hit.memory.content for hit in (await mind.recall("words")).hits] == [KEPT]
        [receipt] = await receipts_of(mind.conversation("dinner"))
        assert (receipt.id, receipt.asked_by, receipt.erased_at is not None) == (lived.purged.id, "restore", True)
        caller = await again.operator.act_for("default")
        [erased] = await again.operator.erasures.receipts(caller, "li")
        assert (erased.id, erased.scopes, erased.erased_at is not None) == (lived.erased.id, 2, True)


def served(folder):
    """Return the addresses of the server that a restore prepares."""
    cluster = operators.Cluster(folder / "data.restoring")
    return Addresses(cluster.dsn("recollect", "recollect_service"), cluster.dsn("recollect"))


async def test_a_backup_is_restored_twice_and_lacks_what_either_server_erased(folder, monkeypatch):
    settings, other = settings_in(folder), settings_in(folder, "other")
    async with open_recollect(settings, work=False) as recollect:
        lived = await Lived(recollect).live()
        # Who comes back after an erasure begins anew, and a backup of that has it.
        caller = await recollect.operator.act_for("default")
        await recollect.operator.erasures.forget_user(caller, "li")
        await (await recollect.mind("ada", "li")).remember("back again")
        with monkeypatch.context() as patch:
            patch.setattr("recollect.verbs.conversations.lifecycle.SYNC_SECONDS", -1.0)
            await lived.conversation.purge()
        made = await make_backup(settings, folder / "backups")
        await lived.mind.forget([lived.memory.id])
    done = await restore_backup(other, made)
    assert (done.logged, done.applied, done.finished, done.aside) == (1, 1, 1, "")
    assert contents(other) == ["back again", KEPT]
    async with open_recollect(other, work=False) as recollect:
        await (await recollect.mind("ada", "li")).remember("after it")
        caller = await recollect.operator.act_for("default")
        await recollect.operator.erasures.forget_user(caller, "li")
    done = await restore_backup(other, made)
    assert (done.logged, done.applied, contents(other)) == (2, 2, [KEPT])
    shutil.rmtree(folder / "data" / "erasures")
    with pytest.raises(SetupError, match="erasure log"):
        await restore_backup(settings_in(folder, "third"), made)
    assert not (folder / "third").exists()
    done = await restore_backup(settings_in(folder, "third"), made, logged=False)
    assert done.logged == 0 and f"{ERASED} by id" in contents(settings_in(folder, "third"))


@pytest.fixture
def backup(tmp_path):
    """A file with a manifest that describes it."""
    file = tmp_path / "made.dump"
    file.write_bytes(b"content")
    manifest = operators.BackupManifest("1", dumps.compute_checksum(file), "", "", {})
    file.with_suffix(".json").write_text(operators.dumps.write_manifest(manifest))
    return file


def test_a_damaged_backup_is_refused(backup):
    assert dumps.check_dump(backup).program == "1"
    backup.write_bytes(b"Content")
    with pytest.raises(ConflictError, match="damaged"):
        dumps.check_dump(backup)
    backup.unlink()
    with pytest.raises(NotFoundError, match="No backup"):
        dumps.check_dump(backup)


def test_a_dump_without_its_manifest_is_refused(backup):
    backup.with_suffix(".json").unlink()
    with pytest.raises(NotFoundError, match=r"\.json"):
        dumps.check_dump(backup)


async def test_a_dump_that_fails_leaves_no_file(cluster, tmp_path):
    with pytest.raises(SetupError, match="pg_dump failed"):
        dumps.write_dump(cluster.dsn("missing"), tmp_path, operators.BackupManifest("1", "", "", "", {}))
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
async def lived(addresses, embedder, tmp_path):
    given = {"database_url": addresses.service, "owner_database_url": addresses.owner, "embedder": "fake"}
    settings = make_settings(**given, operations__erasure_log=str(tmp_path / "erasures"), **PATIENT)
    async with connected(settings, addresses, embedder) as recollect:
        yield await Lived(recollect).live(), settings


@pytest.fixture
async def copied(lived, cluster):
    """The settings of a copy of a server, made before everything was erased, and the time of the copy."""
    before, settings = lived
    await before.recollect.parts.database.close()
    source = psycopg.conninfo.conninfo_to_dict(before.recollect.addresses.owner)["dbname"]
    execute(cluster, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{source}'")
    execute(cluster, f"create database copied template {source}")
    made_at, there = datetime.now(UTC), addresses_of(cluster, "copied")
    async with connected(settings, before.recollect.addresses, FakeEmbedder()) as recollect:
        again = Lived(recollect)
        again.mind, again.memory = await recollect.mind("ada", "mo"), before.memory
        again.conversation = again.mind.conversation("dinner")
        await again.erase()
    target = {"database_url": there.service, "owner_database_url": there.owner}
    yield settings.model_copy(update=target), made_at, there
    execute(cluster, "drop database copied with (force)")


def contents_at(addresses):
    with psycopg.connect(addresses.owner) as connection:
        return sorted(row[0] for row in connection.execute("select content from memories").fetchall())


async def test_erasures_are_replayed_in_a_copy_made_by_other_means(copied):
    settings, made_at, there = copied
    done = await replay_erasures(settings, made_at)
    assert (done.logged, done.applied, contents_at(there)) == (4, 4, [KEPT])
    again = await replay_erasures(settings, made_at)
    assert again.logged == 0, "what was logged before an incarnation began was applied when it began"


async def test_an_erasure_that_was_logged_before_the_copy_and_committed_after_it_is_replayed(copied):
    settings, _, there = copied
    done = await replay_erasures(settings, datetime.now(UTC))
    assert (done.applied, contents_at(there)) == (4, [KEPT])


async def test_a_replay_that_was_broken_off_is_not_served_and_can_be_repeated(copied, monkeypatch):
    settings, made_at, there = copied
    whole, refused = reapply.erase, []

    async def look(parts, scope, entry):
        with pytest.raises(SchemaError, match="restored from a backup"):
            async with connected(settings, there, FakeEmbedder()):
                pass
        refused.append(entry)
        if len(refused) == 3:
            raise ConflictError("broken off")
        return await whole(parts, scope, entry)

    monkeypatch.setattr(reapply, "erase", look)
    with pytest.raises(ConflictError, match="broken off"):
        await replay_erasures(settings, made_at)
    done = await replay_erasures(settings, made_at - timedelta(hours=1))
    assert len(refused) == 7 and (done.logged, contents_at(there)) == (4, [KEPT])


async def test_a_server_of_ones_own_is_backed_up_by_its_tools(lived, tmp_path):
    _, settings = lived
    shards = change_settings(settings, shards__catalog_url="postgresql://catalog")
    for each in (settings, shards):
        for work in (make_backup(each, tmp_path), restore_backup(each, tmp_path / "made.dump")):
            with pytest.raises(SetupError, match=r"backup replay.*backup\.md"):
                await work
    with pytest.raises(SetupError, match="each shard in turn"):
        await replay_erasures(shards, datetime.now(UTC))
    unlogged = command_line.settings_of(lived[0].recollect.addresses)
    said = await asyncio.to_thread(
        command_line.run, "admin", "backup", "replay", "--since", "2026-01-01", settings=unlogged, fails=True
    )
    assert "Set RECOLLECT_OPERATIONS__ERASURE_LOG" in said
