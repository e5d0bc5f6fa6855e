"""A walk reads the facts that it may follow and hardly any other, however many the scope holds."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import psycopg
import pytest

from recollect.channels.graph import QUERIES as CHANNEL
from recollect.core.knowledge.graph import BY_HIT, BY_MEANING, FAN, spot_names, spot_spellings
from recollect.store.knowledge.entities import QUERIES as ENTITIES
from recollect.store.knowledge.graph import NOT_VISIBLE, QUERIES
from recollect.store.recall.columns import QUERIES as COLUMNS
from support.database.plans import MODES, blocks_of, explain, planning
from support.memories.fact_rows import open_facts

HUB, FACTS, BEAM = UUID(int=1), 4_000, 100
FILL = (
    """
    insert into entities (scope_id, id, name, normalised, type)
    select %(scope)s, lpad(to_hex(n), 32, '0')::uuid, 'Entity ' || n, 'entity ' || n, 'thing'
    from generate_series(1, 500) n
    """,
    """
    insert into memories (scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at)
    select %(scope)s, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'fact', 'fact ' || n, 5, 'test',
           50, now(), now()
    from generate_series(1, %(facts)s) n
    """,
    """
    insert into mentions (scope_id, source_id, entity_id, normalised, name)
    select scope_id, '01900000-0000-7000-8000-000000000001', id, normalised, name from entities
    """,
    # Every other fact is the hub's; of all facts, one in ten is not believed any more.
    """
    insert into beliefs (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, created_at,
                         superseded_at)
    select %(scope)s, id, id, 1, lpad(to_hex(case when n %% 2 = 0 then 1 else 2 + n %% 498 end), 32, '0')::uuid,
           'p' || n, lpad(to_hex(2 + abs(hashint4(n)) %% 498), 32, '0')::uuid, now() - interval '1 day',
           now() - interval '1 day', case when n %% 10 = 3 then now() end
    from generate_series(1, %(facts)s) n
    cross join lateral (select ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id) named
    """,
)
COPY_ELSEWHERE = """
    insert into {table} ({columns})
    select {copied} from {table} cross join generate_series(1, 100) n
    where {table}.{column} in (select {column} from {table} order by {column} limit 50)
"""
STORED = """
    select attname from pg_attribute
    where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'scope_id'
"""
COUNTED = """
    select sum(pg_stat_get_xact_numscans(oid)) filter (where relkind = 'r') as scans,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relname like 'beliefs\\_%') as facts,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relname like 'mentions\\_%') as mentions,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relname like 'entities\\_%') as entities,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relname = 'memories_pkey') as memories
    from (
        select oid, relname, relkind from pg_class where relname in ('beliefs', 'memories', 'entities', 'mentions')
        union all
        select indexrelid, indexrelid::regclass::text, 'i' from pg_index
        where indrelid = any (array['beliefs', 'memories', 'entities', 'mentions']::regclass[])
    ) counted
"""


@dataclass(frozen=True)
class Work:
    """What a query read, as the server counts it."""

    scans: int
    """How often one of the tables was read from end to end."""
    facts: int
    mentions: int
    entities: int
    memories: int


@pytest.fixture
async def hub(mind, owner):
    """A scope of many facts, half of them about one entity, without any statistics yet."""
    for table in ("beliefs", "memories", "entities", "mentions"):
        owner.execute(f"alter table {table} set (autovacuum_enabled = off)")
    rows = await open_facts(mind, owner)
    fill(owner, rows.scope_id, FACTS)
    return rows


def fill(owner, scope_id, facts):
    for statement in FILL:
        owner.execute(statement, {"scope": scope_id, "facts": facts})


@pytest.fixture(params=["without statistics", "analysed", "one scope of many"])
def statistics(request, owner, hub):
    if request.param == "one scope of many":
        owner.execute("set session_replication_role = replica")
        for table, column in (("memories", "id"), ("entities", "id"), ("mentions", "entity_id"), ("beliefs", "id")):
            others = ", ".join(f'"{name}"' for (name,) in owner.execute(STORED, [table]).fetchall())
            copied = {"columns": f"scope_id, {others}", "copied": f"scope_id + n, {others}"}
            owner.execute(COPY_ELSEWHERE.format(table=table, column=column, **copied))
    if request.param != "without statistics":
        owner.execute("analyze")


@pytest.fixture(params=MODES)
def service(addresses, mind, request):
    """A connection of the service's role, bound to the tenant, that plans with the values it sees, or without."""
    planned = f"-c plan_cache_mode={request.param}"
    with psycopg.connect(addresses.service, options=planned, prepare_threshold=0) as connection:
        connection.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
        connection.commit()
        yield connection


def read(service, query, **more):
    """Run a query and count what it read."""
    window = {"as_of": None, "at": None, "hidden": NOT_VISIBLE, "beam": BEAM, "hops": 3, "starts": [HUB]}
    # What the session read before is among the server's counts until it has been reported, a second later at most.
    before = service.execute(COUNTED).fetchone()
    rows = service.execute(query, {"agent": "ada", "user": "li"} | window | more).fetchall()
    after = service.execute(COUNTED).fetchone()
    service.rollback()
    return rows, Work(*(int((later or 0) - (earlier or 0)) for earlier, later in zip(before, after, strict=True)))


def most_facts(hops, beam=BEAM):
    """How many facts a walk may look at: each entity's share in either direction, and one in nine beyond it."""
    first = 2 * max(FAN, beam)
    later = 2 * max(FAN, beam // beam) * beam
    return (first + (hops - 1) * later) * 10 // 9 + 50


def assert_frugal(work, returned, hops):
    """Hold a walk to what it may follow, and reading its facts to one row each, with two ends."""
    assert work.scans == 0, work
    assert work.facts <= most_facts(hops) + returned, work
    assert work.memories <= returned + 1, work
    assert work.entities <= 2 * returned + 1, work


@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_a_walk_reads_what_it_may_follow(service, hub, statistics, hops):
    rows, work = read(service, QUERIES["walk"].format(allowed="null"), hops=hops)
    assert len(rows) == BEAM * hops
    assert_frugal(work, len(rows), hops)


async def test_a_walk_does_not_read_more_of_a_hub_that_has_more_facts(service, owner, hub, statistics):
    _, before = read(service, QUERIES["walk"].format(allowed="null"), hops=1)
    for table in ("mentions", "beliefs", "memories", "entities"):
        owner.execute(f"delete from {table}")
    fill(owner, hub.scope_id, 3 * FACTS)
    _, after = read(service, QUERIES["walk"].format(allowed="null"), hops=1)
    assert after.facts <= before.facts + 30


async def test_the_channel_reads_what_it_may_follow(service, hub, statistics):
    text = "what has entity 1 to do with all of this, and why do you ask me now?"
    named = spot_names(text)
    asked = {
        "scope_id": hub.scope_id,
        "names": [each.name for each in named],
        "firsts": [each.first for each in named],
        "lasts": [each.last for each in named],
        "most": 10,
        "spelled": spot_spellings(text),
        "space": None,
        "vector": None,
        "floor": 0.4,
        "shares": [BY_MEANING, BY_HIT],
        "named": 0.5,
        "cue": "a cue",
    }
    reach = CHANNEL["reach"].format(allowed="true", hits=COLUMNS["read_first_hits"])
    rows, work = read(service, reach, **asked, hops=2)
    assert len(rows) == 2 * BEAM
    assert (work.scans, work.memories) == (0, 1), "one look at what mentions the entity"
    assert work.facts <= most_facts(2)
    assert work.mentions <= 10


async def test_a_page_of_an_export_reads_as_many_facts_as_it_returns(service, hub, statistics):
    cursor = UUID("01900000-0000-7000-8000-000000000500")
    asked = {"cursor": cursor, "as_of": "infinity", "at": "infinity", "limit": 100}
    rows, work = read(service, QUERIES["page_facts"].format(allowed="null"), **asked)
    assert len(rows) == 100
    assert work.scans == 0, work
    assert work.facts <= 2 * 100 * 10 // 9 + 10, work


@pytest.mark.parametrize("index", ["beliefs_by_subject", "beliefs_by_object"])
async def test_a_walk_without_its_index_is_noticed(service, owner, hub, index):
    owner.execute(f"drop index {index}")
    rows, work = read(service, QUERIES["walk"].format(allowed="null"))
    with pytest.raises(AssertionError):
        assert_frugal(work, len(rows), 3)


async def test_names_without_their_index_are_noticed(service, owner, hub):
    owner.execute("drop index mentions_by_name")
    with pytest.raises(AssertionError):
        await test_the_channel_reads_what_it_may_follow(service, hub, None)


@pytest.mark.parametrize("mode", MODES)
async def test_a_part_of_a_name_is_looked_for_once_and_not_for_each_entity(addresses, mind, owner, hub, mode):
    """Each name is from a source of its own, so that an entity's names lie all over the index by sources."""
    owner.execute(
        "update mentions set source_id = ('01900000-0000-7000-8000-' || right(entity_id::text, 12))::uuid where true"
    )
    asked = {"agent": "ada", "user": "li", "ids": None, "type": "", "as_of": None, "cursor": UUID(int=0), "limit": 50}
    with planning(addresses, mind.access.scope.tenant_id, mode) as connection:
        found = explain(connection, ENTITIES["read"], asked | {"search": "tity 499"})
    assert found["Actual Rows"] == 1
    assert blocks_of(found) < 4_000, "a few blocks for each of 500 names, not the whole index for each"
