"""Move conversations on that nobody used for as long as the rules say, and let old recalls and costs go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recollect.core.conversations.retention import Rules
from recollect.core.memories.ids import first_id_after
from recollect.errors import ConflictError
from recollect.jobs.settle import settle_scope
from recollect.models.conversations import Due
from recollect.models.service import Scope
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import Change
from recollect.store.database.pool import Database
from recollect.store.recall import kept_recalls
from recollect.store.service import ledger, scopes

ORIGIN = "retention"


@dataclass(frozen=True, slots=True)
class Overdue:
    """What is due, and where."""

    tenant_id: int
    scope_id: int
    due: Due


async def find_overdue(database: Database, rules: Rules) -> AsyncIterator[Overdue]:
    """Walk the tenants and find what is due in each."""
    for tenant_id in await scopes.list_tenants(database):
        after = (0, "")
        while page := await lifecycle.list_due(database, tenant_id, rules, after):
            for scope_id, due in page:
                yield Overdue(tenant_id, scope_id, due)
            after = (page[-1][0], page[-1][1].conversation)


async def move_on(database: Database, overdue: Overdue) -> None:
    """Move a conversation on, unless somebody used or moved it meanwhile."""
    scope = Scope(overdue.tenant_id, overdue.due.agent, overdue.due.user)
    wanted = Change(overdue.due.becomes, ORIGIN, overdue.due.idle_since)
    with suppress(ConflictError):
        await lifecycle.change(database, scope, overdue.due.conversation, wanted)


async def retain(database: Database, rules: Rules) -> None:
    """Move on whatever is due; the memories follow by jobs."""
    async for overdue in find_overdue(database, rules):
        await move_on(database, overdue)
    await prune_recalls(database, rules)
    await tidy_ledger(database, rules)


async def prune_recalls(database: Database, rules: Rules) -> int:
    """Let recalls go that were kept for as long as the rules say, and count them."""
    if not rules.recall_days:
        return 0
    before = first_id_after(datetime.now(UTC) - timedelta(days=rules.recall_days))
    return sum(
        [await kept_recalls.prune(database, tenant_id, before) for tenant_id in await scopes.list_tenants(database)]
    )


async def tidy_ledger(database: Database, rules: Rules) -> None:
    """Add up the costs of past days, and let those go that were kept for as long as the rules say."""
    before = datetime.now(UTC) - timedelta(days=rules.ledger_days)
    for tenant_id in await scopes.list_tenants(database):
        await ledger.fold(database, tenant_id)
        if rules.ledger_days:
            await ledger.prune(database, tenant_id, before)


async def retain_now(
    database: Database, rules: Rules, report: Callable[[int], None], *, dry_run: bool, rederive: bool
) -> list[Due]:
    """List what is due, and unless it is a dry run move it on, with all memories, reporting how many are done."""
    found = [overdue async for overdue in find_overdue(database, rules)]
    for number, overdue in enumerate(() if dry_run else found, 1):
        await move_on(database, overdue)
        await settle_scope(database, overdue.scope_id, rederive=rederive)
        report(number)
    if not dry_run:
        await prune_recalls(database, rules)
        await tidy_ledger(database, rules)
    return [overdue.due for overdue in found]
