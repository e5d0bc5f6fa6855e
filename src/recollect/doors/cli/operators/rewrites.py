"""Commands that rewrite what is stored: terms by newer rules, and tables so that no erased byte stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from recollect.doors.cli.terminal import err, out, run_on_each, table_of
from recollect.doors.words import translate
from recollect.errors import UnavailableError

if TYPE_CHECKING:
    from recollect.mind.service import Recollect

commands = typer.Typer()

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@commands.command()
def rewrite_tables(dry_run: DryRun = False) -> None:
    """Rewrite every table that can hold content, so that no erased byte stays in the data files.

    Each table is locked while it is rewritten: whoever reads or writes it waits. A plain vacuum would not do: it only
    marks the place of erased rows as free, and their bytes stay there until something else is written over them.
    """

    async def work(recollect: Recollect) -> None:
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
            raise UnavailableError("Erased content may be left in the data files; solve the above and run it again.")
        out.print("Rewritten. The write-ahead log, backups and replicas are yours to see to.")

    run_on_each(work)


@commands.command()
def rewrite_terms() -> None:
    """Fold terms, keywords, names and topics by the newest rules, where older ones folded them.

    Run it when every program that writes to the database carries the new rules: one that does not carry them stops
    writing. A scope takes no writes while it is rewritten; another run goes on where one was broken off.
    """

    async def work(recollect: Recollect) -> int:
        with Progress(TextColumn("{task.description} {task.completed}"), TimeElapsedColumn(), console=err) as progress:
            task = progress.add_task("memories rewritten:", total=None)
            return await recollect.operator.rewrite_terms(lambda memories: progress.advance(task, memories))

    out.print(translate("{count} scopes are rewritten.", count=sum(run_on_each(work))))
