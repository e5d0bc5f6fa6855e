"""Maintenance jobs: fade memories, change the state of idle conversations, and update their memories."""

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
from recollect.models.conversations import DueConversation
from recollect.models.service import Scope
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from recollect.store.database.pool import Database
from recollect.store.knowledge import facts
from recollect.store.memories import accesses, fading
from recollect.store.memories.fading import FadePass
from recollect.store.service import ledger, maintenance
from recollect.store.service.jobs import Lease
from recollect.store.service.scopes import BEGINNING, prevent_archiving

ORIGIN = "retention"
KEYS_KEPT = timedelta(days=2)
EXPIRED_KEYS_KEPT = timedelta(days=30)
SHOWN_KEPT = timedelta(days=7)
"""How long a short ID of a conversation can be resolved after it was last shown."""
FOLDED_TOGETHER = 100


async def sync_scope(
    database: Database, scope_id: int, *, rederive: bool = False, report: Callable[[int], None] = NO_REPORT
) -> None:
    """Update the memories of a scope to the states of its conversations; report the messages of each step."""
    while step := await lifecycle.sync_chunk(database, scope_id, rederive=rederive):
        report(step.messages)


@dataclass(frozen=True, slots=True)
class DueScope:
    """A conversation that is due, and its scope."""

    scope_id: int
    due: DueConversation


async def find_overdue(database: Database, rules: RetentionRules) -> AsyncIterator[DueScope]:
    """Find the conversations of all tenants whose state is due to change, page by page."""
    after = (0, "")
    while page := await lifecycle.list_due(database, rules, after):
        for scope_id, due in page:
            yield DueScope(scope_id, due)
        after = (page[-1][0], page[-1][1].conversation)


async def apply_retention(database: Database, overdue: DueScope) -> None:
    """Change the state of a conversation, unless it was used or changed."""
    scope = Scope(tenant_of(overdue.scope_id), overdue.due.agent, overdue.due.user)
    wanted = StateChange(overdue.due.becomes, ORIGIN, overdue.due.idle_since)
    with suppress(ConflictError):
        await prevent_archiving(database, partial(lifecycle.change, database, scope, overdue.due.conversation, wanted))


async def retain(database: Database, rules: RetentionRules) -> None:
    """Change the state of all due conversations; jobs update the memories."""
    async for overdue in find_overdue(database, rules):
        await apply_retention(database, overdue)
    await prune_recalls(database, rules)
    await compact_ledger(database, rules)
    await prune_changes(database, rules)
    await prune_keys(database)


async def prune_recalls(database: Database, rules: RetentionRules) -> int:
    """Delete saved recalls after their retention time; return how many."""
    if not rules.recall_days:
        return 0
    return await maintenance.prune(database, "recalls", datetime.now(UTC) - timedelta(days=rules.recall_days))


async def compact_ledger(database: Database, rules: RetentionRules) -> None:
    """Sum up the costs of past days, and delete costs after their retention time."""
    for tenant_id in await maintenance.list_tenants_to_add_up(database):
        await ledger.fold(database, tenant_id)
    if rules.ledger_days:
        await maintenance.prune(database, "costs", datetime.now(UTC) - timedelta(days=rules.ledger_days))


async def prune_changes(database: Database, rules: RetentionRules) -> None:
    """Delete old rows of the change log; followers cannot read them later."""
    now = datetime.now(UTC)
    await maintenance.prune(database, "changes", now - timedelta(days=rules.change_days))
    await maintenance.prune(database, "unread_changes", now - timedelta(days=rules.unread_change_days))


async def prune_keys(database: Database) -> int:
    """Delete keys that expired long ago, and count them."""
    return await maintenance.prune(database, "expired_keys", datetime.now(UTC) - EXPIRED_KEYS_KEPT)


async def retain_now(
    database: Database, rules: RetentionRules, report: Callable[[int], None], *, dry_run: bool, rederive: bool
) -> list[DueConversation]:
    """List due conversations; unless it is a dry run, change them and their memories, and report progress."""
    found = [overdue async for overdue in find_overdue(database, rules)]
    for number, overdue in enumerate(() if dry_run else found, 1):
        await apply_retention(database, overdue)
        await sync_scope(database, overdue.scope_id, rederive=rederive)
        report(number)
    if not dry_run:
        await prune_recalls(database, rules)
        await compact_ledger(database, rules)
        await prune_changes(database, rules)
        await prune_keys(database)
    return [overdue.due for overdue in found]


class RetentionPass:
    """A pass over a scope, and how many memories it has kept so far."""

    def __init__(self, database: Database, scope_id: int) -> None:
        self.database = database
        self.scope_id = scope_id
        self.kept = 0

    async def count_left(self) -> int:
        """Count the memories still to judge."""
        return max(await fading.count_hot(self.database, self.scope_id) - self.kept, 0)

    async def run(self, usual_days: float, lease: Lease) -> None:
        """Judge memories from oldest to newest; an interrupted pass starts again, and finds less to do."""
        policy = policy_by(await fading.fetch_rules(self.database, self.scope_id, usual_days))
        walk = FadePass(self.scope_id, policy, lease=lease)
        async with reporting(self.database, lease, self.count_left) as counter:
            chunk = await fading.fade_chunk(self.database, walk, BEGINNING)
            while True:
                self.kept += sum(not each.fades for each in chunk.judgements)
                counter.count_more(len(chunk.judgements))
                if chunk.next_cursor is None:
                    return
                chunk = await fading.fade_chunk(self.database, walk, chunk.next_cursor)


async def delete_expired(database: Database, *, rederive: bool) -> None:
    """Delete data after its time limit, and queue jobs for all waiting work."""
    now = datetime.now(UTC)
    await maintenance.prune(database, "keys", now - KEYS_KEPT)
    await maintenance.prune(database, "shown_memories", now - SHOWN_KEPT)
    await facts.withhold_ended(database)
    await maintenance.defer_due(database, "embed")
    await maintenance.defer_due(database, "sync_state")
    if rederive:
        await maintenance.defer_due(database, "rederive")
    await maintenance.defer_due(database, "fade", wanted="expire")
    async for scope_ids in maintenance.walk_due(database, "fold", page=FOLDED_TOGETHER):
        await accesses.fold(database, scope_ids)
