"""Imports from other systems: a Dify database or a file; a dry run creates nothing, not even the tenant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from recollect.core.text.checks import check_line
from recollect.models.imports import DifyImport, Document, FileImport, ImportReport
from recollect.models.service import Caller, Right
from recollect.store.shards.tenants import Tenants
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.dify import run_import
from recollect.verbs.imports.files import import_file_entries
from recollect.verbs.imports.progress import Progress
from recollect.verbs.recovery import recover

FULL_TRUST = 100


@dataclass(frozen=True, slots=True)
class Imports:
    """Imports for an operator."""

    parts: Dependencies
    tenants: Tenants

    async def dify(self, wanted: DifyImport, tenant: str, report: Progress) -> ImportReport:
        """Import the requested data of a Dify database."""
        caller = await self._act_for(tenant, dry_run=wanted.dry_run)
        importing = partial(run_import, self.parts, caller, wanted, report)
        return await recover(self.parts.recoveries, caller.tenant_id, importing, repeats=False)

    async def file(
        self, wanted: FileImport, tenant: str, documents: Iterable[Document], report: Progress
    ) -> ImportReport:
        """Import new entries of a file, given as a sequence of documents."""
        caller = await self._act_for(tenant, dry_run=wanted.dry_run)
        importing = partial(import_file_entries, self.parts, caller, wanted, documents, report)
        return await recover(self.parts.recoveries, caller.tenant_id, importing, repeats=False)

    async def _act_for(self, tenant: str, *, dry_run: bool) -> Caller:
        check_line("tenant", tenant)
        number = await self.tenants.seek(tenant) if dry_run else await self.tenants.ensure(tenant)
        return Caller(number or 0, frozenset(Right), "library", FULL_TRUST)
