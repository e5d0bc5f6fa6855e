"""One tenant cannot see, count, touch or guess another's memories, whatever the code above the database forgets."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors, sql

from conftest import http_client, new_key
from recollect.channels import vector
from recollect.channels.vector import VectorChannel
from recollect.core.recall.cues import parse_cue
from recollect.core.service.secrets import write_secret
from recollect.core.text import terms
from recollect.core.text.terms import analyse, hash_term, slot_of
from recollect.errors import ConflictError, RecollectError
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.store.database import pool
from recollect.store.memories import memories
from recollect.store.memories.accesses import FOLD_AT
from recollect.store.service.scopes import locate
from recollect.wiring import connected
from support.service.known_numbers import VECTORS
from support.service.table_rows import KNOWLEDGE, MIRRORS

SCOPED = """select c.oid::regclass::text, c.relrowsecurity, c.relforcerowsecurity
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'scope_id' and not a.attisdropped
    where c.relkind in ('r', 'p') order by 1"""
SECRET = "the vault opens with 4711"


@pytest.fixture
async def tenants(recollect, embedder, owner):
    """Two tenants with rows of the same names in every table; their numbers by name."""
    for tenant in ("mine", "theirs"):
        mind = await recollect.mind("ada", "li", tenant=tenant)
        [source] = await mind.remember(f"{SECRET} of {tenant}", idempotency_key="k-1")
        await converse(mind)
        filed = {"topic": "vaults->doors", "related_topics": ("codes",)}
        await mind.remember(NewMemory("a thought on it", evidence=(source.id,), keywords=("notion",), **filed))
        await mind.knowledge.add(NewFact("Ann", "knows", "Bob"))
        await mind.items.put(("vaults",), "code", {"code": 4711}, text=f"the code of {tenant}", embedding=[1, 0])
        for _ in range(FOLD_AT + 1):
            recollection = await mind.recall(Cue(SECRET, channels=("stream",)))
        await recollect.work(until_empty=True)
        await mind.recall(Cue(SECRET, keep=True))
        await mind.blocks.show(SECRET, conversation="shown")
        await mind.feedback(recollection, [source.id])
    for tenant in ("mine", "theirs"):
        mind = await recollect.mind("ada", "li", tenant=tenant)
        embedder.fail()
        await mind.remember("waits for its vector")
        embedder.recover()
        await new_key(recollect, tenant)
    owner.execute("insert into change_readers (scope_id, name) select id, 'mirror' from scopes")
    owner.execute("insert into job_effects select id, 'done', (select min(id) from procrastinate_jobs) from scopes")
    learn(owner)
    for statement in (*KNOWLEDGE, *MIRRORS):
        owner.execute(statement)
    return dict(owner.execute("select name, id from tenants where name in ('mine', 'theirs')").fetchall())


def learn(owner):
    """Fill the tables of enrichment, as a worker with a model would."""
    owner.execute("insert into runs (scope_id, model) select id, 'm' from scopes")
    owner.execute("insert into ledger (scope_id, step, milliseconds, outcome) select id, 'x', 1, 'done' from scopes")
    owner.execute(
        "insert into segments (scope_id, conversation_id, first_number, last_number, ending) "
        "select id, 'seen', 1, 2, 'asked' from scopes on conflict do nothing"
    )
    owner.execute(
        "insert into extractions (scope_id, segment_id, model, prompt_version, content) "
        "select scope_id, id, 'm', '1', '{}' from segments on conflict do nothing"
    )


async def converse(mind):
    """Fill the tables of conversations: one in sight, one whose memories take no part in recall, one purged."""
    for name in ("seen", "kept", "gone"):
        said = [NewMessage(Role.USER, f"a question in {name}"), NewMessage(Role.ASSISTANT, "an answer")]
        await mind.conversation(name).append(said)
    await mind.conversation("kept").update(state="archived")
    await mind.conversation("gone").purge()


@pytest.fixture
def service(addresses):
    """A connection of the service's own role."""
    with psycopg.connect(addresses.service) as connection:
        yield connection


def act_for(connection, tenant):
    connection.rollback()
    connection.execute("select set_config('recollect.tenant', %s, true)", ["" if tenant is None else str(tenant)])


def scoped_tables(connection):
    return [name for name, _, _ in connection.execute(SCOPED).fetchall()]


def count(connection, table, where="true"):
    return connection.execute(f"select count(*) from {table} where {where}").fetchone()[0]


# What the database itself guarantees.


@pytest.mark.promise("The database shows a tenant its own rows only, in every table")
async def test_every_scoped_table_shows_a_tenant_its_own_rows_only(tenants, service, owner):
    tables = scoped_tables(owner)
    assert {"memories", "memory_terms", "evidence", "idempotency_keys", "pending_embeddings", VECTORS} <= {*tables}
    assert {"conversations", "messages", "withheld_memories", "purge_receipts", "topics", "items"} <= {*tables}
    for table in tables:
        act_for(service, None)
        assert (table, count(service, table)) == (table, 0)
        for tenant_id in tenants.values():
            expected = count(owner, table, f"scope_id >> 40 = {tenant_id}")
            act_for(service, tenant_id)
            assert expected > 0
            assert (table, count(service, table)) == (table, expected)
            assert count(service, table, f"scope_id >> 40 <> {tenant_id}") == 0


async def test_scopes_and_keys_show_a_tenant_its_own_rows_only(tenants, service, owner):
    owner.execute("insert into tenant_keys (tenant_id, version, wrapped, wrapped_by) select id, 1, '', '' from tenants")
    for table in ("scopes", "api_keys", "tenant_keys"):
        act_for(service, None)
        assert count(service, table) == 0
        for tenant_id in tenants.values():
            expected = count(owner, table, f"tenant_id = {tenant_id}")
            act_for(service, tenant_id)
            assert expected == count(service, table) > 0


async def test_a_shown_hash_opens_one_key_and_no_other(recollect, tenants, service, owner):
    digest = owner.execute("select encode(secret_hash, 'hex') from api_keys limit 1").fetchone()[0]
    for shown, visible in ((digest, 1), ("00" * 32, 0), ("", 0)):
        act_for(service, None)
        service.execute("select set_config('recollect.key', %s, true)", [shown])
        assert count(service, "api_keys") == visible
        assert count(service, "memories") == 0


@pytest.mark.promise("Row-level security is enabled and forced on every table with content")
async def test_row_level_security_is_enabled_and_forced_everywhere(recollect, owner):
    found = owner.execute(SCOPED).fetchall()
    found += owner.execute(
        """select relname, relrowsecurity, relforcerowsecurity from pg_class
        where relkind in ('r', 'p') and relname in ('scopes', 'api_keys', 'tenant_keys')"""
    ).fetchall()
    assert len(found) >= 8
    assert [row for row in found if row[1:] != (True, True)] == []


async def test_every_index_of_a_scoped_table_begins_with_the_scope(recollect, owner):
    """Otherwise one scope's queries would walk through others' rows; a term's hash contains its scope.

    A budget is a tenant's, over all its scopes. What is due is looked for over all tenants, by its time.
    """
    found = owner.execute(
        """select i.indexrelid::regclass::text, a.attname from pg_index i
        join pg_attribute a on a.attrelid = i.indexrelid and a.attnum = 1
        where i.indrelid::regclass::text = any (%s)""",
        [scoped_tables(owner)],
    ).fetchall()
    assert len(found) >= 7
    others = {
        "beliefs_ending": "invalid_at",
        "conversations_by_idleness": "state",
        "conversations_deleted": "changed_at",
        "changes_by_time": "at",
        "cold_objects_left": "since",
        "conversations_becoming_silent": "idle_hour",
        "idempotency_keys_by_time": "created_at",
        "job_effects_of_job": "job_id",
        "ledger_lines": "at",
        "ledger_sums": "at",
        "memories_expired": "expires_at",
        "memory_terms_by_term": "terms",
        "recalls_by_time": "id",
        "shown_memories_by_time": "computed_at",
    }
    assert {name: first for name, first in found if first not in {"scope_id", "tenant_id"}} == others


async def test_the_services_role_is_nobody_special(recollect, owner):
    rights = """select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
        from pg_roles where rolname = any ('{recollect_service, recollect_matcher, recollect_upkeep}')"""
    assert owner.execute(rights).fetchall() == [(False,) * 5] * 3
    role = "(select oid from pg_roles where rolname = 'recollect_service')"
    owned = [("pg_class", "relowner"), ("pg_proc", "proowner"), ("pg_namespace", "nspowner"), ("pg_type", "typowner")]
    assert [count(owner, table, f"{column} = {role}") for table, column in owned] == [0, 0, 0, 0]
    assert count(owner, "pg_auth_members", f"member = {role}") == 0


@pytest.mark.promise("The role of the service can neither change the policy nor pass it by")
@pytest.mark.parametrize(
    "statement",
    [
        "create table mine (id int)",
        "create schema mine",
        "create function mine() returns int language sql return 1",
        "select name from tenants",
        "select * from tenants",
        "insert into tenants (name) values ('x')",
        "select create_embedding_space(1, 'x', 3, 'half')",
        "select switch_embedding_space(1)",
        "select protect_scoped('memories')",
        "insert into embedding_spaces (model, dimensions, storage) values ('x', 3, 'plain')",
        "update embedding_spaces set state = 'retired'",
        "alter table memories disable row level security",
        "alter table memories no force row level security",
        "drop policy of_tenant on memories",
        "create policy everything on memories using (true)",
        "truncate memories",
        "set role postgres",
        "set role recollect_matcher",
        "set role recollect_upkeep",
        "set session authorization postgres",
        "update scopes set tenant_id = 1",
        "update api_keys set tenant_id = 1",
        "update api_keys set secret_hash = decode(repeat('00', 32), 'hex')",
        "delete from api_keys",
        "update schema_migrations set oldest_program = 0",
        "copy memories to program 'cat'",
    ],
)
async def test_the_services_role_may_not(tenants, service, statement):
    act_for(service, tenants["mine"])
    with pytest.raises(errors.InsufficientPrivilege):
        service.execute(statement)


def own_columns(owner, table):
    """Name the columns of a table that do not follow from others."""
    found = owner.execute(
        "select string_agg(quote_ident(column_name), ', ' order by ordinal_position) from information_schema.columns "
        "where table_schema = 'public' and table_name = %s and is_generated = 'NEVER'",
        [str(table)],
    )
    return found.fetchone()[0]


@pytest.mark.promise("Nothing is written into a scope of another tenant")
async def test_nothing_is_written_into_a_foreign_scope(tenants, service, owner):
    foreign = owner.execute("select id from scopes where tenant_id = %s", [tenants["theirs"]]).fetchone()[0]
    for table in scoped_tables(owner):
        before = owner.execute(f"select count(*), min(xmin::text::bigint) from {table}").fetchone()
        act_for(service, tenants["mine"])
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            service.execute(sql.SQL("update {} set scope_id = {}").format(sql.Identifier(table), foreign))
        act_for(service, tenants["mine"])
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            columns = own_columns(owner, table)
            service.execute(f"create temporary table copied on commit drop as select {columns} from {table} limit 1")
            service.execute(f"update copied set scope_id = {foreign}")
            service.execute(f"insert into {table} ({columns}) overriding system value select * from copied")
        for change in (f"delete from {table}", f"update {table} set scope_id = scope_id"):
            act_for(service, tenants["mine"])
            assert service.execute(f"{change} where scope_id = {foreign}").rowcount == 0
        service.rollback()
        assert owner.execute(f"select count(*), min(xmin::text::bigint) from {table}").fetchone() == before


async def test_no_scope_and_no_key_is_made_for_another_tenant(tenants, service):
    mine, theirs = tenants["mine"], tenants["theirs"]
    for statement in (
        f"insert into scopes (id, tenant_id, agent, \"user\") values ({theirs}::bigint << 40 | 999, {theirs}, 'x', '')",
        f"""insert into api_keys (tenant_id, secret_hash, name, rights, trust)
            values ({theirs}, decode(repeat('00', 32), 'hex'), 'x', '{{read}}', 1)""",
    ):
        act_for(service, mine)
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            service.execute(statement)
    act_for(service, mine)
    with pytest.raises(errors.CheckViolation):
        service.execute(f"insert into scopes (id, tenant_id, agent, \"user\") values (1, {mine}, 'x', '')")


# The one function that reads past row-level security.

MATCH = """select count(*) from match_terms(
    %(scope)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(trust)s::smallint, %(before)s::uuid,
    null, array[]::uuid[], %(total)s::bigint, %(limit)s::integer)"""


def question(owner, tenant_id, **changes):
    """Ask for a tenant's secret with its true scope and true term hashes."""
    scope = owner.execute("select id from scopes where tenant_id = %s", [tenant_id]).fetchone()[0]
    hashes = [hash_term(scope, term) for term in analyse(SECRET)]
    asked = {"scope": scope, "terms": hashes, "slots": [slot_of(term) for term in analyse(SECRET)], "kinds": None}
    return asked | {"trust": 0, "before": None, "total": 100, "limit": 100} | changes


@pytest.mark.promise("The matcher answers for the bound tenant only")
async def test_the_matcher_answers_for_the_bound_tenant_only(tenants, service, owner):
    mine, theirs = tenants["mine"], tenants["theirs"]
    for bound, asked, found in ((mine, mine, 1), (mine, theirs, 0), (None, theirs, 0), (theirs, theirs, 1)):
        act_for(service, bound)
        assert service.execute(MATCH, question(owner, asked)).fetchone() == (found,)


@pytest.mark.parametrize("field", ["scope", "terms", "slots", "kinds", "trust", "before", "total", "limit"])
async def test_the_matcher_takes_a_missing_argument_for_less_never_for_more(tenants, service, owner, field):
    act_for(service, tenants["mine"])
    assert service.execute(MATCH, question(owner, tenants["theirs"], **{field: None})).fetchone() == (0,)


async def test_the_matcher_is_not_fooled_by_what_a_session_can_make(tenants, service, owner):
    """Temporary tables and a search path of one's own must not stand in for the real ones."""
    act_for(service, tenants["mine"])
    service.execute("create temporary table memory_terms (like public.memory_terms)")
    service.execute("create function pg_temp.last_scope() returns bigint language sql return 9223372036854775807")
    service.execute("create function pg_temp.first_scope() returns bigint language sql return 0")
    service.execute("create function pg_temp.current_tenant() returns bigint language sql return 1")
    service.execute("set local search_path = pg_temp, public")
    assert service.execute("select first_scope() > 0").fetchone() == (True,)
    assert service.execute(MATCH, question(owner, tenants["theirs"])).fetchone() == (0,)
    assert service.execute(MATCH, question(owner, tenants["mine"])).fetchone() == (1,)


@pytest.mark.parametrize("tenant", ["-1", "0", "8388608", "9223372036854775807", "1 or 1=1", "' or true", "1e3"])
async def test_a_tenant_number_that_is_none_opens_nothing(tenants, service, owner, tenant):
    for query in ("select count(*) from memories", "select count(*) from scopes", MATCH):
        act_for(service, tenant)
        try:
            found = service.execute(query, question(owner, tenants["theirs"])).fetchone()[0]
        except psycopg.DataError:
            found = 0
        assert found == 0


async def test_the_matchers_role_reads_terms_and_nothing_else(tenants, owner):
    owner.execute("set role recollect_matcher")
    assert count(owner, "memory_terms") > 0
    for statement in ("select * from memories", f"select * from {VECTORS}", "delete from memory_terms"):
        with pytest.raises(errors.InsufficientPrivilege):
            owner.execute(statement)
    owner.execute("reset role")


async def test_scopes_that_share_the_hashes_of_their_terms_are_kept_apart(recollect, monkeypatch):
    monkeypatch.setattr(terms, "scope_bits", lambda _scope: 0)
    minds = [await recollect.mind("ada", user, tenant=tenant) for tenant in ("one", "two") for user in ("li", "bo")]
    for number, mind in enumerate(minds):
        await mind.remember(f"apples and secret {number}")
    for number, mind in enumerate(minds):
        found = await mind.recall(Cue("apples", channels=("text",)))
        assert [hit.memory.content for hit in found.hits] == [f"apples and secret {number}"]


async def test_the_last_tenant_number_works_like_the_first(recollect, owner):
    owner.execute("insert into tenants (id, name) values (8388607, 'last')")
    mind = await recollect.mind("ada", tenant="last")
    await mind.remember("at the end of the numbers")
    assert len((await mind.recall("numbers")).hits) == 1


# What callers can find out.


async def told(work):
    """What a caller is told: the class and the text of the refusal."""
    with pytest.raises(RecollectError) as caught:
        await work
    return type(caught.value), str(caught.value)


@pytest.mark.promise("A foreign id looks exactly like an unknown one")
async def test_a_foreign_id_looks_exactly_like_an_unknown_one(recollect, tenants):
    theirs = await recollect.mind("ada", "li", tenant="theirs")
    foreign = (await theirs.list()).memories[0].id
    neighbour = await recollect.mind("ada", "someone-else", tenant="theirs")
    await neighbour.remember("a scope of the same tenant")
    for mind in (await recollect.mind("ada", "li", tenant="mine"), neighbour):
        for unknown in (uuid4(), UUID(int=0)):
            assert await told(mind.get(foreign)) == await told(mind.get(unknown))
            assert await mind.forget([foreign]) == await mind.forget([unknown]) == []
            derived = [mind.remember(NewMemory("x", evidence=(source,))) for source in (foreign, unknown)]
            assert await told(derived[0]) == await told(derived[1])
        assert all("theirs" not in hit.memory.content for hit in (await mind.recall(Cue(SECRET))).hits)
    assert (await theirs.get(foreign)).content == f"{SECRET} of theirs"


async def test_a_foreign_conversation_looks_exactly_like_an_unknown_one(recollect, tenants):
    theirs = await recollect.mind("ada", "li", tenant="theirs")
    foreign = (await theirs.conversation("secret").append(NewMessage(Role.USER, SECRET)))[0].id
    neighbour = await recollect.mind("ada", "someone-else", tenant="theirs")
    for mind in (await recollect.mind("ada", "li", tenant="mine"), neighbour):
        own = mind.conversation("own")
        await own.append(NewMessage(Role.USER, "of my own"))
        for verb in ("get", "history"):
            told_of = [await told(getattr(mind.conversation(name), verb)()) for name in ("secret", "no-such")]
            assert told_of[0] == told_of[1]
        leaves = [await told(own.history(HistoryOptions(leaf=leaf))) for leaf in (foreign, uuid4())]
        parents = [await told(own.append(NewMessage(Role.USER, "x", parent=parent))) for parent in (foreign, uuid4())]
        assert (leaves[0], parents[0]) == (leaves[1], parents[1])
        assert "secret" not in {each.id for each in (await mind.conversations()).conversations}
        assert all(hit.memory.content != SECRET for hit in (await mind.recall(Cue(SECRET))).hits)
    assert (await theirs.conversation("secret").get()).message_count == 1


async def test_one_key_used_in_two_scopes_is_two_keys(recollect, tenants):
    mine, theirs = [await recollect.mind("ada", "li", tenant=tenant) for tenant in ("mine", "theirs")]
    await mine.remember("body one", idempotency_key="shared")
    [receipt] = await theirs.remember("another body", idempotency_key="shared")
    assert (await theirs.get(receipt.id)).content == "another body"
    with pytest.raises(ConflictError):
        await mine.remember("another body", idempotency_key="shared")


STATE = """select array[coalesce(current_setting('recollect.tenant', true), ''),
    coalesce(current_setting('recollect.key', true), ''), current_setting('statement_timeout'),
    (select count(*) from pg_prepared_statements where name not like 'recollect\\_%')::text,
    (select count(*) from pg_class where relpersistence = 't')::text,
    (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory')::text,
    (select count(*) from memories)::text] as state"""


@pytest.mark.promise("A pooled connection carries nothing over to the next caller")
async def test_a_pooled_connection_carries_nothing_over(addresses):
    """After work that succeeds, fails, is refused or loads: the next user of the connection starts from nothing."""
    async with connected(Settings(embedder="fake", pool_size=1), addresses, FakeEmbedder()) as running:
        _, secret = await new_key(running, "mine")
        mind = await running.mind("ada", tenant="mine")

        async def state():
            async with running.parts.database._pool.connection() as connection:
                return (await (await connection.execute(STATE)).fetchone())["state"]

        empty = ["", "", "1min", "0", "0", "0", "0"]
        assert await state() == empty
        await mind.load([NewMemory(f"memory {number}") for number in range(10)])
        assert await state() == empty
        async with http_client(running, secret) as http:
            scope = {"agent": "ada"}
            for request in (
                http.post("/v1/memories", json=scope | {"memories": [{"content": "x"}]}),
                http.post("/v1/memories", json=scope | {"memories": [{"content": "x", "evidence": [str(uuid4())]}]}),
                http.post("/v1/recall", json=scope | {"text": "memory"}),
                http.get("/v1/memories", params=scope),
                http.get(f"/v1/memories/{uuid4()}", params=scope),
                http.get("/v1/keys"),
                http.get("/v1/keys", headers={"Authorization": f"Bearer {write_secret(1, bytes(32))}"}),
            ):
                assert (await request).status_code < 500
                assert await state() == empty


# Neighbours of any size, and the plans that make it so.

BIG = 20_000
RANDOM_VECTORS = f"""insert into {VECTORS} (scope_id, id, kind, trust, idle, importance, embedding)
    select %(scope)s, gen_random_uuid(), 'event', 50, false, 5,
           l2_normalize((select array_agg(random() - 0.5) from generate_series(1, 64) where row > 0)::vector(64))
    from generate_series(1, %(rows)s) as row"""


async def fill(mind, owner, rows):
    """Give a scope many vectors quickly; return its number."""
    await mind.remember("the first of many")
    scope = owner.execute("select id from scopes where tenant_id = %s", [mind.access.scope.tenant_id]).fetchone()[0]
    owner.execute(RANDOM_VECTORS, {"scope": scope, "rows": rows})
    owner.execute("update scopes set memory_count = memory_count + %s where id = %s", [rows, scope])
    owner.execute("vacuum analyze")
    return scope


def explain(connection, tenant, query, parameters, before=()):
    """Plan a query as the service would run it: as its role, for a tenant, with its settings, values seen."""
    act_for(connection, tenant)
    connection.execute(pool.QUERIES["bind"], {"tenant": str(tenant), "key_id": "", "milliseconds": "10000"})
    for query_before in before:
        connection.execute(query_before)
    found = connection.execute(sql.SQL("explain (costs off) ") + query, parameters, prepare=False)
    return "\n".join(line for (line,) in found.fetchall())


def nearest(scope, name="nearest", dimensions=64):
    places = {"vectors": sql.Identifier(VECTORS), "dimensions": sql.Literal(dimensions)}
    query = sql.SQL(vector.QUERIES[name]).format(**places, type=sql.SQL("halfvec"), filter=sql.SQL(""))
    return query, {"vector": str([1.0] + [0.0] * 63), "scope_id": scope, "limit": 100}


@pytest.mark.promise("A small tenant beside a big one gets its full page of hits")
async def test_a_small_tenant_beside_a_big_one_gets_its_full_page(recollect, owner, service):
    small, big = await recollect.mind("ada", tenant="small"), await recollect.mind("ada", tenant="big")
    await small.remember([NewMemory(f"apple number {number}") for number in range(40)])
    await fill(big, owner, BIG)
    found = await small.recall(Cue("apple", limit=30))
    assert len(found.hits) == 30
    assert all("vector" in hit.channels for hit in found.hits)
    assert found.methods["vector"] == "exact"
    scope = owner.execute("select id from scopes where tenant_id = %s", [small.access.scope.tenant_id]).fetchone()[0]
    plan = explain(service, small.access.scope.tenant_id, *nearest(scope))
    assert f"Index Only Scan using {VECTORS}_pkey" in plan
    assert "Seq Scan" not in plan


async def test_a_large_scope_gets_an_index_of_its_own_and_loses_nothing(recollect, owner, service):
    large, other = await recollect.mind("ada", tenant="large"), await recollect.mind("ada", tenant="other")
    await other.remember([NewMemory(f"apple number {number}") for number in range(40)])
    scope = await fill(large, owner, 4_000)
    assert await recollect.operator.spaces.index_large_scopes(at_least=1_000) == [scope]
    assert await recollect.operator.spaces.index_large_scopes(at_least=1_000) == []
    owner.execute(f"vacuum analyze {VECTORS}")
    asked = nearest(scope, "nearest_indexed", 66)
    plan = explain(service, large.access.scope.tenant_id, *asked, before=[vector.QUERIES["avoid_sorting"]])
    assert f"Index Scan using {VECTORS}_of_{scope}" in plan
    found = await large.recall("the first of many")
    assert found.methods["vector"] == "approximate"
    assert await count_uses(recollect, owner, f"{VECTORS}_of_{scope}") == 1
    assert found.hits[0].memory.content == "the first of many"
    place = await locate(recollect.parts.database, large.access.scope)
    for limit in (1, 100, 200):
        assert len(await candidates(recollect, place, limit)) == limit
    await large.remember([NewMemory(f"fact {number}", Kind.FACT) for number in range(20)])
    facts = await large.recall(Cue("something else", limit=50, kinds=(Kind.FACT,)))
    assert (facts.methods["vector"], len(facts.hits)) == ("exact", 20)
    neighbour = owner.execute("select id from scopes where tenant_id = %s", [other.access.scope.tenant_id]).fetchone()[
        0
    ]
    assert f"Index Only Scan using {VECTORS}_pkey" in explain(
        service, other.access.scope.tenant_id, *nearest(neighbour)
    )
    page = await other.recall(Cue("apple", limit=40))
    assert (page.methods["vector"], len(page.hits)) == ("exact", 40)


async def count_uses(recollect, owner, name):
    """Read the server's own count of an index's scans, after the one pooled connection has reported its part."""
    async with recollect.parts.database._pool.connection() as connection:
        await connection.execute("select pg_stat_force_next_flush()")
    return owner.execute("select idx_scan from pg_stat_user_indexes where indexrelname = %s", [name]).fetchone()[0]


async def candidates(recollect, place, limit):
    """Ask the vector channel alone."""
    [row] = await FakeEmbedder().embed(["anything at all"])
    async with recollect.parts.database.reading(place.scope_id >> 40) as connection:
        answer = await VectorChannel().send_query(
            connection, place, parse_cue(Cue("anything"), row, now=datetime.now(UTC)), limit
        )
    return [*(await answer()).candidates]


async def test_the_text_channel_uses_the_terms_index(recollect, owner, addresses):
    """The plan inside the function is shown by the server's own auto_explain."""
    mind = await recollect.mind("ada", tenant="mine")
    await mind.load([NewMemory(f"common words and number{number}") for number in range(3_000)])
    tenant_id = mind.access.scope.tenant_id
    scope = owner.execute("select id from scopes where tenant_id = %s", [tenant_id]).fetchone()[0]
    owner.execute("vacuum analyze memory_terms")
    plans = []
    with psycopg.connect(addresses.owner) as connection:
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary))
        connection.execute("load 'auto_explain'")
        for name, value in (("log_min_duration", "0"), ("log_nested_statements", "on")):
            connection.execute(sql.SQL("set auto_explain.{} = {}").format(sql.SQL(name), value))
        connection.execute("set client_min_messages = log")
        connection.execute("set role recollect_service")
        connection.execute("select set_config('recollect.tenant', %s, true)", [str(tenant_id)])
        words = analyse("number77")
        hashes, slots = [hash_term(scope, term) for term in words], [slot_of(term) for term in words]
        asked = question(owner, tenant_id, terms=hashes, slots=slots, total=3_000)
        assert connection.execute(MATCH, asked).fetchone() == (1,)
    [plan] = [plan for plan in plans if "memory_terms" in plan and "Scan" in plan]
    assert "Bitmap Index Scan on memory_terms_by_term" in plan
    assert "Seq Scan on memory_terms" not in plan


async def test_pages_and_fetches_use_the_key(recollect, owner, service):
    mind = await recollect.mind("ada", tenant="mine")
    [source] = await mind.remember("the source of all")
    await mind.load([NewMemory(f"memory {number}", evidence=(source.id,)) for number in range(3_000)])
    owner.execute("vacuum analyze")
    ids = [memory.id for memory in (await mind.list(limit=10)).memories]
    for wanted in (ids, None):
        asked = memories.RowQuery(wanted, cursor=ids[3], limit=50)
        plan = explain(service, mind.access.scope.tenant_id, asked.compose(), asked.bind(mind.access.scope))
        assert "memories_pkey" in plan
        assert "Seq Scan on memories" not in plan
        assert "Seq Scan on evidence" not in plan
