"""Upkeep over all tenants: what is due is found by one statement, whoever's it is, and costs what is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from procrastinate.sql import queries as engine_queries
from psycopg import errors

from recollect.core.conversations.retention import RetentionRules
from recollect.errors import NotFoundError
from recollect.jobs.enrich import close_silent
from recollect.jobs.maintenance import delete_expired, retain
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.models.service import JobState
from recollect.settings import Settings
from recollect.store.database.pool import SessionInfo
from recollect.store.memories import accesses
from recollect.store.service import jobs, maintenance
from recollect.wiring import connected
from support.service.known_numbers import VECTORS

RULES = RetentionRules(archive_after_days=10, delete_after_days=20, purge_after_days=30)
FEW_BUFFERS = 200
"""What looking into a handful of indexes costs, and the catalogue with them; reading any of the tables costs more."""
TENANTS = """insert into tenants (name) select 'crowd ' || number from generate_series(%s::int, %s::int) number"""
SCOPES = """insert into scopes (id, tenant_id, agent, "user", memory_count)
    select id::bigint << 40 | number, id, 'agent', 'user ' || number, 1
    from tenants, generate_series(1, 10) number where tenants.name like 'crowd %%'
    on conflict (tenant_id, agent, "user") do nothing"""
ROWS = (
    # Nothing of all this is due: it is in use, or young, or done with.
    """insert into conversations (scope_id, id, created_at, updated_at, changed_at, last_number)
       select id, 'c', now(), now(), now(), 5 from scopes""",
    "insert into idempotency_keys (scope_id, key, fingerprint) select id, 'key', '' from scopes",
    """insert into shown_memories (scope_id, conversation_id, memory_id, short_id, score, computed_at)
       select id, 'c', gen_random_uuid(), 'a1', 1, now() from scopes""",
    """insert into recalls (scope_id, id, asked_at, text, cue, inputs, listed, hits, "limit", status, message, methods,
                            tallies, milliseconds)
       select id, 'ffffffff-ffff-7fff-8fff-ffffffffffff', now(), '', '{}', '', '{}', '[]', 1, '', '', '{}', '{}', 1
       from scopes""",
    """insert into beliefs (scope_id, id, lineage, version, valid_at, invalid_at, created_at)
       select id, gen_random_uuid(), gen_random_uuid(), 1, null, now() - interval '1 day', now() from scopes""",
    """insert into ledger (scope_id, step, milliseconds, outcome) select id, 'label', 1, 'answered' from scopes""",
    """insert into ledger (scope_id, step, milliseconds, outcome, at)
       select id, 'label', 1, 'answered', date_trunc('day', now(), 'UTC') - interval '240 hours' from scopes""",
    """insert into agents (tenant_id, agent, profile) select distinct tenant_id, 'agent', '{"names": ["Ann"]}'::jsonb
       from scopes""",
    """insert into memories
           (scope_id, id, kind, content, origin, trust, importance, occurred_at, created_at, expires_at)
       select id, gen_random_uuid(), 'event', 'x', 'test', 50, 5, now(), now(), now() + interval '9 days'
       from scopes""",
)


def fill(owner, first, last):
    """Make tenants with ten scopes each in which nothing is due."""
    owner.execute(TENANTS, [first, last])
    owner.execute(SCOPES)
    for statement in ROWS:
        owner.execute(statement + " where memory_count = 1")
    owner.execute("update scopes set memory_count = 2")
    owner.execute("update beliefs set withheld_for = 'past'")
    owner.execute("vacuum analyze")


@pytest.fixture
def crowd(owner):
    """Two hundred tenants, two thousand scopes."""
    fill(owner, 1, 200)


def buffers_of(owner, statement, parameters=None):
    """Count the pages that a statement looks at, once the session knows the catalogue."""
    plan = "explain (analyze, buffers, timing off, format json) " + statement
    owner.execute(plan, parameters)
    [[found]] = owner.execute(plan, parameters).fetchone()
    return found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"]


async def look_after(database):
    """Do all that runs by the clock."""
    await delete_expired(database, rederive=True)
    await close_silent(database, 60)
    await retain(database, RULES)
    await maintenance.defer_due(database, "fade")


@pytest.mark.promise("What runs by the clock asks as much of the database for many tenants as for few")
async def test_the_number_of_statements_does_not_grow_with_the_tenants(recollect, owner, monkeypatch):
    statements, bind = [], SessionInfo.bind

    async def counted(self, connection, tenant_id, *rest, **more):
        statements.append(tenant_id)
        await bind(self, connection, tenant_id, *rest, **more)

    monkeypatch.setattr(SessionInfo, "bind", counted)
    fill(owner, 1, 3)
    await look_after(recollect.parts.database)
    few = len(statements)
    fill(owner, 4, 60)
    await look_after(recollect.parts.database)
    assert len(statements) == 2 * few
    assert set(statements) == {None}


LOOKS = (
    *(
        f"select * from due_scopes('{wanted}', 0, 0, 1000)"
        for wanted in ("embed", "sync_state", "rederive", "fold", "expire", "fade")
    ),
    "select * from due_scopes('enrich', 60, 0, 1000)",
    "select * from due_conversations(10, 20, 30, 0, '', 1000)",
    "select * from due_conversations(0, 0, 30, 0, '', 1000)",
    "select * from ended_facts(1000)",
    "select * from tenants_to_add_up()",
    "select prune_kept('keys', now() - interval '2 days', 1000)",
    "select prune_kept('shown_memories', now() - interval '7 days', 1000)",
    "select prune_kept('recalls', now() - interval '30 days', 1000)",
    "select prune_kept('costs', now() - interval '400 days', 1000)",
    "select prune_kept('expired_keys', now() - interval '30 days', 1000)",
)


@pytest.mark.promise("Looking for what is due reads no table of a tenant in which nothing is")
async def test_nothing_that_is_not_due_is_read(crowd, owner):
    read = {look: buffers_of(owner, look) for look in LOOKS}
    assert {look: buffers for look, buffers in read.items() if buffers >= FEW_BUFFERS} == {}


async def make_due(recollect, owner, tenant):
    """Make a mind in which everything is due; return the number of its scope."""
    mind = await recollect.mind("ada", "li", tenant=tenant)
    await mind.set_profile(Profile(fading_days=30, idle_minutes=1))
    plants = [NewMemory("Ann waters the plants", Kind.FACT), NewMemory("They are dry")]
    kept, pending = await mind.remember(plants, idempotency_key="old")
    await mind.remember(NewMemory("The code is 1234.", expires_at=datetime.now(UTC) + timedelta(days=1)))
    await mind.recall(Cue("plants", keep=True))
    await mind.conversation("c").append([NewMessage(Role.USER, "The plants are dry.")])
    [scope_id] = owner.execute("select id from scopes where tenant_id = %s", [mind.access.scope.tenant_id]).fetchone()
    of = f"where scope_id = {scope_id}"
    old = "now() - interval '500 days'"
    for statement in (
        f"insert into pending_embeddings (scope_id, id) values ({scope_id}, '{pending.id}')",
        f"update idempotency_keys set created_at = {old} {of}",
        f"""insert into shown_memories (scope_id, conversation_id, memory_id, short_id, score, computed_at)
            values ({scope_id}, 'c', '{kept.id}', 'a1', 1, {old})""",
        f"update recalls set id = '00000000-0000-7000-8000-000000000000' {of}",
        f"update memories set expires_at = {old} {of} and expires_at is not null",
        f"update conversations set idle_since = {old} {of}",
        f"""insert into beliefs (scope_id, id, lineage, version, valid_at, invalid_at, created_at)
            values ({scope_id}, '{kept.id}', '{kept.id}', 1, null, {old}, {old})""",
        f"insert into ledger (scope_id, step, milliseconds, outcome, at) values ({scope_id}, 'label', 1, 'x', {old})",
        f"""insert into ledger (scope_id, step, milliseconds, outcome, at)
            values ({scope_id}, 'label', 1, 'x', now() - interval '5 days')""",
    ):
        owner.execute(statement)
    return scope_id


async def test_what_is_due_is_found_in_every_tenant(recollect, owner):
    fill(owner, 1, 3)
    due = sorted([await make_due(recollect, owner, tenant) for tenant in ("one", "two")])
    owner.execute("delete from procrastinate_jobs")
    database = recollect.parts.database
    await close_silent(database, 60)
    await maintenance.defer_due(database, "fade")
    await delete_expired(database, rederive=True)
    waiting = "select task_name, lock, args ->> 'scope_id' from procrastinate_jobs order by 1, 2"
    assert owner.execute(waiting).fetchall() == [
        (task, f"{task}:{scope_id}", str(scope_id)) for task in ("embed", "enrich", "fade") for scope_id in due
    ]
    await retain(database, RULES)
    assert owner.execute("select scope_id, state from conversations where state <> 'active' order by 1").fetchall() == [
        (scope_id, "deleted") for scope_id in due
    ]
    left = {
        table: owner.execute(f"select count(*) from {table} where scope_id = any (%s)", [due]).fetchone()[0]
        for table in ("idempotency_keys", "shown_memories", "recalls", "access_log")
    }
    assert left == dict.fromkeys(left, 0)
    assert owner.execute("select withheld from memories where id in (select id from beliefs)").fetchall() == [
        ("past",), ("past",)
    ]  # fmt: skip
    sums = "select scope_id, at = date_trunc('day', at, 'UTC') from ledger where scope_id = any (%s)"
    assert sorted(owner.execute(sums, [due]).fetchall()) == [(scope_id, True) for scope_id in due]
    # Done once, it is not due again.
    owner.execute("delete from procrastinate_jobs")
    owner.execute("update conversations set synced = true")
    await delete_expired(database, rederive=True)
    assert owner.execute("select distinct task_name from procrastinate_jobs").fetchall() == [("embed",), ("fade",)]


async def test_scopes_are_found_page_by_page_and_each_gets_one_job(recollect, owner, monkeypatch):
    monkeypatch.setattr(maintenance, "PAGE", 7)
    fill(owner, 1, 3)
    owner.execute(
        "insert into pending_embeddings (scope_id, id) select id, gen_random_uuid() from scopes, generate_series(1, 3)"
    )
    database = recollect.parts.database
    assert await maintenance.defer_due(database, "embed") == 30
    assert await maintenance.defer_due(database, "embed") == 0
    jobs_of = "select count(*), count(distinct lock) from procrastinate_jobs where task_name = 'embed'"
    assert owner.execute(jobs_of).fetchone() == (30, 30)
    pages = [page async for page in maintenance.walk_due(database, "embed", page=7)]
    assert [len(page) for page in pages] == [7, 7, 7, 7, 2]
    found = [scope_id for page in pages for scope_id in page]
    assert [(scope_id,) for scope_id in found] == owner.execute("select id from scopes order by id").fetchall()


async def test_logs_of_many_scopes_are_folded_together(recollect, owner, monkeypatch):
    monkeypatch.setattr("recollect.jobs.maintenance.FOLDED_TOGETHER", 2)
    for tenant in ("one", "two"):
        for user in ("li", "bo", "su"):
            mind = await recollect.mind("ada", user, tenant=tenant)
            await mind.remember("Ann waters the plants")
            await mind.recall("plants")
    assert owner.execute("select count(*) from access_log").fetchone() == (6,)
    await delete_expired(recollect.parts.database, rederive=False)
    assert owner.execute("select count(*) from access_log").fetchone() == (0,)
    assert owner.execute("select count(*), sum(access_count) from accesses").fetchone() == (6, 6)
    await accesses.fold(recollect.parts.database, [])


async def test_own_rules_of_an_agent_hold_before_the_usual_ones(recollect, owner):
    profiles = {
        "usual": Profile(),
        "never": Profile(fading_days=0, idle_minutes=0),
        "own": Profile(fading_days=9, idle_minutes=5),
    }
    for agent, profile in profiles.items():
        mind = await recollect.mind(agent)
        await mind.set_profile(profile)
        await mind.conversation("c").append([NewMessage(Role.USER, "The plants are dry.")])
    owner.execute("update conversations set idle_since = now() - interval '10 minutes'")
    ids = dict(owner.execute("select agent, id from scopes").fetchall())

    async def due(wanted, usual):
        async with recollect.parts.database.reading(None) as connection:
            found = await connection.execute("select due_scopes(%s, %s, 0, 9) as id", [wanted, usual])
        return sorted(row["id"] for row in await found.fetchall())

    def of(*agents):
        return sorted(ids[agent] for agent in agents)

    assert (await due("fade", 0.0), await due("fade", 30.0)) == (of("own"), of("usual", "own"))
    silent = [await due("enrich", minutes) for minutes in (0.0, 30.0, 8.0)]
    assert silent == [of("own"), of("own"), of("usual", "own")]


@pytest.mark.promise("Counting jobs costs the same however many have ended")
async def test_jobs_that_have_ended_are_not_read(recollect, owner):
    statements = {
        "metrics": (jobs.QUERIES["counts"], {}),
        "unfinished": (jobs.QUERIES["unfinished"], {}),
        "ready": (jobs.QUERIES["ready"], {}),
        "stalled": (
            engine_queries["select_stalled_jobs_by_heartbeat"],
            {"seconds_since_heartbeat": 20, "queue": None, "task_name": None},
        ),
        "find": (
            jobs.QUERIES["find"],
            {"id": None, "shard": 0, "own": 0, "status": None, "task": None, "agent": None, "user": None}
            | {"cursor": None, "limit": 50},
        ),
        "defer_due": (
            maintenance.QUERIES["defer_due"],
            {"task": "embed", "wanted": "embed", "usual": 0.0, "after": 0, "limit": 10, "rest_minutes": 0.0},
        ),
    }
    owner.execute("select set_config('recollect.tenant', '1', false)")
    owner.execute("delete from procrastinate_jobs")
    owner.execute(
        """insert into procrastinate_jobs (queue_name, task_name, lock, args, status)
        select 'embed', 'embed', 'embed:' || number, jsonb_build_object('scope_id', (1::bigint << 40) + number),
               (array['todo', 'doing', 'failed'])[1 + number % 3]::procrastinate_job_status
        from generate_series(1, 30) number"""
    )
    owner.execute("analyze procrastinate_jobs")
    before = {name: buffers_of(owner, *each) for name, each in statements.items()}
    owner.execute(
        """insert into procrastinate_jobs (queue_name, task_name, lock, args, status)
        select 'embed', 'embed', 'embed:' || number, jsonb_build_object('scope_id', (1::bigint << 40) + number),
               'succeeded' from generate_series(1, 20000) number"""
    )
    owner.execute("vacuum analyze procrastinate_jobs, procrastinate_events")
    after = {name: buffers_of(owner, *each) for name, each in statements.items()}
    assert {name: pages for name, pages in after.items() if pages > before[name] + 50} == {}
    counted = {(status, count) for _, status, count in await recollect.jobs.counts()}
    assert counted == {("todo", 10), ("doing", 10), ("failed", 10)}


@pytest.mark.promise("No write flushes the index of terms for others")
async def test_no_write_leaves_terms_for_another_to_flush(recollect, owner):
    await (await recollect.mind("ada")).remember([f"Ann waters plant {number}" for number in range(20)])
    assert owner.execute("select gin_clean_pending_list('memory_terms_by_term')").fetchone() == (0,)


async def test_a_job_that_is_done_leaves_nothing(recollect, owner):
    mind = await recollect.mind("ada")
    recollect.parts.embedder.fail()
    await mind.remember("Ann waters the plants")
    recollect.parts.embedder.recover()
    await recollect.work(until_empty=True)
    for table in ("procrastinate_jobs", "procrastinate_events", "job_effects", "job_failures", "job_progress"):
        assert owner.execute(f"select count(*) from {table}").fetchone() == (0,), table


async def test_a_job_that_ran_before_its_retry_was_answered_has_succeeded(recollect, owner, monkeypatch):
    mind = await recollect.mind("ada")
    recollect.parts.embedder.fail()
    await mind.remember("Ann waters the plants")
    recollect.parts.embedder.recover()
    [job_id] = owner.execute("select id from procrastinate_jobs where task_name = 'embed'").fetchone()
    owner.execute("update procrastinate_jobs set status = 'failed' where id = %s", [job_id])
    retry = jobs.retry_failed

    async def retry_and_run(*asked):
        retried = await retry(*asked)
        await recollect.work(until_empty=True)
        return retried

    monkeypatch.setattr(jobs, "retry_failed", retry_and_run)
    caller = await recollect.operator.act_for("default")
    job = await recollect.jobs.retry(caller, str(job_id))
    assert (job.id, job.state, job.reason) == (str(job_id), JobState.SUCCEEDED, "")
    with pytest.raises(NotFoundError):
        await recollect.jobs.retry(caller, str(job_id))


async def test_a_model_change_reaches_every_tenant(addresses, embedder, owner):
    async with connected(Settings(embedder="fake"), addresses, embedder) as recollect:
        fill(owner, 1, 3)
        owner.execute("delete from memories")
        for tenant in ("one", "two"):
            for user in ("li", "bo"):
                await (await recollect.mind("ada", user, tenant=tenant)).remember("Ann waters the plants")
        owner.execute(f"delete from {VECTORS}")
        filled = []
        await recollect.operator.spaces.change(filled.append)
        assert owner.execute(f"select count(*) from {VECTORS}").fetchone() == (4,)


@pytest.mark.promise("What looks after all tenants at once can read no content")
async def test_the_role_of_upkeep_reads_times_and_numbers_and_no_content(crowd, owner):
    owner.execute("set role recollect_upkeep")
    assert owner.execute("select count(id) from scopes").fetchone()[0] > 0
    unreadable = (
        *("content from memories", "metadata from memories", f"embedding from {VECTORS}", "terms from memory_terms"),
        *("name from conversations", "metadata from conversations", "memory_ids from idempotency_keys"),
        *("text from recalls", "cue from recalls", "short_id from shown_memories", "predicate from beliefs"),
        *("label from segments", "model from ledger", "* from messages", "* from entities", "* from api_keys"),
    )
    unwritable = ("delete from memories", "delete from conversations", "update beliefs set lineage = id")
    for statement in (*(f"select {each}" for each in unreadable), *unwritable):
        with pytest.raises(errors.InsufficientPrivilege):
            owner.execute(statement)
    owner.execute("reset role")


async def test_only_the_service_may_look_for_what_is_due(crowd, owner):
    functions = owner.execute(
        """select p.proname, p.prosecdef, has_function_privilege('recollect_service', p.oid, 'execute'),
                  has_function_privilege('recollect_readers', p.oid, 'execute')
           from pg_proc p join pg_roles r on r.oid = p.proowner where r.rolname = 'recollect_upkeep' order by 1"""
    ).fetchall()
    names = ["cold_standing", "due_conversations", "due_scopes", "due_to_move", "ended_facts", "mark_leaving"]
    names += ["mirror_standing", "newest_changes", "objects_to_remove", "prune_kept", "standing_keys"]
    names += ["tenants_to_add_up"]
    assert functions == [(name, True, True, False) for name in names]
