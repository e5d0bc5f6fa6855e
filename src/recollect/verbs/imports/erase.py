"""Erase a user over all agents for good: one call, one receipt, and before it a dry run that counts."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.text.checks import check_limit, check_scope
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.imports import UserErasure
from recollect.models.service import Caller
from recollect.store.cold import tiers
from recollect.store.cold.storage import require_storage
from recollect.store.imports import erasures
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
    found = await erasures.list_scopes(parts.database, caller.tenant_id, user)
    if not found:
        raise NotFoundError("There is no such user: nobody remembers anything about them.")
    if dry_run:
        counted = await erasures.foresee(parts.database, caller.tenant_id, [scope_id for scope_id, _ in found])
        return UserErasure(None, user, caller.origin, len(found), counted)
    receipt = await erasures.begin(parts.database, caller.tenant_id, user, caller.origin)
    for number, (scope_id, _) in enumerate(found, 1):
        await erasures.erase_scope(parts.database, caller.tenant_id, scope_id, receipt)
        report(SCOPES, number, len(found))
    await remove_objects(parts, [scope_id for scope_id, _ in found])
    return await erasures.finish(parts.database, caller.tenant_id, receipt)


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
    return await erasures.list_receipts(parts.database, caller.tenant_id, user, limit)
