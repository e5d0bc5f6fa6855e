"""The command that imports a Dify database's conversations, with progress bars and a report at the end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.progress import Progress

from recollect.doors.cli.terminal import Agent, Steps, Tenant, err, run, with_options
from recollect.doors.imports.reports import print_report
from recollect.mind.service import Recollect
from recollect.models.imports import DifyImport, ImportReport, UserBy

Dsn = Annotated[str, typer.Argument(metavar="DSN", help="Dify's database: postgresql://user@host:port/dify.")]
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


@with_options(
    app=Annotated[UUID | None, typer.Option(help="Only the conversations of this app of Dify's.")],
    user_by=Annotated[UserBy | None, typer.Option(help="What becomes the user.", show_default="auto")],
    since=Annotated[
        datetime | None,
        typer.Option(help="Only conversations with a message since then, but those whole.", formats=DATES),
    ],
    dry_run=Annotated[bool | None, typer.Option("--dry-run", help="Say what would be done, and write nothing.")],
)
def import_dify(
    dsn: Dsn,
    agent: Agent,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Import the conversations of a Dify database; run it again to import what is new since."""
    wanted = order(dsn, agent, chosen)
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> ImportReport:
            return await recollect.operator.imports.dify(wanted, tenant, steps)

        arrival = run(work)
    print_report(arrival, "in Dify", dry_run=wanted.dry_run)


def order(dsn: str, agent: str, chosen: dict[str, Any]) -> DifyImport:
    """Build the options of an import; a date without a zone means UTC."""
    since: datetime | None = chosen["since"]
    if since is not None and since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    by = UserBy(chosen["user_by"] or UserBy.AUTO)
    return DifyImport(dsn, agent, chosen["app"], by, since, dry_run=bool(chosen["dry_run"]))
