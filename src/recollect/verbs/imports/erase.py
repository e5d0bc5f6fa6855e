"""Erase a user over all agents for good: one call, one receipt, and before it a dry run that counts.

The call begins a receipt and a job together, and goes on itself. What it cannot finish the job does, on every server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID, uuid4

from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, MovedError, NotFoundError, RecollectError, UnavailableError
from recollect.models.imports import UserErasure
from recollect.models.service import Caller
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.database.pool import Database
from recollect.store.imports import erasures
from recollect.store.shards.servers import one_per_server
from recollect.verbs.imports.progress import Progress, keep_quiet
from recollect.verbs.parts import Parts
from recollect.verbs.service.moved import repeat

SCOPES = "scopes"
NOBODY = "There is no such user: nobody remembers anything about them."
UNREPORTED = "Not every shard has reported yet that nothing is left there."


async def erase_user(
    parts: Parts, caller: Caller, user: str, report: Progress, *, dry_run: bool = False
) -> UserErasure:
    """Erase everything in every scope of a user, or only count it; what cannot be done now is left to a job."""
    check_scope("any", user)
    if not user:
        raise InvalidInputError("name the user to erase: what agents remember alone belongs to nobody")
    if dry_run:
        return await foresee(parts, caller, user)
    home = await parts.servers.home(caller.tenant_id)
    receipt = await erasures.find_unfinished(home, caller.tenant_id, user)
    if receipt is None:
        if not await is_known(parts, caller.tenant_id, user):
            raise NotFoundError(NOBODY)
        receipt = uuid4()
        await erasures.begin(home, caller.tenant_id, UserErasure(receipt, user, caller.origin, 0, {}))
    try:
        return (await go_on(parts, caller.tenant_id, receipt, report))[0]
    except RecollectError as problem:
        if not problem.unavailable:
            raise
        return await erasures.read_receipt(home, caller.tenant_id, receipt)


async def foresee(parts: Parts, caller: Caller, user: str) -> UserErasure:
    """Count what an erasure would remove."""
    scopes, counted = 0, Counter[str]()
    for database in await parts.servers.each(caller.tenant_id):
        some = await erasures.list_scopes(database, caller.tenant_id, user)
        scopes += len(some)
        counted += Counter(await erasures.foresee(database, caller.tenant_id, some))
    if not scopes:
        raise NotFoundError(NOBODY)
    return UserErasure(None, user, caller.origin, scopes, dict(counted))


async def is_known(parts: Parts, tenant_id: int, user: str) -> bool:
    """Tell whether anybody may remember a user: a server that does not answer may have something."""
    try:
        for database in await parts.servers.each(tenant_id):
            if await erasures.list_scopes(database, tenant_id, user):
                return True
    except MovedError:
        raise
    except UnavailableError:
        return True
    return False


async def go_on(parts: Parts, tenant_id: int, receipt: UUID, report: Progress = keep_quiet) -> tuple[UserErasure, bool]:
    """Erase what is left on every server; return the receipt, and whether all other servers have reported."""
    home, *_ = servers = await parts.servers.each(tenant_id)
    whole = await erasures.read_receipt(home, tenant_id, receipt)
    others = [each for each in one_per_server(servers) if not each.is_same(home)]
    if whole.erased_at is None:
        for each in others:
            # Each server counts for itself, in the transactions that erase.
            await erasures.begin_part(each, tenant_id, whole)
        await erase_left(parts, tenant_id, servers, whole, report)
    told = [await erasures.finish(each, tenant_id, receipt) for each in others]
    return await erasures.finish(home, tenant_id, receipt, told), all(each.finished_at for each in told)


async def erase_left(
    parts: Parts, tenant_id: int, servers: Sequence[Database], whole: UserErasure, report: Progress
) -> None:
    """Erase all scopes that still have the user's name, and remove the objects of those that had it."""
    assert whole.id is not None  # noqa: S101 - only a dry run has none
    found = [(each, await erasures.list_scopes(each, tenant_id, whole.user)) for each in servers]
    number, scopes = 0, sum(len(some) for _, some in found)
    for database, some in found:
        for scope_id in some:
            await erasures.erase_scope(database, tenant_id, scope_id, whole)
            number += 1
            report(SCOPES, number, scopes)
        erased = await erasures.list_scopes(database, tenant_id, erasures.name_erased(whole.id))
        await remove_objects(replace(parts, database=database), erased)


async def remove_objects(parts: Parts, scopes: Sequence[int]) -> None:
    """Remove what scopes had in object storage; if that is not possible, the receipt stays unfinished."""
    if parts.cold is not None:
        await tiers.remove_unneeded(parts.database, parts.cold, scopes)
    elif await tiers.list_unneeded(parts.database, scopes):
        require_storage(None)


async def go_on_later(parts: Parts, tenant_id: int, receipt: UUID) -> None:
    """Go on with an erasure as a job, until every server has reported."""
    going = partial(go_on, parts, tenant_id, receipt)
    try:
        _, reported = await repeat(going, partial(parts.servers.read_anew, tenant_id))
    except MovedError as problem:
        raise UnavailableError(str(problem)) from None
    if not reported:
        raise UnavailableError(UNREPORTED)


async def list_erasures(parts: Parts, caller: Caller, user: str, limit: int) -> list[UserErasure]:
    """List the receipts of a tenant's erasures, the latest first; of one user if named."""
    check_limit(limit)
    check_scope("any", user)
    home = await parts.servers.home(caller.tenant_id)
    return await erasures.list_receipts(home, caller.tenant_id, user, limit)
