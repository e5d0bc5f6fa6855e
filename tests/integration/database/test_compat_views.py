"""SQL that was written against the founding tables runs unchanged, for readers who see one tenant and nothing else."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from conftest import QUICK, SHARED, execute
from recollect.errors import ConflictError, InvalidInputError, NotFoundError, SetupError
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.store.embedded.cluster import Cluster
from recollect.store.memories import spaces
from recollect.store.shards.tenants import Tenants
from recollect.verbs.service.readers import Readers
from recollect.wiring import connected, prepare
from support.programs.folders import open_folder
from support.service.known_numbers import SPACE, VECTORS
from support.service.reader_roles import connect

COLUMNS = [
    *("id", "persona_name", "type", "created_at", "last_accessed", "description", "poignancy", "embedding"),
    *("subject", "predicate", "object", "keywords", "filling", "node_count", "type_count", "depth", "is_idle"),
    "user_name",
]
VIEWS = {"memory_nodes", "kw_strength"}
PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


def descriptions(connection, where="true"):
    rows = connection.execute(f"select description from memory_nodes where {where} order by id").fetchall()
    return [row["description"] for row in rows]


def founding_statements():
    """Read the SQL of the founding document, in its order, with its parameters as the driver wants them."""
    text = next((SHARED / "seeds").glob("000_*.txt")).read_text(encoding="utf-8")
    found = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    return [PARAMETER.sub(r"%(\1)s", statement).strip().rstrip(";") for statement in found]


# The statements of the founding document.


async def test_the_founding_selects_run_unchanged(shared, recollect, readers, embedder):
    mind = await recollect.mind("Isabella Rodriguez")
    await mind.remember(
        [
            NewMemory("Isabella plans a party", importance=8, triple=Triple("Isabella", "plans", "a party")),
            NewMemory("Parties bring people together", Kind.THOUGHT, evidence=(0,)),
            NewMemory("a talk with Klaus", Kind.CHAT),
        ]
    )
    statements = founding_statements()
    select = next(each for each in statements if each.startswith("SELECT"))
    recent = next(each for each in statements if each.startswith("AND created_at"))
    nearest = next(each for each in statements if each.startswith("WHERE persona_name"))
    values = {
        "persona_name": "Isabella Rodriguez",
        "focal_embedding": str((await embedder.embed(["party"]))[0].tolist()),
    }
    with connect(await readers()) as connection:
        rows = connection.execute(select, values).fetchall()
        assert [row["description"] for row in rows] == ["Isabella plans a party", "Parties bring people together"]
        assert list(rows[0]) == COLUMNS[:8]
        assert [row["poignancy"] for row in rows] == [8, 5]
        assert len(json.loads(rows[0]["embedding"])) == embedder.dimensions
        bounded = select.replace("ORDER BY", f"{recent}\nORDER BY")
        assert len(connection.execute(bounded, values).fetchall()) == 2
        head = select.partition("WHERE")[0]
        assert len(connection.execute(f"{head}\n{nearest}", values).fetchall()) == 3
        assert (
            len(connection.execute(select.replace("ORDER BY", "AND is_idle = FALSE ORDER BY"), values).fetchall()) == 2
        )
        idle = select.replace("ORDER BY", "AND NOT (keywords && ARRAY['idle']) ORDER BY")
        assert len(connection.execute(idle, values).fetchall()) == 2


async def test_every_column_says_what_it_said_there(recollect, readers):
    mind = await recollect.mind("ada", "li")
    happened = datetime(2026, 1, 31, 12, tzinfo=UTC)
    memory = NewMemory(
        "Klaus reads", importance=7, triple=Triple("Klaus", "reads", "a book"), keywords=("klaus", "book"),
        occurred_at=happened,
    )  # fmt: skip
    receipts = await mind.remember([memory, NewMemory("He likes it", Kind.THOUGHT, evidence=(0,), importance=3)])
    await mind.remember(NewMemory("The table is idle", idle=True))
    new = await readers()
    with connect(new) as connection:
        first, thought, last = connection.execute("select * from memory_nodes order by node_count").fetchall()
        assert list(first) == COLUMNS
        shown = {name: first[name] for name in COLUMNS if name != "embedding"}
        assert shown == {
            "id": receipts[0].id,
            "persona_name": "ada",
            "user_name": "li",
            "type": "event",
            "created_at": happened,
            "last_accessed": happened,
            "description": "Klaus reads",
            "poignancy": 7.0,
            "subject": "Klaus",
            "predicate": "reads",
            "object": "a book",
            "keywords": ["klaus", "book"],
            "filling": [],
            "node_count": 1,
            "type_count": 1,
            "depth": 0,
            "is_idle": False,
        }
        assert (thought["filling"], thought["depth"], thought["type_count"]) == ([str(receipts[0].id)], 1, 1)
        assert (last["node_count"], last["type_count"], last["is_idle"]) == (3, 2, True)
        strengths = connection.execute("select * from kw_strength order by keyword").fetchall()
        assert {"persona_name": "ada", "keyword": "klaus", "memory_type": "event", "strength": 1} in strengths


async def test_an_access_is_seen_before_and_after_it_is_folded(recollect, readers, owner):
    mind = await recollect.mind("ada")
    await mind.remember(NewMemory("the vault", occurred_at=datetime(2020, 1, 1, tzinfo=UTC)))
    with connect(await readers()) as connection:
        ask = "select last_accessed from memory_nodes"
        assert connection.execute(ask).fetchone()["last_accessed"].year == 2020
        await mind.recall(Cue("vault", channels=("stream",)))
        logged = connection.execute(ask).fetchone()["last_accessed"]
        assert logged > datetime.now(UTC) - timedelta(minutes=5)
        owner.execute("select fold_accesses(id) from scopes")
        assert owner.execute("select count(*) from access_log").fetchone() == (0,)
        assert connection.execute(ask).fetchone()["last_accessed"] == logged


async def test_strengths_of_an_agent_add_up_over_its_users(recollect, readers):
    for user in ("li", "wu"):
        mind = await recollect.mind("ada", user)
        await mind.remember([NewMemory(f"tea {number}", keywords=("tea",)) for number in range(2)])
    with connect(await readers()) as connection:
        rows = connection.execute("select * from kw_strength where persona_name = 'ada'").fetchall()
        assert rows == [{"persona_name": "ada", "keyword": "tea", "memory_type": "event", "strength": 4}]


# What is hidden.


async def test_what_takes_no_part_in_recall_is_hidden(recollect, readers, owner):
    mind = await recollect.mind("ada")
    [kept, gone, old] = await mind.remember(
        [
            NewMemory(text, keywords=(text.split()[1],))
            for text in ("the kept one", "the forgotten one", "the expired one")
        ]
    )
    await mind.forget([gone.id])
    for name in ("archived", "deleted"):
        await mind.conversation(name).append([NewMessage(Role.USER, f"said in {name}")])
    await mind.conversation("archived").update(state="archived")
    await mind.conversation("deleted").delete()
    await mind.knowledge.add(NewFact("Ann", "lives in", "Rome"))
    owner.execute("update beliefs set valid_at = null, invalid_at = now() - interval '1 second'")
    # Still in the indexes, as between two passes of fading.
    owner.execute("update memories set expires_at = now() - interval '1 second' where id = %s", [old.id])
    with connect(await readers()) as connection:
        assert descriptions(connection) == ["the kept one"]
        strengths = connection.execute("select keyword from kw_strength").fetchall()
        assert strengths == [{"keyword": "kept"}]
        owner.execute("update memories set expires_at = null")
        assert descriptions(connection, "type = 'event'") == ["the kept one", "the expired one"]
        await mind.conversation("archived").update(state="active")
        assert "said in archived" in descriptions(connection)
        assert kept.id in {row["id"] for row in connection.execute("select id from memory_nodes").fetchall()}


async def test_what_is_deleted_is_hidden_before_its_memories_follow(recollect, readers, owner):
    mind = await recollect.mind("ada")
    [said] = await mind.conversation("c").append([NewMessage(Role.USER, "said in c")])
    await mind.remember(NewMemory("concluded from it", Kind.THOUGHT, evidence=(said.id,)))
    with connect(await readers()) as connection:
        assert descriptions(connection) == ["said in c", "concluded from it"]
        owner.execute("update conversations set state = 'deleted', synced = false")
        assert descriptions(connection) == []


async def test_a_superseded_version_and_a_faded_memory_are_hidden(recollect, readers, owner):
    mind = await recollect.mind("ada")
    [first] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome"))
    await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", replaces=(first.id,)))
    await mind.remember("a passing thing")
    owner.execute(
        "select fade_memories(scope_id, array[id], array[0.0], array['decay'], array['old']) "
        "from memories where content = 'a passing thing'"
    )
    with connect(await readers()) as connection:
        assert descriptions(connection, "description not like '%%Rome%%'") == descriptions(connection)
        assert len(descriptions(connection)) == 1


# Who sees what.


@pytest.fixture
async def two(recollect):
    for tenant in ("mine", "theirs"):
        mind = await recollect.mind("ada", tenant=tenant)
        await mind.remember(NewMemory(f"a secret of {tenant}", keywords=("secret",)))


@pytest.mark.promise("A reader of the views sees its own tenant, whatever its session sets")
async def test_a_reader_sees_its_own_tenant_whatever_it_sets(two, readers, owner):
    theirs = owner.execute("select id from tenants where name = 'theirs'").fetchone()[0]
    with connect(await readers("mine")) as connection:
        for statement in (
            "select 1",
            f"set recollect.tenant = '{theirs}'",
            "set role recollect_readers",
            "set row_security = off",
        ):
            connection.execute(statement)
            if "row_security" in statement:
                with pytest.raises(errors.InsufficientPrivilege):
                    descriptions(connection)
                connection.execute("reset row_security")
            assert descriptions(connection) == ["a secret of mine"]
            assert [row["strength"] for row in connection.execute("select strength from kw_strength")] == [1]


async def test_a_function_of_the_reader_is_not_shown_what_the_view_hides(two, recollect, readers, owner):
    mind = await recollect.mind("ada", tenant="mine")
    [hidden] = await mind.remember("hidden from all")
    owner.execute("update memories set expires_at = now() - interval '1 second' where id = %s", [hidden.id])
    heard = []
    new = await readers("mine")
    owner.execute(f"grant temporary on database {owner.info.dbname} to {new.reader.name}")
    with connect(new) as connection:
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        connection.execute("set default_transaction_read_only = off")
        connection.execute(
            "create function pg_temp.listen(said text) returns boolean language plpgsql cost 0.0000001 "
            "as $$ begin raise notice '%', said; return true; end $$"
        )
        connection.execute("select from memory_nodes where pg_temp.listen(description)")
    assert heard == ["a secret of mine"]


async def test_a_reader_reads_nothing_else(two, readers, owner):
    relations = owner.execute(
        "select c.oid::regclass::text from pg_class c where relnamespace = 'public'::regnamespace "
        "and relkind in ('r', 'p', 'v', 'm', 'S')"
    ).fetchall()
    with connect(await readers("mine")) as connection:
        for (name,) in relations:
            if name not in VIEWS:
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(f"select * from {name}")
        assert {name for (name,) in relations} > VIEWS | {"memories", VECTORS, "readers", "api_keys"}
        for role in ("recollect_service", "recollect_compat", "recollect_matcher", "postgres"):
            with pytest.raises((errors.InsufficientPrivilege, errors.InvalidParameterValue)):
                connection.execute(f"set role {role}")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("set session authorization recollect_service")


async def test_no_function_lends_a_reader_the_rights_of_its_owner(two, readers):
    ask = """select p.oid::regprocedure::text as name from pg_proc p
        where pronamespace = 'public'::regnamespace and prosecdef and has_function_privilege(p.oid, 'execute')"""
    with connect(await readers("mine")) as connection:
        assert [row["name"] for row in connection.execute(ask)] == ["reading_tenant()"]
        assert connection.execute("select count(*) from memory_nodes").fetchone() == {"count": 1}
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("select rests_on_deleted(1, gen_random_uuid())")


async def test_a_reader_writes_nothing(two, readers):
    with connect(await readers("mine")) as connection:
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("create temporary table mine (id integer)")
        connection.execute("set default_transaction_read_only = off")
        for statement in (
            "update memory_nodes set last_accessed = now()",
            "delete from memory_nodes",
            "insert into kw_strength values ('ada', 'x', 'event', 1)",
            "delete from memories",
            "create table mine (id integer)",
            "drop view memory_nodes",
            "select lo_import('/etc/hostname')",
        ):
            with pytest.raises((errors.InsufficientPrivilege, errors.ObjectNotInPrerequisiteState)):
                connection.execute(statement)


async def test_a_reader_waits_no_longer_than_half_a_minute(two, readers):
    with connect(await readers("mine")) as connection:
        assert connection.execute("show statement_timeout").fetchone() == {"statement_timeout": "30s"}


async def test_others_than_readers_see_nothing_in_the_views(two, owner):
    assert owner.execute("select count(*) from memory_nodes").fetchone() == (0,)
    assert owner.execute("select count(*) from kw_strength").fetchone() == (0,)


# The reader's life.


async def test_a_reader_is_made_listed_and_dropped(two, recollect, readers, owner):
    new = await readers("mine")
    assert len(conninfo_to_dict(new.dsn)["password"]) >= 32
    assert conninfo_to_dict(new.dsn)["password"] not in repr(new)
    listed = {(reader.name, reader.tenant) for reader in await recollect.operator.readers.list()}
    assert listed == {(new.reader.name, "mine")}
    with pytest.raises(ConflictError):
        await recollect.operator.readers.create(new.reader.name, "theirs")
    scrambled = "select rolpassword like 'SCRAM-SHA-256$%%' from pg_authid where rolname = %s"
    assert owner.execute(scrambled, [new.reader.name]).fetchone() == (True,)
    with connect(new) as connection:
        assert descriptions(connection) == ["a secret of mine"]
        await recollect.operator.readers.drop(new.reader.name)
        # Who is logged in as a role that is gone has no name any more.
        with pytest.raises(errors.Error):
            descriptions(connection)
    with pytest.raises(psycopg.OperationalError):
        connect(new)
    with pytest.raises(NotFoundError):
        await recollect.operator.readers.drop(new.reader.name)


@pytest.mark.parametrize("name", ["", "Ada", "recollect_service", "pg_read_all_data", 'x"; drop', "a" * 64, "postgres"])
async def test_a_name_that_is_taken_or_strange_is_refused(recollect, name):
    await recollect.mind("ada")
    with pytest.raises((InvalidInputError, ConflictError)):
        await recollect.operator.readers.create(name, "default")
    with pytest.raises(NotFoundError):
        await recollect.operator.readers.drop(name)


async def test_readers_need_a_tenant_and_the_owner(recollect):
    with pytest.raises(NotFoundError):
        await recollect.operator.readers.create("reader_of_nobody", "nobody")
    with pytest.raises(SetupError):
        await Readers(Tenants()).list()


async def test_an_owner_who_is_no_superuser_makes_readers_and_switches_spaces():
    with open_folder("landlord") as folder, Cluster(folder / "postgres", settings=QUICK) as server:
        execute(server, "create role landlord login createrole")
        execute(server, "create database owned owner landlord")
        with psycopg.connect(server.dsn("owned"), autocommit=True) as connection:
            connection.execute("create extension vector")
        addresses = Addresses(server.dsn("owned", "recollect_service"), server.dsn("owned", "landlord"))
        await prepare(addresses, FakeEmbedder())
        async with connected(Settings(embedder="fake"), addresses, FakeEmbedder()) as recollect:
            await (await recollect.mind("ada")).remember("a memory")
            new = await recollect.operator.readers.create("analyst", "default")
            with connect(new) as connection:
                assert descriptions(connection, "vector_dims(embedding) = 64") == ["a memory"]
                other = await spaces.ensure_space(addresses.owner, "other", 5)
                await spaces.switch_space(addresses.owner, other.id)
                assert descriptions(connection, "embedding is null") == ["a memory"]
            await recollect.operator.readers.drop("analyst")
        with psycopg.connect(addresses.owner) as connection:
            assert connection.execute("select count(*) from memories").fetchone() == (0,), "the owner is bound too"


# The active space, and the plan.


async def test_the_vectors_are_those_of_the_active_space(recollect, addresses, readers, owner):
    mind = await recollect.mind("ada")
    await mind.remember("a memory")
    other = FakeEmbedder(dimensions=5)
    with connect(await readers()) as connection:
        ask = "select vector_dims(embedding) as width from memory_nodes"
        assert connection.execute(ask).fetchone() == {"width": recollect.parts.embedder.dimensions}
        for precision, model in (("half", "narrow"), ("single", "exact")):
            space = await spaces.ensure_space(addresses.owner, model, other.dimensions, precision=precision)
            owner.execute(
                f"insert into vectors_{space.id} select scope_id, id, kind, trust, idle, importance, '[1,0,0,0,0]' "
                "from memories"
            )
            await spaces.switch_space(addresses.owner, space.id)
            assert connection.execute(ask).fetchone() == {"width": 5}
        await spaces.drop_space(addresses.owner, SPACE)
        assert connection.execute(ask).fetchone() == {"width": 5}


BY_AGENT = """select * from memory_nodes where persona_name = 'agent-7' and type in ('event', 'thought')
    and embedding is not null order by last_accessed"""


async def test_a_select_by_agent_reads_that_agents_rows_only(recollect, readers, owner):
    for number in range(40):
        mind = await recollect.mind(f"agent-{number}")
        for each in (range(50), range(50, 100)):
            await mind.remember([NewMemory(f"memory {place}", keywords=(f"k{place}",)) for place in each])
    owner.execute("insert into accesses select scope_id, id, kind, now(), 1 from memories")
    owner.execute("vacuum analyze")
    with connect(await readers()) as connection:
        for ask in (BY_AGENT, "select * from kw_strength where persona_name = 'agent-7'"):
            explained = connection.execute(f"explain (analyze, format json, timing off) {ask}").fetchone()
            plan = explained["QUERY PLAN"][0]["Plan"]
            assert plan["Actual Rows"] == 100
            scans = [each for each in walk(plan) if "Relation Name" in each]
            assert {"scopes", "memories"} <= {each["Relation Name"] for each in scans}
            looked_at = [(each["Relation Name"], count_read(each)) for each in scans]
            assert [(name, read) for name, read in looked_at if read > 100] == []


def count_read(scan):
    return (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]


def walk(plan):
    yield plan
    for below in plan.get("Plans", []):
        yield from walk(below)


async def test_a_dropped_reader_reads_no_more_whatever_it_has_made(recollect, readers, mind, owner):
    await mind.remember("Li drinks tea")
    new = await readers()
    owner.execute(f"grant execute on function lo_from_bytea(oid, bytea) to {new.reader.name}")
    with connect(new) as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute("select lo_from_bytea(0, 'x')")
        assert descriptions(connection) == ["Li drinks tea"]
        await recollect.operator.readers.drop(new.reader.name)
        with pytest.raises(errors.InsufficientPrivilege):
            descriptions(connection)
    assert owner.execute("select from pg_roles where rolname = %s", [new.reader.name]).fetchone() is None


async def test_a_reader_cannot_take_all_connections(mind, readers):
    new = await readers()
    opened = [connect(new) for _ in range(5)]
    with pytest.raises(psycopg.OperationalError, match="too many connections"):
        connect(new)
    for connection in opened:
        connection.close()


async def test_a_reader_whose_role_was_dropped_by_hand_is_made_again(recollect, mind, readers, owner):
    await recollect.operator.act_for("other")
    new = await readers()
    owner.execute(f"drop role {new.reader.name}")
    again = await recollect.operator.readers.create(new.reader.name, "other")
    assert (again.reader.name, again.reader.tenant) == (new.reader.name, "other")


async def test_estimates_do_not_tell_the_names_of_others(recollect, readers, owner):
    for number in range(3):
        await (await recollect.mind("zed", f"u{number}", tenant="other")).remember("x")
    owner.execute("analyze scopes")
    assert owner.execute(
        "select count(*) from pg_stats where tablename = 'scopes' and attname in ('agent', 'user')"
    ).fetchone() == (0,)
