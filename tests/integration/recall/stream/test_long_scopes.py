"""What is done to a few messages of a long scope costs what they cost, not what the scope does."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.settings import Settings
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.programs.waiting import until

MESSAGES = Sizes("messages in the scope", ci=3_000, long=8_000)
CHOSEN = Sizes("messages changed", ci=150, long=800)
BATCH = 500
"""So many messages at most follow their conversation in one step."""
ROWS = """select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_read, 0))::bigint
    from pg_stat_user_tables left join (
        select relid, sum(idx_tup_read) as idx_tup_read from pg_stat_user_indexes group by relid
    ) indexes using (relid)"""

OTHERS = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


def chain(count):
    """Alternate questions and answers."""
    roles = (Role.USER, Role.ASSISTANT)
    return [NewMessage(roles[number % 2], f"word {number}") for number in range(count)]


@pytest.fixture
def counting(addresses, embedder, owner):
    """Open a service of its own for a few calls, and count the rows that they read: when it closes, all are counted."""

    @asynccontextmanager
    async def count(rows, name):
        before = owner.execute(ROWS).fetchone()[0]
        async with connected(Settings(embedder="fake", request_timeout_seconds=60), addresses, embedder) as recollect:
            yield await recollect.mind("ada")
        await until(lambda: not owner.execute(OTHERS).fetchone()[0])
        rows[name] = owner.execute(ROWS).fetchone()[0] - before

    return count


@pytest.mark.promise("To archive, restore or forget costs what is changed, however long the scope is", MESSAGES, CHOSEN)
async def test_forgetting_and_restoring_do_not_read_the_scope_for_each_message(counting, owner, figure):
    rows = {}
    async with counting(rows, "written") as mind:
        for _ in range(MESSAGES.now // 1_000):
            await mind.conversation("long").append(chain(1_000))
        conversation = mind.conversation("branched")
        stem = await conversation.append(chain(CHOSEN.now))
        # A branch from every message: each has a child that outlives it.
        branches = [NewMessage(Role.USER, f"aside {place}", parent=each.id) for place, each in enumerate(stem)]
        kept = await conversation.append(branches)
    owner.execute("vacuum analyze")
    async with counting(rows, "archived") as mind:
        await mind.conversation("branched").update(state="archived")
    async with counting(rows, "restored") as mind:
        await mind.conversation("branched").update(state="active")
    async with counting(rows, "forgotten") as mind:
        await mind.forget([each.id for each in stem])
        leaves = (await mind.conversation("branched").get(200)).threads
    assert {leaf.id for leaf in leaves} == {each.id for each in kept[-200:]}
    figure(f"rows read: {rows}")
    changed, scope = 2 * CHOSEN.now, MESSAGES.now + 2 * CHOSEN.now
    # The scope may be read once, never for each message. What is put back is joined within its batch.
    assert max(rows["archived"], rows["forgotten"]) < 4 * scope + 20 * changed
    assert rows["restored"] < 6 * changed * min(changed, BATCH) < changed * MESSAGES.now
