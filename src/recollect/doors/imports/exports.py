"""The commands that import other systems' exports: one for each format, with progress bars and a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from recollect.doors.cli.terminal import Agent, ProgressBars, Tenant, User, err, run, with_options
from recollect.doors.imports.files import read_documents
from recollect.doors.imports.reports import print_report
from recollect.mind.service import Recollect
from recollect.models.imports import FileImport, Format, ImportReport, UserField

File = Annotated[Path, typer.Argument(metavar="FILE", help="Path of the export file.", exists=True, dir_okay=False)]
DryRun = Annotated[bool | None, typer.Option("--dry-run", help="Show what would be imported; write nothing.")]
ABOUT = {
    Format.MEM0: "Import memories of mem0, from a JSON file with the result of its get_all().",
    Format.LETTA: "Import memory blocks, messages and passages of a Letta agent, from its .af file.",
    Format.ZEP: "Import threads, facts and the graph of Zep, from a JSON file.",
    Format.GRAPHITI: "Import a graph of Graphiti with the times its facts are true, from a JSON file.",
    Format.CHATGPT: "Import the conversations of a ChatGPT data export, with all their branches.",
    Format.CLAUDE: "Import the conversations and the memory of a Claude data export.",
}
NAMED_BY = {
    Format.MEM0: "user-id, agent-id or run-id",
    Format.ZEP: "user-id",
    Format.GRAPHITI: "group-id",
    Format.CLAUDE: "account",
}


def build_command(wanted: Format) -> Callable[..., None]:
    """Return the command that reads one format."""
    options: dict[str, object] = {"dry_run": DryRun}
    if wanted in NAMED_BY:
        help_text = f"What of an entry becomes the user: {NAMED_BY[wanted]}; --user for entries without it."
        options = {"user_by": Annotated[UserField | None, typer.Option(help=help_text)], **options}

    @with_options(**options)
    def import_file(
        path: File,
        agent: Agent,
        user: User = "",
        tenant: Tenant = "default",
        **chosen: Any,  # noqa: ANN401 - what `with_options` names
    ) -> None:
        order = FileImport(wanted, agent, user, chosen.get("user_by"), dry_run=bool(chosen["dry_run"]))
        with Progress(console=err) as progress:
            steps = ProgressBars(progress)

            async def import_documents(recollect: Recollect) -> ImportReport:
                return await recollect.operator.imports.file(order, tenant, read_documents(path, wanted), steps)

            arrival = run(import_documents)
        print_report(arrival, "in the file", dry_run=order.dry_run)

    import_file.__doc__ = f"{ABOUT[wanted]} Run it again to import newer data."
    return import_file


def add_commands(app: typer.Typer) -> None:
    """Add a command for every format."""
    for wanted in Format:
        app.command(wanted.value)(build_command(wanted))
