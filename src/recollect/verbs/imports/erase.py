"""Erase a user over all agents, or one scope, permanently; a dry run only counts.

The call stores a receipt and queues a job in one transaction, then erases. The job finishes the rest on every server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID, uuid4

from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, NotFoundError, RecollectError, ScopeMovedError, UnavailableError
from recollect.models.imports import UserErasure
from recollect.models.service import Caller
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.database.pool import Database
from recollect.store.imports import erasures
from recollect.store.shards.servers import once_per_server
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.progress import Progress, ignore_progress
from recollect.verbs.recovery import recover

SCOPES = "scopes"
NOBODY = "Unknown user: no memories about them."
UNREPORTED = "Some shards have not confirmed the erasure yet."


async def erase_user(
    parts: Dependencies,
    caller: Caller,
    user: str,
    report: Progress = ignore_progress,
    *,
    agent: str = "",
    dry_run: bool = False,
) -> UserErasure:
    """Erase all scopes of a user, or one agent's, or only count; a job does the rest."""
    check_scope(agent or "any", user)
    if not (user or agent):
        raise InvalidInputError("user is required: an agent's own memories belong to no user")
    home = await parts.servers.home(caller.tenant_id)
    receipt = None if dry_run else await erasures.find_unfinished(home, caller.tenant_id, user, agent)
    if receipt is None:
        if dry_run or not await is_known(parts, caller.tenant_id, user, agent):
            return await preview(parts, caller, user, agent)
        receipt = uuid4()
        await erasures.begin(home, caller.tenant_id, UserErasure(receipt, user, caller.origin, 0, {}, agent=agent))
    try:
        return (await resume_erasure(parts, caller.tenant_id, receipt, report))[0]
    except RecollectError as problem:
        if not problem.unavailable:
            raise
        return await erasures.read_receipt(home, caller.tenant_id, receipt)


async def preview(parts: Dependencies, caller: Caller, user: str, agent: str) -> UserErasure:
    """Count the rows that an erasure would remove."""
    scopes, counted = 0, Counter[str]()
    for database in await parts.servers.kept(caller.tenant_id):
        some = await erasures.list_scopes(database, caller.tenant_id, user, agent)
        scopes += len(some)
        counted += Counter(await erasures.count_affected(database, caller.tenant_id, some))
    if not (scopes or agent):
        raise NotFoundError(NOBODY)
    return UserErasure(None, user, caller.origin, scopes, dict(counted), agent=agent)


async def is_known(parts: Dependencies, tenant_id: int, user: str, agent: str) -> bool:
    """Return whether a server may have data of a user; True if a server does not answer."""
    try:
        for database in await parts.servers.kept(tenant_id):
            if await erasures.list_scopes(database, tenant_id, user, agent):
                return True
    except ScopeMovedError:
        raise
    except UnavailableError:
        return True
    return False


async def resume_erasure(
    parts: Dependencies, tenant_id: int, receipt: UUID, report: Progress = ignore_progress
) -> tuple[UserErasure, bool]:
    """Erase remaining rows on every server; return the receipt, and whether all other servers have reported."""
    home, *_ = servers = await parts.servers.each(tenant_id)
    whole = await erasures.read_receipt(home, tenant_id, receipt)
    if whole.erased_at is None:
        await erase_on(parts, tenant_id, servers, whole, report)
    # Rows on former servers of the tenant are erased after the served ones.
    kept = [each for each in await parts.servers.kept(tenant_id) if await has_rows(each, tenant_id, whole)]
    if whole.erased_at is None:
        await erase_on(parts, tenant_id, kept, whole, report)
    others = [each for each in once_per_server([*servers, *kept]) if not each.is_same(home)]
    told = [await erasures.finish(each, tenant_id, receipt) for each in others]
    return await erasures.finish(home, tenant_id, receipt, told), all(each.finished_at for each in told)


async def erase_on(
    parts: Dependencies, tenant_id: int, servers: Sequence[Database], whole: UserErasure, report: Progress
) -> None:
    """Erase remaining rows on some servers; each counts its rows in the transactions that erase them."""
    for each in once_per_server(servers):
        await erasures.begin_part(each, tenant_id, whole)
    await erase_left(parts, tenant_id, servers, whole, report)


async def has_rows(database: Database, tenant_id: int, whole: UserErasure) -> bool:
    """Return whether a server has, or had before the erasure began, a scope of the user."""
    assert whole.id is not None  # noqa: S101 - only a dry run has none
    names = ((whole.user, whole.agent), (erasures.name_erased(whole.id), ""))
    return any([await erasures.list_scopes(database, tenant_id, *each) for each in names])


async def erase_left(
    parts: Dependencies, tenant_id: int, servers: Sequence[Database], whole: UserErasure, report: Progress
) -> None:
    """Erase all scopes with the user's name, and remove the objects of erased ones."""
    assert whole.id is not None  # noqa: S101 - only a dry run has none
    found = [(each, await erasures.list_scopes(each, tenant_id, whole.user, whole.agent)) for each in servers]
    number, scopes = 0, sum(len(some) for _, some in found)
    for database, some in found:
        for scope_id in some:
            await erasures.erase_scope(database, tenant_id, scope_id, whole)
            number += 1
            report(SCOPES, number, scopes)
        erased = await erasures.list_scopes(database, tenant_id, erasures.name_erased(whole.id))
        await remove_objects(replace(parts, database=database), erased)


async def remove_objects(parts: Dependencies, scopes: Sequence[int]) -> None:
    """Remove the objects of scopes; if that is not possible, the receipt stays unfinished."""
    if parts.cold is not None:
        await tiers.remove_unneeded(parts.database, parts.cold, scopes)
    elif await tiers.list_unneeded(parts.database, scopes):
        require_storage(None)


async def defer_erasure(parts: Dependencies, tenant_id: int, receipt: UUID) -> None:
    """Queue a job that resumes an erasure until every server has reported."""
    going = partial(resume_erasure, parts, tenant_id, receipt)
    try:
        _, reported = await recover(parts.recoveries, tenant_id, going)
    except ScopeMovedError as problem:
        raise UnavailableError(str(problem)) from None
    if not reported:
        raise UnavailableError(UNREPORTED)


async def list_erasures(parts: Dependencies, caller: Caller, user: str, limit: int) -> list[UserErasure]:
    """List the receipts of a tenant's erasures, latest first; of one user if named."""
    check_limit(limit)
    check_scope("any", user)
    home = await parts.servers.home(caller.tenant_id)
    return await erasures.list_receipts(home, caller.tenant_id, user, limit)
