"""Upkeep jobs: fade memories, change the state of idle conversations, bring memories in line with these states."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from recollect.core.conversations.retention import RetentionRules
from recollect.core.memories.fading import policy_by
from recollect.core.service.numbers import tenant_of
from recollect.errors import ConflictError
from recollect.jobs.embed import NO_REPORT
from recollect.jobs.progress import reporting
from recollect.models.conversations import Due
from recollect.models.service import Scope
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.database.pool import Database
from recollect.store.knowledge import facts
from recollect.store.memories import accesses, fading
from recollect.store.memories.fading import Walk
from recollect.store.service import ledger, upkeep
from recollect.store.service.jobs import Lease
from recollect.store.service.scopes import BEGINNING, keep_hot

ORIGIN = "retention"
KEYS_KEPT = timedelta(days=2)
EXPIRED_KEYS_KEPT = timedelta(days=30)
SHOWN_KEPT = timedelta(days=7)
"""How long a short id of a conversation can be resolved after it was last shown."""
FOLDED_TOGETHER = 100


async def sync_scope(
    database: Database, scope_id: int, *, rederive: bool = False, report: Callable[[int], None] = NO_REPORT
) -> None:
    """Bring the memories of a scope in line with the states of its conversations; report the messages of each step."""
    while step := await lifecycle.sync_chunk(database, scope_id, rederive=rederive):
        report(step.messages)


@dataclass(frozen=True, slots=True)
class Overdue:
    """What is due, and where."""

    scope_id: int
    due: Due


async def find_overdue(database: Database, rules: RetentionRules) -> AsyncIterator[Overdue]:
    """Find the conversations of all tenants whose state is due to change, page by page."""
    after = (0, "")
    while page := await lifecycle.list_due(database, rules, after):
        for scope_id, due in page:
            yield Overdue(scope_id, due)
        after = (page[-1][0], page[-1][1].conversation)


async def move_on(database: Database, overdue: Overdue) -> None:
    """Change the state of a conversation, unless somebody used or changed it meanwhile."""
    scope = Scope(tenant_of(overdue.scope_id), overdue.due.agent, overdue.due.user)
    wanted = StateChange(overdue.due.becomes, ORIGIN, overdue.due.idle_since)
    with suppress(ConflictError):
        await keep_hot(database, partial(lifecycle.change, database, scope, overdue.due.conversation, wanted))


async def retain(database: Database, rules: RetentionRules) -> None:
    """Change the state of all conversations that are due; the memories follow by jobs."""
    async for overdue in find_overdue(database, rules):
        await move_on(database, overdue)
    await prune_recalls(database, rules)
    await tidy_ledger(database, rules)
    await prune_changes(database, rules)
    await prune_keys(database)


async def prune_recalls(database: Database, rules: RetentionRules) -> int:
    """Delete recalls that were kept for as long as the rules say, and count them."""
    if not rules.recall_days:
        return 0
    return await upkeep.prune(database, "recalls", datetime.now(UTC) - timedelta(days=rules.recall_days))


async def tidy_ledger(database: Database, rules: RetentionRules) -> None:
    """Add up the costs of past days, and delete those that were kept for as long as the rules say."""
    for tenant_id in await upkeep.list_tenants_to_add_up(database):
        await ledger.fold(database, tenant_id)
    if rules.ledger_days:
        await upkeep.prune(database, "costs", datetime.now(UTC) - timedelta(days=rules.ledger_days))


async def prune_changes(database: Database, rules: RetentionRules) -> None:
    """Delete old rows of the change log, those that a reader has not read later."""
    now = datetime.now(UTC)
    await upkeep.prune(database, "changes", now - timedelta(days=rules.change_days))
    await upkeep.prune(database, "unread_changes", now - timedelta(days=rules.unread_change_days))


async def prune_keys(database: Database) -> int:
    """Delete keys that expired long ago, and count them."""
    return await upkeep.prune(database, "expired_keys", datetime.now(UTC) - EXPIRED_KEYS_KEPT)


async def retain_now(
    database: Database, rules: RetentionRules, report: Callable[[int], None], *, dry_run: bool, rederive: bool
) -> list[Due]:
    """List what is due, and unless it is a dry run change it, with all memories, reporting how many are done."""
    found = [overdue async for overdue in find_overdue(database, rules)]
    for number, overdue in enumerate(() if dry_run else found, 1):
        await move_on(database, overdue)
        await sync_scope(database, overdue.scope_id, rederive=rederive)
        report(number)
    if not dry_run:
        await prune_recalls(database, rules)
        await tidy_ledger(database, rules)
        await prune_changes(database, rules)
        await prune_keys(database)
    return [overdue.due for overdue in found]


class Pass:
    """One pass over a scope, and how many memories it has kept so far."""

    def __init__(self, database: Database, scope_id: int) -> None:
        self.database = database
        self.scope_id = scope_id
        self.kept = 0

    async def count_left(self) -> int:
        """Count what is still to be looked at."""
        return max(await fading.count_hot(self.database, self.scope_id) - self.kept, 0)

    async def run(self, usual_days: float, lease: Lease) -> None:
        """Go from the oldest memory to the newest; a pass that was interrupted starts again, and finds less to do."""
        policy = policy_by(await fading.fetch_rules(self.database, self.scope_id, usual_days))
        walk = Walk(self.scope_id, policy, lease=lease)
        async with reporting(self.database, lease, self.count_left) as counter:
            chunk = await fading.fade_chunk(self.database, walk, BEGINNING)
            while True:
                self.kept += sum(not each.fades for each in chunk.judgements)
                counter.add(len(chunk.judgements))
                if chunk.next_cursor is None:
                    return
                chunk = await fading.fade_chunk(self.database, walk, chunk.next_cursor)


async def sweep(database: Database, *, rederive: bool) -> None:
    """Delete what is kept for a time only, and see that nothing waits without a job."""
    now = datetime.now(UTC)
    await upkeep.prune(database, "keys", now - KEYS_KEPT)
    await upkeep.prune(database, "shown_memories", now - SHOWN_KEPT)
    await facts.withhold_ended(database)
    await upkeep.defer_due(database, "embed")
    await upkeep.defer_due(database, "sync_state")
    if rederive:
        await upkeep.defer_due(database, "rederive")
    await upkeep.defer_due(database, "fade", wanted="expire")
    async for scope_ids in upkeep.walk_due(database, "fold", page=FOLDED_TOGETHER):
        await accesses.fold(database, scope_ids)
