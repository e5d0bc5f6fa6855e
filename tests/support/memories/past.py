"""Facts in their versions, written past the verbs that learn them."""

from __future__ import annotations

from datetime import UTC, datetime

from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def year(number):
    return datetime(number, 1, 1, tzinfo=UTC)


def moment(owner):
    """The database's own time, once ids of this moment are no longer made."""
    return owner.execute("select clock_timestamp(), pg_sleep(0.002)").fetchone()[0]


def scope_of(mind, owner):
    named = [mind.access.scope.tenant_id, mind.access.scope.agent, mind.access.scope.user]
    query = 'select id from scopes where tenant_id = %s and agent = %s and "user" = %s'
    return owner.execute(query, named).fetchone()[0]


async def state(mind, owner, content, valid_at=None, invalid_at=None, **more):
    """Add a fact that is believed from now on; one that is over is not in the indexes."""
    [made] = await mind.remember(NewMemory(content, more.pop("kind", Kind.FACT), **more))
    add_belief(mind, owner, made.id, valid_at, invalid_at)
    return made.id


def add_belief(mind, owner, memory_id, valid_at=None, invalid_at=None, lineage=None, version=1):
    scope_id = scope_of(mind, owner)
    owner.execute(
        "insert into beliefs (scope_id, id, lineage, version, valid_at, invalid_at, created_at) "
        "select scope_id, id, %s, %s, %s, %s, created_at from memories where scope_id = %s and id = %s",
        [lineage or memory_id, version, valid_at, invalid_at, scope_id, memory_id],
    )
    if invalid_at is not None and invalid_at <= datetime.now(UTC):
        owner.execute("select withhold_memories(%s, %s, 'past')", [scope_id, [memory_id]])


async def amend(mind, owner, old, content, valid_at=None, invalid_at=None, **more):
    """Add another version of a fact, and supersede the old one."""
    scope_id = scope_of(mind, owner)
    [made] = await mind.remember(NewMemory(content, more.pop("kind", Kind.FACT), **more))
    lineage, version = owner.execute(
        "update beliefs set superseded_at = (select created_at from memories where scope_id = %s and id = %s) "
        "where scope_id = %s and id = %s returning lineage, version",
        [scope_id, made.id, scope_id, old],
    ).fetchone()
    owner.execute("select withhold_memories(%s, %s, 'past')", [scope_id, [old]])
    add_belief(mind, owner, made.id, valid_at, invalid_at, lineage, version + 1)
    return made.id


def end(owner, ids):
    """Let facts have ended just now, as if their time had come; nothing else notices."""
    ended = "update beliefs set invalid_at = clock_timestamp() where id = any (%s)"
    assert owner.execute(ended, [ids]).rowcount == len(ids)


async def versions_of(knowledge, fact_id):
    """All versions of a fact, by its ID or that of any of them, oldest first."""
    return list((await knowledge.facts(fact_id, at="any", limit=200)).facts)


async def last_chat(mind, name, **times):
    """Find the last chat with somebody."""
    chats = Filter(kinds=(Kind.CHAT,), **times)
    return next(iter((await mind.list(keyword=name, filter=chats, order="newest", limit=1)).memories), None)
