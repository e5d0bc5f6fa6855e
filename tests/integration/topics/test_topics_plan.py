"""A recall by topic reads the links that it may propose and hardly any other, however many the scope holds."""

from __future__ import annotations

import psycopg
import pytest

from recollect.channels.topic import MAX_LINKS, compose
from recollect.models.filters import Filter
from recollect.models.memories import NewMemory
from support.database.plans import MODES

TOPICS, LINKS = 2_000, 3_000
TABLES = ("topics", "topic_links", "related_topics", "memories")
FILL = (
    """
    insert into topics (scope_id, id, path, name)
    select %(scope)s, lpad(to_hex(n), 32, '0')::uuid, ('topic.' || n)::text::ltree, 'Topic ' || n
    from generate_series(1, %(topics)s) n
    """,
    # Every other link is the first topic's.
    """
    insert into topic_links
        (scope_id, topic_id, memory_id, activation, diffusion, independence, occurred_at, kind, trust)
    select %(scope)s, lpad(to_hex(case when n %% 2 = 0 then 1 else 2 + n %% (%(topics)s - 2) end), 32, '0')::uuid,
           ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 0.5, 0.5, 0.5,
           now() - n * interval '1 hour', 'event', 50
    from generate_series(1, %(links)s) n
    """,
    """
    insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
    select scope_id, topic_id, memory_id, lpad(to_hex(3), 32, '0')::uuid, 1 from topic_links where scope_id = %(scope)s
    """,
)
COUNTED = """
    select sum(pg_stat_get_xact_numscans(oid)) filter (where relkind = 'r') as scans,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where owner = 'topics') as topics,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where owner = 'topic_links') as links,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where owner = 'related_topics') as related,
           sum(pg_stat_get_xact_tuples_returned(oid)) filter (where owner = 'memories') as memories
    from (
        select oid, relkind::text, null as owner from pg_class where oid = any (%(tables)s::regclass[])
        union all
        select indexrelid, 'i', indrelid::regclass::text from pg_index where indrelid = any (%(tables)s::regclass[])
    ) counted
"""


@pytest.fixture
async def scope_id(mind, owner):
    for table in TABLES:
        owner.execute(f"alter table {table} set (autovacuum_enabled = off)")
    await mind.remember(NewMemory("a memory", topic="topic"))
    [(number,)] = owner.execute("select id from scopes").fetchall()
    for statement in FILL:
        owner.execute(statement, {"scope": number, "topics": TOPICS, "links": LINKS})
    return number


@pytest.fixture(params=["without statistics", "analysed"])
def statistics(request, owner, scope_id):
    if request.param == "analysed":
        owner.execute("analyze")


@pytest.fixture(params=MODES)
def service(addresses, mind, request):
    """A connection of the service's role, bound to the tenant, that plans with the values it sees, or without."""
    planned = f"-c plan_cache_mode={request.param}"
    with psycopg.connect(addresses.service, options=planned, prepare_threshold=0) as connection:
        connection.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
        connection.commit()
        yield connection


def read(service, scope_id, path, **more):
    """Run the channel's query, and count what it read."""
    asked = {
        "scope_id": scope_id,
        "paths": [path],
        "parents": ["topic"],
        "below": False,
        "related_taken": 2,
        "parent_taken": 2,
        "most": MAX_LINKS,
    }
    before = service.execute(COUNTED, {"tables": list(TABLES)}).fetchone()
    rows = service.execute(compose(Filter()), asked | more).fetchall()
    after = service.execute(COUNTED, {"tables": list(TABLES)}).fetchone()
    service.rollback()
    work = [int((late or 0) - (early or 0)) for early, late in zip(before, after, strict=True)]
    return rows, dict(zip(("scans", "topics", "links", "related", "memories"), work, strict=True))


def assert_frugal(rows, work):
    assert work["scans"] == 0, work
    assert work["links"] <= len(rows) + 10, work
    assert work["related"] <= len(rows), work
    assert work["topics"] <= 10, work
    assert work["memories"] == 0, work


async def test_a_hub_costs_what_it_may_propose(service, scope_id, statistics):
    rows, work = read(service, scope_id, "topic.1")
    assert len(rows) == MAX_LINKS + 2 + 1, "its newest links, two of the related topic, and the parent's one"
    assert_frugal(rows, work)


async def test_a_small_topic_costs_next_to_nothing(service, scope_id, statistics):
    rows, work = read(service, scope_id, "topic.7")
    assert_frugal(rows, work)
    assert work["links"] < 20


async def test_what_lies_below_is_found_by_the_path(service, scope_id, statistics):
    rows, work = read(service, scope_id, "topic", parents=[], below=True)
    assert len(rows) == MAX_LINKS + 1 + 2, "those below, its own, and two of the related topic"
    assert work["scans"] == 0, work
    assert work["topics"] <= TOPICS + 10, work
    assert work["links"] <= LINKS, work


@pytest.mark.parametrize("index", ["topic_links_by_time", "topics_scope_id_path_key"])
async def test_a_missing_index_is_noticed(service, owner, scope_id, index):
    if index == "topics_scope_id_path_key":
        owner.execute(f"alter table topics drop constraint {index}")
    else:
        owner.execute(f"drop index {index}")
    rows, work = read(service, scope_id, "topic.1")
    with pytest.raises(AssertionError):
        assert_frugal(rows, work)
