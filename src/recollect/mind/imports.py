"""Whole scopes: who may export them, restore them or bring their memories as new ones, and who may erase a user."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from recollect.core.imports.manifest import ExportedScope, Manifest
from recollect.core.service.rights import check_bounds, check_right, check_unbound, may_restore
from recollect.core.text.checks import check_line, check_scope
from recollect.errors import InvalidInputError
from recollect.models.imports import ExportImport, ExportOrder, ExportReport, ImportOrder, UserErasure
from recollect.models.service import Caller, Right, Scope
from recollect.store.shards.servers import Servers
from recollect.verbs.imports.bring_new import bring_new
from recollect.verbs.imports.erase import erase_user, list_erasures
from recollect.verbs.imports.exports import export
from recollect.verbs.imports.progress import Progress, keep_quiet
from recollect.verbs.imports.restore import restore
from recollect.verbs.imports.zipped import open_export
from recollect.verbs.parts import Parts, awake
from recollect.verbs.service.moved import following


@dataclass(frozen=True, slots=True)
class Exports:
    """The exports of a tenant's scopes."""

    parts: Parts

    async def write(
        self, caller: Caller, order: ExportOrder, file: BinaryIO, report: Progress = keep_quiet
    ) -> ExportReport:
        """Write scopes with everything they hold to a file; deleted conversations, too, so it needs `admin`."""
        check_right(caller, Right.READ)
        check_right(caller, Right.ADMIN)
        agent, user = name_own(caller, order)
        return await export(self.parts, caller.tenant_id, replace(order, agent=agent, user=user), file, report)

    def check_import(self, caller: Caller, order: ImportOrder) -> None:
        """Refuse what can be refused before the file is read."""
        check_right(caller, Right.WRITE)
        check_line("name", order.name)
        name_own(caller, order)

    async def read(
        self, caller: Caller, order: ImportOrder, file: BinaryIO, report: Progress = keep_quiet
    ) -> ExportImport:
        """Import a file: restored as it was by who may do that, else as new memories with the caller's trust."""
        self.check_import(caller, order)
        reader = await asyncio.to_thread(open_export, file)
        targets = choose_targets(caller, order, reader.manifest)
        for scope, _ in targets:
            check_bounds(caller, scope.agent, scope.user)
        if may_restore(caller) and not order.as_new:
            return await awake(self.parts, partial(restore, self.parts, targets, reader, report))
        bringing = replace(caller, origin=f"import:{order.name}")
        return add_up([await bring_new(self.parts, bringing, target, reader, report) for target in targets])


@dataclass(frozen=True, slots=True)
class Erasures:
    """The erasures of a tenant's users."""

    parts: Parts

    @property
    def servers(self) -> Servers:
        """Return where the tenant's rows are."""
        return self.parts.servers

    @following
    async def forget_user(
        self, caller: Caller, user: str, report: Progress = keep_quiet, *, dry_run: bool = False
    ) -> UserErasure:
        """Erase a user over all agents for good, in every table, or only count what would go."""
        check_right(caller, Right.ADMIN)
        check_unbound(caller)
        return await erase_user(self.parts, caller, user, report, dry_run=dry_run)

    @following
    async def receipts(self, caller: Caller, user: str = "", limit: int = 50) -> list[UserErasure]:
        """List what erasures removed, the latest first; of one user if named."""
        check_right(caller, Right.ADMIN)
        check_unbound(caller)
        return await list_erasures(self.parts, caller, user, limit)


def name_own(caller: Caller, order: ExportOrder | ImportOrder) -> tuple[str | None, str | None]:
    """Fill in the names that a bound caller leaves out with its own; refuse others."""
    agent = caller.bounds.agent if order.agent is None else order.agent
    user = caller.bounds.user if order.user is None else order.user
    check_bounds(caller, agent, user)
    return agent, user


def choose_targets(caller: Caller, order: ImportOrder, manifest: Manifest) -> list[tuple[Scope, ExportedScope]]:
    """Pair every scope of an export with the one it is imported into."""
    if order.agent is None and order.user is None:
        return [(Scope(caller.tenant_id, held.agent, held.user), held) for held in manifest.scopes]
    if len(manifest.scopes) > 1:
        raise InvalidInputError(f"The export holds {len(manifest.scopes)} scopes, which keep their names: name none.")
    held = next(iter(manifest.scopes))
    agent = held.agent if order.agent is None else order.agent
    user = held.user if order.user is None else order.user
    check_scope(agent, user)
    return [(Scope(caller.tenant_id, agent, user), held)]


def add_up(outcomes: Sequence[ExportImport]) -> ExportImport:
    """Report on several scopes together."""
    lines, left_out = Counter[str](), Counter[str]()
    for each in outcomes:
        lines.update(each.lines)
        left_out.update(each.left_out)
    remarks = dict.fromkeys(remark for each in outcomes for remark in each.remarks)
    waiting = sum(each.waiting for each in outcomes)
    return ExportImport(len(outcomes), dict(lines), dict(left_out), waiting, tuple(remarks), restored=False)
