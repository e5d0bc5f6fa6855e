"""The ledger keeps every call for two days, then sums by day, and these for as long as the operator says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.conversations.retention import RetentionRules
from recollect.jobs.maintenance import compact_ledger
from recollect.store.service.ledger import LedgerEntry, enter, fold, read_sums

LINES = "select at, step, outcome, calls, prompt_tokens, price, source_id from ledger order by at, step, outcome, id"


@pytest.fixture
async def scope(recollect, owner):
    """A scope with lines of a hundred calls a day: today, three days ago, and 500 days ago."""
    mind = await recollect.mind("ada")
    await mind.remember("Ann waters the plants")
    [scope_id] = owner.execute("select id from scopes").fetchone()
    owner.execute("delete from ledger")
    days = {0: 0, 3: 100, 500: 200}
    for number in range(300):
        outcome = "failed: ChatModelError" if number % 10 == 0 else "answered"
        step = "label" if number % 2 else "reflect"
        entry = LedgerEntry(scope_id, step, 5.0, outcome, "scripted", "1", prompt_tokens=number, price=0.5)
        await enter(recollect.parts.database, [entry])
    for back, first in days.items():
        owner.execute(
            "update ledger set at = date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * %s)"
            " + interval '1 second' * (1 + prompt_tokens - %s) where prompt_tokens between %s and %s",
            [back, first, first, first + 99],
        )
    return mind.access.scope


async def test_days_that_are_over_are_added_up_and_nothing_is_lost(recollect, owner, scope):
    database = recollect.parts.database
    before = await read_sums(database, scope.tenant_id, 600)
    await fold(database, scope.tenant_id)
    lines = owner.execute(LINES).fetchall()
    today = [line for line in lines if line[0] > datetime.now(UTC) - timedelta(days=2)]
    past = [line for line in lines if line not in today]
    assert len(today) == 100
    # Odd numbers are answered labels; even ones reflect, and every fifth of these failed.
    assert [line[1:4] for line in past] == [
        ("label", "answered", 50), ("reflect", "answered", 40), ("reflect", "failed: ChatModelError", 10),
    ] * 2  # fmt: skip
    assert sum(line[4] for line in lines) == sum(range(300))
    assert await read_sums(database, scope.tenant_id, 600) == before
    await fold(database, scope.tenant_id)
    assert owner.execute(LINES).fetchall() == lines


async def test_a_scope_that_is_enriched_again_keeps_its_lines(recollect, owner, scope):
    owner.execute(
        "insert into runs (scope_id, model, prompt_version, since) select id, 'scripted', '1', null from scopes"
    )
    await fold(recollect.parts.database, scope.tenant_id)
    assert owner.execute("select count(*) from ledger").fetchone() == (300,)


async def test_sums_go_when_their_time_is_over(recollect, owner, scope):
    await compact_ledger(recollect.parts.database, RetentionRules(ledger_days=0))
    assert owner.execute("select sum(calls) from ledger").fetchone() == (300,)
    await compact_ledger(recollect.parts.database, RetentionRules())
    assert owner.execute("select sum(calls) from ledger").fetchone() == (200,)


async def test_another_tenant_s_lines_stay_as_they_are(recollect, owner, scope):
    other = await recollect.mind("ada", tenant="other")
    await fold(recollect.parts.database, other.access.scope.tenant_id)
    assert owner.execute("select count(*) from ledger").fetchone() == (300,)
