"""The command that imports a Dify database's conversations, with progress bars and a report at the end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.progress import Progress

from recollect.doors.cli.terminal import Agent, ProgressBars, Tenant, err, run, with_options
from recollect.doors.imports.reports import print_report
from recollect.mind.service import Recollect
from recollect.models.imports import DifyImport, DifyUserField, ImportReport

Dsn = Annotated[str, typer.Argument(metavar="DSN", help="Dify's database: postgresql://user@host:port/dify.")]
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


@with_options(
    app=Annotated[UUID | None, typer.Option(help="Only conversations of this Dify app.")],
    user_by=Annotated[DifyUserField | None, typer.Option(help="Field that names the user.", show_default="auto")],
    since=Annotated[
        datetime | None,
        typer.Option(help="Only conversations with a message since this time.", formats=DATES),
    ],
    dry_run=Annotated[bool | None, typer.Option("--dry-run", help="Show what would be imported; write nothing.")],
)
def import_dify(
    dsn: Dsn,
    agent: Agent,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Import conversations from a Dify database. Run again to import new ones."""
    wanted = order(dsn, agent, chosen)
    with Progress(console=err) as progress:
        steps = ProgressBars(progress)

        async def import_from_dify(recollect: Recollect) -> ImportReport:
            return await recollect.operator.imports.dify(wanted, tenant, steps)

        arrival = run(import_from_dify)
    print_report(arrival, "in Dify", dry_run=wanted.dry_run)


def order(dsn: str, agent: str, chosen: dict[str, Any]) -> DifyImport:
    """Build the options of an import; a date without a zone means UTC."""
    since: datetime | None = chosen["since"]
    if since is not None and since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    by = DifyUserField(chosen["user_by"] or DifyUserField.AUTO)
    return DifyImport(dsn, agent, chosen["app"], by, since, dry_run=bool(chosen["dry_run"]))
