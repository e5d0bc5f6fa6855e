"""Reading a thread, its leaves or a page reads what it returns and little more, however long the conversation is."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.service import Scope
from recollect.store.conversations.conversations import QUERIES
from recollect.store.memories import memories
from support.database import plans

MESSAGES, STRETCH, TOKENS = 4_000, 20, 10
"""Every twentieth message begins a branch at an older one, which makes 200 of them."""
SPARE = 8
"""Rows read beyond those returned: the scope, the conversation, the leaf, and the turn that no longer fits."""
TABLES = ("messages", "memories", "conversations")
FILL_MEMORIES = """
    insert into memories (scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at)
    select %(scope)s, lpad(to_hex(%(first)s + n), 32, '0')::uuid, 'message', 'said ' || n, 5, 'test', 50, now(), now()
    from generate_series(1, %(count)s) n
"""
FILL_MESSAGES = """
    insert into messages (scope_id, id, conversation_id, number, parent_id, turn_id, role, status, occurred_at, tokens)
    select %(scope)s, lpad(to_hex(%(first)s + n), 32, '0')::uuid, %(conversation)s, n,
           lpad(to_hex(%(first)s + nullif(parent, 0)), 32, '0')::uuid,
           lpad(to_hex(%(first)s + n - (n + 1) %% 2), 32, '0')::uuid,
           case when n %% 2 = 1 then 'user' else 'assistant' end, 'done', now() + n * interval '1 ms',
           jsonb_build_object('o200k_base', %(tokens)s::integer, 'estimate', %(tokens)s::integer)
    from generate_series(1, %(count)s) n
    cross join lateral (
        -- A branch leaves the conversation at an older answer, here and there.
        select case when n %% %(stretch)s = 1 then (n - 1 - abs(hashint4(n)) %% least(n, 400)) / 2 * 2
                    else n - 1 end as parent
    ) place
"""
OTHERS = """
    insert into conversations (scope_id, id, created_at, updated_at, changed_at)
    select scope_id, 'short-' || n, now(), now() - n * interval '20 minutes', now()
    from conversations cross join generate_series(1, 500) n
"""
COPY_ELSEWHERE = """
    insert into {table}
    select (jsonb_populate_record({table}, jsonb_build_object('scope_id', {table}.scope_id + n))).*
    from {table} cross join generate_series(1, 100) n
    where {table}.id in (select id from messages where conversation_id = 'long' order by number limit 60)
"""


@dataclass(frozen=True)
class Work:
    """What a query did, as the server reports it."""

    rows: int
    """Rows that were looked at in the tables of conversations, whether they were of use or not."""
    blocks: int
    nodes: tuple[str, ...]


@pytest.fixture
async def conversation(mind, owner):
    """A conversation of many branches among others, without any statistics yet."""
    owner.execute("alter table messages set (autovacuum_enabled = off)")
    owner.execute("alter table memories set (autovacuum_enabled = off)")
    [said] = await mind.conversation("long").append(NewMessage(Role.USER, "first"))
    await mind.forget([said.id])
    fill(owner, "long", MESSAGES, STRETCH)
    owner.execute(OTHERS)
    return "long"


def fill(owner, conversation, count, stretch):
    """Write messages past every verb, which would take a minute."""
    [(scope,)] = owner.execute("select id from scopes").fetchall()
    first = owner.execute("select count(*) from messages").fetchone()[0]
    owner.execute(
        "delete from memories where id in (select id from messages where conversation_id = %s)", [conversation]
    )
    shape = {"scope": scope, "conversation": conversation, "count": count, "stretch": stretch, "tokens": TOKENS}
    for statement in (FILL_MEMORIES, FILL_MESSAGES):
        owner.execute(statement, shape | {"first": first})
    owner.execute("update conversations set last_number = %s where id = %s", [count, conversation])


@pytest.fixture(params=plans.MODES)
def service(addresses, mind, request):
    """A connection of the service's role, bound to the tenant, that plans with the values it sees, or without."""
    with plans.planning(addresses, mind.access.scope.tenant_id, request.param) as connection:
        yield connection


@pytest.fixture(params=["without statistics", "analysed", "one scope of many"])
def statistics(request, owner, conversation):
    if request.param == "one scope of many":
        owner.execute("set session_replication_role = replica")
        for table in ("memories", "messages"):
            owner.execute(COPY_ELSEWHERE.format(table=table))
    if request.param != "without statistics":
        owner.execute("analyze")


def asked(**more):
    window = {"leaf": None, "tokenizer": "o200k_base", "image_tokens": 0, "unanswered": False, "budget": 400}
    bounds = {"states": ["active", "archived"], "before": None, "before_id": "", "at": None, "limit": 20}
    named = {"ids": [], "external_ids": [], "hashes": []}
    return {"agent": "ada", "user": "li", "conversation": "long"} | window | bounds | named | more


def explain(service, query, parameters):
    plan = plans.explain(service, query, parameters)
    nodes = list(plans.flatten(plan))
    rows = sum(plans.rows_of(node) for node in nodes if is_of_conversations(node))
    names = tuple(f"{node['Node Type']} {node.get('Relation Name', '')}".strip() for node in nodes)
    return Work(rows, plans.blocks_of(plan), names)


def is_of_conversations(node):
    """A bitmap names only its index."""
    return node.get("Relation Name", node.get("Index Name", "").split("_")[0]) in TABLES


def assert_frugal(work, returned, *, each, spare=SPARE):
    """Hold a query to a few rows for each that it returns, and to a few blocks for each of those."""
    assert work.rows <= each * returned + spare, work
    assert work.blocks <= 8 * (each * returned + spare), work
    assert not [node for node in work.nodes if node.startswith("Seq Scan") and node.split()[-1] in TABLES], work


def read(service, name, **more):
    rows = service.execute(QUERIES[name], asked(**more)).fetchall()
    return rows, explain(service, QUERIES[name], asked(**more))


def leaf_ids(owner, count=12):
    found = owner.execute(
        "select id from messages leaf where conversation_id = 'long' "
        "and scope_id = (select id from scopes) "
        "and not exists (select from messages child where child.parent_id = leaf.id) order by md5(id::text) limit %s",
        [count],
    )
    return [identity for (identity,) in found.fetchall()]


async def test_history_reads_each_message_it_returns_once_in_either_table(service, owner, conversation, statistics):
    found = [read(service, "walk", leaf=leaf) for leaf in (None, *leaf_ids(owner))]
    for rows, work in found:
        assert_frugal(work, len(rows), each=2)
    assert max(len(rows) for rows, _ in found) == 400 // TOKENS + 1


async def test_history_does_not_read_more_of_a_conversation_that_is_longer(service, owner, conversation, statistics):
    works = {}
    for name, count in (("short-1", 500), ("short-2", 8_000)):
        fill(owner, name, count, count * 2)
        rows, works[count] = read(service, "walk", conversation=name)
        assert len(rows) == 400 // TOKENS + 1
    assert works[500].rows == works[8_000].rows
    assert works[8_000].blocks <= 1.5 * works[500].blocks


async def test_what_nobody_answered_is_passed_by_in_the_same_walk(service, owner, conversation, statistics):
    owner.execute("update messages set status = 'pending' where conversation_id = 'long' and number > 3990")
    rows, work = read(service, "walk")
    assert_frugal(work, len(rows), each=2)


async def test_a_page_of_messages_reads_those_it_returns_once_in_either_table(service, conversation, statistics):
    for after in (0, 2_000, MESSAGES - 5):
        rows, work = read(service, "numbered", after=after)
        assert_frugal(work, len(rows), each=3)


BAD_WALKS = {
    "looks a parent up without its key": (
        "and messages.id between walked.parent_id and walked.parent_id",
        "and messages.id::text = walked.parent_id::text",
    ),
    "never stops": ("where walked.spent <= %(budget)s or walked.turns = 0", "where true"),
    "looks a content up without its key": (
        "and memories.id between walked.id and walked.id",
        "and memories.id::text = walked.id::text",
    ),
}


@pytest.mark.parametrize("fault", BAD_WALKS)
async def test_a_walk_that_reads_too_much_is_noticed(service, owner, conversation, fault):
    owner.execute("analyze")
    good, bad = BAD_WALKS[fault]
    assert QUERIES["walk"].count(good) == 1
    query = QUERIES["walk"].replace(good, bad)
    rows = service.execute(QUERIES["walk"], asked()).fetchall()
    with pytest.raises(AssertionError):
        assert_frugal(explain(service, query, asked()), len(rows), each=2)


async def test_a_walk_without_its_index_is_noticed(service, owner, conversation):
    owner.execute("alter table messages drop constraint messages_pkey")
    rows, work = read(service, "walk")
    with pytest.raises(AssertionError):
        assert_frugal(work, len(rows), each=2)


async def test_leaves_are_found_from_the_newest_message_downwards(service, conversation, statistics):
    """What it reads is what was said since the oldest leaf that it returns."""
    rows, work = read(service, "leaves", limit=10)
    assert len(rows) == 10
    since = MESSAGES - rows[-1][1] + 1
    assert_frugal(work, since, each=2, spare=SPARE + len(rows))
    assert since <= 20 * STRETCH


async def test_a_page_reads_the_conversations_it_returns(service, conversation, statistics):
    first, work = read(service, "page", before="infinity")
    assert_frugal(work, len(first), each=1)
    rows, work = read(service, "page", before=first[-1][5], before_id=first[-1][0])
    assert {row[0] for row in rows}.isdisjoint(row[0] for row in first)
    assert (len(first), len(rows)) == (20, 20)
    assert_frugal(work, len(rows), each=1)


async def test_opening_for_an_append_reads_the_newest_message_only(service, owner, conversation, statistics):
    with service.transaction():
        rows, work = read(service, "open")
    assert_frugal(work, len(rows), each=3)
    ids = [UUID(row[0].hex) for row in service.execute(QUERIES["walk"], asked()).fetchall()][:5]
    rows, work = read(service, "anchors", ids=ids)
    assert len(rows) == 5
    assert_frugal(work, len(rows), each=1)
    # Messages that are sent again: each in either table, and once more among past versions.
    owner.execute("update messages set external_id = 'e' || number where number > 3960")
    rows, work = read(service, "repeated", external_ids=[f"e{number}" for number in range(3_961, 3_981)])
    assert len(rows) == 20
    assert_frugal(work, len(rows), each=3)


async def test_memories_are_read_with_their_conversation_and_not_the_others(service, conversation, statistics):
    ids = [row[0] for row in service.execute(QUERIES["walk"], asked()).fetchall()][:20]
    wanted = memories.RowQuery(ids)
    work = explain(service, wanted.compose(), wanted.bind(Scope(1, "ada", "li")))
    assert_frugal(work, len(ids), each=2)
