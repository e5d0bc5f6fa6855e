"""Erase a user over all agents for good: one call, one receipt, and before it a dry run that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.imports import UserErasure
from recollect.models.service import Caller
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.imports import erasures
from recollect.store.shards.servers import one_per_server
from recollect.verbs.imports.progress import Progress
from recollect.verbs.parts import Parts

SCOPES = "scopes"


async def erase_user(
    parts: Parts, caller: Caller, user: str, report: Progress, *, dry_run: bool = False
) -> UserErasure:
    """Erase everything in every scope of a user, or only count it; who is broken off goes on with the same receipt."""
    check_scope("any", user)
    if not user:
        raise InvalidInputError("name the user to erase: what agents remember alone belongs to nobody")
    home, *_ = servers = await parts.servers.each(caller.tenant_id)
    found = [
        (database, [scope_id for scope_id, _ in await erasures.list_scopes(database, caller.tenant_id, user)])
        for database in servers
    ]
    scopes = sum(len(some) for _, some in found)
    if not scopes:
        raise NotFoundError("There is no such user: nobody remembers anything about them.")
    if dry_run:
        counted = Counter[str]()
        for database, some in found:
            counted += Counter(await erasures.foresee(database, caller.tenant_id, some))
        return UserErasure(None, user, caller.origin, scopes, dict(counted))
    receipt, number = await erasures.begin(home, caller.tenant_id, user, caller.origin), 0
    for database, some in found:
        if not database.is_same(home):
            # Each server counts for itself, in the transactions that erase.
            await erasures.begin(database, caller.tenant_id, user, caller.origin, receipt)
        for scope_id in some:
            await erasures.erase_scope(database, caller.tenant_id, scope_id, receipt)
            number += 1
            report(SCOPES, number, scopes)
        await remove_objects(replace(parts, database=database), some)
    others = [each for each in one_per_server(servers) if not each.is_same(home)]
    parts_of_it = [await erasures.finish(each, caller.tenant_id, receipt) for each in others]
    return await erasures.finish(home, caller.tenant_id, receipt, parts_of_it)


async def remove_objects(parts: Parts, scopes: Sequence[int]) -> None:
    """Remove what scopes had in object storage; if that is not possible, the receipt stays unfinished."""
    if parts.cold is not None:
        await tiers.remove_unneeded(parts.database, parts.cold, scopes)
    elif await tiers.list_unneeded(parts.database, scopes):
        require_storage(None)


async def list_erasures(parts: Parts, caller: Caller, user: str, limit: int) -> list[UserErasure]:
    """List the receipts of a tenant's erasures, the latest first; of one user if named."""
    check_limit(limit)
    check_scope("any", user)
    home = await parts.servers.home(caller.tenant_id)
    return await erasures.list_receipts(home, caller.tenant_id, user, limit)
