"""Whole scopes: who may export them, restore them or bring their memories as new ones, and who may erase a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from recollect.core.service.permissions import check_bounds, check_right, check_unbound, may_restore
from recollect.core.text.checks import check_line, check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import ExportReport, ExportRequest, ImportOptions, ImportResult, UserErasure
from recollect.models.service import Caller, Right, Scope
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.checked import CheckedScope, check_upload
from recollect.verbs.imports.erase import erase_user, list_erasures
from recollect.verbs.imports.exports import export
from recollect.verbs.imports.import_as_new import import_scopes_as_new
from recollect.verbs.imports.progress import Progress, ignore_progress
from recollect.verbs.imports.restore import restore
from recollect.verbs.recovery import recover, recovered

ANY_TRUST = 100
"""New memories may come from any: they get at most the trust of their caller."""


@dataclass(frozen=True, slots=True)
class Exports:
    """The exports of a tenant's scopes."""

    parts: Dependencies

    async def write_export_file(
        self, caller: Caller, order: ExportRequest, file: BinaryIO, report: Progress = ignore_progress
    ) -> ExportReport:
        """Write scopes with everything they hold to a file; deleted conversations, too, so it needs `admin`."""
        check_right(caller, Right.READ)
        check_right(caller, Right.ADMIN)
        agent, user = name_own(caller, order)
        return await export(self.parts, caller.tenant_id, replace(order, agent=agent, user=user), file, report)

    def check_import(self, caller: Caller, order: ImportOptions) -> None:
        """Check everything that can be checked before the file is read."""
        check_right(caller, Right.WRITE)
        check_line("name", order.name)
        name_own(caller, order)

    async def import_export_file(
        self,
        caller: Caller,
        order: ImportOptions,
        file: BinaryIO,
        report: Progress = ignore_progress,
        *,
        limited: bool = True,
    ) -> ImportResult:
        """Import a file: restored as it was by who may do that, else as new memories with the caller's trust."""
        self.check_import(caller, order)
        as_new = order.as_new or not may_restore(caller)
        trust = ANY_TRUST if as_new else caller.trust
        async with check_upload(file, trust, as_new=as_new, limited=limited) as export:
            targets = choose_targets(caller, order, export.scopes)
            for scope, _ in targets:
                check_bounds(caller, scope.agent, scope.user)
            if not as_new:
                restoring = partial(restore, self.parts, targets, export, report)
                return await recover(self.parts.recoveries, caller.tenant_id, restoring)
            bringing = replace(caller, origin=f"import:{order.name}")
            return await import_scopes_as_new(self.parts, bringing, targets, export, report)


@dataclass(frozen=True, slots=True)
class Erasures:
    """The erasures of a tenant's users."""

    parts: Dependencies

    @recovered
    async def forget_user(
        self, caller: Caller, user: str, report: Progress = ignore_progress, *, dry_run: bool = False
    ) -> UserErasure:
        """Erase a user over all agents for good, in every table, or only count what would go."""
        check_right(caller, Right.ADMIN)
        check_unbound(caller)
        return await erase_user(self.parts, caller, user, report, dry_run=dry_run)

    @recovered
    async def receipts(self, caller: Caller, user: str = "", limit: int = 50) -> list[UserErasure]:
        """List what erasures removed, the latest first; of one user if named."""
        check_right(caller, Right.ADMIN)
        check_unbound(caller)
        return await list_erasures(self.parts, caller, user, limit)


def name_own(caller: Caller, order: ExportRequest | ImportOptions) -> tuple[str | None, str | None]:
    """Fill in the names that a bound caller leaves out with its own; refuse others."""
    agent = caller.bounds.agent if order.agent is None else order.agent
    user = caller.bounds.user if order.user is None else order.user
    check_bounds(caller, agent, user)
    return agent, user


def choose_targets(
    caller: Caller, order: ImportOptions, scopes: Sequence[CheckedScope]
) -> list[tuple[Scope, CheckedScope]]:
    """Pair every scope of an export with the one it is imported into."""
    if order.agent is None and order.user is None:
        return [(Scope(caller.tenant_id, held.agent, held.user), held) for held in scopes]
    if len(scopes) > 1:
        raise InvalidInputError(f"The export holds {len(scopes)} scopes, which keep their names: name none.")
    held = scopes[0]
    agent = held.agent if order.agent is None else order.agent
    user = held.user if order.user is None else order.user
    check_scope(agent, user)
    return [(Scope(caller.tenant_id, agent, user), held)]
