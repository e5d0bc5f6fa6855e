"""Hold a database against what callers were told: nothing lost, twice or back again, and every row whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
from psycopg import IsolationLevel

from support.callers.traffic import Told, texts_of
from support.service.known_numbers import VECTORS

TOLD_KINDS = "('event', 'message', 'fact')"
"""Of others, a worker makes what nobody was told of."""
SIDES = {
    "memory_features": "id", "memory_terms": "id", "memory_keywords": "id", "pending_embeddings": "id", VECTORS: "id",
    "context_vectors": "id", "evidence": "memory_id", "evidence as sources": "source_id", "accesses": "id",
    "messages": "id", "beliefs": "id", "topic_links": "memory_id", "withheld_memories": "id",
}  # fmt: skip
"""What stands beside memories, and the column that names one; only a key of idempotency outlives what is forgotten."""
COUNTED = """select id, memory_count from scopes
    where row(memory_count, event_count, thought_count, chat_count) is distinct from (
        select row(count(*), count(*) filter (where kind = 'event'), count(*) filter (where kind = 'thought'),
                   count(*) filter (where kind = 'chat'))
        from memories where scope_id = scopes.id and withheld is null)"""
STRENGTHS = """select scope_id, kind, keyword, strength::bigint from keyword_strengths
    except select scope_id, kind, keyword, count(*) from memory_keywords where counted group by 1, 2, 3"""
NUMBERS = """select scope_id, conversation_id, count(*) from messages
    group by 1, 2 having count(*) <> max(number) or count(distinct number) <> count(*)"""
BEHIND = """select scope_id, id from conversations where last_number <> (
    select count(*) from messages said
    where (said.scope_id, said.conversation_id) = (conversations.scope_id, conversations.id))"""
BARE = f"""select id from memories m where withheld is null and not (
    exists (select from memory_terms side where (side.scope_id, side.id) = (m.scope_id, m.id))
    and exists (select from memory_features side where (side.scope_id, side.id) = (m.scope_id, m.id))
    and (exists (select from {VECTORS} side where (side.scope_id, side.id) = (m.scope_id, m.id))
         or exists (select from pending_embeddings side where (side.scope_id, side.id) = (m.scope_id, m.id))))"""
WAITING = """select distinct scope_id from pending_embeddings waiting
    -- The names of entities wait for the sweep: only memories have a job at once.
    where exists (select from memories m where (m.scope_id, m.id) = (waiting.scope_id, waiting.id)) except
    select (args ->> 'scope_id')::bigint from procrastinate_jobs
    where task_name = 'embed' and status in ('todo', 'doing')"""
ITEMS = """select agent, rtrim(path, chr(31)), key, (value ->> 'number')::integer
    from items join scopes on scopes.id = scope_id"""
LOG = """select id, change_number from scopes
    where change_number <> (select count(distinct number) from changes where scope_id = scopes.id)"""


def check(dsn: str, told: Told) -> dict[str, list]:
    """Hold what a database has at one moment against what callers were told; they must have finished."""
    with psycopg.connect(dsn) as owner:
        owner.isolation_level = IsolationLevel.REPEATABLE_READ
        return find_faults(owner, told)


def find_faults(owner: psycopg.Connection, told: Told) -> dict[str, list]:
    """List what is not as it was told, by its sort; nothing where all is well."""
    found = {
        "lost": [*lost_memories(owner, told), *lost_others(owner, told)],
        "twice": find_twice(owner),
        "untold": find_untold(owner, told),
        "bare": owner.execute(BARE).fetchall(),
        "without job": owner.execute(WAITING).fetchall(),
        "miscounted": [
            row for query in (COUNTED, STRENGTHS, NUMBERS, BEHIND, LOG) for row in owner.execute(query).fetchall()
        ],
        "orphans": [row for table, column in SIDES.items() for row in find_orphans(owner, table, column)],
    }
    return {sort: rows for sort, rows in found.items() if rows}


def wanted_memories(told: Told) -> dict[str, str]:
    """Give what must be there, by id."""
    wanted = {}
    for nonce, ids in told.memories.items():
        if nonce not in told.forgotten:
            wanted |= dict(zip(ids, texts_of(nonce, len(ids)), strict=True))
    for nonce, [(question, _), (answer, _)] in told.turns.items():
        wanted |= {question: f"question {nonce}", answer: f"answer {nonce}"}
    for nonce, identity in told.facts.items():
        wanted[identity] = f"Thing {nonce}"
    return wanted


def lost_memories(owner: psycopg.Connection, told: Told) -> Iterator[str]:
    """Find what was acknowledged and is not there, or not as it was written."""
    query = "select id::text, case kind when 'fact' then object else content end from memories"
    stored = dict(owner.execute(query).fetchall())
    return (content for identity, content in wanted_memories(told).items() if stored.get(identity) != content)


def lost_others(owner: psycopg.Connection, told: Told) -> Iterator[object]:
    """Find numbers of messages, items and revocations that are not as they were told."""
    numbers = dict(owner.execute("select id::text, number from messages").fetchall())
    for turn in told.turns.values():
        yield from (each for each in turn if numbers.get(each[0]) != each[1])
    items = {(agent, path, key): number for agent, path, key, number in owner.execute(ITEMS)}
    yield from set(told.items.items()) ^ set(items.items())
    revoked = {row[0] for row in owner.execute("select id::text from api_keys where revoked_at is not null")}
    yield from told.revoked.keys() - revoked


def find_twice(owner: psycopg.Connection) -> list[str]:
    """Find what was written once and is there more often."""
    query = f"select case kind when 'fact' then object else content end from memories where kind in {TOLD_KINDS}"
    times = Counter(row[0] for row in owner.execute(query))
    return [content for content, count in times.items() if count > 1]


def find_untold(owner: psycopg.Connection, told: Told) -> list[str]:
    """Find what is there though nobody was told so: forgotten and back again, or never acknowledged."""
    wanted = wanted_memories(told)
    query = f"select id::text, content from memories where kind in {TOLD_KINDS}"
    return [content for identity, content in owner.execute(query) if identity not in wanted]


def find_orphans(owner: psycopg.Connection, table: str, column: str) -> list[tuple]:
    """Find rows beside a memory that is gone."""
    query = f"""select %s, beside.named from (select {column} as named from {table}) beside
        where not exists (select from memories m where m.id = beside.named)
          and not exists (select from entities e where e.id = beside.named) limit 9"""
    return owner.execute(query, [table]).fetchall()
