"""Maintenance now instead of later: the retention rules, and tables without erased bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import err, out, run_on_each, table_of
from recollect.doors.greeting import translate
from recollect.errors import UnavailableError

if TYPE_CHECKING:
    from recollect.mind.service import Recollect

commands = typer.Typer()
retention_app = typer.Typer(no_args_is_help=True, help="Apply retention rules.")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@retention_app.command("run")
def apply_retention(dry_run: DryRun = False) -> None:
    """Apply the retention rules of all tenants now instead of waiting for the worker."""

    async def retain_conversations(recollect: Recollect) -> None:
        due = await recollect.operator.retain(dry_run=True)
        table = Table("agent", "user", "conversation", "is", "becomes", "messages", "idle since")
        for each in due:
            place = (escape(each.agent), escape(each.user), each.conversation)
            numbers = (str(each.message_count), f"{each.idle_since:%F %R}")
            table.add_row(*place, each.state, each.becomes, *numbers)
        out.print(table if due else translate("Nothing is due."))
        if due and not dry_run:
            with Progress(console=err) as progress:
                task = progress.add_task("moving on", total=len(due))
                await recollect.operator.retain(lambda done: progress.update(task, completed=done))

    run_on_each(retain_conversations)


@commands.command("vacuum-erased")
def vacuum_erased(dry_run: DryRun = False) -> None:
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


commands.add_typer(retention_app, name="retention")
