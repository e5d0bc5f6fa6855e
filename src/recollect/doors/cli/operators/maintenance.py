"""The command that rewrites tables, so that no erased byte stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.progress import Progress

from recollect.doors.cli.terminal import err, out, run_on_each, table_of
from recollect.errors import UnavailableError

if TYPE_CHECKING:
    from recollect.mind.service import Recollect

commands = typer.Typer()

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@commands.command()
def rewrite_tables(dry_run: DryRun = False) -> None:
    """Rewrite all tables so that no erased content remains in the data files.

    Each table is locked while it is rewritten. (A plain VACUUM only marks erased rows as free; their bytes remain
    until overwritten.)
    """

    async def confirm_and_rewrite(recollect: Recollect) -> None:
        listed = await recollect.operator.rewrite_tables(lambda _: None, dry_run=True)
        table = table_of("table", "size")
        for each in listed.tables:
            table.add_row(each.name, decimal(each.bytes))
        out.print(table)
        if dry_run:
            return
        with Progress(console=err) as progress:
            task = progress.add_task("rewriting", total=len(listed.tables))
            done = await recollect.operator.rewrite_tables(lambda _: progress.advance(task))
        for name, problem in done.left:
            err.print(f"{name}: {problem}", highlight=False, soft_wrap=True)
        if done.left:
            raise UnavailableError(
                "Erased content may remain in the data files. Fix the problems above and run the command again."
            )
        out.print("Rewritten. The write-ahead log, backups and replicas are yours to see to.")

    run_on_each(confirm_and_rewrite)
